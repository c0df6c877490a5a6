"""Times to an event through the commands, from the plan to a report."""

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
CUTS = (10, 20, 40, 80)
LABEL = Label("days", event="died", event_codes=("no", "yes"), cuts=CUTS)


@pytest.fixture(autouse=True)
def world(folder: Path) -> None:
    """Three tables of 1,500 rows whose hazard rises with age."""
    columns = (Numeric("age", 0, 100), Numeric("dose", 0, 5))
    Schema(columns, LABEL).write(folder / "schema.toml")
    for seed, name in enumerate("abc"):
        rng = np.random.default_rng(seed)
        age, dose = rng.uniform(0, 100, 1500), rng.uniform(0, 5, 1500)
        time, seen = rng.exponential(60 * np.exp((50 - age) / 25)), rng.uniform(5, 150, 1500)
        died = np.where(time <= seen, "yes", "no")
        table = {
            "age": age.tolist(), "dose": dose.tolist(),
            "days": np.minimum(time, seen).tolist(), "died": died.tolist(),
        }  # fmt: skip
        write_csv(folder / f"{name}.csv", table)


def test_times_are_planned_trained_predicted_and_measured(
    call: Call, train: Call, folder: Path
) -> None:
    plan = call("plan", "--schema", "schema.toml", *WORDS)
    assert plan.exit_code == 0
    assert "the model is one Kaplan-Meier curve for all rows" in " ".join(plan.stdout.split())
    told = json.loads(call("plan", "--schema", "schema.toml", *WORDS, "--json").stdout)
    assert "events" in told
    assert train(*WORDS).exit_code == 0
    model = Ensemble.load(folder / "m.hedge")
    assert model.record["curve_for_all"] is False
    rows = list(
        csv.DictReader(
            io.StringIO(call("predict", "m.hedge", "--data", "a.csv", "--out", "-").stdout)
        )
    )
    assert list(rows[0]) == ["risk", "median", *(f"survival_{cut}" for cut in CUTS)]
    survival = np.array([[float(row[f"survival_{cut}"]) for cut in CUTS] for row in rows])
    assert np.allclose(survival, model.predict(folder / "a.csv"), rtol=1e-8)
    risk = np.array([float(row["risk"]) for row in rows])
    assert np.allclose(np.exp(-np.exp(risk)), survival[:, -1], rtol=1e-6)
    median = np.array([float(row["median"]) for row in rows])
    assert np.array_equal(np.isinf(median), survival[:, -1] > 0.5)
    exact = json.loads(call("evaluate", "m.hedge", "--data", "a.csv", "--json").stdout)
    assert exact["concordance"] > 0.65
    assert 0 < exact["integrated_brier"] < 0.2
    found = call("evaluate", "m.hedge", "--data", "a.csv", "--epsilon", 4, "--json")
    private = json.loads(found.stdout)
    assert abs(private["measures"]["integrated_brier"]["value"] - exact["integrated_brier"]) < 0.03
    assert len(private["survival"]) == 6 * len(CUTS)
    shown = call("evaluate", "m.hedge", "--data", "a.csv", "--epsilon", 4).stdout
    assert "integrated Brier score" in shown


def test_times_are_explained_reported_and_exported_by_interval(
    call: Call, train: Call, folder: Path
) -> None:
    assert train(*WORDS).exit_code == 0
    assert call("evaluate", "m.hedge", "--data", "a.csv", "--epsilon", 4).exit_code == 0
    explained = call("explain", "m.hedge")
    assert explained.exit_code == 0
    assert "log hazard of died" in " ".join(explained.stdout.split())
    assert call("statement", "m.hedge").exit_code == 0
    report = call("report", "m.hedge", "--out", "r.html")
    assert report.exit_code == 0, report.exception
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "A model of days, the time to died, up to 80" in page
    assert "Survival by risk" in page
    assert "group 5: predicted" in page
    exported = call("export", "m.hedge", "--to", "sklearn", "--out", "x.npz")
    assert isinstance(exported.exception, ExportError)
    assert not (folder / "x.npz").exists()
    exported = call("export", "m.hedge", "--to", "xgboost", "--out", "x.json")
    assert exported.exit_code == 0
    assert "once for each interval" in " ".join((exported.stdout + exported.stderr).split())


def test_a_table_is_checked_against_times_and_events(call: Call, folder: Path) -> None:
    checked = call("schema", "check", "schema.toml", "--data", "a.csv")
    assert checked.exit_code == 0
    text = " ".join(checked.stdout.split())
    assert "the horizon, and count as censored there" in text
    shown = call("schema", "show", "schema.toml")
    assert shown.exit_code == 0
    assert "Label 'days': up to 80 in 4 intervals, died = 'yes'." in shown.stdout
    lines = (folder / "a.csv").read_text().splitlines()
    lines[1] = "50,1,-3,maybe"
    (folder / "a.csv").write_text("\n".join(lines))
    checked = call("schema", "check", "schema.toml", "--data", "a.csv")
    text = " ".join((checked.stdout + str(checked.exception)).split())
    assert "negative times are refused" in text
    assert "not among its 2 event codes" in text


def test_bad_times_stop_before_anything_is_spent(call: Call, train: Call, folder: Path) -> None:
    lines = (folder / "b.csv").read_text().splitlines()
    lines[1] = "50,1,-3,yes"
    (folder / "b.csv").write_text("\n".join(lines))
    refused = train(*WORDS)
    assert isinstance(refused.exception, TableError)
    assert "is negative in 1 rows" in str(refused.exception)
    assert not (folder / "m.hedge.ledger").exists()
    for words in (("--method", "dp-ebm"),):
        other = train(*WORDS, *words)
        assert isinstance(other.exception, SettingsError)
        assert "knows nothing of times to an event" in str(other.exception)
