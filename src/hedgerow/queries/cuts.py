"""Bins of columns as questions name them: cuts of the base grid, categories, missing last.

Shared by the queries that sum by bin; what they sum, and its bound, stays with each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import ColumnGrid
from hedgerow.errors import FormatError

Cuts = tuple[tuple[int, ...], ...]  # of each column, indices into the edges of its base grid


def n_bins_of(grid: ColumnGrid, cuts: Sequence[int]) -> int:
    """Bins of one column, that of missing values included."""
    return (len(cuts) + 1 if grid.ordered else grid.n_cells) + 1


def check_cuts(
    grid: Sequence[ColumnGrid], columns: Sequence[int], cuts: Cuts, what: str, most: int = 1
) -> None:
    """Raise FormatError unless columns are cut at rising edges of their grids, each named once.

    Or at most so often.
    """
    if not columns or max(Counter(columns).values()) > most:
        raise FormatError(f"{what} name a column twice, or none")
    if len(columns) != len(cuts):
        raise FormatError(f"{what} do not have the lengths they state")
    for j, chosen in zip(columns, cuts, strict=True):
        if not 0 <= j < len(grid) or list(chosen) != sorted(set(chosen)):
            raise FormatError(f"{what} do not match the schema's base grid")
        inside = not chosen or (chosen[0] >= 0 and chosen[-1] < len(grid[j].edges))
        if not inside or (chosen and not grid[j].ordered):
            raise FormatError(f"{what} do not match the schema's base grid")


@lru_cache(maxsize=8)  # parties of one process are asked the same
def bin_of_codes(
    grid: Sequence[ColumnGrid], columns: Sequence[int], cuts: Cuts
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The bin of every code (column, code), counted over all columns, and where columns end."""
    ends = np.cumsum([n_bins_of(grid[j], c) for j, c in zip(columns, cuts, strict=True)])
    bins = np.zeros((len(columns), max(grid[j].n_codes for j in columns)), np.int32)
    for i, (j, chosen) in enumerate(zip(columns, cuts, strict=True)):
        codes = np.arange(grid[j].n_codes)
        # A code at or below a cut lies left of it.
        inner = np.searchsorted(np.array(chosen, np.int64), codes) if grid[j].ordered else codes
        bins[i, : len(codes)] = inner + (ends[i - 1] if i else 0)
        bins[i, grid[j].missing_code] = ends[i] - 1
    return bins, ends


def pack_cuts(columns: Sequence[int], cuts: Cuts) -> dict[str, NDArray[Any]]:
    """Columns and cuts as arrays of a message; `unpack_cuts` reads them back."""
    return {
        "columns": np.array(columns, np.int32),
        "n_cuts": np.array([len(chosen) for chosen in cuts], np.int32),
        "cuts": np.array([c for chosen in cuts for c in chosen], np.int32),
    }


def unpack_cuts(arrays: dict[str, NDArray[Any]], what: str) -> tuple[tuple[int, ...], Cuts]:
    """Columns and cuts; lengths are checked here, contents by `check_cuts`."""
    ends = np.cumsum(arrays["n_cuts"])
    stated = int(ends[-1]) if len(ends) else 0
    if bool((arrays["n_cuts"] < 0).any()) or stated != len(arrays["cuts"]):
        raise FormatError(f"{what} do not have the lengths they state")
    parts = np.split(arrays["cuts"], ends[:-1]) if len(ends) else []
    columns = tuple(int(j) for j in arrays["columns"])
    return columns, tuple(tuple(int(c) for c in part) for part in parts)
