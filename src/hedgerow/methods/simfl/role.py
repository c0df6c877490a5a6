"""SimFL as one party's role: facts, hashes, similar rows, then trees in turns (algorithm 2).

The others add up their gradients by the rows that are most similar; the party whose turn it is
grows a tree on its own rows with all of these sums and sends it to all: two steps a tree. With
`leaves` = "all" it sends the tree without values, the others send their sums by leaf, and it
answers with the values: four steps.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError, SettingsError
from hedgerow.methods.simfl import messages as post
from hedgerow.methods.simfl.boosting import Grower, from_wire, to_wire
from hedgerow.methods.simfl.finding import Finding
from hedgerow.methods.simfl.neighbours import Neighbours
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.model.exact import gradients, leaf_values
from hedgerow.model.losses import loss_for
from hedgerow.model.routing import routes_of
from hedgerow.model.tree import Structure, Tree
from hedgerow.protocol.peer_messages import check_senders
from hedgerow.protocol.roles import Agreement, Step, Store

Words = NDArray[np.uint64]
Stage = Callable[[Mapping[str, bytes]], Step]


class SimilarityRole:
    """One party's side of a run; the same steps in one process and over an engine."""

    def __init__(
        self, name: str, rows: Rows, schema: Schema, agreement: Agreement, store: Store
    ) -> None:
        self.settings = SimilaritySettings.from_dict(agreement.settings)
        _check_place(name, rows, schema, agreement)
        self._name, self._rows, self._schema = name, rows, schema
        self._parties, self._loss = agreement.parties, loss_for(schema.label)
        self._others = tuple(other for other in self._parties if other != name)
        self._scores = np.zeros((rows.n_rows, self._loss.n_outputs))  # (row, output)
        self._numbers: NDArray[np.int64] | None = None
        self._grower = Grower(rows, schema)
        self._shares = self.settings.similarity and bool(self._others)
        if self._shares:
            self._finding = Finding(name, rows, schema, agreement, self.settings, store)
        self._stage: Stage = self._greet if self._shares else self._give
        self._asked = -1  # the tree that is being grown
        self.trees: list[Tree] = []
        self.sent: Counter[str] = Counter()  # bytes by kind of message
        self.processor: dict[str, float] = {}  # seconds by stage

    @property
    def neighbours(self) -> dict[str, Neighbours]:
        """The most similar rows of each other party, once they were searched."""
        return self._finding.neighbours if self._shares else {}

    @property
    def width(self) -> float:
        """r, once it is known."""
        return self._finding.width if self._shares else 0.0

    def step(self, messages: Mapping[str, bytes]) -> Step:
        """Read what the others wrote in the last step, by party; write the next messages."""
        begin, name = time.process_time(), self._stage.__name__.strip("_")
        taken = self._stage(messages)
        self.processor[name] = self.processor.get(name, 0.0) + time.process_time() - begin
        return taken

    def _greet(self, messages: Mapping[str, bytes]) -> Step:
        """Say how many rows there are and how far apart they lie: r follows from it."""
        check_senders(messages, set(), "none")
        self._stage = self._hash
        return self._to_all("facts", self._finding.facts())

    def _hash(self, messages: Mapping[str, bytes]) -> Step:
        """The union of all hash tables is gathered by everyone."""
        check_senders(messages, set(self._others), "facts")
        self._stage = self._search
        return self._to_all("tables", self._finding.hashes(messages))

    def _search(self, messages: Mapping[str, bytes]) -> Step:
        """Find the most similar rows, and tell each party which of its rows these are."""
        check_senders(messages, set(self._others), "tables")
        self._stage = self._give
        return self._write("places", self._finding.search(messages))

    def _give(self, messages: Mapping[str, bytes]) -> Step:
        """Read the last tree (or, at first, the places), and send sums to whose turn it is."""
        if self._asked >= 0 or not self._shares:
            self._read_tree(messages)
        else:
            check_senders(messages, set(self._others), "places")
            self._named = {
                other: post.read_places(other, messages[other], self._rows.n_rows)
                for other in self._others
            }
        if len(self.trees) == self.settings.n_trees:
            self._stage = self._rest
            return Step(done=True)
        self._stage, self._asked = self._grow, len(self.trees)
        turn = self._turn(self._asked)
        if turn == self._name or not self._shares:
            return Step()
        sums = self._sums_for(turn)
        return self._write("sums", {turn: post.sums_message("sums", self._asked, to_wire(sums))})

    def _sums_for(self, turn: str) -> NDArray[np.int64]:
        """Own gradients added up by the rows of another party that are most similar."""
        places, n = self._finding.places[turn], self._finding.n_places[turn]
        return kernels.sums_by_place(places, self._gradients(), n)

    def _grow(self, messages: Mapping[str, bytes]) -> Step:
        """Grow a tree on own rows if it is this party's turn."""
        number, settles = self._asked, self._shares and self.settings.leaves == "all"
        self._stage = self._count if settles else self._give
        if self._turn(number) != self._name:
            check_senders(messages, set(), "none")
            return Step()
        due = self._others if self._shares else ()
        check_senders(messages, set(due), "sums")
        numbers = self._gradients().copy()  # (row, number)
        for other in due:
            shape = (len(self._named[other]), numbers.shape[1])
            n_rows = self._finding.n_rows[other]
            sums = post.read_sums(other, "sums", messages[other], number, shape, n_rows)
            numbers[self._named[other]] += from_wire(sums, self.settings.similar_weight)
        tree, leaf = self._grower.tree(numbers, self.settings.rule)
        self._leaf = leaf.astype(np.int64)
        if not settles:
            return self._publish(tree)
        self._structure = tree.structure
        return self._to_all("trees", post.shape_message(number, tree.structure, self._schema))

    def _count(self, messages: Mapping[str, bytes]) -> Step:
        """Add up own gradients by leaf of the tree that another party has shaped."""
        self._stage, turn = self._settle, self._turn(self._asked)
        if turn == self._name:
            check_senders(messages, set(), "none")
            return Step()
        check_senders(messages, {turn}, "shape")
        number, deepest = self._asked, self.settings.max_depth
        self._structure = post.read_shape(turn, messages[turn], number, self._schema, deepest)
        self._leaf = self._leaves(self._structure)
        message = post.sums_message("leaves", self._asked, to_wire(self._leaf_sums()))
        return self._write("leaves", {turn: message})

    def _settle(self, messages: Mapping[str, bytes]) -> Step:
        """Set the leaf values from the sums of all parties."""
        self._stage = self._give
        if self._turn(self._asked) != self._name:
            check_senders(messages, set(), "none")
            return Step()
        check_senders(messages, set(self._others), "leaves")
        total = self._leaf_sums()
        for other in self._others:
            n_rows = self._finding.n_rows[other]
            total += from_wire(
                post.read_sums(other, "leaves", messages[other], self._asked, total.shape, n_rows)
            )
        rule = self.settings.rule
        values = leaf_values(total, rule.learning_rate, rule.reg_lambda)
        return self._publish(Tree(self._structure, values))

    def _publish(self, tree: Tree) -> Step:
        """Send a tree that this party has grown, or what others do not know of it yet."""
        whole = post.tree_message(self._asked, tree, self._schema)
        settled = self._shares and self.settings.leaves == "all"
        message = post.values_message(self._asked, tree.values) if settled else whole
        self._add(tree)
        return Step(self._to_all("trees", message).messages, report=whole)

    def _rest(self, messages: Mapping[str, bytes]) -> Step:
        check_senders(messages, set(), "none")
        return Step(done=True)

    def _read_tree(self, messages: Mapping[str, bytes]) -> None:
        """Add the tree that another party grew in the last step, if one did."""
        number, k = self._asked, self._loss.n_outputs
        last = self._turn(number) if number >= 0 else self._name
        if last == self._name:
            check_senders(messages, set(), "none")
            return
        check_senders(messages, {last}, "tree")
        if self._shares and self.settings.leaves == "all":
            self._add(post.read_values(last, messages[last], number, self._structure, k))
            return
        tree = post.read_tree(last, messages[last], number, self._schema, k)
        self._leaf = self._leaves(tree.structure)
        self._add(tree)

    def _leaves(self, structure: Structure) -> NDArray[np.int64]:
        """The leaf of every own row."""
        number = np.zeros((self._rows.n_rows, 1))
        own = np.arange(structure.n_leaves, dtype=np.float32)[:, None]  # exact up to 2**24
        routes = routes_of([structure], base_grid(self._schema))
        routes.add_scores(self._rows.codes, number, own)
        return number[:, 0].astype(np.int64)

    def _leaf_sums(self) -> NDArray[np.int64]:
        return kernels.sums_by_place(self._leaf, self._gradients(), self._structure.n_leaves)

    def _add(self, tree: Tree) -> None:
        self._scores += tree.values[self._leaf]
        self._numbers = None
        self.trees.append(tree)

    def _gradients(self) -> NDArray[np.int64]:
        if self._numbers is None:
            self._numbers = gradients(self._loss, self._scores, self._rows.target)
        return self._numbers

    def _turn(self, tree: int) -> str:
        return self._parties[self.settings.turn(tree, len(self._parties))]

    def _to_all(self, kind: str, message: bytes) -> Step:
        return self._write(kind, dict.fromkeys(self._others, message))

    def _write(self, kind: str, messages: Mapping[str, bytes]) -> Step:
        self.sent[kind] += sum(len(message) for message in messages.values())
        return Step(messages)


def _check_place(name: str, rows: Rows, schema: Schema, agreement: Agreement) -> None:
    if name not in agreement.parties:
        raise SettingsError(f"{name!r} is not a party of the agreement. Nothing was sent.")
    if schema.hash != agreement.schema_hash or rows.schema not in ("", schema.hash):
        raise FormatError(
            f"the rows of {name} were read by another schema than the agreement's. Nothing was "
            "sent. Read them again by the schema that was agreed on."
        )
    if len(rows.target) != rows.n_rows:
        raise FormatError(f"the rows of {name} have no labels. Nothing was sent.")
