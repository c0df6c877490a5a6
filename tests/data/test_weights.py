"""Weights of rows: the schema's part about them, and how tables of every kind are read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow import Schema, Weight, rows_of
from hedgerow.data.holdout import held_out
from hedgerow.errors import SchemaError, TableError
from hedgerow.party.running_scores import RunningScores

PLAIN = Schema.from_bounds({"age": (0, 110), "dose": (0, 5)}, classes=["no", "yes"])
SCHEMA = replace(PLAIN, weight=Weight("w", 2.0))
TABLE: dict[str, list[Any]] = {
    "age": [20, 30, 40, 50], "dose": [1, 2, 3, 4], "label": ["no", "yes", "no", "yes"],
    "w": [0.5, 1, 7, -3],
}  # fmt: skip
STEPS = [2**13, 2**14, 2**15, 0]


def test_a_schema_with_weights_comes_back_from_its_file(tmp_path: Path) -> None:
    SCHEMA.write(tmp_path / "schema.toml")
    again = Schema.read(tmp_path / "schema.toml")
    assert again == SCHEMA
    assert again.hash == SCHEMA.hash != PLAIN.hash
    assert replace(SCHEMA, weight=Weight("w", 3.0)).hash != SCHEMA.hash  # the cap is agreed on
    assert "weight" not in PLAIN.to_dict()  # so that schemas without weights keep their hash
    assert "w, 0 to 2" in repr(SCHEMA)


@pytest.mark.parametrize(
    ("weight", "what"),
    [
        ({"column": "w", "at_most": 0.5}, "from 1 to 10000"),
        ({"column": "w", "at_most": 1e9}, "from 1 to 10000"),
        ({"column": "w", "at_most": True}, "must be a number"),
        ({"column": "w"}, "no 'at_most'"),
        ({"column": "w", "max": 2}, "unknown key 'max'"),
        ({"column": "age", "at_most": 2}, "'age' appears twice"),
        ({"column": "label", "at_most": 2}, "'label' appears twice"),
        ({"column": "", "at_most": 2}, "non-empty"),
    ],
)
def test_a_wrong_weight_of_a_schema_is_refused(weight: dict[str, Any], what: str) -> None:
    with pytest.raises(SchemaError, match=what):
        Schema.from_dict({**PLAIN.to_dict(), "weight": weight})


@pytest.mark.parametrize("cap", [1.0, 1.5, 2.0, 3.0, 1000.0, 10_000.0])
def test_no_weight_exceeds_its_cap_and_whole_ones_are_exact(cap: float) -> None:
    weight = Weight("w", cap)
    given = np.array([-1e300, -0.0, 1.0, np.floor(cap), cap, np.nextafter(cap, np.inf), np.inf])
    steps = weight.steps(given) / 2.0**weight.bits
    assert steps.max() <= cap
    assert steps[[0, 1, 2, 3]].tolist() == [0.0, 0.0, 1.0, np.floor(cap)]
    assert steps[4] > cap * (1 - 2.0**-14)
    fine = np.linspace(0, cap, 1000)
    assert np.all(weight.steps(fine) / 2.0**weight.bits <= fine)


def carriers(folder: Path) -> dict[str, Any]:
    frame = pd.DataFrame(TABLE)
    frame.to_csv(folder / "table.csv", index=False)
    pq.write_table(pa.table(TABLE), folder / "table.parquet")
    return {
        "dict": TABLE, "pandas": frame, "polars": pl.DataFrame(TABLE, strict=False),
        "arrow": pa.table(TABLE), "csv": folder / "table.csv",
        "parquet": folder / "table.parquet", "text": {**TABLE, "w": ["0.5", "1", "7", "-3"]},
        "nullable": frame.astype({"w": "Float64"}),
    }  # fmt: skip


def test_weights_are_the_same_whatever_carries_them(tmp_path: Path) -> None:
    for name, table in carriers(tmp_path).items():
        rows = rows_of(table, SCHEMA)
        assert rows.weights.tolist() == STEPS, name
        assert rows.target.tolist() == [0, 1, 0, 1], name
        assert rows_of(table, PLAIN).weights.size == 0, name
    rows = rows_of(np.array([TABLE["age"], TABLE["dose"]]).T, SCHEMA, TABLE["label"],
                   weights=pd.Series(TABLE["w"]))  # fmt: skip
    assert rows.weights.tolist() == STEPS


def test_rows_take_their_weights_along() -> None:
    rows = rows_of(TABLE, SCHEMA)
    assert rows.take(np.array([2, 0])).weights.tolist() == [STEPS[2], STEPS[0]]
    parts = rows.split(np.array([1, 0, 1, 0]), 2)
    assert [part.weights.tolist() for part in parts] == [STEPS[1::2], STEPS[::2]]


@pytest.mark.parametrize("nothing", [None, float("nan"), "", "NA"])
def test_a_row_without_its_weight_is_refused_before_a_party_joins(nothing: Any) -> None:
    table = {**TABLE, "w": ["1", nothing, "2", "1"]}
    with pytest.raises(TableError, match="weight 'w' is missing in 1 rows"):
        rows_of(table, SCHEMA)


def test_weights_that_are_no_numbers_or_too_few_are_refused() -> None:
    with pytest.raises(TableError, match="weight 'w'"):
        rows_of({**TABLE, "w": ["many"] * 4}, SCHEMA)
    with pytest.raises(TableError, match="no column 'w'"):
        rows_of({name: TABLE[name] for name in ("age", "dose", "label")}, SCHEMA)
    with pytest.raises(TableError, match="4 rows and 3 weights"):
        rows_of(TABLE, SCHEMA, weights=[1, 2, 1])


def test_the_owner_is_told_of_clamped_weights() -> None:
    words = SCHEMA.check(TABLE).words()
    assert "w: 25 % of 4 values lie below the lower bound 0" in words
    assert "w: 25 % of 4 values lie above the upper bound 2" in words
    given = SCHEMA.check(TABLE, sample_weight=[1, 1, 1, 1]).words()
    assert "all 4 weights are the same" in given
    missing = SCHEMA.check({**TABLE, "w": [1, None, 1, 2]})
    assert not missing.fits


def test_rows_that_differ_in_weight_alone_do_not_swap_sides_when_one_is_added() -> None:
    """Which row is held out follows from itself: of equal ones with other weights, too."""
    n = 200
    table = {"age": [33] * n, "dose": [1] * n, "label": ["no"] * n,
             "w": [1.0, 2.0] * (n // 2)}  # fmt: skip
    rows = rows_of(table, SCHEMA)
    more = rows.take(np.concatenate([[0], np.arange(n)]))  # one more row of weight 1, in front
    before = rows.weights[held_out(rows, SCHEMA, 0.5)]
    after = more.weights[held_out(more, SCHEMA, 0.5)]
    change = np.bincount(after, minlength=2**15 + 1) - np.bincount(before, minlength=2**15 + 1)
    assert np.flatnonzero(change).tolist() in ([], [2**14])
    assert change.sum() in (0, 1)


def test_rows_with_weights_beyond_the_cap_are_not_held() -> None:
    heavy = replace(rows_of(TABLE, SCHEMA), schema="")
    RunningScores(heavy, SCHEMA)
    for schema in (PLAIN, replace(SCHEMA, weight=Weight("w", 1.5))):
        with pytest.raises(TableError, match="above the schema's cap"):
            RunningScores(heavy, schema)
