"""Totally random trees: columns and cuts are drawn without asking anyone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.binning import base_grid
from hedgerow.growing.candidates import Cuts
from hedgerow.model.tree import Structure, member_words
from hedgerow.rng import Generator
from hedgerow.schema import Categorical, Schema

_Split = tuple[int, float, bool, NDArray[np.uint64]]


def totally_random(
    schema: Schema,
    cuts: Cuts,
    columns: Sequence[int],
    depth: int,
    category_split: str,
    rng: Generator,
) -> Structure:
    """A complete tree of the given depth over some columns, each of which can be cut."""
    n_inner = 2**depth - 1
    n_nodes = 2 ** (depth + 1) - 1
    splits = [
        _draw(schema, cuts, int(rng.choice(columns)), category_split, rng) for _ in range(n_inner)
    ]
    inner = np.arange(n_inner)
    feature = np.full(n_nodes, -1, np.int32)
    feature[:n_inner] = [split[0] for split in splits]
    threshold = np.zeros(n_nodes, np.float32)
    threshold[:n_inner] = [split[1] for split in splits]
    missing_left = np.zeros(n_nodes, np.uint8)
    missing_left[:n_inner] = [split[2] for split in splits]
    left = np.full(n_nodes, -1, np.int32)
    right = np.full(n_nodes, -1, np.int32)
    left[:n_inner], right[:n_inner] = 2 * inner + 1, 2 * inner + 2
    words = [len(split[3]) for split in splits] + [0] * (n_nodes - n_inner)
    start = np.concatenate([[0], np.cumsum(words)]).astype(np.int32)
    members = np.concatenate([split[3] for split in splits])
    return Structure(feature, threshold, missing_left, left, right, start, members)


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


def _draw(
    schema: Schema,
    cuts: Cuts,
    column: int,
    category_split: str,
    rng: Generator,
) -> _Split:
    description = schema.columns[column]
    missing_left = bool(rng.integers(2))
    if isinstance(description, Categorical):
        return column, 0.0, missing_left, _categories(description, category_split, rng)
    edge = base_grid(schema)[column].edges[rng.choice(cuts[column])]
    return column, float(edge), missing_left, np.zeros(0, np.uint64)


def _categories(column: Categorical, category_split: str, rng: Generator) -> NDArray[np.uint64]:
    """The set that goes right: one category, or about half of them; never none, never all."""
    n = len(column.categories) + (column.other == "category")
    chosen = np.zeros(member_words(column) * 64, np.bool_)
    chosen[rng.integers(n)] = True
    if category_split == "subset":
        chosen[:n] |= rng.integers(2, size=n).astype(np.bool_)
    if n > 1 and chosen[:n].all():
        chosen[rng.integers(n)] = False
    return np.packbits(chosen, bitorder="little").view("<u8").astype(np.uint64)
