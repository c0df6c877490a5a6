"""One tree in code space: walked node by node, blended, or looked up as a table.

Used by `routing`, which puts the pieces of several trees together.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.binning import ColumnGrid
from hedgerow.errors import FormatError
from hedgerow.kernels import shapes
from hedgerow.model.tree import Structure

MAX_TABLE_COLUMNS = 4
MAX_CELLS = 4096
MAX_KNOWN = 256  # trees of which the translation is kept
_NO_NODES = np.zeros((0, 5), np.int32)


@dataclass(frozen=True, eq=False)
class Piece:
    """One tree in code space, its nodes and leaves numbered from 0 on."""

    column: NDArray[np.int32]  # (node,); -1 behind the columns of a table
    sizes: NDArray[np.int32]  # (node,) how many codes it has in `after`
    after: NDArray[np.int32]
    # (node for blending, 5): column; the codes that go right begin there and end so many later;
    # left, right: a node, or -1 - k for leaf k. Empty where the tree does not blend.
    nodes: NDArray[np.int32]
    n_columns: int = 0  # of a table; to be walked: -depth if all leaves lie equally deep, or 0

    def shifted(self, n_nodes: int, n_leaves: int) -> NDArray[np.int32]:
        """`after` with nodes and leaves numbered behind those of earlier trees."""
        if self.n_columns <= 0:
            return np.where(self.after >= 0, self.after + n_nodes, self.after - n_leaves).astype(
                np.int32
            )
        after = self.after.copy()
        after[len(after) - int(self.sizes[-1]) :] += n_leaves
        return after


_Known = tuple[Sequence[ColumnGrid], Piece]
_KNOWN: OrderedDict[tuple[bytes, int], _Known] = OrderedDict()


def translated(structure: Structure, grid: Sequence[ColumnGrid]) -> Piece:
    """A structure in code space; the last ones are kept, because each is needed several times."""
    key = (structure.key, id(grid))
    if (known := _KNOWN.get(key)) is not None and known[0] is grid:
        return known[1]
    piece = _piece(structure, grid)
    while len(_KNOWN) >= MAX_KNOWN:
        with suppress(KeyError):  # another thread was quicker
            _KNOWN.popitem(last=False)
    _KNOWN[key] = (grid, piece)  # holds the grid, so that its id belongs to no other
    return piece


def _piece(structure: Structure, grid: Sequence[ColumnGrid]) -> Piece:
    """A table if the tree has few columns and their parts make few cells, else to be walked."""
    if structure.n_nodes == 1:  # such as the base rate; no loop needs to be compiled for it
        nothing = np.zeros(0, np.int32)
        return Piece(nothing, nothing, nothing, _NO_NODES)
    s, flat = structure, _flat(tuple(grid))
    tree = (s.feature, s.threshold, s.missing_left, s.left, s.right, s.member_start, s.members)
    arrays: tuple[Any, ...] = (*tree, *flat)
    n_columns, column, sizes, after = kernels.as_table(*(*arrays, MAX_TABLE_COLUMNS, MAX_CELLS))
    if n_columns > 0:
        return Piece(column, sizes, after, _NO_NODES, int(n_columns))
    if n_columns == shapes.NO_TABLE:
        depth, sizes, after, nodes = kernels.as_walk(*(*arrays, kernels.MAX_BLENDED))
        if depth != shapes.NO_EDGE:
            return Piece(
                structure.feature[structure.feature >= 0], sizes, after, nodes, -int(depth)
            )
        column = sizes
    name = grid[int(column[0])].column.name
    raise FormatError(f"a split on {name!r} is not an edge of the base grid")


@lru_cache(maxsize=64)
def _flat(grid: tuple[ColumnGrid, ...]) -> tuple[NDArray[Any], ...]:
    """A grid as `kernels.shapes` takes it."""
    edges = [column_grid.edges for column_grid in grid]
    return (
        np.concatenate([np.zeros(0, np.float32), *edges]).astype(np.float32, copy=False),
        np.cumsum([0, *(len(e) for e in edges)]),
        np.array([column_grid.n_cells for column_grid in grid], np.int64),
        np.array([column_grid.column.kind == "categorical" for column_grid in grid], np.bool_),
    )


def right_codes(structure: Structure, node: int, grid: ColumnGrid) -> NDArray[np.bool_]:
    """Which codes of a column go right at a node: (code,)."""
    right = np.zeros(grid.n_codes, np.bool_)
    if grid.column.kind == "categorical":
        words = structure.members[structure.member_start[node] : structure.member_start[node + 1]]
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
        right[: grid.n_cells] = bits[: grid.n_cells].astype(np.bool_)
    else:
        threshold = structure.threshold[node]
        k = int(np.searchsorted(grid.edges, threshold))
        if k == len(grid.edges) or grid.edges[k] != threshold:
            raise FormatError(f"a split on {grid.column.name!r} is not an edge of the base grid")
        right[k + 1 : grid.n_cells] = True
    right[grid.missing_code] = not structure.missing_left[node]
    return right
