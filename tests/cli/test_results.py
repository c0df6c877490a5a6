"""Commands that read a model, a schema or a ledger."""

from __future__ import annotations

import csv
import io
import json
import logging
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from hedgerow.cli.app import main
from hedgerow.data.tables import read_table
from hedgerow.errors import (
    BudgetExceeded,
    FormatError,
    LedgerError,
    SchemaError,
    SettingsError,
    TableError,
)
from hedgerow.model.changes import leaving_words
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.settings import DEFAULTS, Privacy, Settings, settings_table
from tests.cli.conftest import Call

TREES = ("--method", "random-trees", "--trees", 3, "--depth", 2)
SMALL = ("--epsilon", 2, "--delta", "1e-5", *TREES)


@pytest.fixture
def trained(train: Call, folder: Path) -> Ensemble:
    assert train(*SMALL).exit_code == 0
    return Ensemble.load(folder / "m.hedge")


def test_predictions_are_the_models(call: Call, trained: Ensemble, folder: Path) -> None:
    assert call("predict", "m.hedge", "--data", "a.csv", "--out", "p.csv").exit_code == 0
    printed = call("predict", "m.hedge", "--data", "a.csv", "--out", "-").stdout
    assert printed == (folder / "p.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(printed)))
    expected = trained.predict(read_table(folder / "a.csv"))
    found = np.array([[float(r["probability_no"]), float(r["probability_yes"])] for r in rows])
    assert np.allclose(found, expected, atol=1e-8)
    assert [r["predicted"] for r in rows] == [("no", "yes")[i] for i in expected.argmax(axis=1)]


def test_predictions_need_no_label(call: Call, trained: Ensemble, folder: Path) -> None:
    lines = (folder / "a.csv").read_text().splitlines()
    (folder / "new.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines) + "\n")
    words = ("predict", "m.hedge", "--data", "new.csv", "--out", "p.csv", "--json")
    assert json.loads(call(*words).stdout) == {"rows": 80, "out": "p.csv"}
    error = call("evaluate", "m.hedge", "--data", "new.csv").exception
    assert isinstance(error, TableError)
    assert "needs the label column 'sick'" in str(error)


def test_two_results_do_not_share_stdout(call: Call, trained: Ensemble) -> None:
    found = call("predict", "m.hedge", "--data", "a.csv", "--out", "-", "--json")
    assert isinstance(found.exception, SettingsError)
    assert found.stdout == ""


def test_evaluation_is_exact_and_says_it_is_not_private(
    call: Call, trained: Ensemble, folder: Path
) -> None:
    told = json.loads(call("evaluate", "m.hedge", "--data", "b.csv", "--json").stdout)
    table = read_table(folder / "b.csv")
    y = np.array(table.column("sick").to_pylist()) == "yes"
    p = trained.predict(table)
    assert told["private"] is False
    assert told["rows"] == 80
    assert told["auc"] == pytest.approx(roc_auc_score(y, p[:, 1]))
    assert told["log_loss"] == pytest.approx(log_loss(y, p))
    assert told["accuracy"] == pytest.approx(np.mean((p[:, 1] > p[:, 0]) == y))
    assert "NOT private" in call("evaluate", "m.hedge", "--data", "b.csv").stdout


def test_auc_of_one_class_is_undefined(call: Call, trained: Ensemble, folder: Path) -> None:
    lines = (folder / "a.csv").read_text().splitlines()
    kept = [line for line in lines[1:] if line.endswith(",yes")]
    (folder / "yes.csv").write_text("\n".join([lines[0], *kept]) + "\n")
    told = json.loads(call("evaluate", "m.hedge", "--data", "yes.csv", "--json").stdout)
    assert (told["auc"], told["rows"]) == (None, len(kept))
    assert "one class only" in call("evaluate", "m.hedge", "--data", "yes.csv").stdout


def test_the_statement_in_words_and_json(call: Call, trained: Ensemble) -> None:
    shown = call("statement", "m.hedge", "--group", 300).stdout
    assert shown.startswith(trained.statement.words() + "\n")
    changes = trained.statement.changes((2, 5, 10, 300))
    for change in changes:
        for cell in change.cells():
            assert cell in shown
    told = json.loads(call("statement", "m.hedge", "--group", 300, "--json").stdout)
    assert told.pop("words") == trained.statement.words()
    assert told.pop("changes") == [change.to_dict() for change in changes]
    assert told.pop("after_leaving") == leaving_words(trained.statement)
    assert " ".join(shown.split()).endswith(leaving_words(trained.statement))
    assert told == trained.statement.to_dict()


def test_a_damaged_model_is_refused(call: Call, trained: Ensemble, folder: Path) -> None:
    data = bytearray((folder / "m.hedge").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "m.hedge").write_bytes(data)
    assert isinstance(call("statement", "m.hedge").exception, FormatError)


def test_the_ledger_shows_runs_totals_and_budget(call: Call, train: Call) -> None:
    budget = ("--ledger", "all.ledger", "--budget-epsilon", 5, "--budget-delta", "1e-5")
    train(*SMALL, *budget)
    told = json.loads(call("ledger", "show", "all.ledger", "--json").stdout)
    assert [run["owner"] for run in told["runs"]] == ["coordinator", "a", "b", "c"]
    assert all((run["charged"], run["slots"]) == (4, 4) for run in told["runs"])
    assert [run["released"] for run in told["runs"]] == [4, None, None, None]
    assert [total["owner"] for total in told["totals"]] == ["coordinator", "a", "b", "c"]
    for total in told["totals"]:
        assert total["epsilon"] == pytest.approx(2, rel=1e-6)
        assert total["budget_epsilon"] == 5
        assert total["left_epsilon"] == pytest.approx(3, rel=1e-6)
    shown = call("ledger", "show", "all.ledger").stdout
    assert "4 of 4" in shown
    assert shown.count("5 at 1e-05") == 4
    assert "none set" not in shown


def test_the_run_that_the_ledger_says_will_fit_does(call: Call, train: Call) -> None:
    ledger = ("--ledger", "all.ledger", "--budget-epsilon", 3, "--budget-delta", "1e-5")
    train(*SMALL, *ledger)
    total = json.loads(call("ledger", "show", "all.ledger", "--json").stdout)["totals"][0]
    most = total["next_run_epsilon"]
    assert most > total["left_epsilon"]
    small = ("--delta", "1e-5", *TREES, *ledger)
    over = train("--epsilon", 1.001 * most, *small, "--out", "over.hedge")
    assert isinstance(over.exception, BudgetExceeded)
    assert train("--epsilon", 0.999 * most, *small, "--out", "next.hedge").exit_code == 0


def test_the_ledger_says_where_no_budget_is_set(call: Call, train: Call) -> None:
    train(*SMALL)
    assert call("ledger", "show", "m.hedge.ledger").stdout.count("none set") == 4


def test_a_changed_ledger_does_not_verify(call: Call, trained: Ensemble, folder: Path) -> None:
    told = json.loads(call("ledger", "verify", "m.hedge.ledger", "--json").stdout)
    assert told["verified"] is True
    assert "add up" in call("ledger", "verify", "m.hedge.ledger").stdout
    with sqlite3.connect(folder / "m.hedge.ledger") as file:
        file.execute("DROP TRIGGER no_update")
        file.execute("UPDATE line SET time = '2001-01-01' WHERE kind = 'charge' AND owner = 'a'")
    file.close()
    assert isinstance(call("ledger", "verify", "m.hedge.ledger").exception, LedgerError)
    assert isinstance(call("ledger", "show", "missing.ledger").exception, LedgerError)
    assert not (folder / "missing.ledger").exists()


def test_the_schema_is_checked_and_shown(call: Call, folder: Path) -> None:
    assert "complete schema: 5 columns" in call("schema", "check", "schema.toml").stdout
    shown = call("schema", "show", "schema.toml").stdout
    for words in ("0 to 100, whole", "north, south, east", "and 288 more", "no, yes"):
        assert words in shown
    told = json.loads(call("schema", "show", "schema.toml", "--json").stdout)
    assert [column["name"] for column in told["column"]] == ["age", "dose", "stage", "site", "code"]
    (folder / "schema.toml").write_text("format = 1\n")
    assert isinstance(call("schema", "check", "schema.toml").exception, SchemaError)


def test_methods_are_listed(call: Call) -> None:
    told = json.loads(call("methods", "--json").stdout)
    assert told["methods"][0]["name"] == "auto"
    assert all(set(e["queries"]) == {"candidates", "splits", "weights"} for e in told["methods"])
    settings = {entry["name"]: entry["settings"] for entry in told["methods"]}
    assert sorted(settings.pop("auto")) == [
        "monotone",
        "rows_hint",
        "warm_start",
        "warm_start_says",
    ]
    assert "save_budget" in settings.pop("private-tree")
    assert all("n_trees" in names for names in settings.values())
    assert all(entry["summary"] for entry in told["methods"])
    shown = call("methods").stdout
    assert all(entry["name"] in shown for entry in told["methods"])


def test_every_setting_is_listed_with_default_and_meaning(call: Call) -> None:
    told = json.loads(call("methods", "--json").stdout)["settings"]
    table = {**settings_table(Settings()), "rounds": DEFAULTS["rounds"]}  # absent at its default
    defaults = {**Privacy(1, 1e-6).to_dict(), **table}
    assert [entry["name"] for entry in told] == list(defaults)
    shown = call("methods").stdout
    for entry in told:
        assert len(entry["meaning"]) > 10
        assert entry["meaning"] in shown
        assert entry["name"] in shown
        if entry["name"] not in ("epsilon", "delta", "trust", "minimum_parties"):
            assert entry["default"] == defaults[entry["name"]]
    options = {entry["name"]: entry["option"] for entry in told}
    assert options["spare"] == "--spare"
    assert options["reg_lambda"] == "--set reg_lambda"


def test_verbose_logs_steps_and_no_value(
    train: Call,
) -> None:
    done = train(*SMALL, "--verbose")
    logging.getLogger("hedgerow").setLevel(logging.WARNING)
    lines = [line for line in done.stderr.splitlines() if "released slot" in line]
    assert len(lines) == 4
    assert all("+00:00 DEBUG" in line for line in lines)


def test_an_unexpected_error_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("not on purpose")

    monkeypatch.setattr("hedgerow.data.schema.Schema.read", broken)
    monkeypatch.setattr(sys, "argv", ["hedgerow", "schema", "check", "schema.toml"])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    with pytest.raises(ZeroDivisionError):
        main()
