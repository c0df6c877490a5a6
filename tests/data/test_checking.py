"""`Schema.check`: what a wrong schema does to a table, for its owner and nobody else."""

from __future__ import annotations

import ast
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hedgerow
from hedgerow import Categorical, Label, Numeric, Ordinal, PrivateBoostingClassifier, Schema, Unit
from hedgerow.data.checking import check_table
from hedgerow.data.tables import rows_of
from hedgerow.errors import SchemaError, TableError
from hedgerow.inspection.report import report_html

LABEL = Label("sick", ("no", "yes"))
N = 6000


def told(schema: Schema, table: Any, y: Any = None) -> list[str]:
    return [finding.text for finding in schema.check(table, y).findings]


def schema_of(*columns: Any, label: Label = LABEL, **more: Any) -> Schema:
    return Schema(columns, label, **more)


def test_columns_that_the_schema_does_not_have_are_named() -> None:
    table = {"age": [30, 40], "job": ["a", "b"], "id": [1, 1], "sick": ["no", "yes"]}
    person = Unit("person", "id", 2)
    checked = schema_of(Numeric("age", 0, 100), unit=person).check(table)
    assert checked.unused == ("job",)
    assert str(checked).endswith("Not used, because the schema has no such column: 'job'")
    assert checked.to_dict()["unused"] == ["job"]
    wide = {f"x{i}": [1, 2] for i in range(25)} | {"sick": ["no", "yes"]}
    assert str(schema_of(Numeric("x0", 0, 9)).check(wide)).endswith("'x20' and 4 more")
    assert (
        schema_of(Numeric("x0", 0, 9)).check(np.array([[1.0], [2.0]]), table["sick"]).unused == ()
    )


