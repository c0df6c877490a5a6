"""What a plan will send: rounds and bytes of a party, known before anyone is asked.

Messages of the real wire are built around stand-ins and measured; arrays count by their shapes,
which follow from the plan. Nothing here sees a row or a party.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Categorical, Numeric, Ordinal, Schema
from hedgerow.errors import PlanError
from hedgerow.model.losses import Loss, Squared, loss_for
from hedgerow.model.stacking import stack, stack_trees
from hedgerow.model.tree import member_words, single_leaf
from hedgerow.packing import canonical_json
from hedgerow.privacy.accounting.plan import Plan, Rest, Slot
from hedgerow.privacy.noise.mechanisms import MAX_BITS
from hedgerow.protocol import messages
from hedgerow.protocol.identity import Announcement
from hedgerow.protocol.masks import SEAL_BYTES
from hedgerow.protocol.messages import Ask, Message
from hedgerow.protocol.replies import Answer
from hedgerow.queries import (
    ColumnCounts,
    ColumnHessians,
    ColumnSums,
    EnsembleRef,
    LabelSums,
    LeafAverages,
    LeafSums,
    NodeHistograms,
    ScoreCounts,
    SumQuery,
    query_bytes,
)
from hedgerow.queries.noise import Noise
from hedgerow.queries.stand_ins import (
    CHOICES,
    KINDS,
    LONGEST_MECHANISM,
    LONGEST_NUMBER,
    OUTCOMES,
    choice_stand_in,
    gradients_stand_in,
    outcomes_stand_in,
    tree_stand_in,
)
from hedgerow.queries.strategy import MOST as MOST_MIXES
from hedgerow.queries.strategy import WIDEST as WIDEST_MIX

OPENING_ROUNDS = 2  # open and join
LONGEST_NAME = 40  # letters, where the names of the parties are not known yet
_HASH, _SIGNATURE, _NONCE = "0" * 64, "0" * 128, "0" * 32
_STARTS = 9_999  # of a party's process, counted in its announcement
_ROWS = 9_999_999_999  # of a party, visible where nobody is trusted
_ONE_LEAF = single_leaf(np.zeros(1))
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Traffic:
    """Rounds and bytes of a run in which nobody is lost; `parties` send and receive as much each.

    A round is one message to every party and its reply. Sizes are those of hedgerow's messages,
    without what a transport adds.
    """

    parties: int
    questions: int  # rounds that ask about rows, at most
    sent: int  # bytes that one party sends over the run, at most
    received: int  # bytes that one party receives over the run, at most

    @property
    def rounds(self) -> int:
        return self.questions + OPENING_ROUNDS

    @property
    def total_sent(self) -> int:
        return self.parties * self.sent

    @property
    def total_received(self) -> int:
        return self.parties * self.received


def traffic(plan: Plan, schema: Schema, parties: int | Sequence[str]) -> Traffic:
    """The traffic of a plan over parties of these names, or over so many.

    It is an upper bound. Totally random trees over public cuts have fixed shapes: there an answer
    is exact but for the digits of a party's starts and (under trust `nobody`) rows, and, if only
    the number of parties is given, the letters of their names. A question is exact but for the
    digits of its noise and the category sets of its trees, which count as the schema's widest.
    Trees that learn their splits or cuts may stop early and then send less. A party that is lost
    costs the attempt that is asked again, at most `spare` times, and its opening and joining.
    Slots that are priced during the run count with all numbers that the plan allows them. A model
    that the run builds on travels once, on top of it all.

    >>> from hedgerow.privacy.accounting.plan import Wish, make_plan
    >>> from hedgerow.privacy.settings import Privacy, Settings
    >>> schema = Schema.from_bounds({"age": (0, 110)}, classes=[0, 1])
    >>> wishes = [Wish("batch of 1", "leaf-sums", 0.1, 32, repeat=10)]
    >>> settings, privacy = Settings(n_trees=10, start_share=0.0), Privacy(1.0, 1e-5)
    >>> plan = make_plan(schema.hash, "auto", settings, privacy, wishes, seed=1, run="example")
    >>> found = traffic(plan, schema, ["a", "b", "c"])
    >>> found.rounds, found.sent
    (12, 8003)
    """
    if isinstance(parties, int):
        parties = [f"{i:0{LONGEST_NAME}}" for i in range(parties)]
    names = tuple(sorted(parties))
    longest = max(names, key=len)
    sizes = _Sizes(plan, schema, names)
    sent, received = _opening(plan, names, longest)
    for index, slot, asked in _walk(plan, schema):
        received += sizes.question(slot, _widest(index), asked)
        sent += sizes.answer(slot, longest)
    if plan.rest is not None:
        more_sent, more_received = sizes.later(plan.rest, longest)
        sent, received = sent + more_sent, received + more_received
    return Traffic(len(names), plan.n_slots, sent, received)


def _opening(plan: Plan, names: Sequence[str], longest: str) -> tuple[int, int]:
    """Bytes that the party of the longest name sends and receives until it may be asked."""

    def announcement(name: str) -> dict[str, Any]:
        keys = (_HASH, plan.hash, plan.schema_hash, _HASH)
        return Announcement(name, _STARTS, _STARTS, *keys, _SIGNATURE).to_dict()

    announced = [announcement(name) for name in names]
    received: dict[str, dict[str, Any]] = {
        "open": {"plan": plan.to_dict(), "roster": _HASH, "nonce": _NONCE},
        "join": {"run": plan.run, "announcements": announced},
    }
    sent: dict[str, dict[str, Any]] = {
        "opened": {"announcement": announcement(longest)},
        "joined": {"run": plan.run},
    }
    return _plain(sent), _plain(received)


def _plain(bodies_of: Mapping[str, dict[str, Any]]) -> int:
    bodies = [messages.plain(type_, values) for type_, values in bodies_of.items()]
    signed = [Message(one.type, one.body, _SIGNATURE, request=_HASH) for one in bodies]
    return sum(len(message.to_bytes()) for message in signed)


@dataclass(frozen=True)
class _Trees:
    """Trees by number and by leaves of all of them together."""

    n_trees: int = 0
    n_leaves: int = 0

    def shapes(self, words: int) -> dict[str, Shape]:
        """Shapes of the stacked arrays; a split may need `words` words for its categories."""
        nodes, splits = 2 * self.n_leaves - self.n_trees, self.n_leaves - self.n_trees
        other = {
            "member_start": nodes + self.n_trees,
            "members": words * splits,
            "nodes": self.n_trees,
            "words": self.n_trees,
        }
        return {name: (other.get(name, nodes),) for name in stack([])}


@dataclass(frozen=True)
class _Asked:
    """The trees that a question refers to, and those of them that travel with it."""

    length: int = 0
    first: int = 0  # of those that travel
    carried: _Trees = _Trees()


def _walk(plan: Plan, schema: Schema) -> Iterator[tuple[int, Slot, _Asked]]:
    """Slots in order. Trees travel once, with the first question after they were published."""
    settings, loss = plan.settings, _loss_of(plan, schema)
    kinds = (LeafSums.kind, NodeHistograms.kind, *CHOICES)
    about_trees = [slot.kind in kinds for slot in plan.slots]
    batches = math.ceil(settings.n_trees / settings.trees_per_round)
    per_batch = math.ceil(sum(about_trees) / batches)
    n_start = LabelSums(len(schema.label.classes)).blocks[0].size
    starts = settings.start_share > 0 or bool(np.any(loss.start(np.zeros(n_start), 1.0)))
    fresh = _Trees(1, 1) if starts and settings.update != "averaging" else _Trees()
    length = fresh.n_trees
    asked = 0  # questions about the trees of this batch so far
    for index, slot in enumerate(plan.slots):
        if slot.kind in (LabelSums.kind, ColumnCounts.kind, *KINDS, *OUTCOMES):
            yield index, slot, _Asked()
            continue
        first = length - fresh.n_trees
        yield index, slot, _Asked(_widest(length), _widest(first), fresh)
        fresh = _Trees()
        asked += about_trees[index]
        if asked == per_batch and settings.update != "averaging":
            asked, fresh = 0, _batch_of(slot, plan, schema)
            length += fresh.n_trees


def _batch_of(slot: Slot, plan: Plan, schema: Schema) -> _Trees:
    """The trees that a batch adds, at their largest."""
    full = 2**plan.settings.max_depth
    if plan.settings.split != "totally-random" or slot.kind == LeafAverages.kind:
        return _Trees(1, full)
    n_leaves = slot.coordinates // loss_for(schema.label).bound(plan.settings.update).width
    return _Trees(max(1, n_leaves // full), n_leaves)


class _Sizes:
    """Lengths of questions and answers of one plan."""

    def __init__(self, plan: Plan, schema: Schema, names: tuple[str, ...]) -> None:
        self._plan, self._schema, self._names = plan, schema, names
        loss, settings = _loss_of(plan, schema), plan.settings
        self._loss, self._update = loss, settings.update
        self._width, self._n_outputs = loss.bound(settings.update).width, loss.n_outputs
        sets = [member_words(c) for c in schema.columns if isinstance(c, Categorical)]
        self._words = max(sets, default=0)
        self._columns = min(settings.features_per_tree or len(schema.columns), len(schema.columns))
        histograms = [s.coordinates for s in plan.slots if s.kind == NodeHistograms.kind]
        self._root = min(histograms, default=1)  # numbers of the root's histogram
        self.question = lru_cache(maxsize=None)(self._question)
        self.answer = lru_cache(maxsize=None)(self._answer)

    def _answer(self, slot: Slot, name: str) -> int:
        trust, numbers = self._plan.privacy.trust, slot.coordinates
        if slot.kind == ColumnHessians.kind:  # a narrow column has fewer edges than may be asked
            numbers = min(numbers, sum(self._bins(Numeric).values()))
        source = "none" if trust == "coordinator" else "secure"
        rows = _ROWS if trust == "nobody" else 0
        body = Answer(name, source, np.zeros(0, np.uint64), n_rows=rows).body
        # One number more than was asked checks the masks; that is there already.
        more = _growth({"total": np.zeros(1, np.uint64)}, {"total": (numbers + 1,)})
        return _sealed("answer", SEAL_BYTES + len(body) + more)

    def later(self, rest: Rest, name: str) -> tuple[int, int]:
        """Bytes of the slots priced during the run: sent and received.

        A cell of a table is two numbers, and two nodes of a tree that travels twice: in the
        question and then with its values. A bin is one number, and two nodes (three where missing
        values need their own) of a tree that travels once. Questions about all columns may have
        mixes; no plan asks more than ten of them.
        """
        bare = self.answer(Slot("later", "later", rest.mu, 0), name)
        label = LabelSums(len(self._schema.label.classes))
        question = self.question(Slot("later", label.kind, rest.mu, 2), 99, _Asked(99_999, 99_999))
        tree = 3 * (21 + 8 * self._words) + 4 * self._n_outputs
        n_columns = len(self._schema.columns)
        received = rest.slots * (question + 4096 + 64 * n_columns) + rest.coordinates * tree
        received += min(rest.slots, 10) * min(n_columns, MOST_MIXES) * WIDEST_MIX**2
        return rest.slots * bare + 8 * rest.coordinates, received

    def _bins(self, *sorts: type[Numeric] | type[Ordinal]) -> dict[int, int]:
        """The most bins that cuts can make of each column of these sorts."""
        n_bins, grid = self._plan.settings.n_bins, base_grid(self._schema)
        return {
            j: min(n_bins, len(grid[j].edges) + 1)
            for j, column in enumerate(self._schema.columns)
            if isinstance(column, sorts) and len(grid[j].edges)
        }

    def _question(self, slot: Slot, index: int, asked: _Asked) -> int:
        query, shapes = self._stand_in(slot, EnsembleRef(asked.length, _HASH))
        plain = query_bytes(query)
        length = len(plain) + _growth(query.parts()[1], shapes)
        n_blocks = shapes["leaves"][0] if slot.kind in KINDS else len(query.blocks)
        sigmas, privacy = (LONGEST_NUMBER,) * n_blocks, self._plan.privacy
        mechanism = LONGEST_MECHANISM if slot.kind in CHOICES else "gaussian"
        noise = Noise(slot.mu, MAX_BITS, sigmas, mechanism)
        c, run = privacy.colluding, self._plan.run
        joined = _HASH if privacy.trust == "parties" else ""
        ask = Ask(run, index, 1, self._names, query, noise, c, joined, _HASH)
        body = len(ask.body()) + _growth({"query": _of(plain)}, {"query": (length,)})
        return _sealed("ask", body, asked.first, self._carried(asked))

    def _carried(self, asked: _Asked) -> dict[str, Shape]:
        trees = asked.carried
        if not trees.n_trees:
            return {}
        return {**trees.shapes(self._words), "values": (trees.n_leaves, self._n_outputs)}

    def _stand_in(self, slot: Slot, ensemble: EnsembleRef) -> tuple[SumQuery, dict[str, Shape]]:
        """A small query of the slot's kind, and the shapes that its arrays will have."""
        loss, update, k = self._loss.name, self._update, self._columns
        if slot.kind == LabelSums.kind:
            return LabelSums(len(self._schema.label.classes)), {}
        if slot.kind == ColumnCounts.kind:
            price = LONGEST_NUMBER if self._plan.branches is not None else 0.0
            return ColumnCounts.for_cuts(self._schema, self._plan.settings.n_bins, price), {}
        if slot.kind == ColumnHessians.kind:
            bins = self._bins(Numeric)
            shapes: dict[str, Shape] = {"cuts": (sum(bins.values()) - len(bins),)}
            return ColumnHessians(tuple(bins), ((),) * len(bins), loss, ensemble), shapes
        if slot.kind == LeafSums.kind:
            n_leaves = slot.coordinates // self._width
            random = self._plan.settings.split == "totally-random"
            n_trees = n_leaves // 2**self._plan.settings.max_depth if random else 1
            trees = _Trees(max(1, n_trees), n_leaves)
            return LeafSums((), loss, ensemble, update), trees.shapes(self._words)
        if slot.kind == NodeHistograms.kind:
            trees = _Trees(1, slot.coordinates // self._root)
            bins = self._bins(Numeric, Ordinal)
            shapes = {**trees.shapes(self._words), "cuts": (sum(bins.values()) - len(bins),)}
            columns = (tuple(range(k)), ((),) * k, (0,) * k)
            return NodeHistograms(_ONE_LEAF.structure, *columns, loss, ensemble, update), shapes
        if slot.kind == ColumnSums.kind:  # a bin is a number at least
            m = len(self._schema.columns)
            columns, weights = (tuple(range(m)), ((),) * m, (0,) * m), (1.0,) * m
            query = ColumnSums(*columns, weights, loss, ensemble)
            return query, {"cuts": (max(0, slot.coordinates - m),)}
        if slot.kind == ScoreCounts.kind:
            return ScoreCounts(2, (), ensemble), {"edges": (max(0, slot.coordinates // 2 - 1),)}
        if slot.kind in OUTCOMES:
            return outcomes_stand_in(slot.kind, len(self._schema.label.classes), ensemble)
        if slot.kind in KINDS:
            return self._about_a_tree(slot)
        if slot.kind in CHOICES:
            return self._choices(slot, ensemble)
        raise PlanError(f"slot {slot.name!r} asks for {slot.kind!r}, whose size is not known")

    def _about_a_tree(self, slot: Slot) -> tuple[SumQuery, dict[str, Shape]]:
        """Of a level, one number of leaves; the first question of a name is about the root."""
        same = [s.coordinates for s in self._plan.slots if s.name == slot.name]
        n_leaves = math.ceil(slot.coordinates / min(same))
        if slot.name == "leaves":
            n_leaves = 2**self._plan.settings.max_depth
        n_bins, root = self._plan.settings.n_bins, _ONE_LEAF.structure
        query, shapes = tree_stand_in(slot.kind, self._schema, n_bins, n_leaves, root)
        return query, {**shapes, **_Trees(1, n_leaves).shapes(self._words)}

    def _choices(self, slot: Slot, ensemble: EnsembleRef) -> tuple[SumQuery, dict[str, Shape]]:
        """Of cuts that are drawn: the first level is about the root, leaves all there can be."""
        same = [s.coordinates for s in self._plan.slots if s.kind == slot.kind]
        n_leaves = math.ceil(slot.coordinates / min(same))
        if slot.kind == LeafAverages.kind:
            n_leaves = 2**self._plan.settings.max_depth
        n_bins, root = self._plan.settings.n_bins, _ONE_LEAF.structure
        gradients = gradients_stand_in(self._loss.name, ensemble)
        about = (slot.kind, self._schema, n_bins, n_leaves, root, gradients)
        query, shapes = choice_stand_in(*about)
        return query, {**shapes, **_Trees(1, n_leaves).shapes(self._words)}


def _loss_of(plan: Plan, schema: Schema) -> Loss:
    """Two classes can be asked about as numbers."""
    return Squared() if plan.settings.loss == "squared" else loss_for(schema.label)


def _sealed(
    type_: str, body: int, trees_from: int = 0, trees: Mapping[str, Shape] | None = None
) -> int:
    """Length of a signed message with a body of that length and trees of those shapes."""
    one = (_ONE_LEAF,) if trees else ()
    request = _HASH if type_ == "answer" else ""
    length = len(Message(type_, b"", _SIGNATURE, trees_from, one, request).to_bytes())
    length += _growth({"body": _of(b"")}, {"body": (body,)})
    return length + (_growth(stack_trees(one), trees) if trees else 0)


def _growth(arrays: Mapping[str, NDArray[Any]], shapes: Mapping[str, Shape]) -> int:
    """By how much a packed message grows if its arrays take these shapes."""
    more = 0
    for name, shape in shapes.items():
        array = arrays[name]
        more += len(canonical_json(list(shape))) - len(canonical_json(list(array.shape)))
        more += (math.prod(shape) - array.size) * array.itemsize
    return more


def _widest(number: int) -> int:
    """A number of as many digits: messages of equal length are measured once."""
    return int("9" * len(str(number)))


def _of(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)
