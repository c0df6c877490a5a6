"""The base grid follows from the schema alone, and codes mean what trees will compare."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hedgerow.data.binning import (
    Codes,
    ColumnGrid,
    base_grid,
    code_places,
    encode_edges,
    encode_numeric,
    fine_columns,
    finer,
    gather_codes,
)
from hedgerow.data.schema import Categorical, Column, Label, Numeric, Ordinal, Schema
from hedgerow.data.tables import rows_of
from hedgerow.errors import SchemaError

BOUNDS = st.floats(-1e37, 1e37, allow_nan=False)


def grid_of(*columns: Column) -> tuple[ColumnGrid, ...]:
    return base_grid(Schema(columns, Label("y", (0, 1))))


def numeric(lower: float, upper: float, integer: bool = False) -> ColumnGrid:
    return grid_of(Numeric("x", lower, upper, integer))[0]


@settings(deadline=None)
@given(BOUNDS, BOUNDS, st.booleans())
@example(1e9, 1e9 + 10, False)
@example(1e9, 1e9 + 10, True)
@example(0.0, 1e-320, False)
@example(-1e-45, 1e-45, False)
@example(-1e37, 1e37, True)
@example(0.2, 0.9, True)
@example(-3.5, 250.0, True)
def test_edges_are_sound_for_any_bounds(one: float, two: float, integer: bool) -> None:
    if one == two:
        return
    lower, upper = min(one, two), max(one, two)
    try:
        grid = numeric(lower, upper, integer)
    except SchemaError:  # 32-bit floats have no room for 128 cells between the bounds
        floats = np.float32([lower, upper]).view(np.int32).astype(np.int64)
        assert abs(lower) + abs(upper) < 1e-40 or np.ptp(floats) < 257
        return
    edges = grid.edges
    whole = np.floor(upper) - np.ceil(lower)
    assert edges.size >= (min(whole, 63) if integer else 127)
    assert edges.dtype == np.float32
    assert np.all(np.diff(edges) > 0)
    assert np.all(edges > np.float32(lower))
    assert np.all(edges <= np.float32(upper))
    assert not np.any(np.signbit(edges[edges == 0]))
    assert grid.n_cells == edges.size + 1 <= 254
    for n_bins in (1, 2, 7, 32, 500):
        for chosen in (grid.uniform_edges(n_bins), grid.log_edges(n_bins)):
            assert chosen.dtype == np.int32
            assert np.all(np.diff(chosen) > 0)
            assert chosen.size <= min(n_bins - 1, edges.size)
            assert edges[chosen].size == chosen.size


@settings(deadline=None)
@given(
    st.lists(st.floats(width=32), min_size=1),
    st.sampled_from([(-1.0, 3.0), (0.0, 1e6), (-8.0, -0.5), (1e9, 1e9 + 9000), (-1e-30, 1e30)]),
)
def test_left_of_an_edge_is_the_same_for_codes_and_float32_values(
    values: list[float], bounds: tuple[float, float]
) -> None:
    grid = numeric(*bounds)
    x = np.array(values, dtype=np.float64)
    codes = encode_numeric(x, grid).astype(int)
    present = ~np.isnan(x)
    clipped = np.clip(x.astype(np.float32), np.float32(bounds[0]), np.float32(bounds[1]))
    for k, edge in enumerate(grid.edges):
        assert np.array_equal((codes <= k)[present], (x.astype(np.float32) < edge)[present])
        assert np.array_equal((codes <= k)[present], (clipped < edge)[present])
    assert np.all(codes[~present] == grid.missing_code)


def test_a_value_at_an_edge_is_right_of_it_and_one_step_below_is_left() -> None:
    grid = numeric(-2.0, 5.0)
    k = np.arange(grid.edges.size)
    assert np.array_equal(encode_numeric(grid.edges, grid), k + 1)
    below = np.nextafter(grid.edges, np.float32(-np.inf))
    assert np.array_equal(encode_numeric(below, grid), k)


def test_special_numbers_have_their_cells() -> None:
    grid = numeric(-1.0, 1.0)
    x = np.array([-np.inf, np.inf, np.nan, -7, 7, 1e300, -1e300])
    top = grid.n_cells - 1
    assert encode_numeric(x, grid).tolist() == [0, top, grid.missing_code, 0, top, top, 0]


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0.0, 1.0), (-1.0, 0.0), (-3.0, 100.0)])
def test_minus_zero_is_zero(bounds: tuple[float, float]) -> None:
    grid = numeric(*bounds)
    negative, positive = encode_numeric(np.array([-0.0, 0.0]), grid)
    assert negative == positive
    tiny = encode_numeric(np.array([0.001]), grid)[0]
    assert tiny > positive or bounds[1] == 0.0  # the grid is fine next to its anchor


def test_zero_is_an_edge_when_the_bounds_enclose_it() -> None:
    assert 0.0 in numeric(-1.0, 1000.0).edges
    assert 0.0 in numeric(-999.0, 3.0).edges


def test_an_integer_column_has_one_cell_for_each_value() -> None:
    grid = numeric(17, 90, integer=True)
    assert grid.edges.tolist() == list(range(18, 91))
    assert encode_numeric(np.arange(17, 91), grid).tolist() == list(range(74))
    assert numeric(0, 253, integer=True).n_cells == 254
    wide = numeric(0, 100_000, integer=True)
    assert np.array_equal(wide.edges, np.rint(wide.edges))
    assert {1.0, 2.0, 3.0} <= set(wide.edges.tolist())


def test_bounds_that_collapse_in_float32_leave_a_single_cell() -> None:
    grid = numeric(0.2, 0.9, integer=True)
    assert grid.n_cells == 1
    assert encode_numeric(np.array([0.3, 2e9, np.nan]), grid).tolist() == [0, 0, 1]
    assert grid.uniform_edges(8).size == grid.log_edges(8).size == 0


def test_uniform_edges_are_the_evenly_spaced_ones() -> None:
    grid = numeric(0.0, 8.0)
    assert grid.edges[grid.uniform_edges(8)].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert grid.uniform_edges(1).size == 0
    small = numeric(0, 3, integer=True)
    assert small.uniform_edges(32).tolist() == [0, 1, 2]


def test_log_edges_grow_in_equal_ratios_toward_the_anchor() -> None:
    up, down = numeric(0.0, 1.0), numeric(-1.0, 0.0)
    chosen = up.edges[up.log_edges(17)].astype(float)
    assert chosen.size == 16
    assert np.allclose(chosen[1:] / chosen[:-1], 2.0)
    assert np.allclose(down.edges[down.log_edges(17)], -chosen[::-1])
    both = numeric(-1.0, 1.0)
    middle = both.edges[both.log_edges(18)]
    assert middle.size == 17
    assert np.array_equal(middle, -middle[::-1])


def test_ordinals_are_cut_between_positions() -> None:
    (grid,) = grid_of(Ordinal("o", tuple("abcdefghij"), other="category"))
    assert grid.edges.tolist() == list(range(1, 10))
    assert (grid.n_cells, grid.n_codes, grid.missing_code) == (10, 11, 10)
    assert grid.ordered
    assert grid.other_code is None
    assert grid.uniform_edges(10).tolist() == list(range(9))
    assert grid.uniform_edges(5).tolist() == grid.log_edges(5).tolist() == [1, 3, 5, 7]


def test_categoricals_have_no_edges_and_may_have_a_cell_for_others() -> None:
    plain, other = grid_of(
        Categorical("a", ("x", "y")), Categorical("b", ("x", "y"), other="category")
    )
    assert (plain.n_cells, plain.other_code, plain.missing_code) == (2, None, 2)
    assert (other.n_cells, other.other_code, other.missing_code) == (3, 2, 3)
    assert not plain.ordered
    assert plain.uniform_edges(4).size == plain.log_edges(4).size == 0


def test_schemas_that_python_calls_equal_keep_their_own_categories() -> None:
    (numbers,) = grid_of(Categorical("a", (1, 0)))
    (booleans,) = grid_of(Categorical("a", (True, False)))
    assert numbers.column == booleans.column
    assert isinstance(booleans.column, Categorical)
    assert booleans.column.categories[0] is True


def test_columns_with_many_codes_live_in_the_wide_part() -> None:
    grid = grid_of(
        Categorical("a", tuple(range(1000))),
        Numeric("b", 0, 1),
        Categorical("c", tuple(range(255))),
        Categorical("d", tuple(range(256))),
    )
    assert code_places(grid).tolist() == [-1, 0, 1, -2]
    columns = [np.array([j, 3 * j, g.missing_code]) for j, g in enumerate(grid)]
    codes = gather_codes(columns, grid, 3)
    assert codes.wide.shape == codes.narrow.shape == (2, 3)
    assert codes.narrow.flags.c_contiguous
    assert codes.column(0).dtype == np.uint16
    assert codes.column(0).tolist() == [0, 0, 1000]
    assert codes.column(3).tolist() == [3, 9, 256]
    twice = Codes.concat([codes, codes.take(np.array([2, 0]))])
    assert (twice.n_rows, twice.n_columns) == (5, 4)
    assert twice.column(3).tolist() == [3, 9, 256, 256, 3]
    assert codes.take(np.array([False, True, False])).column(2).tolist() == [6]
    with pytest.raises(ValueError, match="same schema"):
        Codes.concat([codes, gather_codes(columns[1:2], grid[1:2], 3)])


@settings(deadline=None)
@given(st.lists(st.floats()), st.integers(0, 600), st.sampled_from([0, 255, 256, 65_535]))
def test_any_edges_can_be_counted(values: list[float], n_edges: int, missing: int) -> None:
    edges = np.arange(n_edges, dtype=np.float32)
    x = np.array(values, dtype=np.float64)
    codes = encode_edges(x, edges, missing)
    assert codes.dtype == (np.uint8 if max(missing, n_edges) < 256 else np.uint16)
    with np.errstate(over="ignore"):
        expected = (edges <= x.astype(np.float32)[:, None]).sum(axis=1)
    assert np.array_equal(codes, np.where(np.isnan(x), missing, expected))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=1, max_size=60, unique=True),
    st.lists(st.floats(), max_size=30),
)
def test_crowded_and_uneven_edges_are_counted(points: list[float], values: list[float]) -> None:
    edges = np.unique(np.array(points, np.float32) + np.float32(0.0))
    near = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
    x = np.concatenate([near.astype(np.float64), np.array(values, np.float64)])
    with np.errstate(over="ignore"):
        expected = np.searchsorted(edges, x.astype(np.float32), side="right")
    expected = np.where(np.isnan(x), 255, expected)
    assert np.array_equal(encode_edges(x, edges, 255), expected)


def test_large_integers_round_as_their_text_would() -> None:
    grid = numeric(0, 2.0**62)
    values = np.array([2**60 + 2**36 + 1, 2**53 + 1], dtype=np.int64)
    as_text = np.array([float(str(v)) for v in values])
    assert np.array_equal(encode_numeric(values, grid), encode_numeric(as_text, grid))


def test_importing_binning_and_tables_loads_no_heavy_package() -> None:
    heavy = "{'pyarrow', 'pandas', 'polars', 'numba', 'scipy', 'sklearn'}"
    modules = "hedgerow.data.binning, hedgerow.data.tables"
    program = f"import sys, {modules}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr


def test_threads_with_more_schemas_than_are_kept_get_their_own_grids() -> None:
    schemas = [Schema.from_bounds({"x": (0, n + 1)}, classes=[0, 1]) for n in range(90)]
    wrong: list[object] = []

    def work(start: int) -> None:
        for step in range(6000):
            schema = schemas[(start + 7 * step) % len(schemas)]
            try:
                if base_grid(schema)[0].column != schema.columns[0]:
                    wrong.append(schema)
            except (KeyError, RuntimeError) as error:
                wrong.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(31 * k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert wrong == []


WIDE = (
    Categorical("a", tuple(range(1000))),
    Numeric("gain", 0, 99_999, integer=True),
    Numeric("few", 0, 253, integer=True),
    Numeric("days", -100, 700, integer=True),
    Numeric("dose", 0, 99_999),
)


def test_wide_integer_columns_alone_have_a_fine_level_that_contains_the_base_grid() -> None:
    grid = grid_of(*WIDE)
    assert fine_columns(grid) == (1, 3)
    for j in fine_columns(grid):
        fine = finer(grid)[j]
        assert set(grid[j].edges.tolist()) <= set(fine.edges.tolist())
        assert np.array_equal(fine.edges, np.rint(fine.edges))
        assert fine.edges.size <= 1023 + 254
        assert finer(grid) is finer(grid)
    assert np.array_equal(finer(grid)[3].edges, np.arange(-99, 701))  # a cell an integer
    assert code_places(grid).tolist() == [-1, 0, 1, 2, 3]
    assert code_places(finer(grid)).tolist() == [-1, -2, 1, -3, 3]


def test_rows_keep_the_codes_of_both_levels() -> None:
    schema = Schema(WIDE, Label("y", (0, 1)))
    grid = base_grid(schema)
    rng = np.random.default_rng(4)
    values = np.concatenate([[-500, 0, 99_999, 10**7], rng.integers(0, 10**5, 500)])
    columns: dict[str, Any] = {c.name: values.tolist() for c in WIDE[1:]}
    columns["a"] = [int(v) % 1000 for v in values]
    columns["gain"][7] = None
    codes = rows_of({**columns, "y": [0] * len(values)}, schema).codes
    assert codes.wide.shape == (3, len(values))
    for (j, fine), level in zip(((1, "gain"), (3, "days")), codes.fine_levels(), strict=True):
        clean = np.array([np.nan if v is None else v for v in columns[fine]], np.float64)
        assert np.array_equal(codes.column(j), encode_edges(clean, grid[j].edges, grid[j].n_cells))
        edges = grid[j].fine
        assert np.array_equal(level, encode_edges(clean, edges, edges.size + 1))
    some = np.array([7, 3, 1])
    assert np.array_equal(codes.take(some).fine_levels(), codes.fine_levels()[:, some])
    assert Codes.concat([codes, codes]).fine_levels().shape == (2, 2 * len(values))
    finest = [level[:9] for level in (codes.column(0), codes.fine_levels()[0], codes.column(2))]
    finest += [codes.fine_levels()[1][:9], codes.column(4)[:9]]
    again = gather_codes(finest, grid, 9, finest=True)
    assert np.array_equal(again.narrow, codes.narrow[:, :9])
    assert np.array_equal(again.wide, codes.wide[:, :9])
    first = gather_codes(codes.take(some).columns(), grid, 3)
    for j, level in zip((1, 3), first.fine_levels(), strict=True):
        assert np.array_equal(grid[j].code_of_fine[level], codes.column(j)[some])
