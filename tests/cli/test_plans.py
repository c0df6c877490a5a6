"""`hedgerow plan`, and which plan a training command uses."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer

from hedgerow.cli.app import app
from hedgerow.cli.given import given_values, make_plan
from hedgerow.cli.options import PromiseOptions, SeededMethodOptions
from hedgerow.cli.train import plan_file
from hedgerow.coordinator.refused import RefusedBy
from hedgerow.data.schema import Schema
from hedgerow.errors import PlanError, SettingsError
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from tests.cli.conftest import Call
from tests.privacy.ledger.test_ledger import a_plan

PROMISE = ("--epsilon", 2, "--delta", "1e-5")
TREES = (*PROMISE, "--method", "random-trees")
SMALL = (*TREES, "--trees", 3, "--depth", 2)


def test_a_plan_states_its_cost_and_can_be_read_back(call: Call, folder: Path) -> None:
    words = ("plan", "--schema", "schema.toml", *SMALL, "--out", "p.toml", "--json")
    told = json.loads(call(*words).stdout)
    plan = Plan.read(folder / "p.toml")
    assert told["plan"] == plan.to_dict()
    assert (told["rounds"], told["coordinates_per_round"]) == (4, 2 * 4)
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
        ((*PROMISE, "--set", "bath_size=3"), r"'bath_size' \(did you mean 'batch_size'\?\)"),
        ((*PROMISE, "--set", "batch_size=many"), "must be a whole number"),
        ((*PROMISE, "--set", "batch_size"), "key=value"),
        ((*PROMISE, "--set", "epsilon=3"), "write --epsilon 3"),
        ((*TREES, "--trees", 3, "--set", "n_trees=4"), "given twice"),
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


# A number of the promise, a count of it, a choice of it, a method's number, count and choice, and
# the seed: how each is given by flag, by environment and in a plan, and what it is by default.
SOURCES = [
    ("epsilon", "--epsilon", "HEDGEROW_EPSILON", (2.0, 3.0, 4.0), None),
    ("spare", "--spare", "HEDGEROW_SPARE", (1, 2, 3), 0),
    ("colluding", "--colluding", "HEDGEROW_COLLUDING", (2, 3, 4), 1),
    ("minimum_parties", "--minimum-parties", "HEDGEROW_MINIMUM_PARTIES", (4, 5, 6), 3),
    ("accounting", "--accounting", "HEDGEROW_ACCOUNTING", ("renyi", "exact", "renyi"), "exact"),
    ("trust", "--trust", "HEDGEROW_TRUST", ("nobody", "coordinator", "nobody"), "parties"),
    ("learning_rate", "--learning-rate", "HEDGEROW_LEARNING_RATE", (0.1, 0.2, 0.4), 0.3),
    ("max_depth", "--depth", "HEDGEROW_DEPTH", (1, 2, 3), 4),
    ("seed", "--seed", "HEDGEROW_SEED", (1, 2, 3), None),
]


def value_in(plan: dict[str, Any], name: str) -> Any:
    return {**plan["privacy"], **plan["settings"], "seed": plan["seed"]}[name]


@pytest.mark.parametrize(("name", "flag", "variable", "values", "default"), SOURCES)
def test_flag_before_environment_before_plan_before_default(
    call: Call,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    flag: str,
    variable: str,
    values: tuple[Any, Any, Any],
    default: Any,
) -> None:
    by_flag, by_environment, by_plan = values
    promise = {"--epsilon": 1.5, "--delta": "1e-5", "--trees": 2, "--method": "random-trees"}
    words = [word for pair in promise.items() for word in pair if pair[0] != flag]
    planned = ("plan", "--schema", "schema.toml", "--parties", 9, "--json")

    def settled(*more: Any) -> Any:
        """The value in the plan that a training command would use."""
        given = options_of(call, "train", "--plan", "base.toml", *more)
        base = Plan.read(folder / "base.toml")
        schema = Schema.read(folder / "schema.toml")
        return value_in(make_plan(schema, given, 9, base).to_dict(), name)

    if default is not None:
        assert value_in(json.loads(call(*planned, *words).stdout)["plan"], name) == default
    call(*planned, *words, flag, by_plan, "--out", "base.toml")
    assert settled() == by_plan
    monkeypatch.setenv(variable, str(by_environment))
    assert settled() == by_environment
    assert settled(flag, by_flag) == by_flag


def options_of(call: Call, *words: Any) -> dict[str, Any]:
    """What `hedgerow train` understands as given by flags and environment, without training."""
    command = typer.main.get_command(app).commands["train"]  # type: ignore[attr-defined]
    needed = ("--schema", "schema.toml", "--data", "a.csv", "--out", "m.hedge")
    context = command.make_context("train", [str(word) for word in (*needed, *words[1:])])
    groups = (PromiseOptions, SeededMethodOptions)
    chosen = [group(**{f.name: context.params[f.name] for f in fields(group)}) for group in groups]
    return given_values(*chosen)


def test_further_settings_come_before_the_plan(call: Call, train: Call, folder: Path) -> None:
    further = ("--set", "leaf_clip=1.5", "--set", "spare=1")
    call("plan", "--schema", "schema.toml", *SMALL, *further, "--out", "p.toml")
    assert train("--plan", "p.toml", "--set", "leaf_clip=1.25").exit_code == 0
    used = tomllib.loads((folder / "m.hedge.plan.toml").read_text())
    assert (used["settings"]["leaf_clip"], used["privacy"]["spare"]) == (1.25, 1)
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


def test_a_plan_bounds_the_bytes_that_its_run_counts(call: Call, train: Call) -> None:
    words = (*TREES, "--trees", 20, "--depth", 5)
    planned = json.loads(call("plan", "--schema", "schema.toml", *words, "--json").stdout)
    done = json.loads(train(*words, "--json").stdout)
    assert planned["rounds"] == done["rounds"] == 21
    assert planned["opening_rounds"] == 2
    for name in ("bytes_from_parties", "bytes_to_parties"):
        assert done[name] <= planned[name] < 1.5 * done[name]
    assert planned["bytes_from_parties"] == 3 * planned["bytes_from_party"]
    assert planned["bytes_to_parties"] == 3 * planned["bytes_to_party"]


def test_a_plan_shows_rounds_and_bytes(call: Call) -> None:
    words = ("--method", "dp-tr-newton", "--parties", 4)
    shown = call("plan", "--schema", "schema.toml", *SMALL, *words).stdout
    assert re.search(r"rounds, at most\s+3 \+ 2 to open", shown)
    for way in ("sent", "received"):
        each = re.search(rf"{way} by a party, at most\s+(\d+) kB", shown)
        every = re.search(rf"{way} by 4 parties, at most\s+(\d+) kB", shown)
        assert each is not None
        assert every is not None
        assert int(every[1]) == pytest.approx(4 * int(each[1]), abs=3)


def test_methods_are_listed_with_their_rounds(call: Call) -> None:
    from hedgerow.methods.registry import METHODS

    listed = {one["name"]: one for one in json.loads(call("methods", "--json").stdout)["methods"]}
    assert {name: one["rounds"] for name, one in listed.items()} == {
        name: method.rounds for name, method in METHODS.items()
    }
    assert listed["feverless"]["rounds"] == "T d"
    assert listed["dp-tr-batch-newton-ih-ebm"]["rounds"] == "T/B + s"
    assert listed["random-trees"]["rounds"] == "T + 1"
    assert listed["auto"]["rounds"] == "at most 16"
    shown = call("methods").stdout
    assert "rounds" in shown
    assert "T/B + s" in shown


@pytest.mark.parametrize(
    ("words", "stays"),
    [
        (["not-approved"], True),
        (["not-approved", "not-approved"], True),
        (["not-approved", "over-limits"], True),
        (["over-limits"], False),
        (["not-approved", "rejected-purpose"], False),
        (["not-approved", "expired"], False),
    ],
)
def test_a_plan_that_people_were_shown_is_the_plan_of_the_same_command(
    tmp_path: Path, words: list[str], stays: bool
) -> None:
    """Without this the command would make another plan, and no approval could ever fit it."""
    plan, beside, out = a_plan(), tmp_path / "m.hedge.plan.toml", tmp_path / "m.hedge"
    with Ledger.open(tmp_path / "ledger") as ledger:
        for word in words:
            with pytest.raises(RefusedBy), plan_file(beside, plan, ledger, out):
                raise RefusedBy("a", word)
    assert beside.exists() == stays
    assert not stays or Plan.read(beside).hash == plan.hash
