"""Columns cut into several parts at once: the step functions and tables of the default method.

A tree node has two children, so a column of P parts becomes a small search tree. Leaves are told
apart by the part (or the cell of several columns) that they stand for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.binning import ColumnGrid
from hedgerow.model.tree import Structure, member_words
from hedgerow.queries import n_bins_of
from hedgerow.schema import Schema


@dataclass(frozen=True, eq=False)
class Parts:
    """How one column is cut: the part of each bin, the last bin that of missing values.

    Bins of an ordered column lie between its `cuts` (indices of edges) and have parts that do not
    fall; missing values have a part of their own or share one.
    """

    column: int
    cuts: tuple[int, ...]
    part: NDArray[np.int64]  # (bin,), missing last

    @property
    def n_parts(self) -> int:
        return int(self.part.max()) + 1


def structure_of(
    schema: Schema, grid: Sequence[ColumnGrid], columns: Sequence[Parts]
) -> tuple[Structure, NDArray[np.int64]]:
    """A tree whose leaves are the cells of several columns' parts, and the cell of each leaf.

    A cell may have several leaves (a bin on both sides of an auxiliary cut). Missing values of a
    column that cannot be cut share the leaf of its one bin.
    """
    sizes = [len(parts.part) for parts in columns]
    found = kernels.table_tree(
        np.array([parts.column for parts in columns], np.int32),
        np.array([member_words(schema.columns[parts.column]) for parts in columns], np.int64),
        np.cumsum([0, *sizes]),
        np.concatenate([parts.part for parts in columns]),
        np.concatenate([_edges_behind(grid[parts.column], parts.cuts) for parts in columns]),
        np.array([_aside(grid[parts.column]) for parts in columns], np.float32),
    )
    return Structure(*found[:-1]), found[-1]


@lru_cache(maxsize=1024)  # a column's bins are the same in every table
def _edges_behind(grid: ColumnGrid, cuts: tuple[int, ...]) -> NDArray[np.float32]:
    """The edge behind each bin of an ordered column; whatever where there is none: (bin,)."""
    n_bins = n_bins_of(grid, cuts)
    edges = np.zeros(n_bins, np.float32)
    edges[: len(cuts)] = grid.edges[list(cuts)]
    return edges


def _aside(grid: ColumnGrid) -> float:
    """An edge that may tell missing values apart where a column is not cut; NaN if it has none."""
    return float(grid.edges[0]) if len(grid.edges) else math.nan
