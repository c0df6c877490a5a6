"""Columns cut into several parts at once: the step functions and tables of the default method.

A tree node has two children, so a column of P parts becomes a small search tree. Leaves are told
apart by the part (or the cell of several columns) that they stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.binning import ColumnGrid
from hedgerow.growing.cart import Cut, GrowingTree, member_set
from hedgerow.model.tree import Structure
from hedgerow.schema import Schema

Ints = NDArray[np.int64]
_NONE = np.zeros(0, np.uint64)


@dataclass(frozen=True, eq=False)
class Parts:
    """How one column is cut: the part of each bin, the last bin that of missing values.

    Bins of an ordered column lie between its `cuts` (indices of edges) and have parts that do not
    fall; missing values have a part of their own or share one.
    """

    column: int
    cuts: tuple[int, ...]
    part: NDArray[np.int64]  # (bin,), missing last

    @property
    def n_parts(self) -> int:
        return int(self.part.max()) + 1


def structure_of(
    schema: Schema, grid: Sequence[ColumnGrid], columns: Sequence[Parts]
) -> tuple[Structure, NDArray[np.int64]]:
    """A tree whose leaves are the cells of several columns' parts, and the cell of each leaf.

    A cell may have several leaves (a bin on both sides of an auxiliary cut). Missing values of a
    column that cannot be cut share the leaf of its one bin.
    """
    cuts: list[Cut | None] = [None]  # distinct ones; the first is that of leaves
    nodes = [np.array([first], np.int64) for first in (0, -1, -1)]  # cut, left, right: (node,)
    leaves, cells = np.zeros(1, np.int64), np.zeros(1, np.int64)  # (leaf,)
    for parts in columns:
        branch, found = _branch(schema, grid, parts)
        place = _places(leaves, len(nodes[0]), len(branch.cuts))
        nodes = _grafted(nodes, place, branch, len(cuts))
        cuts += branch.cuts
        ends, part = np.array(found, np.int64).T
        leaves = place[:, ends].ravel()
        cells = (cells[:, None] * parts.n_parts + part).ravel()
    return _assembled(cuts, *nodes), cells[np.argsort(leaves)]


def _places(leaves: Ints, n_nodes: int, size: int) -> Ints:
    """Where the nodes of a branch go that is put in place of every leaf: (leaf, node of it).

    Its root takes the leaf's place, the others follow behind all nodes.
    """
    behind = n_nodes + np.arange(len(leaves) * (size - 1)).reshape(len(leaves), size - 1)
    return np.concatenate([leaves[:, None], behind], axis=1)


def _grafted(nodes: Sequence[Ints], place: Ints, branch: GrowingTree, n_cuts: int) -> list[Ints]:
    """Cuts and children of a tree's nodes after a branch was put in place of its leaves."""
    left, right = np.array(branch.children, np.int64).T
    own = np.array([0 if c is None else n_cuts + k for k, c in enumerate(branch.cuts)], np.int64)
    fresh = (own, np.where(left < 0, -1, place[:, left]), np.where(right < 0, -1, place[:, right]))
    out = []
    for before, of_branch in zip(nodes, fresh, strict=True):
        whole = np.empty(len(before) + len(place) * (place.shape[1] - 1), np.int64)
        whole[: len(before)] = before
        whole[place] = of_branch
        out.append(whole)
    return out


def _assembled(cuts: Sequence[Cut | None], cut: Ints, left: Ints, right: Ints) -> Structure:
    """Nodes that share their cuts as flat arrays: `cut` says which one, 0 at leaves."""
    words = [_NONE if c is None else c.members for c in cuts]
    lengths = np.array([len(w) for w in words], np.int64)
    table = np.zeros((len(cuts), int(lengths.max())), np.uint64)
    for row, own in zip(table, words, strict=True):
        row[: len(own)] = own
    used = np.arange(table.shape[1]) < lengths[cut, None]  # (node, word)
    return Structure(
        feature=np.array([-1 if c is None else c.column for c in cuts], np.int32)[cut],
        threshold=np.array([0 if c is None else c.threshold for c in cuts], np.float32)[cut],
        missing_left=np.array([0 if c is None else c.missing_left for c in cuts], np.uint8)[cut],
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        member_start=np.concatenate([[0], np.cumsum(lengths[cut])]).astype(np.int32),
        members=table[cut][used],
    )


def _branch(
    schema: Schema, grid: Sequence[ColumnGrid], parts: Parts
) -> tuple[GrowingTree, list[tuple[int, int]]]:
    """One column's parts as a tree of its own, with (leaf, part) pairs."""
    tree = GrowingTree()
    if grid[parts.column].ordered:
        return tree, _cut_ordered(grid[parts.column], tree, 0, parts)
    return tree, _cut_categories(schema, tree, 0, parts)


def _cut_ordered(
    grid: ColumnGrid, tree: GrowingTree, node: int, parts: Parts
) -> list[tuple[int, int]]:
    inner, missing = parts.part[:-1], int(parts.part[-1])
    ends = np.flatnonzero(np.diff(inner))  # the last bin of every interval but the last
    edges = [parts.cuts[b] for b in ends]
    owners = [int(inner[b]) for b in ends] + [int(inner[-1])]
    if not edges and missing != owners[0] and len(grid.edges):
        edges, owners = [0], [owners[0], owners[0]]  # an auxiliary cut, to tell missing apart
    thresholds = [float(grid.edges[e]) for e in edges]
    found: list[tuple[int, int]] = []

    def cut(node: int, low: int, high: int, holds_missing: bool) -> None:
        """Intervals low .. high - 1 lie in this node, and missing values if it holds them."""
        shared = missing in owners[low:high]
        if high - low == 1 and (not holds_missing or shared or not thresholds):
            found.append((node, owners[low]))
        elif high - low == 1:
            # Every value of this node lies on one side of the edge; missing goes to the other.
            above = low < len(thresholds)
            edge = thresholds[low] if above else thresholds[low - 1]
            left, right = tree.split(node, Cut(parts.column, edge, _NONE, not above))
            found.extend([(left, owners[low] if above else missing)])
            found.extend([(right, missing if above else owners[low])])
        else:
            middle = (low + high) // 2
            goes_left = missing not in owners[middle:high]
            left, right = tree.split(
                node, Cut(parts.column, thresholds[middle - 1], _NONE, goes_left)
            )
            cut(left, low, middle, holds_missing and goes_left)
            cut(right, middle, high, holds_missing and not goes_left)

    cut(node, 0, len(owners), True)
    return found


def _cut_categories(
    schema: Schema, tree: GrowingTree, node: int, parts: Parts
) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    inner, missing = parts.part[:-1], int(parts.part[-1])

    def cut(node: int, chosen: list[int]) -> None:
        if len(chosen) == 1:
            found.append((node, chosen[0]))
            return
        right = chosen[len(chosen) // 2 :]  # of all parts, those from its first to its last
        members = member_set(schema, parts.column, (inner >= right[0]) & (inner <= right[-1]))
        left_node, right_node = tree.split(
            node, Cut(parts.column, 0.0, members, missing not in right)
        )
        cut(left_node, chosen[: len(chosen) // 2])
        cut(right_node, right)

    cut(node, sorted({int(p) for p in parts.part}))
    return found
