"""Rows as codes: draws from marginals, and how many cells of true rows are matched."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from hedgerow.data.binning import ColumnGrid, base_grid
from hedgerow.data.rng import Generator
from hedgerow.data.schema import Numeric, Schema
from hedgerow.data.tables import Rows

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
NEAR = 0.319  # deviations within which a number counts as rebuilt: the published rule
RARE = 0.05  # categories of at most this share of the rows are looked at apart


@dataclass(frozen=True, eq=False)
class Space:
    """All codes of all columns of a schema, one behind the other."""

    schema: Schema

    @cached_property
    def grid(self) -> tuple[ColumnGrid, ...]:
        return base_grid(self.schema)

    @cached_property
    def starts(self) -> Ints:
        return np.cumsum([0, *(column.n_codes for column in self.grid)])

    def slices(self) -> list[slice]:
        return [slice(a, b) for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)]

    def marginals(self, codes: Ints) -> Floats:
        """How often each code occurs in rows (row, column), as a share: (code,)."""
        shares = np.zeros(int(self.starts[-1]))
        for j, start in enumerate(self.starts[:-1]):
            shares[start : self.starts[j + 1]] = np.bincount(
                codes[:, j], minlength=self.grid[j].n_codes
            ) / len(codes)
        return shares

    def drawn(self, n_rows: int, marginals: Floats, rng: Generator) -> Ints:
        """Rows whose cells are drawn one by one from the marginals: (row, column)."""
        columns = [
            rng.choice(at.stop - at.start, n_rows, p=marginals[at] / marginals[at].sum())
            for at in self.slices()
        ]
        return np.stack(columns, axis=1).astype(np.int64)


def codes_of(rows: Rows) -> Ints:
    """(row, column)."""
    return np.stack([rows.codes.column(j) for j in range(rows.codes.n_columns)], 1).astype(np.int64)


@dataclass(frozen=True)
class Rebuilt:
    """How many cells of rows were rebuilt, under the best one-to-one matching."""

    all_cells: float
    numbers: float
    categories: float
    rare: float  # of categories of at most a twentieth of the rows


def rebuilt_share(space: Space, made: Ints, truth: Ints) -> Rebuilt:
    """Match made rows with true ones, one to one, so that most cells agree, and count them.

    A category has to be equal, a number within 0.319 deviations of its column.
    """
    n = min(len(made), len(truth))
    made, truth = made[:n], truth[:n]
    right = np.stack(
        [_agree(column, made[:, j], truth[:, j]) for j, column in enumerate(space.grid)]
    )  # (column, made, true)
    rows, found = optimize.linear_sum_assignment(right.sum(axis=0), maximize=True)
    matched = right[:, rows, found]  # (column, pair)
    numbers = np.array([isinstance(column.column, Numeric) for column in space.grid])
    shares = space.marginals(truth)
    rare = np.stack(
        [shares[start + truth[found, j]] <= RARE for j, start in enumerate(space.starts[:-1])]
    )
    return Rebuilt(
        float(matched.mean()),
        _mean(matched[numbers]),
        _mean(matched[~numbers]),
        _mean(matched[~numbers][rare[~numbers]]),
    )


def _mean(cells: Bools) -> float:
    return float(cells.mean()) if cells.size else float("nan")


def _agree(grid: ColumnGrid, made: Ints, truth: Ints) -> Bools:
    """(made, true)."""
    if not isinstance(grid.column, Numeric):
        return np.asarray(made[:, None] == truth[None, :])
    ends = np.concatenate([[grid.column.lower], grid.edges, [grid.column.upper]]).astype(np.float64)
    values = np.append((ends[1:] + ends[:-1]) / 2, np.nan)  # a missing value is near no number
    spread = float(np.nanstd(values[truth]))
    near = np.abs(values[made][:, None] - values[truth][None, :]) <= NEAR * spread
    both = (made[:, None] == grid.missing_code) & (truth[None, :] == grid.missing_code)
    return np.asarray(near | both)
