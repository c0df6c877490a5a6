"""The demonstration: its world, its numbers and its picture."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from hedgerow.cli.app import main
from hedgerow.cli.demo_run import Score, draw
from hedgerow.data.datasets import (
    HOSPITAL_SCHEMA,
    VISIT_SCHEMA,
    Table,
    hospital_tables,
    split_table,
    visit_tables,
)
from hedgerow.data.rng import stream
from hedgerow.data.schema import Schema
from hedgerow.data.tables import rows_of
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from tests.slow import slow


def test_a_seed_gives_the_same_patients() -> None:
    first, again, other = hospital_tables(1), hospital_tables(1), hospital_tables(2)
    assert all(
        str(first[k][c].tolist()) == str(again[k][c].tolist()) for k in first for c in first[k]
    )
    assert not np.array_equal(first["riverside"]["age"], other["riverside"]["age"])


def test_the_tables_fit_the_schema_and_differ_in_case_mix() -> None:
    tables = hospital_tables(7)
    sizes = [rows_of(table, HOSPITAL_SCHEMA).n_rows for table in tables.values()]
    assert sum(sizes) == 30_000
    assert len(set(sizes)) == 3
    rates = [np.mean(table["readmitted"] == "yes") for table in tables.values()]
    assert 0.05 < min(rates) < 0.9 * max(rates) < 0.4
    assert all(np.isnan(table["creatinine"]).any() for table in tables.values())
    assert all(any(v is None for v in table["smoking"]) for table in tables.values())


def test_no_patient_is_in_both_parts() -> None:
    table = {"id": np.arange(100)}
    train, test = split_table(table, 0.2, stream(1, "split"))
    assert len(test["id"]) == 20
    assert sorted([*train["id"], *test["id"]]) == list(range(100))


def test_visits_of_a_patient_belong_together() -> None:
    tables = visit_tables(7)
    for table in tables.values():
        rows = rows_of(table, VISIT_SCHEMA)
        assert rows.persons is not None
        patients, counts = np.unique(table["patient"], return_counts=True)
        assert len(np.unique(rows.persons)) == len(patients)
        assert counts.max() > VISIT_SCHEMA.unit.at_most  # so that the limit means something
        # Sex does not change between visits; it is never missing.
        pairs = set(zip(table["patient"], table["sex"], strict=True))
        assert len(pairs) == len(patients)
    table = tables["st-anne"]
    train, test = split_table(table, 0.2, stream(1, "split"), "patient")
    assert not set(train["patient"]) & set(test["patient"])
    assert len(train["patient"]) + len(test["patient"]) == len(table["patient"])


def some_visits(seed: int) -> dict[str, Table]:
    """A third of the patients, to be quick."""
    tables = {}
    for name, table in visit_tables(seed).items():
        kept = np.unique(table["patient"])[::3]
        few = np.isin(table["patient"], kept)
        tables[name] = {column: values[few] for column, values in table.items()}
    return tables


@slow
def test_the_demonstration_with_repeated_visits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    words = ["hedgerow", "demo", "--repeat-visits", "--out", str(folder), "--epsilon", "4"]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("hedgerow.cli.demo_run.visit_tables", some_visits)
    with pytest.raises(SystemExit, match="0"):
        main()
    shown = capsys.readouterr().out
    promise = "add or remove one person with at most 2 rows in each party"
    assert promise in shown
    assert "at most 2 of a patient in each hospital" in shown
    model = Ensemble.load(folder / "model.hedge")
    assert (model.statement.unit, model.statement.epsilon) == ("person", 4)
    assert promise in model.statement.neighbours
    assert Schema.read(folder / "schema.toml") == VISIT_SCHEMA
    told = json.loads((folder / "results.json").read_text())
    assert (told["unit"], told["at_most"]) == ("person", 2)
    auc = {score["name"]: score["auc"] for score in told["scores"]}
    assert 0.55 < auc["together"] < 0.9
    assert 0.6 < auc["pooled"] < 0.9


def test_the_demonstration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    words = ["hedgerow", "demo", "--out", str(folder), "--json", "--epsilon", "4"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit, match="0"):
        main()
    told = json.loads(capsys.readouterr().out)
    auc = {score["name"]: score["auc"] for score in told["scores"]}
    # The noise moves it by 0.001, and costs 0.004 beside pooled rows without noise.
    assert 0.65 < auc["together"] < 0.9
    assert auc["pooled"] == pytest.approx(auc["together"], abs=0.05)
    assert told["rounds"] > 0
    assert 0 < told["bytes_from_party"] < 1e6
    model = Ensemble.load(folder / "model.hedge")
    assert model.statement.epsilon == 4
    assert model.statement.trust == "parties"
    assert model.statement.guarantee == "epsilon-delta"
    assert Schema.read(folder / "schema.toml") == HOSPITAL_SCHEMA
    assert Plan.read(folder / "model.hedge.plan.toml").run == model.record["run"]
    assert (folder / "statement.txt").read_text() == model.statement.words() + "\n"
    assert (folder / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((folder / "results.json").read_text()) == told


def test_without_matplotlib_there_is_no_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    score = Score("pooled", "pooled", 10, None, 0.8, 0.4, {})
    assert draw((score,), 1.0, tmp_path / "c.png") is None
    assert not (tmp_path / "c.png").exists()
