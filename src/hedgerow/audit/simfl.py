"""How far a row can be narrowed down from its L hashes: what the statement calls measured.

Two attackers who see all of a row's hashes (in full, not modulo 16) and know the functions: one
knows nothing else, the other knows all columns but one. For each the question is how wide the
interval of a column is that remains possible, as a share of the column's range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import ColumnGrid, base_grid
from hedgerow.data.schema import Numeric
from hedgerow.data.tables import Rows
from hedgerow.methods.simfl.hashing import HashFamily, code_values
from hedgerow.methods.simfl.neighbours import Neighbours

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Narrowing:
    """Shares of each column's range that remain possible: (row, column); 1 is nothing learned."""

    nothing_known: Floats  # NaN for categories, whose set is not an interval
    all_but_one_known: Floats
    exposed: float  # share of (row, column) of which one single cell remains, all others known
    unique_hashes: float  # share of rows with hashes that no other row has

    def words(self) -> str:
        wide = self.nothing_known[np.isfinite(self.nothing_known)]
        open_ = "not measured (no ordered column)" if not len(wide) else f"{np.median(wide):.1%}"
        return (
            "From its hashes alone, a column of a row is narrowed down to (median) "
            f"{open_} of its range. Who knows all other columns narrows it down to "
            f"{np.median(self.all_but_one_known):.1%} (median), in {self.exposed:.1%} of cases to "
            f"its cell. {self.unique_hashes:.1%} of rows have hashes that no other row has."
        )


def narrowing(
    family: HashFamily, rows: Rows, n_rows: int = 20, n_columns: int | None = None
) -> Narrowing:
    """Measure on the first `n_rows` rows; the attacker without knowledge on `n_columns` of them.

    >>> from hedgerow import Schema
    >>> from hedgerow.methods.simfl.hashing import hash_family
    >>> from hedgerow.data.tables import rows_of
    >>> schema = Schema.from_bounds({"a": (0, 1), "b": (0, 1), "c": (0, 1)}, classes=[0, 1])
    >>> X = np.random.default_rng(0).uniform(size=(40, 3))
    >>> found = narrowing(hash_family(schema, 0, 2, 0.5), rows_of(X, schema, [0, 1] * 20))
    >>> bool(found.all_but_one_known.mean() < found.nothing_known.mean())
    True
    """
    words = family.hashes(rows)
    _, counts = np.unique(words, axis=0, return_counts=True)
    sample = rows.take(np.arange(min(n_rows, rows.n_rows)))
    known, cells = _one_unknown(family, sample)
    return Narrowing(
        _all_unknown(family, sample, n_columns),
        known,
        float(np.mean(cells == 1)),
        float(np.sum(counts == 1) / rows.n_rows),
    )


def lone_rows(found: Neighbours) -> float:
    """The share of a party's rows whose gradient travels alone: no other row has their neighbour.

    The party whose turn it is reads the gradient of such a row before every tree, and its label in
    the sign.
    """
    _, place, counts = np.unique(found.row, return_inverse=True, return_counts=True)
    return float(np.mean(counts[place] == 1))


def _one_unknown(family: HashFamily, rows: Rows) -> tuple[Floats, NDArray[np.int64]]:
    """Replace one column by each of its cells: those that leave all hashes as they are remain."""
    grid, whole = base_grid(family.schema), family.projections(rows)  # (row, hash)
    seen = np.floor(whole)
    shares = np.empty((rows.n_rows, len(grid)))
    cells = np.empty((rows.n_rows, len(grid)), np.int64)
    for j, column in enumerate(grid):
        adds = family.table[family.starts[j] : family.starts[j + 1]] / family.width
        addends = adds[rows.codes.column(j).astype(np.int64)]  # (row, hash)
        trial = (whole - addends)[:, None, :] + adds[None, : column.n_cells]  # (row, cell, hash)
        possible = (np.floor(trial) == seen[:, None, :]).all(axis=2)
        possible[np.arange(rows.n_rows), np.minimum(rows.codes.column(j), column.n_cells - 1)] = (
            True
        )
        cells[:, j] = possible.sum(axis=1)
        shares[:, j] = possible @ _sizes(column)
    return shares, cells


def _sizes(grid: ColumnGrid) -> Floats:
    """The share of a column's range that each of its cells takes: (cell,)."""
    if isinstance(grid.column, Numeric):
        low, high = float(grid.column.lower), float(grid.column.upper)
        ends = np.concatenate([[low], grid.edges.astype(np.float64), [high]])
        return np.asarray(np.diff(ends) / (high - low))
    return np.full(grid.n_cells, 1 / grid.n_cells)


@dataclass(frozen=True, eq=False)
class _Unknowns:
    """A row as unknowns between 0 and 1: one of an ordered column, one a cell of a category."""

    slopes: Floats  # (hash, unknown)
    base: Floats  # (hash,): a v + b is base + slopes x
    places: list[int]  # (column,): its first unknown
    sums: Floats  # (category, unknown): the cells of a category add up to 1

    @staticmethod
    def of(family: HashFamily) -> _Unknowns:
        blocks, places, groups = [], [], []
        base, at = family.offsets, 0
        for j, grid in enumerate(base_grid(family.schema)):
            adds = family.table[family.starts[j] : family.starts[j + 1]][: grid.n_cells]
            places.append(at)
            if grid.ordered:
                values = code_values(grid)[: grid.n_cells, 0]  # cells lie on a line
                span = max(float(values[-1] - values[0]), 1e-12)
                slope = (adds[-1] - adds[0]) / span
                base = base + adds[0] - slope * values[0]
                blocks.append(slope[:, None])
            else:
                blocks.append(adds.T)
                groups.append((at, at + grid.n_cells))
            at += blocks[-1].shape[1]
        sums = np.zeros((len(groups), at))
        for i, (first, stop) in enumerate(groups):
            sums[i, first:stop] = 1.0
        return _Unknowns(np.concatenate(blocks, axis=1), base, places, sums)

    def width(self, place: int, limits: tuple[Floats, Floats]) -> float:
        """How far one unknown can move while A x <= b holds."""
        from scipy.optimize import linprog

        ends, n = [], self.slopes.shape[1]
        for sign in (1.0, -1.0):
            goal = np.zeros(n)
            goal[place] = sign
            given = {"A_eq": self.sums, "b_eq": np.ones(len(self.sums))} if len(self.sums) else {}
            done = linprog(goal, *limits, bounds=(0.0, 1.0), **given)
            ends.append(float(done.x[place]) if done.success else np.nan)
        return ends[1] - ends[0]


def _all_unknown(family: HashFamily, rows: Rows, n_columns: int | None) -> Floats:
    """The least and most of every ordered column that the L slabs allow: linear programs.

    Categories are let loose between 0 and 1, adding up to 1, and nothing is missing: an attacker
    who searches whole numbers finds less room, so for tables of categories this is an upper bound.
    """
    unknowns, grid = _Unknowns.of(family), base_grid(family.schema)
    slopes = unknowns.slopes / family.width
    seen = np.floor(family.projections(rows))
    rests = seen - unknowns.base / family.width  # (row, hash): slopes x lies in [rest, rest + 1]
    chosen = [j for j, column in enumerate(grid) if column.ordered][:n_columns]
    widths = np.full((rows.n_rows, len(grid)), np.nan)
    for i in range(rows.n_rows):
        limits = (np.concatenate([slopes, -slopes]), np.concatenate([rests[i] + 1, -rests[i]]))
        for j in chosen:
            widths[i, j] = unknowns.width(unknowns.places[j], limits)
    return widths
