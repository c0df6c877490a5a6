"""What a plan will send at most: rounds and bytes of one party, known before anyone is asked.

A bound from the plan's counts: 8 bytes a coordinate of an answer, 21 bytes a node of a tree, 4 a
cut, and a fixed overhead for every message. Nothing here sees a row or a party.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.errors import PlanError
from hedgerow.model.losses import Squared, loss_for
from hedgerow.model.tree import member_words
from hedgerow.packing import canonical_json
from hedgerow.privacy.accounting.budget import AdaptiveSlots, Slot
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.settings import settings_table
from hedgerow.privacy.settings.methods import FEW_ROUNDS
from hedgerow.queries import QUERIES
from hedgerow.queries.strategy import MOST as MOST_MATRICES
from hedgerow.queries.strategy import WIDEST as WIDEST_MATRIX

OPENING_ROUNDS = 2  # open and join; between sites also show and leave
LONGEST_NAME = 40  # letters, where the names of the parties are not known yet
COORDINATE = 8  # bytes: an answer is a vector of uint64
# Bytes of messages beside what is counted: keys and hashes as hex, a signature of 128 letters,
# the seal, names and shapes of arrays. Tests compare the sums with what is really carried.
OPENED, ANSWER = 1_200, 440  # sent
OPENING, ANNOUNCEMENT, QUESTION = 600, 520, 850  # received
TREE_ARRAYS, COLUMN_ARRAYS = 270, 220
MEASURES = 8 * 64 + 200  # edges between scores, and weights, of a question about predictions
NODE = 21  # column, threshold, missing_left, left, right, start of its category set
SIGMA = 25  # letters of one number of the noise
# About columns, not about trees.
LISTED = ("column-sums", "fine-column-sums", "column-hessians", "column-counts")
GROWING = ("node-histograms", "split-choices", "class-histograms", "impurity-bounds")  # about both
LEAVES = ("leaf-sums", "leaf-averages")


@dataclass(frozen=True)
class Traffic:
    """Rounds and bytes of a run in which nobody is lost, without what a transport adds.

    A round is one message to every party and its reply.
    """

    questions: int  # rounds that ask about rows, at most
    sent: int  # bytes that one party sends over the run, at most
    received: int  # bytes that one party receives over the run, at most

    @property
    def rounds(self) -> int:
        return self.questions + OPENING_ROUNDS


def traffic(plan: Plan, schema: Schema, parties: int | Sequence[str]) -> Traffic:
    """The most that a run of the plan sends, over parties of these names or over so many.

    Trees that stop early, and slots that are priced during the run, send less. A party that is
    lost costs the attempt that is asked again, and later questions name it; a model that the run
    builds on travels once more. Only the joining grows with the number of parties. Between sites
    parties also show and leave each other heads of their ledgers: two more rounds, in which a party
    sends about 1.2 kB and receives about 2.1 kB for every other one. They are not counted here.

    >>> from hedgerow import Privacy, Schema, plan_for
    >>> schema = Schema.from_bounds({"age": (0, 110)}, classes=[0, 1])
    >>> plan = plan_for(schema, Privacy(1.0, 1e-5), "dp-tr-newton", {"n_trees": 10})
    >>> bound = traffic(plan, schema, ["a", "b", "c"])
    >>> bound.rounds, bound.sent
    (12, 8171)
    """
    names = [" " * LONGEST_NAME] * parties if isinstance(parties, int) else list(parties)
    longest = max(len(name) for name in names)
    sizes = _Sizes(plan, schema)
    sent = OPENED + longest + plan.n_slots * (ANSWER + longest)
    received = OPENING + len(canonical_json(plan.to_dict())) + len(names) * ANNOUNCEMENT
    received += sum(map(len, names)) + plan.n_slots * (QUESTION + len(plan.run)) + sizes.published()
    for slot in plan.slots:
        sent += COORDINATE * slot.coordinates
        received += sizes.query(slot)
    adaptive = plan.budget.adaptive
    sent += COORDINATE * adaptive.coordinates
    received += sizes.adaptive(adaptive)
    return Traffic(plan.n_slots, sent, received)


class _Sizes:
    """Bytes of what questions are about: columns with their cuts, and trees."""

    def __init__(self, plan: Plan, schema: Schema) -> None:
        self._plan = plan
        # What a method does not have counts at its default, which is large enough.
        self._given = given = settings_table(plan.settings)
        loss = Squared() if given["loss"] == "squared" else loss_for(schema.label)
        # Leaves of these labels are never asked for.
        usual = schema.label.task != "survival" and schema.label.loss is None
        update = given["update"] if usual else "gradient"
        self._width, self._n_outputs = loss.bound(update).width, loss.n_outputs
        self._n_columns = len(schema.columns)
        grid, most = base_grid(schema), int(given["n_bins"]) - 1
        cuts = sum(min(most, len(column.edges)) for column in grid if column.ordered)
        cells = sum(column.n_cells for column in grid if not column.ordered)
        self._n_bins = cuts + cells + 2 * self._n_columns
        # Of every column: number, counts of cuts and bins, matrix, weight, noise.
        self._columns = COLUMN_ARRAYS + self._n_columns * (4 * 4 + 8 + 2 * SIGMA) + 4 * cuts
        words = max(member_words(column) for column in schema.columns)
        self._leaf = 2 * NODE + 8 * words  # with the split above it
        self._full = int(2 ** given["max_depth"])
        self._root: dict[str, int] = {}  # the fewest coordinates of slots of this name
        for slot in plan.slots:
            smallest = self._root.get(_stem(slot), slot.coordinates)
            self._root[_stem(slot)] = min(smallest, slot.coordinates)

    def query(self, slot: Slot) -> int:
        """Bytes of the query of a slot: of its columns, and of its trees."""
        if slot.kind not in QUERIES:
            raise PlanError(f"slot {slot.name!r} asks for {slot.kind!r}, whose size is not known")
        if slot.kind in LISTED:
            return self._columns
        if slot.kind not in GROWING + LEAVES:
            return MEASURES
        leaf = self._leaf
        if slot.kind == "split-choices":  # which cuts are possible in it
            leaf += self._n_bins
        elif slot.kind in ("class-histograms", "impurity-bounds"):  # its price and columns
            leaf += 16 + SIGMA + 4 * self._n_columns
        columns = 0 if slot.kind in LEAVES else self._columns
        return columns + TREE_ARRAYS + self._leaves(slot) * leaf

    def _leaves(self, slot: Slot) -> int:
        """Leaves that a question is about; the first of a growing tree is about its root."""
        if slot.kind == "leaf-sums":
            return math.ceil(slot.coordinates / self._width)
        if slot.name == "leaves":
            return self._full
        return math.ceil(slot.coordinates / self._root[_stem(slot)])

    def published(self) -> int:
        """Bytes of trees with their values: the last batch, and a forest, travel to nobody."""
        given, kinds = self._given, {slot.kind for slot in self._plan.slots}
        if given["update"] == "averaging" or not kinds & {*LEAVES, *GROWING[:2]}:
            return TREE_ARRAYS
        per_batch = self._plan.settings.trees_per_round
        batches = math.ceil(int(given["n_trees"]) / per_batch) - 1
        tree = self._full * (self._leaf + 4 * self._n_outputs)
        return TREE_ARRAYS * (batches + 1) + batches * per_batch * tree

    def adaptive(self, adaptive: AdaptiveSlots) -> int:
        """Bytes of the questions priced during the run.

        A cell of a table is two coordinates and two nodes of a tree that travels twice, a bin one
        coordinate and two or three nodes of a tree that travels once. Questions about all columns
        may have a strategy matrix for each; no plan asks more than ten of them. With many rounds
        a cell of a table is one coordinate.
        """
        nodes = 4 if self._plan.settings.most_rounds > FEW_ROUNDS else 3
        tree = nodes * (self._leaf - NODE) + 4 * self._n_outputs
        matrices = min(adaptive.slots, 10) * min(self._n_columns, MOST_MATRICES) * WIDEST_MATRIX**2
        return adaptive.slots * (2_500 + self._columns) + adaptive.coordinates * tree + matrices


def _stem(slot: Slot) -> str:
    """The name of a slot without its level."""
    return slot.name.rstrip("0123456789")
