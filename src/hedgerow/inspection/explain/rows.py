"""What every column adds to the score of single rows; the parts add up to the score exactly.

For trees of one column that is the column's effect. Effects of several columns are shared among
them by Shapley values under the same weights (interventional): a column's part is

    sum over leaves of value (1_j - p_j) integral from 0 to 1 of prod over i != j of
    (t 1_i + (1 - t) p_i) dt,

a polynomial in t, so that a few points of a Gauss-Legendre rule give it exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.cards import Card, Shown, listed
from hedgerow.inspection.explain.cells import Boxes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_TABLE = 20_000  # cells of a tree as a table
ROWS_AT_ONCE = 512


def add_tree(
    out: Floats, codes: Sequence[Ints], boxes: Boxes, values: Floats, weights: Sequence[Floats],
    centred: bool,
) -> None:  # fmt: skip
    """Add one tree's parts to `out` (row, output, column); codes are (row,) of every column."""
    if not boxes.columns:
        return
    chances = [
        inside @ weights[j] if centred else np.zeros(len(inside))
        for j, inside in zip(boxes.columns, boxes.inside, strict=True)
    ]
    parts = [np.unique(inside, axis=1, return_inverse=True) for inside in boxes.inside]
    sizes = [distinct.shape[1] for distinct, _ in parts]
    if math.prod(sizes) <= max(MAX_TABLE, len(values)):
        table = _table([distinct for distinct, _ in parts], values)
        masses = [
            _masses(part.ravel(), weights[j], size, centred)
            for (_, part), j, size in zip(parts, boxes.columns, sizes, strict=True)
        ]
        places = tuple(
            part.ravel()[codes[j]] for (_, part), j in zip(parts, boxes.columns, strict=True)
        )
        for a, j in enumerate(boxes.columns):
            out[:, :, j] += _table_part(table, masses, a)[places]
        return
    for first in range(0, len(out), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        inside = [
            in_leaf[:, codes[j][rows]]
            for j, in_leaf in zip(boxes.columns, boxes.inside, strict=True)
        ]
        for a, j in enumerate(boxes.columns):
            out[rows, :, j] += _leaf_part(inside, chances, values, a)


def _masses(part: Ints, weights: Floats, n_parts: int, centred: bool) -> Floats:
    """Weights of the parts of a column, all 0 where effects are to stay as they are."""
    out = np.zeros(n_parts)
    if centred:
        np.add.at(out, part, weights)
    return out


def _points(degree: int) -> tuple[Floats, Floats]:
    """Points and weights of a rule on [0, 1] that is exact up to a degree."""
    x, w = np.polynomial.legendre.leggauss(degree // 2 + 1)
    return (x + 1) / 2, w / 2


def _table(distinct: list[NDArray[np.bool_]], values: Floats) -> Floats:
    """A tree as a table over the parts of its columns: (part, ..., output)."""
    table = np.zeros((*(d.shape[1] for d in distinct), values.shape[1]))
    for leaf, value in enumerate(values):
        table[np.ix_(*(np.flatnonzero(d[leaf]) for d in distinct))] = value
    return table


def _table_part(table: Floats, masses: list[Floats], own: int) -> Floats:
    """The part of one column in every cell of a table."""
    moved = np.moveaxis(table, own, 0)
    off = np.moveaxis(moved - np.tensordot(masses[own], moved, 1), 0, own)
    total = np.zeros_like(off)
    for t, weight in zip(*_points(len(masses) - 1), strict=True):
        part = off
        for i, mass in enumerate(masses):
            if i != own:
                mean = np.expand_dims(np.tensordot(mass, np.moveaxis(part, i, 0), 1), i)
                part = t * part + (1 - t) * mean
        total += weight * part
    return total


def _leaf_part(
    inside: list[NDArray[np.bool_]], own: list[Floats], values: Floats, a: int
) -> Floats:
    """The part of one column in rows (row, output), leaf by leaf; `inside` is (leaf, row)."""
    total = np.zeros(inside[a].shape)
    for t, weight in zip(*_points(len(inside) - 1), strict=True):
        product = np.full(total.shape, weight)
        for i, in_leaf in enumerate(inside):
            if i != a:
                product *= t * in_leaf + (1 - t) * own[i][:, None]
        total += product
    return np.asarray(((inside[a] - own[a][:, None]) * total).T @ values)


@dataclass(frozen=True, eq=False, repr=False)
class Contributions(Shown):
    """Parts of the scores of some rows: `intercept` plus all columns is the score."""

    columns: tuple[str, ...]
    intercept: Floats  # (output,)
    values: Floats  # (row, output, column)

    @property
    def scores(self) -> Floats:
        """The model's scores, added up: (row, output)."""
        return np.asarray(self.intercept + self.values.sum(axis=2))

    def _card(self) -> Card:
        n_rows, n_outputs, _ = self.values.shape
        facts = (("rows", n_rows), ("outputs", n_outputs), ("columns", listed(self.columns)))
        return Card("Contributions", facts)
