"""`hedgerow schema draft`: what it proposes, and how loudly it says that it read the rows."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow.cli.draft import drafted, nice_bounds
from hedgerow.data.schema import Categorical, Label, Numeric, Ordinal, Schema
from hedgerow.data.tables import rows_of
from hedgerow.errors import HedgerowError, TableError
from tests.cli.conftest import Call, write_csv

N = 60
SAMPLE: dict[str, list[Any]] = {
    "age": [18 + i for i in range(N)],
    "dose": [0.13 + 0.0075 * i for i in range(N)],
    "stage": [1 + i % 4 for i in range(N)],
    "ward": [("east", "north", None)[i % 3] for i in range(N)],
    "smoker": [i % 2 == 0 for i in range(N)],
    "name": [f"person {i}" for i in range(N)],
    "born": [datetime.date(1950 + i, 1, 1) for i in range(N)],
    "empty": [None] * N,
    "sick": ["no", "yes"] * (N // 2),
}
EXPECTED = (
    Numeric("age", 15, 80, integer=True),
    Numeric("dose", 0.1, 0.6),
    Ordinal("stage", (1, 2, 3, 4), other="category"),
    Categorical("ward", ("east", "north"), other="category"),
)


def test_a_draft_from_parquet_fits_its_table(call: Call, folder: Path) -> None:
    pq.write_table(pa.table(SAMPLE), folder / "s.parquet")
    done = call("schema", "draft", "--data", "s.parquet", "--label", "sick", "--out", "d.toml")
    assert done.exit_code == 0
    schema = Schema.read(folder / "d.toml")
    assert schema.columns == (*EXPECTED, Categorical("smoker", (False, True)))
    assert schema.label == Label("sick", ("no", "yes"))
    assert rows_of(folder / "s.parquet", schema).n_rows == N
    for name in ("name", "born", "empty"):
        assert f"Left out: '{name}'" in done.stderr
        assert f"# Left out: '{name}'" in (folder / "d.toml").read_text()


def test_a_draft_from_csv_is_the_same_but_for_booleans(call: Call, folder: Path) -> None:
    write_csv(folder / "s.csv", SAMPLE)
    done = call("schema", "draft", "--data", "s.csv", "--label", "sick")
    assert done.exit_code == 0
    (folder / "d.toml").write_text(done.stdout)
    schema = Schema.read(folder / "d.toml")
    smoker = Categorical("smoker", ("False", "True"), other="category")
    assert schema.columns == (*EXPECTED, smoker)
    assert rows_of(folder / "s.csv", schema).n_rows == N


def test_one_value_in_two_spellings_is_drafted_once() -> None:
    table = pa.table({"x": ["True", "true", "FALSE", "False"] * 5, "y": ["1", "1.0", "a", "b"] * 5})
    schema, _ = drafted(table, "y", "s.csv")
    assert schema.columns == (Categorical("x", ("FALSE", "True"), other="category"),)
    assert schema.label.classes == ("1", "a", "b")
    assert rows_of(table, schema).target.tolist() == [0, 0, 1, 2] * 5


def test_the_warning_is_loud(call: Call, folder: Path) -> None:
    write_csv(folder / "s.csv", SAMPLE)
    done = call("schema", "draft", "--data", "s.csv", "--label", "sick", "--out", "d.toml")
    top = (folder / "d.toml").read_text().partition("format = 1")[0]
    comment = " ".join(line.removeprefix("# ") for line in top.splitlines())
    for text in (done.stderr, comment):
        assert "COMPUTED FROM THE ROWS of s.csv" in text
        assert "only with a public or synthetic sample" in text
        assert "replace every bound" in text
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("dose", Label("dose", (), 0.1, 0.6)),
        ("stage", Label("stage", (1, 2, 3, 4))),
        ("smoker", Label("smoker", (False, True))),
        ("ward", Label("ward", ("east", "north"))),
    ],
)
def test_labels(label: str, expected: Label) -> None:
    assert drafted(pa.table(SAMPLE), label, "s")[0].label == expected


def test_a_schema_is_not_overwritten(call: Call, folder: Path) -> None:
    before = (folder / "schema.toml").read_text()
    words = ("schema", "draft", "--data", "a.csv", "--label", "sick", "--out", "schema.toml")
    assert isinstance(call(*words).exception, HedgerowError)
    assert (folder / "schema.toml").read_text() == before


@pytest.mark.parametrize(
    ("table", "label", "message"),
    [
        (SAMPLE, "ill", "label column 'ill' 0 times"),
        ({"a": [1, 2], "sick": [None, "yes"]}, "sick", "has 1 distinct value"),
        ({"sick": ["no", "yes"]}, "sick", "no column besides"),
        ({"a": pa.array([], pa.int64()), "sick": pa.array([], pa.int64())}, "sick", "has 0 rows"),
    ],
)
def test_no_draft_can_be_made(table: dict[str, Any], label: str, message: str) -> None:
    with pytest.raises(TableError, match=message):
        drafted(pa.table(table), label, "s")


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-17.3, 4e6), (1e-9, 3e-9), (999, 1001), (5, 5), (0, 0), (-3, -3)]
)
def test_bounds_lie_outside_and_not_far(low: float, high: float) -> None:
    lower, upper = nice_bounds([low, high])
    assert lower <= low <= high <= upper
    assert lower < upper
    assert upper - lower <= 2 * (high - low) or low == high


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("temperature", [f"3{i % 9},{i % 10}" for i in range(300)], "numbers with commas"),
        ("cost", [f"1,{i:03d},5{i % 10}" for i in range(300)], "numbers with commas"),
        ("patient", [str(4000 + i) for i in range(300)], "another whole number in every row"),
        ("Patient ID", [str(31 * i) for i in range(300)], "another whole number in every row"),
        ("customerId", [str(7919 * i) for i in range(300)], "another whole number in every row"),
        ("", [str(i) for i in range(300)], "a column without a name"),
        ("crp", [f"<{i}" if i < 9 else f"{i}.5" for i in range(300)], "9 distinct other texts"),
    ],
)
def test_a_column_that_needs_a_hand_is_left_out(name: str, values: list[str], reason: str) -> None:
    table = pa.table(
        {name: values, "dose": [i % 40 for i in range(300)], "sick": ["no", "yes"] * 150}
    )
    schema, notes = drafted(table, "sick", "s")
    assert schema.names == ("dose",)
    (note,) = notes
    assert note.startswith("Left out: ")
    assert reason in note


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("paid", [7919 * i for i in range(300)]),  # no id, though it ends like one
        ("code", [("1", "2", "A")[i % 3] for i in range(300)]),
        ("amounts", [str(i * i) for i in range(300)]),
        ("ward", ["Ear, Nose & Throat", "Intensive Care", "3, east"] * 100),
    ],
)
def test_a_column_that_only_looks_odd_stays(name: str, values: list[Any]) -> None:
    table = pa.table({name: values, "sick": ["no", "yes"] * 150})
    schema, notes = drafted(table, "sick", "s")
    assert schema.names == (name,)
    assert notes == []


def test_rows_without_a_label_are_counted() -> None:
    table = pa.table({"dose": list(range(6)), "sick": ["no", "yes", "", "NA", None, "no"]})
    (note,) = drafted(table, "sick", "s")[1]
    assert "3 of 6 rows have no value of the label 'sick'" in note


def test_a_label_with_commas_is_refused() -> None:
    table = pa.table({"dose": [1, 2, 3] * 100, "cost": [f"{i},5" for i in range(300)]})
    with pytest.raises(TableError, match="label 'cost' holds numbers with commas"):
        drafted(table, "cost", "s")


def test_where_nothing_is_left_the_reasons_are_told() -> None:
    table = pa.table({"cost": [f"{i},5" for i in range(300)], "sick": ["no", "yes"] * 150})
    with pytest.raises(TableError, match=r"no column besides 'sick'.*'cost' holds numbers"):
        drafted(table, "sick", "s")
