"""p-stable hashes (Datar et al. 2004) of rows, from the codes that a party holds.

A code stands for the middle of its cell. Ordered columns are scaled by their public bounds to
[0, 1]; a category is one indicator a cell, each 1/sqrt 2 long, so two categories lie 1 apart. A
missing value of a category is one more cell; one of an ordered column stands in the middle of its
range, 1/sqrt 2 away in a direction of its own. Functions come from a public seed and the schema, so
every party has the same; each value is kept modulo 16 (16 windows apart is the other end).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.binning import ColumnGrid, base_grid
from hedgerow.data.rng import stream
from hedgerow.data.schema import Categorical, Numeric, Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import SettingsError

MOST_HASHES = 40  # L = min(40, d - 1) if nothing else is said, as in the paper
LARGEST = 240  # fifteen words: what the comparison can add up
WINDOW = 1.0  # r, in units of the typical distance between two rows
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
_SIDE = math.sqrt(0.5)


@dataclass(frozen=True, eq=False)
class HashFamily:
    """L hash functions over a schema."""

    schema: Schema
    table: Floats  # (code of all columns, hash): what a code adds to a projection
    starts: NDArray[np.int64]  # (column + 1,): where the codes of each column begin
    offsets: Floats  # (hash,): b, between 0 and r
    width: float  # r, on the scale of [0, 1]

    @property
    def n_hashes(self) -> int:
        return len(self.offsets)

    @property
    def n_words(self) -> int:
        return words_for(self.n_hashes)

    def hashes(self, rows: Rows) -> Words:
        """The hashes of every row, sixteen a word: (row, word)."""
        codes, words = rows.codes, np.empty((rows.n_rows, self.n_words), np.uint64)
        projection = kernels.Projection(self.starts, self.table, self.offsets, self.width)
        kernels.hash_rows(codes.arrays, projection, words)
        return words

    def projections(self, rows: Rows) -> Floats:
        """(a v + b) / r of every row: (row, hash); for the audit."""
        total = np.tile(self.offsets, (rows.n_rows, 1))
        for j in range(rows.codes.n_columns):
            total += self.table[self.starts[j] + rows.codes.column(j).astype(np.int64)]
        return total / self.width


# The family that was asked for last, if it is small: parties of one process all ask for the same.
_LAST: dict[tuple[str, int, int, float], HashFamily] = {}
_MOST_KEPT = 1 << 20  # elements of its table


def hash_family(schema: Schema, seed: int, n_hashes: int, width: float) -> HashFamily:
    """The functions that a public seed stands for. Not to be written to."""
    check_hashes(schema, n_hashes)
    if not (math.isfinite(width) and width > 0):
        raise SettingsError(f"the window r is {width}; it must be above 0. Nothing was sent.")
    key = (schema.hash, seed, n_hashes, width)
    family = _LAST.get(key)
    if family is None:
        family = _drawn_family(schema, seed, n_hashes, width)
        if family.table.size <= _MOST_KEPT:
            _LAST.clear()
            _LAST[key] = family
    return family


def _drawn_family(schema: Schema, seed: int, n_hashes: int, width: float) -> HashFamily:
    grid = base_grid(schema)
    tables = []
    for j, column in enumerate(grid):
        values = code_values(column)  # (code, direction)
        drawn = stream(seed, "similarity", "column", j).standard_normal((LARGEST, values.shape[1]))
        tables.append(_product(values, drawn[:n_hashes]))
    offsets = stream(seed, "similarity", "offsets").uniform(0.0, 1.0, LARGEST)[:n_hashes] * width
    starts = np.cumsum([0, *(g.n_codes for g in grid)]).astype(np.int64)
    return HashFamily(schema, np.concatenate(tables), starts, offsets, width)


def _product(values: Floats, drawn: Floats) -> Floats:
    """values times drawn', added direction by direction: the same on every machine."""
    total = np.zeros((len(values), len(drawn)))
    for direction in range(values.shape[1]):
        used = np.flatnonzero(values[:, direction])
        total[used] += values[used, direction, None] * drawn[None, :, direction]
    return total


def words_for(n_hashes: int) -> int:
    return -(-n_hashes // kernels.PER_WORD)


def dimensions(schema: Schema) -> int:
    """d: one of an ordered column, one less than its list of a category (they add up to 1).

    What stands for missing values and for values outside of a list is hashed, but not counted.
    """
    lists = [c.categories for c in schema.columns if isinstance(c, Categorical)]
    return len(schema.columns) - len(lists) + sum(max(1, len(one) - 1) for one in lists)


def default_hashes(schema: Schema) -> int:
    return min(MOST_HASHES, dimensions(schema) - 1)


def check_hashes(schema: Schema, n_hashes: int) -> None:
    """Refuse as many hashes as dimensions: a row could be solved for. Also more than there are."""
    d = dimensions(schema)
    if d < 2:
        raise SettingsError(
            "the schema has one dimension; hashes of it would give its values away (L < d leaves "
            "none). Nothing was sent. Add columns, or train on one table."
        )
    if not 1 <= n_hashes < d:
        raise SettingsError(
            f"{n_hashes} hashes of rows with {d} dimensions: L < d is required, or else a "
            f"row could be solved for. Nothing was sent. Ask for 1 to {min(d - 1, LARGEST)}."
        )
    if n_hashes > LARGEST:
        raise SettingsError(f"{n_hashes} hashes; at most {LARGEST} are compared at once.")


def code_values(grid: ColumnGrid) -> Floats:
    """What every code of a column stands for, scaled: (code, direction)."""
    n = grid.n_cells
    if not grid.ordered:
        return np.eye(n + 1) * _SIDE
    values = np.zeros((n + 1, 2))
    if isinstance(grid.column, Numeric):
        low, high = float(grid.column.lower), float(grid.column.upper)
        ends = np.concatenate([[low], grid.edges.astype(np.float64), [high]])
        values[:n, 0] = ((ends[1:] + ends[:-1]) / 2 - low) / (high - low)
    else:
        values[:n, 0] = np.arange(n) / max(n - 1, 1)
    values[n] = (0.5, _SIDE)
    return values


def spread(rows: Rows, schema: Schema) -> float:
    """The mean squared distance between two rows of a party, on the scale of the hashes."""
    total = 0.0
    for j, grid in enumerate(base_grid(schema)):
        counts = np.bincount(rows.codes.column(j), minlength=grid.n_codes)
        share = counts / rows.n_rows
        values = code_values(grid)
        mean = share @ values
        total += float(share @ (values**2).sum(axis=1) - mean @ mean)
    return max(0.0, 2.0 * total)


def typical_width(spreads: Sequence[float], n_rows: Sequence[int], window: float) -> float:
    """r: the window in units of the typical distance between two rows of one party.

    And at least half of that of the party whose rows lie furthest apart. The smaller r is, the
    more a hash shows, and a party may state what it likes: false facts make the hashes of others
    twice as fine at most.
    """
    mean = math.fsum(s * n for s, n in zip(spreads, n_rows, strict=True)) / sum(n_rows)
    typical = max(mean, max(spreads) / 4)  # of squares
    return window * math.sqrt(typical) if typical > 0 else window