def test_a_bound_that_clips_everything_is_named() -> None:
    table = {"age": np.arange(N) % 60 + 20, "sick": ["no", "yes"] * (N // 2)}
    found = told(schema_of(Numeric("age", 0, 1)), table)
    assert found[0] == "age: 100 % of 6,000 values lie above the upper bound 1"
    assert "all 6,000 values lie in one of" in found[1]


@pytest.mark.parametrize(
    ("column", "values", "text"),
    [
        (Numeric("x", 0, 10), [-1, 5, 6, 7], "25 % of 4 values lie below the lower bound 0"),
        (Numeric("x", 0, 10), [1, None, 6, 7], "25 % of 4 rows have no value"),
        (Numeric("x", 0, 10, missing=False), [1, None, 6, 7],
         "25 % of 4 rows have no value, and such rows are refused"),
        (Numeric("x", 0, 10), ["1", "<5", "7", "8"],
         "1 of 4 rows hold text that is no number, and such rows are refused"),
        (Numeric("x", 0, 10), [4, 4, 4, None], "all 3 values are the same; leave the column out, "
         "it helps no model"),
        (Numeric("x", 0, 1e9), [1, 2, 3, 4], "all 4 values lie in one of 155 cells, so no tree can "
         "tell them apart; give bounds near them"),
        (Categorical("x", ("a", "b")), ["a", "b", "c", "d"],
         "50 % of 4 values are not among its 2 categories, and such rows are refused"),
        (Ordinal("x", (1, 2), other="category"), [1, 2, 3, 2],
         "25 % of 4 values are not among its 2 categories"),
        (Categorical("x", ("a", "b")), ["a", "a", None, "a"], "all 3 values are the same; leave "
         "the column out, it helps no model"),
    ],
)  # fmt: skip
def test_findings_of_columns(column: Any, values: list[Any], text: str) -> None:
    table = {"x": values, "sick": ["no", "yes", "no", "yes"]}
    for carried in (table, pd.DataFrame(table)):
        assert f"x: {text}" in told(schema_of(column), carried)


def test_findings_of_labels_and_persons() -> None:
    assert told(schema_of(Numeric("x", 0, 9)), {"x": [1, 5]}, ["no", "perhaps"]) == [
        "sick: 50 % of 2 values are not among its 2 classes, and such rows are refused"
    ]
    cost = Label("cost", (), 0, 10)
    assert told(schema_of(Numeric("x", 0, 9), label=cost), {"x": [1, 5], "cost": [3, 40]}) == [
        "cost: 50 % of 2 values lie above the upper bound 10"
    ]
    visits = schema_of(Numeric("x", 0, 9), unit=Unit("person", "who", 2))
    table = {"x": [1, 5, 6, 7], "who": ["a", "a", "a", "b"], "sick": ["no", "yes"] * 2}
    assert told(visits, table) == [
        "who: 25 % of 4 rows are beyond the 2 of a person that count, and are not used"
    ]


def test_a_table_that_fits_has_no_findings_and_arrays_are_checked_by_position() -> None:
    schema = schema_of(Numeric("x", 0, 9), Numeric("z", 0, 9))
    checked = schema.check(np.array([[1.0, 2.0], [3.0, 4.0]]), ["no", "yes"])
    assert checked.fits
    assert "Nothing is clipped, unlisted, missing or constant" in str(checked)
    assert schema.check(np.array([[1.0, 12.0], [3.0, 4.0]])).findings[0].n_rows == 1


@pytest.mark.parametrize(
    "values", [[1, 2, 3], [1, None, 3], ["1", "<5", "2"], [0, 11, 12], ["", "", ""]]
)
@pytest.mark.parametrize("missing", [True, False])
def test_a_check_says_whether_the_table_is_refused(values: list[Any], missing: bool) -> None:
    schema = schema_of(Numeric("x", 0, 10, missing=missing))
    table = {"x": values, "sick": ["no", "yes", "no"]}
    try:
        rows_of(table, schema)
    except TableError:
        assert not schema.check(table).fits
    else:
        assert schema.check(table).fits


def test_counts_do_not_depend_on_how_a_file_is_cut_into_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pd.DataFrame({"x": np.arange(5000) % 50, "z": ["a", "b", "c", "a"] * 1250})
    table["sick"] = ["no", "yes"] * 2500
    schema = schema_of(Numeric("x", 10, 40), Categorical("z", ("a", "b"), other="category"))
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    whole = schema.check(table).findings
    monkeypatch.setattr("hedgerow.data.readers._BATCH", 700)
    monkeypatch.setattr("hedgerow.data.readers._CSV_BLOCK", 4096)
    for name in ("t.csv", "t.parquet"):
        assert check_table(schema, tmp_path / name).findings == whole


def test_a_share_of_the_columns_can_be_checked() -> None:
    schema = schema_of(Numeric("x", 0, 9), Numeric("z", 0, 9))
    with pytest.raises(TableError, match="no column 'z'"):
        check_table(schema, {"x": [1, 2]})
    (finding,) = check_table(schema, {"x": [1, 20]}, some=True).findings
    assert finding.n_rows == 1


@pytest.mark.parametrize(
    ("lower", "upper", "integer"),
    [(1e12, 1e12 + 8000, False), (-1e12 - 8000, -1e12, False), (2e7, 2e7 + 50, True)],
)
def test_bounds_that_32_bit_floats_cannot_divide_are_an_error(
    lower: float, upper: float, integer: bool
) -> None:
    with pytest.raises(SchemaError, match=r"column 'x' .* too close .* Subtract a public number"):
        Numeric("x", lower, upper, integer)


def test_fits_models_reports_warnings_and_logs_have_none_of_the_counts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The checks are not even made: a fit on clipped, unlisted, missing values says nothing."""

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a fit counted what its schema does to rows")

    monkeypatch.setattr("hedgerow.data.checking.check_table", never)
    caplog.set_level(logging.DEBUG)
    columns = (Numeric("age", 0, 1), Categorical("ward", ("a", "b"), other="category"))
    table = {"age": [50.0, None] * 617, "ward": ["c"] * 1234, "sick": ["no", "yes"] * 617}
    model = PrivateBoostingClassifier(schema_of(*columns), method="random-trees", n_trees=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table)
        page = report_html(model.model_)
    assert caught == []
    texts = [page, model.statement_.words(), repr(model.model_.record), caplog.text]
    for text in texts:
        assert not any(word in text for word in ("lie above", "not among", "1,234", "1234"))


def test_only_the_owners_own_screens_count() -> None:
    """Which modules name the check at all: the schema itself, `schema check`, `party start`."""
    source = Path(hedgerow.__file__).parent
    users = set()
    for file in source.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "hedgerow.data.checking":
                users.add(file.relative_to(source).as_posix())
    assert users == {"data/schema.py", "cli/schema.py", "deployment/start.py"}
