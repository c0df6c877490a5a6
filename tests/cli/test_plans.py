"""`hedgerow plan`, and which plan a training command uses."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from hedgerow.errors import PlanError, SettingsError
from hedgerow.privacy.plan import Plan
from tests.cli.conftest import Call

PROMISE = ("--epsilon", 2, "--delta", "1e-5")
SMALL = (*PROMISE, "--trees", 3, "--depth", 2)


def test_a_plan_states_its_cost_and_can_be_read_back(call: Call, folder: Path) -> None:
    words = ("plan", "--schema", "schema.toml", *SMALL, "--out", "p.toml", "--json")
    told = json.loads(call(*words).stdout)
    plan = Plan.read(folder / "p.toml")
    assert told["plan"] == plan.to_dict()
    assert (told["rounds"], told["numbers_per_round"]) == (4, 2 * 4)
    assert told["epsilon"] == plan.epsilon == pytest.approx(2, rel=1e-6)
    assert told["trust"] == "parties"


def test_a_plan_is_shown_as_tables(call: Call) -> None:
    shown = call("plan", "--schema", "schema.toml", *SMALL).stdout
    for words in (
        "base rate (label-sums)",
        "batch of 1 (leaf-sums)",
        "2 at delta = 1e-05",
        "rounds",
    ):
        assert words in shown
    assert "nothing was spent" in shown


def test_one_party_trusts_the_coordinator(call: Call) -> None:
    found = call("plan", "--schema", "schema.toml", *SMALL, "--parties", 1, "--json")
    assert json.loads(found.stdout)["trust"] == "coordinator"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--epsilon", 1), "delta is not set"),
        ((*PROMISE, "--set", "bath_size=3"), "unknown setting 'bath_size'; known: .*batch_size"),
        ((*PROMISE, "--set", "batch_size=many"), "must be a whole number"),
        ((*PROMISE, "--set", "batch_size"), "key=value"),
        ((*PROMISE, "--set", "epsilon=3"), "write --epsilon 3"),
        ((*PROMISE, "--trees", 3, "--set", "n_trees=4"), "given twice"),
        ((*PROMISE, "--method", "guess"), "no method called 'guess'"),
        ((*PROMISE, "--trust", "everyone"), "choose one of coordinator, parties"),
        ((*PROMISE, "--parties", 2), "at least 3 parties and there are 2"),
    ],
)
def test_a_plan_that_cannot_be_made(call: Call, words: tuple[object, ...], message: str) -> None:
    error = call("plan", "--schema", "schema.toml", *words).exception
    assert isinstance(error, SettingsError)
    with pytest.raises(SettingsError, match=message):
        raise error


def test_two_parties_may_be_allowed_openly(call: Call) -> None:
    words = ("--parties", 2, "--set", "minimum_parties=2", "--json")
    found = call("plan", "--schema", "schema.toml", *SMALL, *words)
    assert json.loads(found.stdout)["plan"]["privacy"]["minimum_parties"] == 2


def test_flag_before_environment_before_plan_before_default(
    call: Call, train: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("plan", "--schema", "schema.toml", *SMALL, "--bins", 5, "--out", "p.toml")
    monkeypatch.setenv("HEDGEROW_TREES", "4")
    monkeypatch.setenv("HEDGEROW_DEPTH", "3")
    done = train("--plan", "p.toml", "--depth", 1)
    assert done.exit_code == 0
    used = tomllib.loads((folder / "m.hedge.plan.toml").read_text())
    settings = used["settings"]
    assert (settings["max_depth"], settings["n_trees"], settings["n_bins"]) == (1, 4, 5)
    assert settings["learning_rate"] == 0.3
    assert used["privacy"]["epsilon"] == 2
    assert used["run"] != Plan.read(folder / "p.toml").run


def test_a_plan_file_is_used_as_it_stands(call: Call, train: Call, folder: Path) -> None:
    call("plan", "--schema", "schema.toml", *SMALL, "--out", "p.toml")
    assert train("--plan", "p.toml", "--trees", 3).exit_code == 0
    assert Plan.read(folder / "m.hedge.plan.toml") == Plan.read(folder / "p.toml")


def test_another_plan_does_not_take_over_a_model(call: Call, train: Call) -> None:
    assert train(*SMALL, "--seed", 1).exit_code == 0
    call("plan", "--schema", "schema.toml", *SMALL, "--out", "p.toml", "--seed", 1)
    error = train("--plan", "p.toml").exception
    with pytest.raises(PlanError, match=r"is another plan.*Choose another --out"):
        raise error or AssertionError("it was accepted")


def test_a_plan_for_another_schema_is_refused(call: Call, train: Call, folder: Path) -> None:
    call("plan", "--schema", "schema.toml", *SMALL, "--out", "p.toml")
    schema = folder / "schema.toml"
    schema.write_text(schema.read_text().replace("upper = 100", "upper = 120"))
    error = train("--plan", "p.toml").exception
    with pytest.raises(PlanError, match="made for another schema"):
        raise error or AssertionError("it was accepted")
    assert not (folder / "m.hedge.ledger").exists()


def test_the_estimate_of_bytes_is_near_the_truth(call: Call, train: Call) -> None:
    words = (*PROMISE, "--trees", 20, "--depth", 5)
    planned = json.loads(call("plan", "--schema", "schema.toml", *words, "--json").stdout)
    done = json.loads(train(*words, "--json").stdout)
    assert planned["bytes_from_party_estimate"] == pytest.approx(
        done["bytes_from_parties"] / 3, rel=0.5
    )
    assert planned["bytes_to_party_estimate"] == pytest.approx(
        done["bytes_to_parties"] / 3, rel=0.5
    )
