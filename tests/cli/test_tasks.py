"""Numbers and three classes through the commands: train, predict, evaluate."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow.data.schema import Label, Numeric, Schema
from hedgerow.data.tables import read_table
from hedgerow.model.ensemble import Ensemble
from tests.cli.conftest import Call, write_csv

WORDS = ("--epsilon", 8, "--delta", "1e-5", "--seed", 1)
METHODS = {
    "auto": (),
    "random-trees": ("--method", "random-trees", "--trees", 12, "--depth", 3),
}
COLUMNS = (Numeric("age", 0, 100), Numeric("dose", 0, 5))


def write_world(folder: Path, label: Label, answer: Any) -> None:
    """Three tables of 1,000 rows whose label follows from the age."""
    Schema(COLUMNS, label).write(folder / "schema.toml")
    for seed, name in enumerate("abc"):
        rng = np.random.default_rng(seed)
        age, dose = rng.uniform(0, 100, 1000), rng.uniform(0, 5, 1000)
        table = {"age": age.tolist(), "dose": dose.tolist(), "label": answer(age).tolist()}
        write_csv(folder / f"{name}.csv", table)


@pytest.mark.parametrize("method", METHODS)
def test_numbers_are_trained_predicted_and_measured(
    call: Call, train: Call, folder: Path, method: str
) -> None:
    write_world(folder, Label("label", (), 10, 60), lambda age: 10 + age / 2)
    assert train(*WORDS, *METHODS[method]).exit_code == 0
    printed = call("predict", "m.hedge", "--data", "a.csv", "--out", "-").stdout
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert list(rows[0]) == ["predicted"]
    found = np.array([float(row["predicted"]) for row in rows])
    table = read_table(folder / "a.csv")
    assert np.allclose(found, Ensemble.load(folder / "m.hedge").predict(table), rtol=1e-8)
    assert ((found >= 10) & (found <= 60)).all()
    truth = np.array([float(text) for text in table.column("label").to_pylist()])
    told = json.loads(call("evaluate", "m.hedge", "--data", "a.csv", "--json").stdout)
    assert told["rmse"] == pytest.approx(np.sqrt(np.mean((found - truth) ** 2)), rel=1e-6)
    assert told["mae"] == pytest.approx(np.mean(np.abs(found - truth)), rel=1e-6)
    # Always saying 35 has an error of 14.4; the noise at epsilon 8 is far smaller.
    assert told["rmse"] < (12 if method == "random-trees" else 4)
    shown = call("evaluate", "m.hedge", "--data", "a.csv").stdout
    assert "RMSE" in shown
    assert "AUC" not in shown


@pytest.mark.parametrize("method", METHODS)
def test_three_classes_are_trained_predicted_and_measured(
    call: Call, train: Call, folder: Path, method: str
) -> None:
    classes = np.array(["low", "middle", "high"])
    write_world(
        folder,
        Label("label", tuple(classes.tolist())),
        lambda age: classes[(age // 34).astype(int)],
    )
    assert train(*WORDS, *METHODS[method]).exit_code == 0
    printed = call("predict", "m.hedge", "--data", "a.csv", "--out", "-").stdout
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert list(rows[0]) == [*(f"probability_{name}" for name in classes), "predicted"]
    shares = np.array([[float(row[f"probability_{name}"]) for name in classes] for row in rows])
    assert np.allclose(shares.sum(axis=1), 1, atol=1e-6)
    assert [row["predicted"] for row in rows] == classes[shares.argmax(axis=1)].tolist()
    truth = np.array(read_table(folder / "a.csv").column("label").to_pylist())
    told = json.loads(call("evaluate", "m.hedge", "--data", "a.csv", "--json").stdout)
    right = np.array([row["predicted"] for row in rows]) == truth
    assert told["accuracy"] == pytest.approx(np.mean(right))
    assert told["accuracy"] > (0.5 if method == "random-trees" else 0.8)  # guessing has 0.34
    assert "auc" not in told
