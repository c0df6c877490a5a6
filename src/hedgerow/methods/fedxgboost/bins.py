"""A party's own columns in bins: groups of base-grid codes with about equally many of its rows.

Cuts between the groups are the quantile candidates of the paper. They follow from the party's own
rows, stay with it, and show in the model only where a split uses one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import Codes, ColumnGrid, code_places
from hedgerow.model.exact import Ints, member_bits
from hedgerow.model.tree import Structure

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Bins:
    """Columns of one party in bins; the last code of a column stands for missing values."""

    codes: Codes  # bins of every row, column by column
    starts: Ints  # (column + 1,): where the bins of each column begin, among all
    categorical: Bools  # (column,)
    last: tuple[NDArray[np.int64], ...]  # of each column: the last base-grid code of every bin
    grids: tuple[ColumnGrid, ...]
    columns: tuple[int, ...]  # places in the schema

    @property
    def n_bins(self) -> int:
        return int(self.starts[-1])

    def split(self, column: int, right: Bools) -> Split:
        """A split of a column by the bins that go right, as it stays true for new rows."""
        grid, n = self.grids[column], int(np.diff(self.starts)[column])
        missing_left = not bool(right[n - 1])
        if self.categorical[column]:
            return Split(self.columns[column], 0.0, missing_left, member_bits(grid, right))
        kept = int(np.count_nonzero(~right[: n - 1]))  # bins left of the cut
        threshold = float(grid.edges[int(self.last[column][kept - 1])])  # never the last bin's
        return Split(self.columns[column], threshold, missing_left, np.zeros(0, np.uint64))


@dataclass(frozen=True, eq=False)
class Split:
    """One question about one column of the schema."""

    column: int
    threshold: float
    missing_left: bool
    members: NDArray[np.uint64]  # categories that go right; empty for an ordered column
    tree: int = 0  # where a passive party's split lies (`places.py`); the active party has trees
    place: int = 1

    def structure(self) -> Structure:
        """As a tree of one split: leaf 0 is left, leaf 1 right."""
        one = np.array([self.column, -1, -1], np.int32)
        return Structure(
            feature=one,
            threshold=np.array([self.threshold, 0, 0], np.float32),
            missing_left=np.array([self.missing_left, 0, 0], np.uint8),
            left=np.array([1, -1, -1], np.int32),
            right=np.array([2, -1, -1], np.int32),
            member_start=np.array([0, *[len(self.members)] * 3], np.int32),
            members=self.members,
        )


def binned(
    codes: Codes, grids: Sequence[ColumnGrid], columns: Sequence[int], max_bins: int
) -> Bins:
    """Put the codes of a party's columns into bins."""
    tables, lasts = [], []
    for j, grid in enumerate(grids):
        if grid.ordered:
            counts = np.bincount(codes.column(j), minlength=grid.n_codes)[: grid.n_cells]
            table, last = _quantiles(counts, max_bins)
        else:
            table, last = np.arange(grid.n_cells), np.arange(grid.n_cells)
        tables.append(np.append(table, len(last)))  # missing values have the last bin
        lasts.append(last.astype(np.int64))
    sizes = [len(last) + 1 for last in lasts]
    starts = np.cumsum([0, *sizes]).astype(np.int64)
    return Bins(
        _translated(codes, tables, sizes),
        starts,
        np.array([not grid.ordered for grid in grids], np.bool_),
        tuple(lasts),
        tuple(grids),
        tuple(columns),
    )


def _quantiles(counts: Ints, most: int) -> tuple[Ints, Ints]:
    """The bin of every cell, and the last cell of every bin: about equal counts, none empty."""
    held = np.flatnonzero(counts)
    if len(held) <= 1:
        return np.zeros(len(counts), np.int64), np.array([len(counts) - 1])
    if len(held) <= most:
        ends = held[:-1]
    else:
        reached = np.cumsum(counts) / counts.sum()
        wanted = np.arange(1, most) / most
        ends = np.unique(np.searchsorted(reached, wanted - 1e-12))
        ends = ends[ends < held[-1]]
    # A cut lies between two cells with rows, in the middle of the empty ones.
    after = held[np.searchsorted(held, ends, side="right")]
    before = held[np.searchsorted(held, ends, side="right") - 1]
    ends = np.unique((before + after - 1) // 2)
    table = np.searchsorted(ends, np.arange(len(counts)), side="left")
    return table.astype(np.int64), np.append(ends, len(counts) - 1)


def _translated(codes: Codes, tables: Sequence[Ints], sizes: Sequence[int]) -> Codes:
    wide = np.array([size > 256 for size in sizes], np.bool_)
    place = np.where(wide, -np.cumsum(wide, dtype=np.int64), np.cumsum(~wide) - 1).astype(np.int32)
    n = codes.n_rows
    narrow = np.empty((int((~wide).sum()), n), np.uint8)
    broad = np.empty((int(wide.sum()), n), np.uint16)
    found = Codes(narrow, broad, place)
    for j, table in enumerate(tables):
        column = found.column(j)
        np.take(table.astype(column.dtype), codes.column(j), out=column)
    return found


def some_columns(codes: Codes, grids: Sequence[ColumnGrid], chosen: Sequence[int]) -> Codes:
    """The codes of some columns, in this order."""
    place = code_places([grids[j] for j in chosen])
    n = codes.n_rows
    found = Codes(
        np.empty((int((place >= 0).sum()), n), np.uint8),
        np.empty((int((place < 0).sum()), n), np.uint16),
        place,
    )
    for k, j in enumerate(chosen):
        found.column(k)[:] = codes.column(j)
    return found
