"""Every kind of table gives the same rows, and what does not fit is refused without a value."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.data import tables
from hedgerow.data.binning import Codes, base_grid, encode_numeric
from hedgerow.data.readers import Frame, Stream
from hedgerow.data.schema import Categorical, Column, Label, Numeric, Ordinal, Schema, Unit
from hedgerow.data.tables import Rows, encode_table, read_table, rows_of, target_of
from hedgerow.errors import TableError

SCHEMA = Schema(
    (
        Numeric("age", 0, 110, integer=True),
        Numeric("dose", -1.0, 5.0),
        Ordinal("stage", (1, 2, 3), other="category"),
        Categorical("ward", tuple(range(1000)), other="category"),
        Categorical("smoker", (True, False)),
    ),
    Label("y", ("no", "yes")),
)
COLUMNS: dict[str, list[Any]] = {
    "age": [30.0, None, 200.0, 61.0],
    "dose": [0.1, -0.0, None, 9.5],
    "stage": [1.0, 3.0, 7.0, None],
    "ward": [999.0, 5.0, 4000.0, None],
    "smoker": [True, False, True, False],
    "y": ["yes", "no", "no", "yes"],
}
ALL_KINDS = ["dict", "pandas", "nullable", "category", "polars", "arrow", "parquet", "csv"]


def same(one: Codes, two: Codes) -> bool:
    pairs: list[tuple[Any, Any]] = [
        (one.narrow, two.narrow),
        (one.wide, two.wide),
        (one.place, two.place),
    ]
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in pairs)


def table_as(kind: str, folder: Path) -> Any:
    frame = pd.DataFrame(COLUMNS)
    match kind:
        case "dict":
            return COLUMNS
        case "pandas":
            return frame
        case "nullable":
            return frame.convert_dtypes()
        case "category":
            return frame.astype({"ward": "category", "stage": "category", "y": "category"})
        case "polars":
            return pl.DataFrame(COLUMNS)
        case "arrow":
            table = pa.table(COLUMNS)
            encoded = table.column("y").dictionary_encode()
            return pa.concat_tables([table.set_column(5, "y", encoded).slice(i, 2) for i in (0, 2)])
        case "parquet":
            frame.to_parquet(folder / "t.parquet")
            return folder / "t.parquet"
    frame.to_csv(folder / "t.csv", index=False)
    return str(folder / "t.csv")


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_every_kind_of_table_gives_the_same_rows(kind: str, tmp_path: Path) -> None:
    matrix = pd.DataFrame(COLUMNS)[list(SCHEMA.names)].to_numpy(dtype=np.float64)
    expected = rows_of(matrix, SCHEMA, COLUMNS["y"])
    rows = rows_of(table_as(kind, tmp_path), SCHEMA)
    assert same(rows.codes, expected.codes)
    assert rows.target.tolist() == expected.target.tolist() == [1, 0, 0, 1]
    assert same(encode_table(table_as(kind, tmp_path), base_grid(SCHEMA)), rows.codes)


def test_the_codes_are_the_ones_promised() -> None:
    rows = rows_of(COLUMNS, SCHEMA)
    grid = base_grid(SCHEMA)
    assert rows.codes.column(0).tolist() == [30, grid[0].missing_code, 110, 61]
    assert rows.codes.column(2).tolist() == [0, 2, 3, 3]  # an unknown stage counts as missing
    assert rows.codes.column(3).tolist() == [999, 5, grid[3].other_code, grid[3].missing_code]
    assert rows.codes.column(3).dtype == np.uint16
    assert rows.codes.column(4).tolist() == [0, 1, 0, 1]
    some = rows.take(np.array([3, 0]))
    assert (some.n_rows, some.target.tolist(), some.persons) == (2, [1, 1], None)
    assert rows_of(COLUMNS, SCHEMA, with_label=False).target.shape == (0,)


@pytest.mark.parametrize("top", [9, 900])  # few values are looked up, of many those there are
@pytest.mark.parametrize("dtype", [np.int16, np.int64, np.uint16])
def test_whole_numbers_find_their_categories(top: int, dtype: type) -> None:
    column = Categorical("c", (2, 5, top), other="category", missing=False)
    schema, listed = Schema((column,), Label("y", (0, 1))), {2: 0, 5: 1, top: 2}
    values = np.array([5, 2, top, 3, 5, 4], dtype)
    rows = rows_of({"c": values, "y": values % 2}, schema)
    other = base_grid(schema)[0].other_code
    assert rows.codes.column(0).tolist() == [listed.get(int(v), other) for v in values]
    strict = Schema((Categorical("c", (2, 5, top), missing=False),), Label("y", (0, 1)))
    with pytest.raises(TableError, match="2 rows with a value that is not among its 3 categories"):
        rows_of({"c": values, "y": values % 2}, strict)
    assert rows_of({"c": values[:3], "y": values[:3] % 2}, strict).n_rows == 3


def test_arrays_of_objects_float32_and_lists_are_read_by_position() -> None:
    frame = pd.DataFrame(COLUMNS)[list(SCHEMA.names)]
    expected = rows_of(COLUMNS, SCHEMA).codes
    grid = base_grid(SCHEMA)
    assert same(encode_table(frame.to_numpy(dtype=object), grid), expected)
    assert same(encode_table(frame.to_numpy(dtype=np.float32), grid), expected)
    assert same(encode_table(np.asfortranarray(frame.to_numpy(dtype=float)), grid), expected)
    assert same(encode_table(frame.to_numpy(dtype=float).tolist(), grid), expected)
    values = frame.to_numpy(dtype=float)
    masked = np.ma.masked_array(np.nan_to_num(values), np.isnan(values))
    assert same(encode_table(masked, grid), expected)


def one(column: Column, values: Any, **more: Any) -> Rows:
    schema = Schema((column,), Label("y", (0, 1)))
    return rows_of({column.name: values, "y": [0] * len(values)}, schema, **more)


SECRET = "Mx7secret"
WRONG: list[tuple[Column, list[Any], str]] = [
    (Numeric("x", 0, 1), ["0.5", SECRET, SECRET], "'x' is numeric and 2 rows hold text"),
    (Numeric("x", 0, 9), ["0,5", "3,14"], "2 rows .* decimal comma.* 3.14"),
    (Numeric("x", 0, 9), ["2020-01-31", "1.2.1999"], "2 rows .* dates"),
    (Numeric("x", 0, 9), [pd.Timestamp("2020-01-31")], "1 rows .* dates"),
    (Numeric("x", 0, 9), [datetime.date(2020, 1, 31)], "dates or times"),
    (Numeric("x", 0, 9), [[1, 2], [3]], "not numbers"),
    (Numeric("x", 0, 9), [1, SECRET], "1 rows hold text"),
    (Numeric("x", 0, 9, missing=False), [1.0, None, np.nan], "missing = false and 2 rows"),
    (Categorical("x", ("a",), missing=False), ["a", ""], "missing = false and 1 rows"),
    (Categorical("x", ("a", "b")), ["a", SECRET, SECRET, "zz"], "3 rows .* 2 categories.* other ="),
    (Ordinal("x", ("a", "b")), ["a", SECRET], "1 rows .* other ="),
    (Categorical("x", ("a",)), [["a"], ["b"]], "which fit no list"),
]


@pytest.mark.parametrize(("column", "values", "message"), WRONG)
def test_wrong_values_are_counted_and_never_shown(
    column: Column, values: list[Any], message: str
) -> None:
    with pytest.raises(TableError, match=message) as caught:
        one(column, values, source="ward.csv")
    assert str(caught.value).startswith("ward.csv: column 'x'")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_wrong_labels_are_refused() -> None:
    classes, number = Label("y", (0, 1)), Label("y", lower=0, upper=10)
    with pytest.raises(TableError, match="2 rows of a class that is not") as caught:
        target_of([0, 1, SECRET, 2], classes)
    assert SECRET not in str(caught.value)
    for values in ([0, None], [0.0, np.nan], ["0", ""], np.ma.masked_equal([0, 1], 1)):
        for label in (classes, number):
            with pytest.raises(TableError, match="label 'y' is missing in 1 rows"):
                target_of(values, label)
    with pytest.raises(TableError, match="1 rows hold text"):
        target_of(["1", SECRET], number)
    with pytest.raises(TableError, match="one-dimensional"):
        target_of(np.zeros((3, 2)), classes)


def test_labels_come_in_many_types() -> None:
    classes, number = Label("y", (0, 1)), Label("y", lower=0, upper=10)
    booleans = np.array([True, False])
    for values in (booleans, [1, 0], ["1", "0"], pd.Series([1.0, 0.0]), pl.Series([1, 0]),
                   pa.array([True, False]), np.array([[1], [0]]), pd.Series([1, 0], dtype="Int8"),
                   pd.Series(["True", "False"], dtype="category")):  # fmt: skip
        assert target_of(values, classes).tolist() == [1.0, 0.0]
    assert target_of([-5, 2.5, np.inf], number).tolist() == [0, 0.25, 1]
    assert target_of(["-5", " 2.5 "], number).tolist() == [0, 0.25]


def test_wrong_tables_are_refused() -> None:
    schema = Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, classes=[0, 1])
    full = pd.DataFrame({"a": [0.5], "b": [0.5], "label": [1], "extra": [SECRET]})
    assert rows_of(full, schema).n_rows == 1
    twice = full[["a", "b", "b", "label"]]
    cases: list[tuple[Any, str]] = [
        (full[["b"]], "has no columns 'a', 'label'"),
        (full.iloc[:0], "0 rows"),
        (twice, "'b' more than once"),
        (pa.table([[1], [1], [1], [1]], ["a", "b", "b", "label"]), "'b' more than once"),
        (full["a"], "one column"),
        (np.zeros(3), "reshape"),
        ([1, 2], "reshape"),
        (np.zeros((3, 2, 2)), "not a table"),
        (object(), "not a table"),
        (3, "not a table"),
        ([[1, 2], [3]], "different lengths"),
        ({"a": [1], "b": [1, 2], "label": [1]}, "different lengths"),
        ({"a": 1, "b": 2, "label": 3}, "one-dimensional"),
        (np.zeros((3, 2)), "without names, where column 'label'"),
        (scipy.sparse.csr_matrix(np.eye(2)), "without names, where column 'label'"),
        (pl.LazyFrame({"a": [1]}), "collect"),
    ]
    for data, message in cases:
        with pytest.raises(TableError, match=message):
            rows_of(data, schema)
    with pytest.raises(TableError, match="3 columns and the schema 2"):
        rows_of(np.zeros((4, 3)), schema, [0, 1, 0, 1])
    with pytest.raises(TableError, match="4 rows and 3 labels"):
        rows_of(np.zeros((4, 2)), schema, [0, 1, 0])


def test_persons_are_hashed_by_the_text_of_their_id(tmp_path: Path) -> None:
    schema = Schema((Numeric("x", 0, 1),), Label("y", (0, 1)), Unit("person", "id", 2))
    data = {"x": [0, 1, 0], "y": [0, 1, 1], "id": [17, 4, 17]}
    (tmp_path / "t.csv").write_text("x,y,id\n0,0,17\n1,1,4\n0,1,17\n")
    persons = rows_of(data, schema).persons
    again = rows_of(tmp_path / "t.csv", schema).persons
    assert persons is not None
    assert again is not None
    assert persons.dtype == np.uint64
    assert persons[0] == persons[2] != persons[1]
    assert np.array_equal(persons, again)
    names = rows_of({**data, "id": ["007", "7", "07"]}, schema).persons
    assert names is not None
    assert len(set(names.tolist())) == 3
    for ids in ([1, None, 2], ["a", "", "b"], [1.0, np.nan, 2.0]):
        with pytest.raises(TableError, match="'id' is missing in 1 rows"):
            rows_of({**data, "id": ids}, schema)
    with pytest.raises(TableError, match=r"'id'.*cannot be found"):
        rows_of(np.zeros((2, 1)), schema, [0, 1])


def test_files_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    def file(name: str, content: bytes) -> Path:
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    cases = [
        (tmp_path / "none.csv", "no table at"),
        (tmp_path / "table.xlsx", "'.xlsx'"),
        (file("bad.parquet", b"PAR1 nothing"), "not readable as Parquet"),
        (file("empty.csv", b""), "is empty; write a header"),
        (
            file("latin.csv", b"x,y\n\xe9,1\n"),
            "not readable as CSV in its encoding; say which",
        ),
        (file("header.csv", b"\xe9,y\n1,1\n"), "not readable as CSV"),
        (file("semicolon.csv", b"x;y\n3,5;1\n"), "separated by semicolons"),
        (file("ragged.csv", b"x,y\n1,2\nMx7secret,3,1\n4,5,6\n"), "2 lines .* quote fields"),
    ]
    for path, message in cases:
        with pytest.raises(TableError, match=message) as caught:
            read_table(path)
        assert SECRET not in str(caught.value)


def test_csv_keeps_text_and_reads_quotes_blanks_and_a_byte_order_mark(tmp_path: Path) -> None:
    schema = Schema((Numeric("x", 0, 9, True), Categorical("c", ("a,b", "NA"))), Label("y", (0, 1)))
    text = '\ufeffx,c,y\n 3 ,"a,b",1\nNA,NA,0\nN/A,,1\n"nan",NA,0\n+4e0,NA,1\nnull,"a,b",1.0\n'
    (tmp_path / "t.CSV").write_text(text, encoding="utf-8")
    rows = rows_of(tmp_path / "t.CSV", schema)
    assert rows.codes.column(0).tolist() == [3, 10, 10, 10, 4, 10]
    assert rows.codes.column(1).tolist() == [0, 1, 2, 1, 1, 0]
    assert rows.target.tolist() == [1, 0, 1, 0, 1, 1]


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=True), min_size=1), st.sampled_from(["", " ", "\t"]))
def test_numbers_as_text_are_the_numbers(values: list[float], blank: str) -> None:
    column = Numeric("x", -100, 1e9)
    text = [f"{blank}{value!r}{blank}" for value in values]
    codes = one(column, text).codes.column(0)
    grid = base_grid(Schema((column,), Label("y", (0, 1))))[0]
    assert np.array_equal(codes, encode_numeric(np.array(values), grid))


@settings(deadline=None)
@given(st.lists(st.text() | st.none() | st.floats() | st.integers() | st.booleans(), min_size=1))
def test_any_column_of_objects_is_read_or_refused(values: list[Any]) -> None:
    for column in (Numeric("x", 0, 1), Categorical("x", ("a", 1), other="category")):
        try:
            assert one(column, np.array([*values, None], dtype=object)).n_rows == len(values) + 1
        except TableError as error:
            assert "column 'x'" in str(error)  # noqa: PT017


def test_float32_values_match_categories_as_written() -> None:
    column = Categorical("x", (0.1, 0.25, 3))
    for kind in (np.float32, np.float64):
        codes = one(column, np.array([0.1, 0.25, 3, np.nan], dtype=kind)).codes
        assert codes.column(0).tolist() == [0, 1, 2, 3]


def test_parquet_in_a_folder_named_like_a_partition_gains_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "site=3"
    folder.mkdir()
    pq.write_table(pa.table({"x": [1]}), folder / "t.pq")
    assert read_table(folder / "t.pq").column_names == ["x"]


@pytest.mark.parametrize("later", [500, 999, 1000, 1001])
def test_a_file_that_changes_while_it_is_read_is_refused(
    later: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"x{i}" for i in range(8)]  # more than are read in one pass
    schema = Schema.from_bounds(dict.fromkeys(names, (0, 1)), classes=[0, 1])
    file, opened, real = tmp_path / "t.parquet", [0], pq.ParquetFile

    def write(n_rows: int, value: float) -> None:
        columns = {**{name: np.full(n_rows, value) for name in names}, "label": np.zeros(n_rows)}
        pq.write_table(pa.table(columns), file)

    def open_(*arguments: Any, **further: Any) -> Any:
        opened[0] += 1
        if opened[0] == 3:  # names and the first columns have been read
            write(later, 0.9)
        return real(*arguments, **further)

    write(1000, 0.1)
    monkeypatch.setattr(pq, "ParquetFile", open_)
    with pytest.raises(TableError, match=r"changed while it was read|another length"):
        rows_of(file, schema)


@pytest.mark.parametrize("sizes", [[3], [3, 1], [3, 3], []])
def test_a_table_that_states_another_number_of_rows_is_refused(
    sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = Schema.from_bounds({"x": (0, 1)}, classes=[0, 1])

    def batches(places: Any) -> Iterator[Frame]:
        for size in sizes:
            yield Frame(size, None, lambda j, size=size: np.zeros(size), "t")

    stated = Stream(["x", "label"], 5 if sizes != [3, 1] else 3, batches, "t")
    monkeypatch.setattr(tables, "stream_of", lambda *_: stated)
    with pytest.raises(TableError, match="another length than it states"):
        rows_of("t", schema)
