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
    tree = GrowingTree()
    cells = {0: 0}
    for parts in columns:
        branch, leaves = _branch(schema, grid, parts)
        fresh = {}
        for node, cell in cells.items():
            place = tree.graft(node, branch)
            for leaf, part in leaves:
                fresh[place[leaf]] = cell * parts.n_parts + part
        cells = fresh
    return tree.structure(), np.array([cells[leaf] for leaf in tree.leaves], np.int64)


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
        right = chosen[len(chosen) // 2 :]
        members = member_set(schema, parts.column, np.isin(inner, right))
        left_node, right_node = tree.split(
            node, Cut(parts.column, 0.0, members, missing not in right)
        )
        cut(left_node, chosen[: len(chosen) // 2])
        cut(right_node, right)

    cut(node, sorted({int(p) for p in parts.part}))
    return found
