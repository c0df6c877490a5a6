"""Partially random trees: the best of one random cut per column in every open node."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Categorical
from hedgerow.methods.maddock.growing_tree import GrowingTree
from hedgerow.methods.maddock.splits.drawing import can_be_cut, drawn_sides
from hedgerow.methods.maddock.splits.growth import Growth, Known, Offer, cut_of
from hedgerow.model.splitting import Histogram
from hedgerow.queries import LeafSums

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_SIDES = np.array([False, True])  # a histogram with one bin for each side of a cut


def random_offers(growth: Growth, nodes: list[int]) -> dict[int, list[Offer]]:
    """Ask about one random cut of every column in every open node: a tree a column."""
    trees, drawn = [], []
    for place in range(len(growth.columns)):
        tree = growth.grown.tree.copy()
        mine = {node: _draw(growth, growth.grown.nodes[node], place) for node in nodes}
        for node, right in mine.items():
            if right is not None:
                tree.split(node, cut_of(growth.schema, growth.cuts, growth.columns[place], right))
        trees.append(tree)
        drawn.append(mine)
    parts = _leaf_sums(growth, trees)
    leaves = [tree.structure().leaf for tree in trees]
    offers: dict[int, list[Offer]] = {}
    for node in nodes:
        released = []
        for tree, leaf, part in zip(trees, leaves, parts, strict=True):
            # A column without a cut still says what the node holds.
            ways = [child for child in tree.children[node] if child >= 0] or [node]
            possible = np.ones(len(ways), np.bool_)
            released.append(Histogram.of(part[:, leaf[ways]], possible, growth.variance))
        agreed = zip(growth.agreed(node, released), drawn, strict=True)
        offers[node] = [
            Offer(place, histogram, mine[node], _SIDES)
            for place, (histogram, mine) in enumerate(agreed)
            if mine[node] is not None
        ]
    return offers


def _leaf_sums(growth: Growth, trees: list[GrowingTree]) -> list[Floats]:
    """Sums of every tree: (number, leaf)."""
    structures = tuple(tree.structure() for tree in trees)
    query = LeafSums(structures, growth.loss, growth.gate.ensemble, growth.settings.update)
    release = growth.gate.release(query)
    growth.variance = release.unit**2
    sums = release.values.reshape(growth.bound.width, -1)  # (number, leaf of all trees)
    ends = np.cumsum([structure.n_leaves for structure in structures])
    return np.split(sums, ends[:-1], axis=1)


class OneColumn:
    """Over one column nothing is chosen: all cuts are drawn first, and its leaves asked at once.

    What the sums say is whether a cut gains; if not, its node stays a leaf.
    """

    def __init__(self, growth: Growth) -> None:
        self.growth, self.tree = growth, GrowingTree()
        self.rights: dict[int, Bools] = {}  # node of the drawn tree -> bins that go right
        below: dict[int, Known] = dict(growth.grown.nodes)
        for node in range(2**growth.settings.max_depth - 1):
            right = _draw(growth, below[node], 0) if node in below else None
            if right is None:
                continue
            cut = cut_of(growth.schema, growth.cuts, growth.columns[0], right)
            self.rights[node] = right
            for child, side in zip(self.tree.split(node, cut), (~right, right), strict=True):
                below[child] = Known((below[node].possible[0] & side,))
        self.sums: Floats | None = None

    def offers(self, nodes: list[int], asks: bool) -> dict[int, list[Offer]]:
        if asks:
            (self.sums,) = _leaf_sums(self.growth, [self.tree])
        twins = {0: 0}  # node -> its node in the drawn tree, of which some branches are closed
        for node, children in enumerate(self.growth.grown.tree.children):
            if children[0] >= 0:
                twins.update(zip(children, self.tree.children[twins[node]], strict=True))
        return {node: self._offer(twins[node]) for node in nodes}

    def _offer(self, node: int) -> list[Offer]:
        left, right = self.tree.children[node]
        if left < 0 or self.sums is None:
            return []
        goes = self._under(right)  # (leaf of the drawn tree,)
        histogram = Histogram.of(self.sums, self._under(left) | goes, self.growth.variance)
        return [Offer(0, histogram, self.rights[node], goes)]

    def _under(self, node: int) -> Bools:
        """Which leaves of the drawn tree lie under a node."""
        leaf, open_nodes = self.tree.structure().leaf, [node]
        under = np.zeros(len(self.tree.leaves), np.bool_)
        while open_nodes:
            one = open_nodes.pop()
            if self.tree.children[one][0] < 0:
                under[leaf[one]] = True
            else:
                open_nodes += self.tree.children[one]
        return under


def _draw(growth: Growth, known: Known, place: int) -> Bools | None:
    """A random cut with rows possible on both sides, as bins that go right; or None."""
    possible, column = known.possible[place], growth.schema.columns[growth.columns[place]]
    if not can_be_cut(possible):
        return None
    ordered, categories = not isinstance(column, Categorical), growth.settings.category_split
    return drawn_sides(possible, ordered, categories, growth.rng)
