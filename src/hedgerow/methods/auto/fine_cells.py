"""Values that many rows share, found by noisy counts of fine cells, as bins of their own.

Pure functions of public edges and releases. A base grid has a few cells for the values of a wide
integer column; a value that many rows share (an amount, a limit, a code) is lost in one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import ColumnGrid
from hedgerow.methods.auto.bins import EMPTY, Bins, equal_mass, joined

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Of the cells of a column so many would rise above the threshold by noise alone, were all empty. A
# value that is lost costs more than a few bins of nothing, whose scores the noise is shrunk out of.
FALSE_ONES = 10.0
MOST_HEAVY = 32  # of a column, those of the most rows
SURE = 2.0  # deviations by which their labels must differ
MOST_FINE_BINS = 2 * (32 + MOST_HEAVY) + 2  # of a column with heavy cells: each parts two others


@dataclass(frozen=True, eq=False)
class Cells:
    """One column's cells between cuts of its fine level, missing last."""

    cuts: tuple[int, ...]
    counts: Floats  # (class, cell)
    variance: Floats  # (cell,) of their noise, in that of a cell of the first question
    heavy: NDArray[np.bool_]  # (cell,)


@dataclass(frozen=True, eq=False)
class Seen:
    """A count by which cells are judged: of all rows, or of one class. Missing is left out."""

    cells: Floats  # (cell,)
    fine: Floats  # (fine cell,)
    noise: float  # deviation of a cell


@dataclass(frozen=True, eq=False)
class LabelLaw:
    """What counts say of labels: which rows of them, their rates over all rows, and their noise.

    Of classes all counts; of a regression sums of gradients, beside rows as the second count.
    """

    rates: Floats  # (class,), or the mean gradient: 0
    noise: float  # deviation of a cell
    unit: float = 0.0  # regression: of gradients

    @property
    def of(self) -> slice:
        return slice(0, 1) if self.unit else slice(None)

    def rows(self, counts: Floats) -> Floats:
        return np.asarray(counts[1] if self.unit else counts.sum(axis=0))

    def variance(self, rates: Floats) -> Floats | float:
        """Of one row's class, or of its gradient."""
        return self.unit**2 if self.unit else rates * (1 - rates)


def at_fine_level(grid: ColumnGrid, fine: ColumnGrid, cuts: Sequence[int]) -> tuple[int, ...]:
    """The same cuts as indices into the edges of the column's finest level."""
    if fine is grid:
        return tuple(cuts)
    return tuple(int(k) for k in np.searchsorted(fine.edges, grid.edges[list(cuts)]))


def threshold(n_cells: int) -> float:
    """Deviations that a fine cell must rise above an even share to count as heavy.

    Of so many counts of cells that are all empty, noise raises `FALSE_ONES` above it in the mean.

    >>> round(threshold(1024), 2), round(threshold(4096), 2)
    (2.33, 2.82)
    """
    return NormalDist().inv_cdf(1 - FALSE_ONES / max(n_cells, 2 * FALSE_ONES))


def heavy_cells(seen: Sequence[Seen], of: Ints, ratio: float) -> Ints:
    """Fine cells that hold surely more than their part of what their cell holds, rising.

    Each fine cell lies within the cell `of`; its noise is `ratio` times that of a cell. A value may
    stand out in any of the counts: in that of all rows, or of one class.
    """
    within = np.bincount(of)[of].astype(np.float64)  # (fine cell,)
    others, least = np.maximum(within - 1, 1.0), threshold(len(of) * len(seen))
    best = np.full(len(of), -np.inf)
    for one in seen:
        # Against the mean of the others in its cell: f - (c - f) / (n - 1).
        excess = (within * one.fine - one.cells[of]) / others
        spread = one.noise * np.sqrt((within * ratio) ** 2 + 1) / others
        best = np.maximum(best, excess / np.maximum(spread, 1e-9))
    found = np.flatnonzero((best > least) & (within > 1))
    heaviest = found[np.argsort(-seen[0].fine[found], kind="stable")][:MOST_HEAVY]
    return np.sort(heaviest)


def cell_of_fine(cuts: tuple[int, ...], n_fine: int) -> Ints:
    """The cell that each of so many fine cells lies in."""
    return np.searchsorted(np.array(cuts, np.int64), np.arange(n_fine))


def differing(
    heavy: Ints, of: Ints, cells: Floats, fine: Floats, law: LabelLaw, ratio: float
) -> Ints:
    """Those heavy cells whose labels surely differ from those of the other rows of their cell.

    Where they are alike a bin of its own says nothing: it only parts neighbours that would be
    smoothed together. Counts are (class, cell); a cell's own rates are pulled toward those of all
    rows by how noisy they are.
    """
    if not heavy.size:
        return heavy
    n_cells = cells.shape[1]
    taken = np.stack([np.bincount(of[heavy], row[heavy], n_cells) for row in fine])
    rest = np.maximum(cells - taken, 0.0)[:, of[heavy]]  # (class, heavy cell)
    pull = 2 * law.noise
    rates = (rest[law.of] + pull * law.rates[:, None]) / (law.rows(rest) + pull)
    here = np.maximum(law.rows(fine[:, heavy]), 0.0)
    off = np.abs(fine[law.of][:, heavy] - rates * here)
    spread = np.sqrt((ratio * law.noise) ** 2 + here * law.variance(rates))
    return heavy[(off > SURE * spread).any(axis=0)]


def with_heavy_cells(
    cuts: tuple[int, ...], cells: Floats, fine: Floats, heavy: Ints, ratio: float
) -> Cells:
    """A column's cells (class, cell), heavy fine ones taken out of them; missing last everywhere.

    What is left of a cell is spread evenly over what is left of its fine cells.
    """
    n_cells, n_fine = cells.shape[1] - 1, fine.shape[1] - 1
    of = cell_of_fine(cuts, n_fine)
    is_heavy = np.zeros(n_fine, np.bool_)
    is_heavy[heavy] = True
    beside = np.concatenate([heavy - 1, heavy])
    ends = np.union1d(np.array(cuts, np.int64), beside[(beside >= 0) & (beside < n_fine - 1)])
    first = np.append(0, ends + 1)  # of every new cell
    parent, alone = of[first], is_heavy[first]
    taken = np.stack([np.bincount(of[heavy], row[heavy], n_cells) for row in fine])
    n_taken = np.bincount(of[heavy], minlength=n_cells)
    n_left = np.bincount(of, minlength=n_cells) - n_taken
    share = np.diff(np.append(first, n_fine)) / np.maximum(n_left[parent], 1)
    rest = (cells[:, :-1] - taken)[:, parent] * share
    counts = np.where(alone, fine[:, first], rest)
    # A part of a cell has the noise of the whole: nothing says how rows are spread within it.
    variance = np.where(alone, ratio**2, 1 + share**2 * n_taken[parent] * ratio**2)
    return Cells(
        tuple(int(k) for k in ends),
        np.column_stack([counts, cells[:, -1]]),
        np.append(variance, 1.0),
        np.append(alone, False),
    )


def fine_bins(cells: Cells, counts: Floats, noise: float, n_bins: int, heavy: bool) -> Bins:
    """Bins of about equal mass from noisy counts (cell,), heavy cells alone, missing last."""
    found = cells.heavy[:-1]
    mass = np.where((counts[:-1] < EMPTY * noise) & ~found, 0.0, np.maximum(counts[:-1], 0.0))
    inner = equal_mass(mass, n_bins + int(found.sum()), heavy, found)
    apart = tuple(int(b) for b in inner[found])
    return replace(joined(cells.cuts, inner), variance=cells.variance, apart=apart)
