"""`hedgerow evaluate --epsilon`: parties pay, the result is a file, repeating it is free."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hedgerow.errors import BudgetExceeded, PlanError, SettingsError
from hedgerow.evaluation import Evaluation
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import spending
from tests.cli.conftest import Call

TABLES = ("--data", "a.csv", "--data", "b.csv", "--data", "c.csv")


@pytest.fixture
def model(train: Call, folder: Path) -> Ensemble:
    found = train("--epsilon", "2", "--delta", "1e-5", "--method", "random-trees", "--trees", "3")
    assert found.exit_code == 0, found.output
    return Ensemble.load(folder / "m.hedge")


def test_an_evaluation_is_charged_beside_training_and_stored(
    call: Call, model: Ensemble, folder: Path
) -> None:
    before = folder / "m.hedge.ledger"
    with Ledger.open(before) as ledger:
        trained = spending(ledger).epsilon(1e-5)
    done = call("evaluate", "m.hedge", *TABLES, "--epsilon", "3")
    assert done.exit_code == 0, done.output
    assert "It measures the model" in done.stdout
    assert model.hash[:12] in done.stdout
    assert "Spent: epsilon = 3 at delta = 1e-05" in done.stdout
    found = Evaluation.load(folder / "m.hedge.evaluation.json")
    assert found.model == model.hash
    assert found.statement.trust == "parties"
    with Ledger.open(before) as ledger:
        assert spending(ledger).epsilon(1e-5) > max(3.0, trained)
        owners = {line.owner for line in ledger.lines(kind="charge", run=found.run)}
    assert owners == {"coordinator", "a", "b", "c"}


def test_the_same_command_gives_the_same_result_for_nothing(
    call: Call, model: Ensemble, folder: Path
) -> None:
    words = ("evaluate", "m.hedge", *TABLES, "--epsilon", "3", "--json")
    first, second = (json.loads(call(*words).stdout) for _ in range(2))
    assert (first["releases_asked"], second["releases_asked"]) == (2, 0)
    assert first["measures"] == second["measures"]
    assert second["ledger_epsilon"] == first["ledger_epsilon"]
    assert "nothing was spent now" in call(*words[:-1]).stdout


def test_another_epsilon_or_model_needs_another_file(
    call: Call, train: Call, model: Ensemble, folder: Path
) -> None:
    def words(*more: Any) -> tuple[Any, ...]:
        return ("evaluate", "m.hedge", *TABLES, "--epsilon", *more)

    assert call(*words(3)).exit_code == 0
    error = call(*words(2)).exception
    assert isinstance(error, PlanError)
    assert "--epsilon is 2.0, the plan has 3.0" in str(error)
    done = call(*words(2, "--out", "other.json", "--ledger", "other.ledger"))
    assert done.exit_code == 0, done.output
    assert (folder / "other.ledger").is_file()
    more = ("--method", "random-trees", "--trees", "4", "--delta", "1e-5", "--ledger", "new.ledger")
    trained = call(
        "train", "--schema", "schema.toml", *TABLES, "--out", "n.hedge", "--epsilon", "2", *more
    )
    assert trained.exit_code == 0, trained.output
    told = str(call("evaluate", "n.hedge", *TABLES, "--epsilon", 3,
                    "--out", "m.hedge.evaluation.json").exception)  # fmt: skip
    assert f"it is of the model {model.hash[:12]}" in told


def test_a_budget_stops_an_evaluation_before_anything_is_asked(
    call: Call, model: Ensemble, folder: Path
) -> None:
    done = call("evaluate", "m.hedge", *TABLES, "--epsilon", "3", "--budget-epsilon", "2.5")
    assert isinstance(done.exception, BudgetExceeded)
    assert not (folder / "m.hedge.evaluation.json").exists()
    assert not (folder / "m.hedge.evaluation.json.plan.toml").exists()


def test_an_epsilon_of_the_environment_spends_nothing(
    call: Call, model: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEDGEROW_EPSILON", "1")
    assert "NOT private" in call("evaluate", "m.hedge", *TABLES).stdout


def test_exact_numbers_of_several_tables_are_of_all_their_rows(call: Call, model: Ensemble) -> None:
    told = json.loads(call("evaluate", "m.hedge", *TABLES, "--json").stdout)
    assert told["rows"] == 240
    assert isinstance(call("evaluate", "m.hedge").exception, SettingsError)
