"""Weights of rows on the command line: in the schema, in tables, in plans and statements."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow import Weight
from hedgerow.errors import SettingsError, TableError
from hedgerow.model.ensemble import Ensemble
from hedgerow.testing import noise_off
from tests.cli.conftest import Call, write_csv
from tests.conftest import MIXED, mixed_table


@pytest.fixture
def weighted(folder: Path) -> Path:
    """The three tables with a column of weights, and a cap of 2 on them."""
    replace(MIXED, weight=Weight("w", 2.0)).write(folder / "schema.toml")
    for seed, name in enumerate("abc"):
        table = mixed_table(80, seed)
        table["w"] = np.random.default_rng(seed).choice([0.5, 1.0, 3.0], 80).tolist()
        write_csv(folder / f"{name}.csv", table)
    return folder


def told(found: Any) -> Any:
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def test_a_model_of_weighted_tables_says_so(weighted: Path, train: Call, call: Call) -> None:
    assert train("--epsilon", 1, "--delta", 1e-6).exit_code == 0
    says = told(call("statement", "m.hedge", "--json"))
    assert "of a weight of at most 2" in json.dumps(says)
    report = call("report", "m.hedge", "--out", "report.html")
    assert report.exit_code == 0
    assert "of a weight of at most 2" in (weighted / "report.html").read_text(encoding="utf-8")


def test_one_table_and_three_give_one_model(weighted: Path, call: Call) -> None:
    pooled: dict[str, list[Any]] = {}
    for seed in range(3):
        table = mixed_table(80, seed)
        table["w"] = np.random.default_rng(seed).choice([0.5, 1.0, 3.0], 80).tolist()
        for name, values in table.items():
            pooled.setdefault(name, []).extend(values)
    write_csv(weighted / "all.csv", pooled)
    models = []
    for out, tables, trust in (
        ("one.hedge", ("all",), "coordinator"),
        ("three.hedge", "abc", "coordinator"),
        ("masked.hedge", "abc", "parties"),
    ):
        data = [word for name in tables for word in ("--data", f"{name}.csv")]
        with noise_off():
            found = call(
                "train", "--schema", "schema.toml", *data, "--out", out, "--epsilon", 1, "--delta",
                1e-6, "--trust", trust, "--seed", 5, "--spare", 0, "--ledger", f"{out}.ledger",
            )  # fmt: skip
        assert found.exit_code == 0, found.output
        models.append(Ensemble.load(weighted / out).trees)
    assert models[0] == models[1] == models[2]


def test_schema_commands_show_the_cap_and_count_what_is_clamped(weighted: Path, call: Call) -> None:
    assert "Weight 'w': 0 to 2, clamped" in call("schema", "show", "schema.toml").stdout
    checked = call("schema", "check", "schema.toml", "--data", "a.csv").stdout
    assert "values lie above the upper bound 2" in checked
    plan = call("plan", "--schema", "schema.toml", "--epsilon", 1, "--delta", 1e-6)
    assert "a row counts" in plan.stdout


def test_a_table_without_its_weights_spends_nothing(weighted: Path, train: Call) -> None:
    write_csv(weighted / "b.csv", mixed_table(80, 1))
    found = train("--epsilon", 1, "--delta", 1e-6)
    assert isinstance(found.exception, TableError)
    assert "no column 'w'" in str(found.exception)
    assert not (weighted / "m.hedge").exists()


@pytest.mark.parametrize("method", ["private-tree", "dp-xgboost"])
def test_a_method_without_weights_refuses_the_schema(
    weighted: Path, train: Call, method: str
) -> None:
    found = train("--epsilon", 1, "--method", method)
    assert isinstance(found.exception, SettingsError)
    assert "cannot weigh rows" in str(found.exception)


def test_evaluations_of_weighted_tables_count_rows_once(
    weighted: Path, train: Call, call: Call
) -> None:
    assert train("--epsilon", 1, "--delta", 1e-6, "--holdout", 0.3).exit_code == 0
    tables = [word for name in "abc" for word in ("--data", f"{name}.csv")]
    found = call("evaluate", "m.hedge", *tables, "--holdout", "--epsilon", 1, "--json")
    assert found.exit_code == 0, found.output
    assert "weight of at most" not in found.stdout
