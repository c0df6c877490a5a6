"""Labels with a loss of their own through the commands: counts with exposure, quantiles."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from hedgerow.data.schema import Label, Numeric, Schema
from hedgerow.errors import ExportError, SettingsError, TableError
from hedgerow.model.ensemble import Ensemble
from tests.cli.conftest import Call, write_csv

WORDS = ("--epsilon", 8, "--delta", "1e-5", "--seed", 1)
COLUMNS = (Numeric("age", 0, 100), Numeric("dose", 0, 5))
COUNTS = Label("claims", upper=10, loss="poisson", exposure="years", max_exposure=1.0)
QUANTILE = Label("cost", lower=0, upper=20, loss="quantile", quantile=0.9)


@pytest.fixture(autouse=True)
def world(folder: Path) -> None:
    """Three tables of 1,500 rows whose claims and costs rise with age."""
    Schema(COLUMNS, COUNTS).write(folder / "schema.toml")
    for seed, name in enumerate("abc"):
        rng = np.random.default_rng(seed)
        age, dose = rng.uniform(0, 100, 1500), rng.uniform(0, 5, 1500)
        years = rng.uniform(0.1, 1.4, 1500)
        table = {
            "age": age.tolist(), "dose": dose.tolist(), "years": years.tolist(),
            "claims": rng.poisson(years * np.exp(age / 50 - 1)).tolist(),
            "cost": np.exp(age / 50 + 0.4 * rng.normal(size=1500)).tolist(),
        }  # fmt: skip
        write_csv(folder / f"{name}.csv", table)


def test_counts_are_planned_trained_predicted_and_measured(
    call: Call, train: Call, folder: Path
) -> None:
    assert call("plan", "--schema", "schema.toml", *WORDS).exit_code == 0
    checked = json.loads(call("schema", "check", "schema.toml", "--data", "a.csv", "--json").stdout)
    assert checked["task"] == "counts"
    found = {(f["column"], f["what"]) for f in checked["tables"][0]["findings"]}
    assert ("years", "clipped") in found
    assert train(*WORDS).exit_code == 0
    model = Ensemble.load(folder / "m.hedge")
    rows = csv.DictReader(
        io.StringIO(call("predict", "m.hedge", "--data", "a.csv", "--out", "-").stdout)
    )
    rates = np.array([float(row["predicted"]) for row in rows])
    assert np.allclose(rates, model.predict(folder / "a.csv"), rtol=1e-8)
    assert 0.5 < rates.mean() < 3
    exact = json.loads(call("evaluate", "m.hedge", "--data", "a.csv", "--json").stdout)
    assert exact["d2"] > 0.05
    words = ("evaluate", "m.hedge", "--data", "a.csv", "--epsilon", 8, "--json")
    private = json.loads(call(*words).stdout)
    assert private["measures"]["d2"]["value"] == pytest.approx(exact["d2"], abs=0.1)
    assert "log rate of claims" in call("explain", "m.hedge").stdout
    assert call("report", "m.hedge", "--out", "r.html").exit_code == 0
    assert "a count of at most 10 for each unit of years" in (folder / "r.html").read_text()


def test_quantiles_are_trained_and_measured(call: Call, train: Call, folder: Path) -> None:
    Schema(COLUMNS, QUANTILE).write(folder / "schema.toml")
    assert train(*WORDS).exit_code == 0
    exact = json.loads(call("evaluate", "m.hedge", "--data", "a.csv", "--json").stdout)
    assert exact["coverage"] == pytest.approx(0.9, abs=0.07)
    words = ("evaluate", "m.hedge", "--data", "a.csv", "--epsilon", 8, "--json")
    private = json.loads(call(*words).stdout)
    assert private["measures"]["coverage"]["value"] == pytest.approx(exact["coverage"], abs=0.05)


@pytest.mark.parametrize("years", [0, -1, "", "long"])
def test_exposures_that_cannot_be_are_told_and_nothing_is_spent(
    call: Call, train: Call, folder: Path, years: object
) -> None:
    table = {"age": [50], "dose": [1], "claims": [1], "years": [years]}
    write_csv(folder / "a.csv", table)
    result = train(*WORDS)
    assert isinstance(result.exception, TableError)
    assert "years" in str(result.exception)
    assert not (folder / "m.hedge").exists()


def test_what_knows_nothing_of_counts_says_so(call: Call, train: Call) -> None:
    result = train(*WORDS, "--method", "random-trees")
    assert isinstance(result.exception, SettingsError)
    assert "knows nothing of loss" in str(result.exception)
    result = call("advise", "--schema", "schema.toml", "--rows", 3000)
    assert "knows nothing of loss" in str(result.exception)
    assert train(*WORDS).exit_code == 0
    result = call("export", "m.hedge", "--to", "xgboost", "--out", "m.json")
    assert isinstance(result.exception, ExportError)
