"""The public base grid of a schema, and the small integer codes that rows become on it.

The grid follows from the schema alone; no row may move an edge. Reading tables lives in `tables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema_checks import MAX_NUMERIC_CELLS, UNIFORM_CELLS
from hedgerow.data.schema_parts import Categorical, Column, Numeric

if TYPE_CHECKING:
    from hedgerow.data.schema import Schema
    from hedgerow.kernels import CodeArrays

OCTAVES = 17
STEPS_PER_OCTAVE = 2
FINE_CELLS = 1024  # even ones of the fine level


def _no_edges() -> NDArray[np.float32]:
    return np.zeros(0, np.float32)


@dataclass(frozen=True, eq=False)
class ColumnGrid:
    """The cells of one column: codes 0 .. n_cells - 1, and n_cells for a missing value.

    An ordinal is cut between positions of its list. A value outside the list has no place in an
    order, so with `other = "category"` an ordinal counts it as missing.

    Integers of a range wider than the base grid have a second, fine level: its edges, which include
    those here, are `fine`, and `fine_grid` has the column cut at them. Rows keep both codes.

    >>> grid, = base_grid(Schema.from_bounds({"dose": (0, 4)}, classes=[0, 1]))
    >>> grid.edges[grid.uniform_edges(4)].tolist(), grid.n_codes == grid.n_cells + 1
    ([1.0, 2.0, 3.0], True)
    """

    column: Column
    edges: NDArray[np.float32]  # (edge,) ascending; empty for a categorical
    n_cells: int
    fine: NDArray[np.float32] = field(default_factory=_no_edges)  # (edge,); empty: one level
    is_fine: bool = False  # whether this is the fine level itself

    @property
    def n_codes(self) -> int:
        return self.n_cells + 1

    @property
    def missing_code(self) -> int:
        return self.n_cells

    @property
    def ordered(self) -> bool:
        return not isinstance(self.column, Categorical)

    @property
    def other_code(self) -> int | None:
        """The cell of values outside a categorical's list, if the schema gives them one."""
        if isinstance(self.column, Categorical) and self.column.other == "category":
            return self.n_cells - 1
        return None

    @cached_property
    def code_of_fine(self) -> NDArray[np.uint8]:
        """The code of every fine code, which lies within one cell: (fine code,)."""
        below = np.searchsorted(self.edges, self.fine, side="right")
        return np.concatenate([[0], below, [self.missing_code]]).astype(np.uint8)

    @cached_property
    def first_fine_code(self) -> NDArray[np.uint16]:
        """The lowest fine code of every code: (code,)."""
        first = np.searchsorted(self.fine, self.edges) + 1
        return np.concatenate([[0], first, [self.fine.size + 1]]).astype(np.uint16)

    def uniform_edges(self, n_bins: int) -> NDArray[np.int32]:
        """Indices of the edges nearest to n_bins - 1 evenly spaced points."""
        inner = np.arange(1, n_bins, dtype=np.float64)  # (point,)
        if isinstance(self.column, Numeric):
            lower, upper = float(self.column.lower), float(self.column.upper)
            return _nearest(self.edges, lower + (upper - lower) * inner / n_bins)
        if self.n_cells <= n_bins:
            return np.arange(self.edges.size, dtype=np.int32)
        return _nearest(self.edges, self.n_cells * inner / n_bins)

    def log_edges(self, n_bins: int) -> NDArray[np.int32]:
        """Indices of the edges nearest to n_bins - 1 points log-spaced toward the anchor.

        With bounds on both sides of 0 each side has half of the points, and 0 the odd one.
        """
        if not isinstance(self.column, Numeric):
            return self.uniform_edges(n_bins)
        lower, upper = float(self.column.lower), float(self.column.upper)
        n_points = max(n_bins - 1, 0)
        if lower >= 0:
            points = lower + (upper - lower) * _powers(n_points)
        elif upper <= 0:
            points = upper - (upper - lower) * _powers(n_points)
        else:
            side = _powers(n_points // 2)
            points = np.concatenate([lower * side, np.zeros(n_points % 2), upper * side])
        return _nearest(self.edges, points)


@dataclass(frozen=True, eq=False)
class Codes:
    """A table as small integers, column by column; no raw value is kept."""

    narrow: NDArray[np.uint8]  # (narrow column, row)
    # (wide column, row): columns with more than 256 codes, and behind them fine levels
    wide: NDArray[np.uint16]
    place: NDArray[np.int32]  # (column,): k >= 0 is narrow[k], k < 0 is wide[-1 - k]

    @cached_property
    def arrays(self) -> CodeArrays:
        """The codes as compiled loops take them."""
        from hedgerow.kernels import CodeArrays  # compiled loops load slowly

        return CodeArrays(self.narrow, self.wide, self.place)

    @property
    def n_rows(self) -> int:
        return int(self.narrow.shape[1])

    @property
    def n_columns(self) -> int:
        return int(self.place.size)

    def column(self, j: int) -> NDArray[np.uint8] | NDArray[np.uint16]:
        k = int(self.place[j])
        codes: NDArray[Any] = self.narrow[k] if k >= 0 else self.wide[-1 - k]
        return codes  # (row,)

    def columns(self) -> list[NDArray[Any]]:
        """The codes of every column on the base grid, (row,) each."""
        return [self.column(j) for j in range(self.n_columns)]

    def fine_levels(self) -> NDArray[np.uint16]:
        """Fine codes of the columns that have a fine level, in their order: (fine column, row)."""
        return self.wide[int(np.sum(self.place < 0)) :]

    def take(self, index: NDArray[Any]) -> Codes:
        """The rows at these positions, or those where a boolean mask is true."""
        if index.dtype == np.bool_:
            index = np.flatnonzero(index)
        narrow, wide = np.take(self.narrow, index, axis=1), np.take(self.wide, index, axis=1)
        return Codes(narrow, wide, self.place)

    def split(self, of: NDArray[Any], sizes: NDArray[np.int64]) -> list[Codes]:
        """The rows of each of several sets: `of` names the set of every row, `sizes` has theirs."""
        from hedgerow import kernels  # compiled loops load slowly

        narrow, wide = (kernels.spread(codes, of, sizes) for codes in (self.narrow, self.wide))
        return [Codes(*both, self.place) for both in zip(narrow, wide, strict=True)]

    @staticmethod
    def concat(parts: Sequence[Codes]) -> Codes:
        """The rows of several tables of one schema, in order."""
        if not parts or any(not np.array_equal(p.place, parts[0].place) for p in parts):
            raise ValueError("concat needs at least one table, and all of the same schema")
        return Codes(
            np.concatenate([p.narrow for p in parts], axis=1),
            np.concatenate([p.wide for p in parts], axis=1),
            parts[0].place,
        )


_GRIDS: dict[str, tuple[ColumnGrid, ...]] = {}


def base_grid(schema: Schema) -> tuple[ColumnGrid, ...]:
    """The grid of every column. Edges are cached per bounds and must not be written to."""
    # Cached by hash, not by schema: the categories (1, 0) and (True, False) are equal to Python.
    grid = _GRIDS.get(schema.hash)
    if grid is None:
        for old in list(_GRIDS)[:-63]:  # a copy: other threads change it too
            _GRIDS.pop(old, None)
        # All threads get one grid: what is translated to it is known by it.
        fresh = tuple(_column_grid(column) for column in schema.columns)
        grid = _GRIDS.setdefault(schema.hash, fresh)
    return grid


def fine_grid(schema: Schema) -> tuple[ColumnGrid, ...]:
    """The grid of every column at its finest level; the base grid itself if it has no other."""
    return finer(base_grid(schema))


def finer(grid: Sequence[ColumnGrid]) -> tuple[ColumnGrid, ...]:
    """Columns at their fine levels where they have one. The same grid gives the same tuple."""
    return _finer(tuple(grid))


@lru_cache(maxsize=64)
def _finer(grid: tuple[ColumnGrid, ...]) -> tuple[ColumnGrid, ...]:
    if not any(g.fine.size for g in grid):
        return grid
    return tuple(
        replace(g, edges=g.fine, n_cells=g.fine.size + 1, fine=_no_edges(), is_fine=True)
        if g.fine.size
        else g
        for g in grid
    )


def base_level(grid: Sequence[ColumnGrid]) -> tuple[ColumnGrid, ...]:
    """The same without fine levels, for rows that are asked nothing about them."""
    return tuple(replace(g, fine=_no_edges()) if g.fine.size else g for g in grid)


def fine_columns(grid: Sequence[ColumnGrid]) -> tuple[int, ...]:
    """Columns of a base grid that have a fine level."""
    return tuple(j for j, g in enumerate(grid) if g.fine.size)


def code_places(grid: Sequence[ColumnGrid]) -> NDArray[np.int32]:
    """Where the codes of each column live in `Codes`: (column,). Not to be written to.

    Of a column at its fine level it is where its fine codes live, behind all wide columns.
    """
    return _code_places(tuple(grid))


@lru_cache(maxsize=16)  # every party and every tree asks for the same
def _code_places(grid: tuple[ColumnGrid, ...]) -> NDArray[np.int32]:
    fine = np.array([g.is_fine for g in grid], dtype=np.int32)
    wide = np.array([g.n_codes > 256 and not g.is_fine for g in grid], dtype=np.int32)
    places = np.where(wide, -np.cumsum(wide), np.cumsum(1 - wide) - 1)
    return np.where(fine, -int(wide.sum()) - np.cumsum(fine), places).astype(np.int32)


def empty_codes(grid: Sequence[ColumnGrid], n_rows: int) -> Codes:
    """Memory for the codes of so many rows at all levels of a base grid, not yet written."""
    place, n_fine = code_places(grid), len(fine_columns(grid))
    return Codes(
        np.empty((int(np.sum(place >= 0)), n_rows), dtype=np.uint8),
        np.empty((int(np.sum(place < 0)) + n_fine, n_rows), dtype=np.uint16),
        place,
    )


def gather_codes(
    columns: Iterable[NDArray[Any]],
    grid: Sequence[ColumnGrid],
    n_rows: int,
    *,
    finest: bool = False,
) -> Codes:
    """Put the codes of single columns, in the order of the grid, into one `Codes`.

    Where a column has a fine level, they are codes of that level if they are the `finest`; else
    rows get the first fine cell of theirs.
    """
    codes, levels = empty_codes(grid, n_rows), {j: k for k, j in enumerate(fine_columns(grid))}
    for j, column in enumerate(columns):
        if j not in levels:
            codes.column(j)[:] = column
            continue
        fine = column if finest else grid[j].first_fine_code[column]
        codes.fine_levels()[levels[j]] = fine
        codes.column(j)[:] = grid[j].code_of_fine[fine]
    return codes


def encode_numeric(values: NDArray[Any], grid: ColumnGrid) -> NDArray[np.uint8]:
    """Codes of numbers: the count of edges <= x in float32, so x < edges[k] iff code <= k.

    Values outside the bounds, infinities too, fall into the outer cells; NaN is missing.

    >>> grid, = base_grid(Schema.from_bounds({"dose": (0, 4)}, classes=[0, 1]))
    >>> codes = encode_numeric(np.array([-9.0, 4.0, 9.0, np.nan]), grid)
    >>> codes.tolist() == [0, grid.n_cells - 1, grid.n_cells - 1, grid.missing_code]
    True
    """
    return encode_edges(values, grid.edges, grid.missing_code).astype(np.uint8, copy=False)


def encode_edges(
    values: NDArray[Any], edges: NDArray[np.float32], missing_code: int
) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """Count the edges <= x for each value, both in float32; NaN becomes `missing_code`."""
    from hedgerow import kernels  # compiled loops load slowly, and plans need none

    top = max(missing_code, edges.size)
    codes: NDArray[Any] = np.empty(values.size, np.uint8 if top < 256 else np.uint16)  # (row,)
    kernels.encode(values, edges, missing_code, codes)
    return codes


def _column_grid(column: Column) -> ColumnGrid:
    if isinstance(column, Numeric):
        bounds = float(column.lower), float(column.upper)
        edges = _numeric_edges(*bounds, column.integer)
        fine = _fine_edges(*bounds) if column.integer else edges
        has_fine = fine.size > edges.size
        return ColumnGrid(column, edges, edges.size + 1, fine if has_fine else _no_edges())
    n_listed = len(column.categories)
    if isinstance(column, Categorical):
        n_cells = n_listed + (column.other == "category")
        return ColumnGrid(column, np.empty(0, dtype=np.float32), n_cells)
    return ColumnGrid(column, np.arange(1, n_listed, dtype=np.float32), n_listed)


@lru_cache(maxsize=4096)
def _numeric_edges(lower: float, upper: float, integer: bool) -> NDArray[np.float32]:
    if integer and upper - lower < MAX_NUMERIC_CELLS:
        points = np.arange(np.ceil(lower) + 1, np.floor(upper) + 0.5)
    else:
        uniform = lower + (upper - lower) * np.arange(1, UNIFORM_CELLS) / UNIFORM_CELLS
        points = np.concatenate([uniform, _log_points(lower, upper)])
        if integer:
            points = np.rint(points)
    # Adding 0.0 turns -0.0 into 0.0. Wide bounds at small steps may collapse in float32.
    edges = np.unique(points.astype(np.float32) + np.float32(0.0))
    edges = edges[(edges > np.float32(lower)) & (edges <= np.float32(upper))]
    edges.setflags(write=False)
    return edges


@lru_cache(maxsize=4096)
def _fine_edges(lower: float, upper: float) -> NDArray[np.float32]:
    """Edges of an integer column's fine level, those of its base grid among them.

    A cell an integer, or so many even cells.
    """
    if upper - lower < FINE_CELLS:
        points = np.arange(np.ceil(lower) + 1, np.floor(upper) + 0.5)
    else:
        points = np.rint(lower + (upper - lower) * np.arange(1, FINE_CELLS) / FINE_CELLS)
    edges = np.union1d(
        points.astype(np.float32) + np.float32(0.0), _numeric_edges(lower, upper, True)
    )
    edges = edges[(edges > np.float32(lower)) & (edges <= np.float32(upper))]
    edges.setflags(write=False)
    return edges


def _log_points(lower: float, upper: float) -> NDArray[np.float64]:
    """Half-octave steps toward the anchor: 0 between the bounds, else the bound nearest to 0."""
    steps = np.arange(1, OCTAVES * STEPS_PER_OCTAVE + 1)
    shrink = 2.0 ** (-steps / STEPS_PER_OCTAVE)  # (point,)
    if lower >= 0:
        return np.asarray(lower + (upper - lower) * shrink)
    if upper <= 0:
        return np.asarray(upper - (upper - lower) * shrink)
    side = max(-lower, upper) * shrink
    points = np.concatenate([-side, [0.0], side])
    return points[(points > lower) & (points < upper)]


def _powers(n_points: int) -> NDArray[np.float64]:
    """n_points factors between 1 and 2**-OCTAVES, both excluded, in equal ratios."""
    return np.asarray(2.0 ** (-OCTAVES * np.arange(1, n_points + 1) / (n_points + 1)))


def _nearest(edges: NDArray[np.float32], points: NDArray[np.float64]) -> NDArray[np.int32]:
    """Sorted unique indices of the edges nearest to the points; the lower one at a tie."""
    if not edges.size:
        return np.empty(0, dtype=np.int32)
    middles = (edges[1:].astype(np.float64) + edges[:-1]) / 2  # (edge - 1,)
    return np.unique(np.searchsorted(middles, points, side="left")).astype(np.int32)
