"""Values mean the same whatever carries them: carriers x kinds of values x places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from typer.testing import CliRunner

from hedgerow import PrivateBoostingClassifier, evaluate_privately
from hedgerow.cli.app import app
from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Categorical, Label, Numeric, Ordinal, Schema, Unit
from hedgerow.data.tables import encode_table, rows_of, target_of
from hedgerow.engines.local import local_federation
from hedgerow.export import to_matrix
from hedgerow.testing import noise_off
from tests.contracts.carriers import CARRIERS, FILES, KINDS, Columns


def schema_of(listed: tuple[Any, Any]) -> Schema:
    return Schema((Categorical("x", listed),), Label("y", listed), Unit("person", "id", 2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_value_is_the_same_category_class_and_person(
    carrier: str, kind: str, tmp_path: Path
) -> None:
    columns = KINDS[kind].columns()
    table = CARRIERS[carrier](columns, tmp_path)
    third = 2 if KINDS[kind].missing else 0  # the code behind the list is the missing value's
    for listed in KINDS[kind].lists:
        schema = schema_of(listed)
        rows = rows_of(table, schema)
        assert rows.codes.column(0).tolist() == [0, 1, third, 1], listed
        assert rows.target.tolist() == [0, 1, 0, 1], listed
        assert encode_table(table, base_grid(schema)).column(0).tolist() == [0, 1, third, 1]
        persons = rows_of(columns, schema).persons
        assert rows.persons is not None
        assert persons is not None
        assert rows.persons.tolist() == persons.tolist()


@pytest.mark.parametrize("values", [[True, False, None, True], [12.5, 3, None, 7], [0.1, 1, 7, 2]])
@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_number_is_the_same_number(carrier: str, values: list[Any], tmp_path: Path) -> None:
    columns = {"x": values, "y": [0.25, 1.0, 2.0, 3.5]}
    schema = Schema((Numeric("x", 0, 10),), Label("y", lower=0, upper=4))
    rows = rows_of(CARRIERS[carrier](columns, tmp_path), schema)
    numbers = np.array([[np.nan if v is None else float(v)] for v in values])
    expected = rows_of(numbers, schema, columns["y"])
    assert rows.codes.column(0).tolist() == expected.codes.column(0).tolist()
    assert rows.target.tolist() == [0.0625, 0.25, 0.5, 0.875]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_without_names_and_labels_apart_mean_the_same(kind: str) -> None:
    values, present = KINDS[kind].columns()["x"], KINDS[kind].columns()["y"]
    objects = np.array(values, object).reshape(-1, 1)
    texts = [None if value is None else str(value) for value in values]
    matrices = [objects, objects.astype(str), [[v] for v in values], [[t] for t in texts]]
    apart = [present, np.array(present), np.array(present, object), pd.Series(present),
             pd.Series(present, dtype="category"), pl.Series(present), pa.array(present),
             pa.array(present).dictionary_encode(), np.array(present).reshape(-1, 1),
             [str(value) for value in present], tuple(present)]  # fmt: skip
    third = 2 if KINDS[kind].missing else 0
    for listed in KINDS[kind].lists:
        schema = Schema((Categorical("x", listed),), Label("y", listed))
        for matrix in matrices:
            codes = encode_table(matrix, base_grid(schema)).column(0)
            assert codes.tolist() == [0, 1, third, 1]
        for labels in apart:
            assert target_of(labels, schema.label).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float16, np.float32,
                                   np.float64, ">i4", ">f8"])  # fmt: skip
@pytest.mark.parametrize("listed", [(False, True), ("False", "True"), (0, 1), ("0", "1")])
def test_numeric_arrays_and_sparse_ones_mean_the_same(dtype: Any, listed: tuple[Any, Any]) -> None:
    schema = Schema((Categorical("a", listed), Ordinal("b", listed)), Label("y", listed))
    matrix = np.array([[0, 1], [1, 1], [0, 0]], dtype)
    forms: list[Any] = [matrix]
    if dtype not in (np.float16, ">i4", ">f8"):  # which sparse matrices do not know
        forms += [scipy.sparse.csr_matrix(matrix), scipy.sparse.coo_array(matrix)]
        forms += [pd.DataFrame(matrix, columns=["a", "b"]).astype(pd.SparseDtype(dtype))]
    for form in forms:
        rows = rows_of(form, schema, matrix[:, 0])
        assert rows.codes.column(0).tolist() == [0, 1, 0]
        assert rows.codes.column(1).tolist() == [1, 1, 0]
        assert rows.target.tolist() == [0, 1, 0]


SCHEMA = Schema(
    (
        Categorical("flag", ("False", "True"), other="category"),
        Ordinal("level", (1, 2, 3), other="category"),
        Categorical("site", ("007", "7", "north"), other="category"),
        Numeric("dose", 0, 10),
    ),
    Label("sick", (False, True)),
)


def patients(n: int = 240) -> Columns:
    rng = np.random.default_rng(3)
    flag = [None if r < 0.1 else bool(r < 0.5) for r in rng.uniform(size=n)]
    level = [None if r < 0.1 else int(r * 4) for r in rng.uniform(size=n)]
    site = rng.choice(["007", "7", "north", "elsewhere"], n).tolist()
    dose = [None if r < 0.1 else round(r * 11, 2) for r in rng.uniform(size=n).tolist()]
    sick = [(f is True) != (x < 0.1) for f, x in zip(flag, rng.uniform(size=n), strict=True)]
    return {"flag": flag, "level": level, "site": site, "dose": dose, "sick": sick}


def classifier(**further: Any) -> PrivateBoostingClassifier:
    given = {"method": "random-trees", "n_trees": 5, "max_depth": 3, "random_state": 4, **further}
    return PrivateBoostingClassifier(SCHEMA, **given)


@pytest.fixture(scope="module")
def model() -> PrivateBoostingClassifier:
    with noise_off():
        return classifier().fit(patients())


@pytest.mark.parametrize("carrier", CARRIERS)
def test_models_and_measures_are_the_same(
    carrier: str, model: PrivateBoostingClassifier, tmp_path: Path
) -> None:
    columns = patients()
    table = CARRIERS[carrier](columns, tmp_path)
    expected = model.predict_proba(columns)
    assert np.array_equal(model.predict_proba(table), expected)
    assert model.predict(table).dtype == model.classes_.dtype == bool
    assert np.array_equal(to_matrix(model, table), to_matrix(model, columns), equal_nan=True)
    with noise_off():
        again = classifier().fit(table)
        measured = evaluate_privately(model, table, epsilon=1.0)
        plain = evaluate_privately(model, columns, epsilon=1.0)
    assert np.array_equal(again.predict_proba(columns), expected)
    assert measured["auc"].value == plain["auc"].value
    labels = table["sick"] if hasattr(table, "keys") else columns["sick"]
    assert model.score(table, labels) == model.score(columns, columns["sick"])


@pytest.mark.parametrize("carrier", FILES)
def test_commands_say_the_same_of_every_file(
    carrier: str, model: PrivateBoostingClassifier, tmp_path: Path
) -> None:
    columns, runner = patients(), CliRunner()
    model.model_.save(tmp_path / "m.hedge")
    path = CARRIERS[carrier](columns, tmp_path)
    words = ["predict", tmp_path / "m.hedge", "--data", path, "--out", tmp_path / "p.csv"]
    assert runner.invoke(app, [str(word) for word in words]).exit_code == 0
    written = pd.read_csv(tmp_path / "p.csv")
    expected = model.predict_proba(columns)[:, 1]
    assert np.allclose(written["probability_true"], expected, rtol=1e-8)
    assert written["predicted"].tolist() == model.predict(columns).tolist()
    words = ["evaluate", tmp_path / "m.hedge", "--data", path, "--json"]
    shown = runner.invoke(app, [str(word) for word in words]).stdout
    score = model.score(columns, columns["sick"])
    assert f'"accuracy": {score}' in shown or f'"accuracy":{score}' in shown


# What was tried when booleans went wrong in silence: each of these was red.
FLAG = Schema((Categorical("flag", ("False", "True"), other="category"),), Label("y", (0, 1)))
COIN = np.random.default_rng(8).uniform(size=600) < 0.5


def on_flag(**further: Any) -> PrivateBoostingClassifier:
    given = {"method": "random-trees", "n_trees": 3, "max_depth": 1, "random_state": 1, **further}
    return PrivateBoostingClassifier(given.pop("schema", FLAG), **given)


def test_one_file_scores_the_same_through_csv_and_through_pandas(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    pd.DataFrame({"flag": COIN, "y": COIN.astype(int)}).to_csv(file, index=False)
    frame = pd.read_csv(file)
    assert frame["flag"].dtype == bool
    with noise_off():
        model = on_flag().fit(str(file))
    assert model.score(str(file), frame["y"]) == model.score(frame, frame["y"]) == 1.0


def test_a_model_of_text_predicts_booleans_and_numbers() -> None:
    text = {"flag": [str(value) for value in COIN]}
    with noise_off():
        model = on_flag().fit(text, COIN.astype(int))
    nullable = pd.Series(COIN, dtype="boolean")
    forms = [COIN, COIN.astype(int), COIN.astype(float), nullable]
    forms += [np.char.lower(text["flag"]), np.char.upper(text["flag"])]
    for flags in forms:
        assert model.score({"flag": flags}, COIN.astype(int)) == 1.0


def test_parties_with_csv_and_parquet_files_put_no_weight_into_any_other(tmp_path: Path) -> None:
    frame = pd.DataFrame({"flag": COIN, "y": COIN.astype(int)})
    frame[:200].to_csv(tmp_path / "a.csv", index=False)
    frame[200:400].to_parquet(tmp_path / "b.parquet")
    frame[400:].to_parquet(tmp_path / "c.parquet")
    parts = {
        name[0]: rows_of(tmp_path / name, FLAG) for name in ("a.csv", "b.parquet", "c.parquet")
    }
    other = base_grid(FLAG)[0].other_code
    assert sum(int(np.sum(rows.codes.column(0) == other)) for rows in parts.values()) == 0
    with noise_off():
        federation = local_federation(parts, FLAG, None, 1, 3, "parties")
        model = on_flag().fit_federation(federation)
    assert model.score(frame, frame["y"]) == 1.0


def test_boolean_labels_are_the_classes_that_the_schema_writes_as_text() -> None:
    schema = Schema((Numeric("x", 0, 1),), Label("y", ("False", "True")))
    X = COIN.astype(float).reshape(-1, 1)
    with noise_off():
        model = on_flag(schema=schema).fit(X, COIN)
        measured = evaluate_privately(model, X, COIN, epsilon=1.0)
    assert model.classes_.tolist() == ["False", "True"]
    assert set(model.predict(X)) == {"False", "True"}
    assert model.score(X, COIN) == model.score(X, COIN.astype(int)) == 1.0
    assert measured["accuracy"].value == pytest.approx(1.0, abs=0.02)
