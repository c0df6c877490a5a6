"""Totally random trees: columns and cuts are drawn without asking anyone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.binning import base_grid
from hedgerow.growing.candidates import Cuts
from hedgerow.growing.cart import Cut, GrowingTree, member_set
from hedgerow.model.tree import Structure
from hedgerow.rng import Generator
from hedgerow.schema import Categorical, Schema


def totally_random(
    schema: Schema,
    cuts: Cuts,
    columns: Sequence[int],
    depth: int,
    category_split: str,
    rng: Generator,
) -> Structure:
    """A complete tree of the given depth over some columns, each of which can be cut."""
    tree = GrowingTree()
    for node in range(2**depth - 1):  # level by level
        tree.split(node, draw_cut(schema, cuts, int(rng.choice(columns)), category_split, rng))
    return tree.structure()


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


def draw_cut(schema: Schema, cuts: Cuts, column: int, category_split: str, rng: Generator) -> Cut:
    """A random cut of one column; missing values go to a random side."""
    description = schema.columns[column]
    missing_left = bool(rng.integers(2))
    if isinstance(description, Categorical):
        right = _categories(description, category_split, rng)
        return Cut(column, 0.0, member_set(schema, column, right), missing_left)
    edge = base_grid(schema)[column].edges[rng.choice(cuts[column])]
    return Cut(column, float(edge), np.zeros(0, np.uint64), missing_left)


def _categories(
    column: Categorical, category_split: str, rng: Generator
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The set that goes right: one category, or about half of them; never none, never all."""
    n = len(column.categories) + (column.other == "category")
    chosen = np.zeros(n, np.bool_)
    chosen[rng.integers(n)] = True
    if category_split == "subset":
        chosen |= rng.integers(2, size=n).astype(np.bool_)
    if n > 1 and chosen.all():
        chosen[rng.integers(n)] = False
    return chosen
