"""The growing itself, written once: trees level by level from the best offers of all parties.

The active party drives. Its own columns and those of passive parties compete for every node by one
score; the protection decides how offers come about, nothing else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.errors import FormatError
from hedgerow.methods.fedxgboost.asking import Asking, PeerSteps
from hedgerow.methods.fedxgboost.bins import Bins, Split
from hedgerow.methods.fedxgboost.levels import (
    Found,
    Histograms,
    Level,
    root,
    search,
    sides,
    totals_of,
)
from hedgerow.methods.fedxgboost.model import SharedTree
from hedgerow.methods.fedxgboost.protections.base import ActiveSide
from hedgerow.methods.fedxgboost.protections.plain import least_weight
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.model.exact import BITS, Ints
from hedgerow.model.losses import Loss
from hedgerow.packing import pack

Floats = NDArray[np.float64]


class _Shape:
    """A tree under construction: nodes in the order in which they are made."""

    def __init__(self) -> None:
        self.owner, self.number, self.left, self.right = [-1], [-1], [-1], [-1]
        self.n_leaves = 0

    def split(self, node: int, owner: int, number: int) -> tuple[int, int]:
        self.owner[node], self.number[node] = owner, number
        children = len(self.owner), len(self.owner) + 1
        self.left[node], self.right[node] = children
        for values in (self.owner, self.number, self.left, self.right):
            values += [-1, -1]
        return children

    def leaf(self, node: int) -> int:
        self.number[node] = self.n_leaves
        self.n_leaves += 1
        return self.n_leaves - 1

    def tree(self, values: NDArray[np.float32]) -> SharedTree:
        owner, number, left, right = (
            np.array(one, np.int32) for one in (self.owner, self.number, self.left, self.right)
        )
        return SharedTree(owner, number, left, right, values)


class Booster:
    """Grows trees over the active party's bins and the offers of passive parties."""

    def __init__(
        self, bins: Bins, settings: VerticalSettings, loss: Loss, side: ActiveSide, asking: Asking
    ) -> None:
        self._bins, self._settings, self._side, self._asking = bins, settings, side, asking
        self._parties = settings.parties
        self._used = dict.fromkeys(self._parties, 0)  # splits of each party so far
        self.splits: list[Split] = []  # the active party's own
        self.trees: list[SharedTree] = []
        self.scores = np.zeros((bins.codes.n_rows, loss.n_outputs))

    def grow(self) -> PeerSteps[None]:
        """All trees."""
        for number in range(self._settings.n_trees):
            numbers = self._side.numbers(self.scores)
            yield from self._side.begin(numbers)
            shape, leaf = yield from self._tree(numbers)
            sums = kernels.sums_by_place(leaf, numbers, shape.n_leaves)
            values = self._side.values(sums, np.bincount(leaf, minlength=shape.n_leaves))
            self.scores += values[leaf]
            self.trees.append(shape.tree(values))
            self._asking.report({"tree": number + 1, "of": self._settings.n_trees})

    def _tree(self, numbers: Ints) -> PeerSteps[tuple[_Shape, Ints]]:
        """The shape of a tree, and the leaf of every row."""
        shape, level, places = _Shape(), root(len(numbers)), [0]
        leaf, histograms = np.full(len(numbers), -1, np.int64), Histograms(self._bins)
        if len(numbers) < self._settings.min_rows:
            shape.leaf(0)
            return shape, np.zeros(len(numbers), np.int64)
        for depth in range(self._settings.max_depth):
            totals = totals_of(level, numbers)
            s = self._settings
            own = search(
                histograms.of(level, numbers), self._bins.starts, self._bins.categorical, totals,
                s.reg_lambda, least_weight(s),
            )  # fmt: skip
            offers = yield from self._side.offers(level, numbers, totals)
            winner = self._winners(totals, own, offers)
            right = yield from self._sides(level, own, winner)
            last = depth + 1 == self._settings.max_depth
            level, places, leaf = self._descend(shape, level, places, leaf, winner, right, last)
            if not places:
                break
        return shape, leaf

    def _winners(self, totals: Ints, own: Found, offers: dict[str, Floats]) -> Ints:
        """Of every node: the place of the party with the best split; -1 where none is worth it."""
        s, k = self._settings, totals.shape[1] // 2
        all_scores = np.stack([own.scores, *(offers[name] for name in self._parties[1:])])
        best = np.argmax(all_scores, axis=0)  # of equal ones the first
        score = all_scores.max(axis=0)
        sums = totals * 2.0**-BITS
        below = sums[:, k:] + s.reg_lambda
        whole = np.divide(sums[:, :k] ** 2, below, out=np.zeros_like(below), where=below > 0)
        gain = 0.5 * (score - whole.sum(axis=1)) - s.gamma
        return np.where((score >= 0) & (gain > 0), best, -1)

    def _sides(self, level: Level, own: Found, winner: Ints) -> PeerSteps[NDArray[np.uint8]]:
        """Which way every row of a split node goes; asks only the owners of the splits."""
        right = np.zeros(len(level.node), np.uint8)
        messages = {}
        for place, name in enumerate(self._parties):
            nodes = np.flatnonzero(winner == place)
            if not len(nodes):
                continue
            if place == 0:
                self.splits += own.splits(self._bins, nodes.tolist())
                right[_rows_of(level, nodes)] = sides(self._bins, level, own, nodes.tolist())
            else:
                arrays = {"nodes": nodes, **self._side.choice(name, nodes)}
                messages[name] = pack({"kind": "split"}, arrays)
        answers = (yield from self._asking.ask(messages, "sides")) if messages else {}
        for name, answer in answers.items():
            mine = _rows_of(level, np.flatnonzero(winner == self._parties.index(name)))
            bits = answer.array("bits", np.uint8, (-(-int(mine.sum()) // 8),))
            right[mine] = np.unpackbits(bits, bitorder="little")[: int(mine.sum())]
        return right

    def _descend(
        self, shape: _Shape, level: Level, places: list[int], leaf: Ints, winner: Ints,
        right: NDArray[np.uint8], last: bool,
    ) -> tuple[Level, list[int], Ints]:  # fmt: skip
        """Open nodes of the next level; rows of the others get their leaf."""
        n = level.n_nodes
        sizes = np.bincount(level.node.astype(np.int64) * 2 + right, minlength=2 * n + 2)
        after, leaves = np.full(2 * n + 2, -1, np.int64), np.full(2 * n + 2, -1, np.int64)
        opened: list[int] = []
        parents: list[int] = []
        for node in range(n):
            owner = int(winner[node])
            if owner < 0:
                leaves[2 * node : 2 * node + 2] = shape.leaf(places[node])
                continue
            party = self._parties[owner]
            children = shape.split(places[node], owner, self._used[party])
            self._used[party] += 1
            for side, child in enumerate(children):
                size = int(sizes[2 * node + side])
                if size == 0:
                    raise FormatError(f"a split of {party} sends all rows one way. The run ends.")
                if last or size < self._settings.min_rows:
                    leaves[2 * node + side] = shape.leaf(child)
                else:
                    after[2 * node + side] = len(opened)
                    opened.append(child)
                    parents.append(node)
        at = level.node.astype(np.int64) * 2 + right
        leaf = np.where(leaves[at] >= 0, leaves[at], leaf)
        nodes = np.where(after[at] >= 0, after[at], len(opened)).astype(np.uint16)
        return Level(nodes, np.array(parents, np.int64)), opened, leaf


def _rows_of(level: Level, nodes: Ints) -> NDArray[np.bool_]:
    chosen = np.zeros(level.n_nodes + 1, np.bool_)
    chosen[nodes] = True
    return chosen[level.node]
