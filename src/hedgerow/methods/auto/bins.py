"""From a public grid of cells to bins of about equal mass, by noisy counts. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import ColumnGrid
from hedgerow.data.schema import Numeric

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
OCTAVES = 10
EMPTY = 1.5  # cells of fewer rows than so many noise deviations count as empty


def cell_cuts(grid: ColumnGrid, n_bins: int) -> tuple[int, ...]:
    """Edges of the first question's cells: 2 n_bins even ones and log-spaced ones as one grid.

    Integers of a small range have a cell a value; categories are cells already.
    """
    column = grid.column
    if not grid.ordered:
        return ()
    if not isinstance(column, Numeric):
        return tuple(range(len(grid.edges)))
    lower, upper = float(column.lower), float(column.upper)
    if len(grid.edges) < 2 or (column.integer and upper - lower <= 4 * n_bins):
        return tuple(range(len(grid.edges)))
    even = lower + (upper - lower) * np.arange(1, 2 * n_bins) / (2 * n_bins)
    step = 0.5 if n_bins >= 24 else 1.0 if n_bins >= 12 else 2.0
    shrink = 2.0 ** -np.arange(step, OCTAVES + step / 2, step)
    if lower >= 0:
        logs = lower + (upper - lower) * shrink
    elif upper <= 0:
        logs = upper - (upper - lower) * shrink
    else:
        side = max(-lower, upper) * shrink
        logs = np.concatenate([-side, [0.0], side])
    points = np.concatenate([even, logs[(logs > lower) & (logs < upper)]])
    middles = (grid.edges[1:].astype(np.float64) + grid.edges[:-1]) / 2
    return tuple(int(k) for k in np.unique(np.searchsorted(middles, points)))


@dataclass(frozen=True, eq=False)
class Bins:
    """One column's bins: cuts of the base grid, and how cells add up to them, missing last."""

    cuts: tuple[int, ...]
    of_cell: Ints  # (cell,), missing last
    # (cell,) the noise variance of each, in that of one count; None: all have that
    variance: Floats | None = None
    apart: tuple[int, ...] = ()  # bins of one value that many rows share

    @property
    def n_bins(self) -> int:
        return int(self.of_cell[-1]) + 1

    def add_up(self, cells: Floats) -> Floats:
        """Sums of cells (..., cell) as sums of bins (..., bin)."""
        out = np.zeros((*cells.shape[:-1], self.n_bins))
        np.add.at(out.T, self.of_cell, cells.T)
        return out

    @property
    def n_cells(self) -> Floats:
        """How many cells, hence how much noise, each bin has: (bin,)."""
        return np.bincount(self.of_cell, self.variance, self.n_bins).astype(np.float64)


def bins_of(
    grid: ColumnGrid, cuts: tuple[int, ...], counts: Floats, noise: float, n_bins: int, heavy: bool
) -> Bins:
    """Bins from noisy counts of cells, missing last: (cell,). Categories stay as they are."""
    if not grid.ordered:
        return Bins((), np.arange(len(counts)))
    mass = np.where(counts[:-1] < EMPTY * noise, 0.0, counts[:-1])
    return joined(cuts, equal_mass(mass, n_bins, heavy))


def joined(cuts: tuple[int, ...], bin_of_cell: Ints) -> Bins:
    """Bins of ordered cells, to which a last one is added for missing values."""
    ends = np.flatnonzero(np.diff(bin_of_cell))
    return Bins(tuple(cuts[b] for b in ends), np.append(bin_of_cell, bin_of_cell[-1] + 1))


def equal_mass(
    mass: Floats, n_bins: int, heavy: bool, apart: NDArray[np.bool_] | None = None
) -> Ints:
    """The bin of each ordered cell; with `heavy`, cells above a bin's share stand alone.

    So do those that are `apart` already.
    """
    alone = np.zeros(mass.size, np.bool_) if apart is None else apart.copy()
    while heavy:
        left = n_bins - int(alone.sum())
        heavy_cells = ~alone & (mass > 0) & (mass > mass[~alone].sum() / max(left, 1))
        if left <= 1 or not heavy_cells.any():
            break
        alone |= heavy_cells
    left = max(n_bins - int(alone.sum()), 1)
    light = np.where(alone, 0.0, mass)
    centre = np.cumsum(light) - light / 2
    share = centre / max(float(light.sum()), 1e-12)
    part = np.minimum((share * left).astype(np.int64), left - 1)
    key = np.where(alone, -1 - np.arange(mass.size), part)
    return np.concatenate([[0], np.cumsum(key[1:] != key[:-1])]).astype(np.int64)
