"""Totally random trees: columns and cuts are drawn without asking anyone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hedgerow.data.binning import ColumnGrid, base_grid
from hedgerow.data.rng import Generator, one_of
from hedgerow.data.schema import Categorical, Schema
from hedgerow.methods.maddock.candidates import Cuts
from hedgerow.methods.maddock.growing_tree import Cut, GrowingTree
from hedgerow.methods.maddock.splits.drawing import (
    Bools,
    can_be_cut,
    drawn_edge,
    drawn_sides,
)
from hedgerow.methods.maddock.splits.growth import cut_of
from hedgerow.model.tree import Structure
from hedgerow.queries import n_bins_of

Interval = tuple[int, int]  # bins of an ordered column from the first on, before the second
Left = dict[int, Interval | Bools]  # of columns cut above a node: which bins can still hold rows
_NO_SET = np.zeros(0, np.uint64)


def totally_random(
    schema: Schema,
    cuts: Cuts,
    columns: Sequence[int],
    depth: int,
    category_split: str,
    rng: Generator,
) -> Structure:
    """A tree over some columns, whose every cut parts what the cuts above it leave of a column.

    A column that cannot be divided further is not drawn, and a node without any other is a leaf;
    the rest of the tree has the given depth. No row decides here, and releases do so through `cuts`
    alone.
    """
    tree, (full, edges) = GrowingTree(), _all_bins(base_grid(schema), tuple(cuts), tuple(columns))
    level: list[tuple[int, Left, list[int]]] = [(0, {}, list(full))]
    for _ in range(depth):
        below: list[tuple[int, Left, list[int]]] = []
        for node, left, usable in level:
            if not usable:
                continue
            column = one_of(rng, usable)
            possible = left.get(column, full[column])
            sides: list[Interval | Bools]
            if isinstance(possible, tuple):
                at, missing_left = drawn_edge(*possible, rng)
                cut = Cut(column, edges[column][at - 1], _NO_SET, missing_left)
                sides = [(possible[0], at), (at, possible[1])]
            else:
                right = drawn_sides(possible, False, category_split, rng)
                cut = cut_of(schema, cuts, column, right)
                sides = [possible & ~right, possible & right]
            for child, side in zip(tree.split(node, cut), sides, strict=True):
                others = usable if _has_cuts(side) else [j for j in usable if j != column]
                below.append((child, {**left, column: side}, others))
        level = below
    return tree.structure()


def _has_cuts(possible: Interval | Bools) -> bool:
    if isinstance(possible, tuple):
        return possible[1] - possible[0] > 1
    return can_be_cut(possible)


@lru_cache(maxsize=8)  # the same for every tree of a run, mostly
def _all_bins(
    grid: tuple[ColumnGrid, ...], cuts: tuple[tuple[int, ...], ...], columns: tuple[int, ...]
) -> tuple[Left, dict[int, list[float]]]:
    """Bins of the columns that a tree can cut, before any cut, and the edges behind them.

    Every bin may hold rows. Those of an ordered column that are left lie side by side. Not to be
    written to.
    """
    bins: Left = {}
    for j in columns:
        n_bins = n_bins_of(grid[j], cuts[j])
        is_set = isinstance(grid[j].column, Categorical)
        bins[j] = np.ones(n_bins, np.bool_) if is_set else (0, n_bins - 1)
    edges = {j: grid[j].edges[list(cuts[j])].tolist() for j in columns}
    return {j: possible for j, possible in bins.items() if _has_cuts(possible)}, edges


def columns_to_cut(schema: Schema, cuts: Cuts) -> list[int]:
    """Columns that can be cut at all: those with a candidate, and categories."""
    return [
        j for j, column in enumerate(schema.columns) if isinstance(column, Categorical) or cuts[j]
    ]


def columns_of_tree(
    columns: Sequence[int], per_tree: int, order: str, tree: int, rng: Generator
) -> list[int]:
    """The k columns a tree may use: the next k in turn, or k drawn at random; 0 means all."""
    n, k = len(columns), per_tree or len(columns)
    if k >= n:
        return list(columns)
    if order == "random":
        return sorted(int(j) for j in rng.choice(columns, size=k, replace=False))
    return sorted(columns[(tree * k + i) % n] for i in range(k))
