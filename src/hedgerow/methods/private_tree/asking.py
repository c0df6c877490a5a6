"""The questions of a growing tree: some of its leaves, some columns of each, a price a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.coordinator.gate import Gate
from hedgerow.errors import SlotSpent
from hedgerow.methods.maddock.candidates import Cuts
from hedgerow.methods.maddock.growing_tree import GrowingTree
from hedgerow.methods.maddock.splits.growth import Floats
from hedgerow.methods.private_tree.nodes import Node
from hedgerow.privacy.accounting.pure import LEAST_PRICE
from hedgerow.queries import ClassHistograms, ImpurityBounds, SumQuery
from hedgerow.queries.tree_nodes import NO_COLUMN, Asked

DEAREST = 50.0  # epsilon of a number beyond which its noise is 0 all but once in e^50


@dataclass(frozen=True, eq=False)
class Wanted:
    """A leaf, columns of it, and what may be paid for all of them together."""

    node: Node
    columns: tuple[int, ...]
    budget: float

    @property
    def price(self) -> float:
        return min(self.budget / len(self.columns), DEAREST)


@dataclass(frozen=True, eq=False)
class Found:
    """What was released of one leaf: values, and the variance of the noise in each."""

    node: Node
    columns: tuple[int, ...]
    values: list[Floats]  # of each column: one bound, or counts (class, bin)
    variance: float


class Asking:
    """Asks through the gate; a question without a leaf passes its slot over, for nothing."""

    def __init__(self, gate: Gate, tree: GrowingTree, cuts: Cuts, subsets: bool) -> None:
        self._gate, self._tree, self._cuts = gate, tree, cuts
        self._n_classes, self._subsets = len(gate.schema.label.classes), subsets

    def counts(self, nodes: Sequence[tuple[Node, float]]) -> list[Found]:
        """How many rows of each class leaves hold."""
        return self.histograms([Wanted(node, (NO_COLUMN,), budget) for node, budget in nodes])

    def histograms(self, wanted: Sequence[Wanted]) -> list[Found]:
        """Class counts by bin of each column."""
        wanted, asked = self._priced(wanted)
        if not asked:
            return []
        schema = self._gate.schema
        query = ClassHistograms.of(schema, self._tree.structure(), asked, self._cuts)
        answers = []
        for one, values, variance in self._release(query, wanted):
            widths = [query.width(j) for j in one.columns]
            parts = np.split(values, self._n_classes * np.cumsum(widths)[:-1])
            shaped = [part.reshape(self._n_classes, -1) for part in parts]
            answers.append(Found(one.node, one.columns, shaped, variance))
        return answers

    def bounds(self, wanted: Sequence[Wanted]) -> list[Found]:
        """How low each column could bring the impurity of a leaf."""
        wanted, asked = self._priced(wanted)
        if not asked:
            return []
        used = tuple(sorted({j for one in asked for j in one.columns}))
        cuts = tuple(tuple(self._cuts[j]) for j in used)
        structure, k = self._tree.structure(), self._n_classes
        query = ImpurityBounds(structure, tuple(asked), used, cuts, k, self._subsets)
        return [
            Found(one.node, one.columns, list(values[:, None]), variance)
            for one, values, variance in self._release(query, wanted)
        ]

    def _priced(self, wanted: Sequence[Wanted]) -> tuple[list[Wanted], list[Asked]]:
        """What can be paid for; passes the slot over if nothing can."""
        affordable = [w for w in wanted if w.columns and w.price >= LEAST_PRICE]
        if not affordable:
            self._gate.pass_over()
            return [], []
        leaf = self._tree.structure().leaf
        asked = [Asked(int(leaf[w.node.number]), w.columns, w.price) for w in affordable]
        return affordable, asked

    def _release(
        self, query: SumQuery, wanted: Sequence[Wanted]
    ) -> list[tuple[Wanted, Floats, float]]:
        for one in wanted:
            one.node.pay(one.price * len(one.columns))  # also if the answer is lost: it was charged
        try:
            release = self._gate.release(query)
        except SlotSpent:
            return []
        ends = np.cumsum([block.size for block in query.blocks])[:-1]
        parts = np.split(release.values, ends)
        return [
            (one, part, deviation**2)
            for one, part, deviation in zip(wanted, parts, release.sigmas, strict=True)
        ]
