"""`hedgerow similarity` with rows that parties add between two runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.data.schema import Schema
from hedgerow.errors import SettingsError
from hedgerow.model.ensemble import Ensemble
from tests.cli.conftest import Call, write_csv

COMMON = ("similarity", "--schema", "schema.toml", "--data", "north.csv", "--data", "south.csv")
QUICK = ("--trees", "2", "--depth", "2", "--ledger", "ledger", "--json")


def write_tables(folder: Path, n_rows: int) -> None:
    rng = np.random.default_rng(1)
    names = [f"x{j}" for j in range(5)]
    Schema.from_bounds(dict.fromkeys(names, (0, 1)), classes=[0, 1]).write(folder / "schema.toml")
    for name in ("north", "south"):
        X = rng.uniform(size=(100, 5)).round(4)
        columns: dict[str, Any] = {n: X[:n_rows, j].tolist() for j, n in enumerate(names)}
        columns["label"] = (X[:n_rows, 0] > X[:n_rows, 1]).astype(int).tolist()
        write_csv(folder / f"{name}.csv", columns)


def test_a_run_goes_on_from_what_was_kept(call: Call, folder: Path) -> None:
    write_tables(folder, 80)
    kept = call(*COMMON, *QUICK, "--out", "a.hedge", "--keep", "--store", "store")
    assert kept.exit_code == 0, kept.output
    run = json.loads(kept.stdout)["run"]
    write_tables(folder, 100)
    going_on = ("--continues", run, "--store", "store")
    done = call(*COMMON, *QUICK, "--out", "b.hedge", *going_on)
    assert done.exit_code == 0, done.output
    before, after = Ensemble.load(folder / "a.hedge"), Ensemble.load(folder / "b.hedge")
    assert after.record["seed"] == before.record["seed"]  # the ledger has it
    assert after.record["continues"] == run
    assert len(list((folder / "store" / "north").iterdir())) == 1  # the second was not to be kept
    write_tables(folder, 79)
    fewer = call(*COMMON, *QUICK, "--out", "c.hedge", *going_on)
    assert "south has 79 rows, and had 80 in run" in str(fewer.exception)


def test_what_is_missing_is_said(call: Call, folder: Path) -> None:
    write_tables(folder, 80)

    def told(*words: str) -> str:
        found = call(*COMMON, *QUICK, "--out", "a.hedge", *words)
        assert isinstance(found.exception, SettingsError), found.output
        return str(found.exception)

    assert "need --store" in told("--keep")
    assert "has no run 'r9'" in told("--continues", "r9", "--store", "store")
