"""The matrix that exports take, and frames by name for XGBoost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow.data.schema import Categorical, Numeric, Ordinal, Schema
from hedgerow.errors import TableError
from hedgerow.export import to_matrix, to_xgboost
from hedgerow.export.xgboost_json import category_names, feature_names
from hedgerow.model.ensemble import Ensemble
from tests.conftest import MIXED
from tests.export.ensembles import LABELS, STATEMENT, edge_cases, random_tree
from tests.export.runs import TABLE


def test_the_matrix_has_codes_of_lists_and_numbers_as_they_are() -> None:
    table = {
        "age": [30, None, 1e39], "dose": ["1.5", "", "-7"], "stage": ["high", "unheard", None],
        "site": ["east", "elsewhere", None], "code": [299, 0, None],
    }  # fmt: skip
    expected = [[30, 1.5, 2, 2, 299], [np.nan, np.nan, np.nan, 3, 0], [np.inf, -7] + [np.nan] * 3]
    found = to_matrix(MIXED, table)
    assert found.dtype == np.float32
    assert np.array_equal(found, np.array(expected, np.float32), equal_nan=True)


def test_a_matrix_is_refused_as_a_prediction_would_be() -> None:
    with pytest.raises(TableError, match="not among its 300 categories"):
        to_matrix(MIXED, {**TABLE, "code": ["?"] * 150})
    strict = Schema((Numeric("x", 0, 1, missing=False),), LABELS["binary"])
    with pytest.raises(TableError, match="missing = false and 1 rows"):
        to_matrix(strict, {"x": [0.5, None]})


def test_a_matrix_of_a_file_is_that_of_its_columns(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(TABLE), tmp_path / "t.parquet", row_group_size=40)
    assert np.array_equal(
        to_matrix(MIXED, tmp_path / "t.parquet"), to_matrix(MIXED, TABLE), equal_nan=True
    )


def test_xgboost_takes_a_frame_with_category_columns_by_name(tmp_path: Path) -> None:
    import pandas as pd
    import xgboost

    columns = (
        Numeric("x", -4, 4),
        Ordinal("stage", ("low", "high")),
        Categorical("site", ("north", "south", "(other)"), other="category"),
        Categorical("code", (30, 10, 20), other="category"),
        Categorical("flag", (True, False)),
    )
    schema, rng = Schema(columns, LABELS["binary"]), np.random.default_rng(8)
    trees = tuple(random_tree(rng, schema, 1, 12) for _ in range(10))
    model, table = Ensemble(trees, schema, STATEMENT), edge_cases(schema)
    to_xgboost(model, tmp_path / "m.json")
    X = to_matrix(model, table)
    frame = pd.DataFrame({"x": X[:, 0], "stage": X[:, 1]})
    for j, column in enumerate(columns):
        if isinstance(column, Categorical):
            names: list[Any] = list(category_names(column))
            values = [None if np.isnan(code) else names[int(code)] for code in X[:, j]]
            frame[column.name] = pd.Categorical(values, categories=names[::-1])
    booster = xgboost.Booster({"nthread": 1}, model_file=tmp_path / "m.json")
    found = booster.predict(xgboost.DMatrix(frame, enable_categorical=True, nthread=1))
    assert np.abs(found - model.predict(table)[:, 1]).max() < 1e-5
    assert booster.get_dump()  # XGBoost finds its own description of the columns in order


def test_names_beyond_ascii_are_noted(tmp_path: Path) -> None:
    schema = Schema((Categorical("ort", ("nord", "süd")),), LABELS["binary"])
    notes = to_xgboost(Ensemble((), schema, STATEMENT), tmp_path / "m.json").notes
    assert notes[-1].startswith("Give columns 'ort' as codes")


def test_names_that_xgboost_refuses_are_changed_and_noted(tmp_path: Path) -> None:
    schema = Schema.from_bounds(dict.fromkeys(("a[1]", "a(1)", "b<"), (0, 1)), classes=[0, 1])
    assert feature_names(schema) == ["a(1)_", "a(1)", "b("]
    notes = to_xgboost(Ensemble((), schema, STATEMENT), tmp_path / "m.json").notes
    assert "'a[1]' is 'a(1)_', 'b<' is 'b('" in notes[-1]
