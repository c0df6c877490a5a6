"""Totally random trees: columns and cuts are drawn without asking anyone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hedgerow.data.binning import ColumnGrid, base_grid
from hedgerow.data.rng import Generator, one_of
from hedgerow.data.schema import Categorical, Schema
from hedgerow.methods.maddock.candidates import Cuts
from hedgerow.methods.maddock.growing_tree import GrowingTree
from hedgerow.methods.maddock.splits.drawing import Bools, can_be_cut, drawn_sides
from hedgerow.methods.maddock.splits.growth import cut_of
from hedgerow.model.tree import Structure
from hedgerow.queries import n_bins_of

Left = dict[int, Bools]  # of columns cut above a node: which bins can still hold rows


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
    tree, full = GrowingTree(), _all_bins(base_grid(schema), tuple(cuts), tuple(columns))
    level: list[tuple[int, Left]] = [(0, {})]
    for _ in range(depth):
        below: list[tuple[int, Left]] = []
        for node, left in level:
            usable = [j for j in full if j not in left or can_be_cut(left[j])]
            if not usable:
                continue
            column = one_of(rng, usable)
            possible = left.get(column, full[column])
            ordered = not isinstance(schema.columns[column], Categorical)
            right = drawn_sides(possible, ordered, category_split, rng)
            children = tree.split(node, cut_of(schema, cuts, column, right))
            for child, side in zip(children, (~right, right), strict=True):
                below.append((child, {**left, column: possible & side}))
        level = below
    return tree.structure()


@lru_cache(maxsize=8)  # the same for every tree of a run, mostly
def _all_bins(
    grid: tuple[ColumnGrid, ...], cuts: tuple[tuple[int, ...], ...], columns: tuple[int, ...]
) -> Left:
    """Bins of the columns that a tree can cut, before any cut: every one may hold rows.

    Not to be written to.
    """
    bins = {j: np.ones(n_bins_of(grid[j], cuts[j]), np.bool_) for j in columns}
    return {j: possible for j, possible in bins.items() if can_be_cut(possible)}


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
