"""Columns cut into several parts at once: main effects and interaction tables as trees.

A tree node has two children, so a column of P parts becomes a small search tree. Leaves are told
apart by the part (or the cell of several columns) that they stand for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.binning import ColumnGrid
from hedgerow.data.schema import Schema
from hedgerow.model.tree import Structure, member_words
from hedgerow.queries import n_bins_of


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
    cut = Cut.of(schema, grid, [parts.column for parts in columns], [p.cuts for p in columns])
    part = np.concatenate([parts.part for parts in columns])
    return cut.tree(part)


@dataclass(frozen=True, eq=False)
class Cut:
    """Columns and where each may be cut, as `kernels.table_tree` takes them."""

    columns: NDArray[np.int32]  # (column,)
    words: NDArray[np.int64]  # (column,) of a set of its categories; 0: it has an order
    aside: NDArray[np.float32]  # (column,) an edge for missing values alone
    first: NDArray[np.int64]  # (column + 1,) where its bins begin
    edges: NDArray[np.float32]  # (bin of all columns,) the edge behind it

    @staticmethod
    def of(
        schema: Schema,
        grid: Sequence[ColumnGrid],
        columns: Sequence[int],
        cuts: Sequence[tuple[int, ...]],
    ) -> Cut:
        edges = [_edges_behind(grid[j], c) for j, c in zip(columns, cuts, strict=True)]
        return Cut(
            np.array(columns, np.int32),
            np.array([member_words(schema.columns[j]) for j in columns], np.int64),
            np.array([_aside(grid[j]) for j in columns], np.float32),
            np.cumsum([0, *(len(e) for e in edges)]),
            np.concatenate(edges),
        )

    def take(self, columns: NDArray[np.int32]) -> Cut:
        """These columns, by their places here; bins stay with whoever chose them."""
        return replace(
            self,
            columns=self.columns[columns],
            words=self.words[columns],
            aside=self.aside[columns],
        )

    def tree(self, part: NDArray[Any]) -> tuple[Structure, NDArray[np.int64]]:
        """A tree of all columns, cut into parts, and the cell of each leaf."""
        about = (self.columns, self.words, self.first, part, self.edges, self.aside)
        arrays = kernels.table_tree(*about)
        return Structure(*arrays[:-1]), arrays[-1]

    def trees(
        self, sizes: Sequence[int], starts: NDArray[Any], part: NDArray[Any], edges: NDArray[Any]
    ) -> list[Structure]:
        """Several trees of so many of the columns each, whose bins begin at `starts`."""
        about = (self.columns, self.words, starts, part, edges, self.aside)
        return [Structure(*arrays[:-1]) for arrays in kernels.table_trees(sizes, *about)]


def _edges_behind(grid: ColumnGrid, cuts: tuple[int, ...]) -> NDArray[np.float32]:
    """The edge behind each bin of an ordered column; whatever where there is none: (bin,)."""
    n_bins = n_bins_of(grid, cuts)
    edges = np.zeros(n_bins, np.float32)
    edges[: len(cuts)] = grid.edges[list(cuts)]
    return edges


def _aside(grid: ColumnGrid) -> float:
    """An edge that may tell missing values apart where a column is not cut; NaN if it has none."""
    return float(grid.edges[0]) if len(grid.edges) else math.nan
