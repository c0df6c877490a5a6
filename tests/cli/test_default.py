"""The default method on the command line: its plan, its rule, directions and warm starts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hedgerow.data.schema import Label, Numeric, Schema
from hedgerow.errors import FormatError, HedgerowError, PlanError, SettingsError
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from tests.cli.conftest import Call, write_csv
from tests.cli.test_train import refused

PROMISE = ("--epsilon", 2, "--delta", "1e-5")
TREES = ("--method", "random-trees", "--trees", 3)
HINT = ("--set", "rows_hint=30000")
ROWS = 600


@pytest.fixture
def world(folder: Path) -> Path:
    """One number x whose share of "yes" rises by half over its range, one z without meaning."""
    label = Label("label", ("no", "yes"))
    Schema((Numeric("x", 0, 1), Numeric("z", 0, 1)), label).write(folder / "schema.toml")
    for seed, name in enumerate("abc"):
        rng = np.random.default_rng(seed)
        x, z = rng.uniform(0, 1, (2, ROWS))
        y = np.where(rng.uniform(0, 1, ROWS) < 0.25 + 0.5 * x, "yes", "no")
        table = {"x": x.tolist(), "z": z.tolist(), "label": y.tolist()}
        write_csv(folder / f"{name}.csv", table)
    return folder


def test_a_plan_of_the_default_buys_a_count_and_prices_the_rest_later(call: Call) -> None:
    told = json.loads(call("plan", "--schema", "schema.toml", *PROMISE, "--json").stdout)
    plan = Plan.from_dict(told["plan"])
    assert (told["method"], told["rule"]) == ("auto", [])
    assert [(slot.name, slot.kind) for slot in plan.slots] == [("row count", "label-sums")]
    assert plan.slots[0].mu ** 2 == pytest.approx(0.01 * plan.mu**2, rel=1e-6)
    assert plan.slots[0].mu ** 2 + plan.budget.adaptive.mu**2 == pytest.approx(plan.mu**2, rel=1e-6)
    assert told["rounds"] == 1 + plan.budget.adaptive.slots == 16
    assert told["epsilon"] == pytest.approx(2, rel=1e-6)


def test_a_plan_with_a_public_number_of_rows_shows_every_setting_with_its_reason(
    call: Call,
) -> None:
    words = ("plan", "--schema", "schema.toml", *PROMISE, *HINT)
    told = json.loads(call(*words, "--json").stdout)
    plan = Plan.from_dict(told["plan"])
    assert plan.slots == ()
    assert plan.budget.adaptive.mu == pytest.approx(plan.mu)
    assert plan.settings.rows_hint == 30_000
    rule = {line["setting"]: line for line in told["rule"]}
    assert {"S", "bins", "main rounds", "interaction tables", "clip", "shares"} <= set(rule)
    assert all(line["value"] and line["reason"] for line in rule.values())
    strength = 30_000 * plan.budget.adaptive.mu / np.sqrt(5)
    assert float(rule["S"]["value"]) == pytest.approx(strength, abs=1)
    shown = " ".join(call(*words).stdout.split())
    assert "Settings by the public rule" in shown
    assert all(name in shown for name in rule)
    assert "row count" not in shown
    more = json.loads(call(*words[:-1], "rows_hint=900000", "--json").stdout)
    assert more["rule"] != told["rule"]


def test_a_plan_of_the_default_is_shown_as_tables(call: Call) -> None:
    shown = " ".join(call("plan", "--schema", "schema.toml", *PROMISE).stdout.split())
    for words in ("row count (label-sums)", "priced during the run (", "at most 15", "1.0 %"):
        assert words in shown
    assert "give the number of rows, if it is public: --set rows_hint=N" in shown
    assert "Settings by the public rule" not in shown
    assert "nothing was spent" in shown


@pytest.mark.parametrize(
    "words", [("--trees", 3), ("--depth", 2), ("--bins", 9), ("--set", "split=histogram")]
)
def test_settings_that_the_default_has_no_use_for_are_refused(
    call: Call, words: tuple[object, ...]
) -> None:
    found = call("plan", "--schema", "schema.toml", *PROMISE, *words)
    refused(found, SettingsError, r"method 'auto' does not use '\w+'; leave it out. It uses: mono")


def test_the_default_trains_within_its_plan_and_replays(
    call: Call, train: Call, world: Path
) -> None:
    planned = json.loads(call("plan", "--schema", "schema.toml", *PROMISE, "--json").stdout)
    told = json.loads(train(*PROMISE, "--json").stdout)
    assert told["method"] == "auto"
    assert told["releases_asked"] == told["rounds"] == told["statement"]["releases"]
    assert 4 < told["rounds"] <= planned["rounds"]
    for name in ("bytes_from_parties", "bytes_to_parties"):
        assert told[name] <= planned[name]
    first = Ensemble.load(world / "m.hedge")
    again = json.loads(train(*PROMISE, "--json").stdout)
    assert (again["releases_asked"], again["releases_replayed"]) == (0, told["rounds"])
    assert Ensemble.load(world / "m.hedge") == first
    assert json.loads(call("ledger", "verify", "m.hedge.ledger", "--json").stdout)["verified"]
    runs = json.loads(call("ledger", "show", "m.hedge.ledger", "--json").stdout)["runs"]
    assert all(run["charged"] <= run["slots"] for run in runs)  # those priced later counted too


def test_a_direction_is_kept(train: Call, world: Path) -> None:
    assert train(*PROMISE, "--set", 'monotone={"x": 1, "z": -1}').exit_code == 0
    model = Ensemble.load(world / "m.hedge")
    assert Plan.read(world / "m.hedge.plan.toml").settings.directions == {"x": 1, "z": -1}
    line, half = np.linspace(0, 1, 300), np.full(300, 0.5)
    rising = model.predict({"x": line, "z": half})[:, 1]
    assert np.all(np.diff(rising) >= 0)
    assert rising[-1] > rising[0]
    assert np.all(np.diff(model.predict({"x": half, "z": line})[:, 1]) <= 0)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('{"x": 2}', "1 or -1 for each column"),
        ('{"x": true}', "1 or -1 for each column"),
        ("x=1", "1 or -1 for each column"),
        ('{"height": 1}', "names the column 'height', which the schema does not have"),
    ],
)
def test_a_direction_that_makes_no_sense(
    train: Call, world: Path, value: str, message: str
) -> None:
    refused(train(*PROMISE, "--set", f"monotone={value}"), SettingsError, message)
    assert not list(world.glob("m.hedge*"))


def test_a_run_builds_on_a_model(train: Call, world: Path) -> None:
    assert train(*PROMISE, "--out", "first.hedge").exit_code == 0
    first = Ensemble.load(world / "first.hedge")
    warm = ("--warm-start-from", "first.hedge")
    told = json.loads(train(*PROMISE, *warm, "--json").stdout)
    assert told["statement"]["builds_on"] == first.hash
    assert Plan.read(world / "m.hedge.plan.toml").settings.warm_start == first.hash
    model = Ensemble.load(world / "m.hedge")
    assert len(model.trees) > len(first.trees)
    assert f"It builds on another model ({first.hash[:12]})" in model.statement.words()
    again = json.loads(train(*PROMISE, *warm, "--json").stdout)
    assert (again["releases_asked"], again["releases_replayed"]) == (0, told["rounds"])


def test_a_run_goes_on_with_the_model_that_it_began_with(train: Call, world: Path) -> None:
    for name in ("first", "other"):
        assert train(*PROMISE, "--out", f"{name}.hedge").exit_code == 0
    assert train(*PROMISE, "--warm-start-from", "first.hedge").exit_code == 0
    before = (world / "m.hedge.ledger").read_bytes()
    other = train(*PROMISE, "--warm-start-from", "other.hedge")
    refused(other, PlanError, "warm_start is .*, the plan has .*Nothing was asked")
    refused(train(*PROMISE), PlanError, "builds on the model .* and was given none. Nothing was")
    assert (world / "m.hedge.ledger").read_bytes() == before


def test_models_that_cannot_be_built_on(train: Call, world: Path) -> None:
    forest = ("--method", "dp-rf", "--trees", 2, "--out", "forest.hedge")
    assert train(*PROMISE, *forest).exit_code == 0
    schema = world / "schema.toml"
    found = train(*PROMISE, "--warm-start-from", "forest.hedge")
    refused(found, PlanError, "boosted model of the same schema only.*Nothing was asked")
    assert train(*PROMISE, "--out", "first.hedge").exit_code == 0
    schema.write_text(schema.read_text().replace("upper = 1", "upper = 2"))
    found = train(*PROMISE, "--warm-start-from", "first.hedge")
    refused(found, PlanError, "boosted model of the same schema only.*Nothing was asked")
    (world / "bad.hedge").write_bytes(b"no model")
    refused(train(*PROMISE, "--warm-start-from", "bad.hedge"), FormatError, "Nothing was asked")
    missing = train(*PROMISE, "--warm-start-from", "missing.hedge")
    refused(missing, HedgerowError, "no model at missing.hedge")
    given = train(*PROMISE, "--set", "warm_start=abc")
    refused(given, SettingsError, "give the model itself: --warm-start-from")
    unused = train(*PROMISE, *TREES, "--warm-start-from", "first.hedge")
    refused(unused, SettingsError, "'random-trees' does not use 'warm_start'")
    assert [file.name for file in world.glob("m.hedge*")] == ["m.hedge.ledger"]  # of the others


@pytest.mark.parametrize(("text", "value"), [("false", False), ("False", False), ("true", True)])
def test_a_setting_that_is_true_or_false(call: Call, text: str, value: bool) -> None:
    words = (*PROMISE, *TREES, "--set", "split=histogram", "--set", f"reuse_histogram={text}")
    told = json.loads(call("plan", "--schema", "schema.toml", *words, "--json").stdout)
    assert told["plan"]["settings"]["reuse_histogram"] is value
    leaves = sum(slot["kind"] == "leaf-sums" for slot in told["plan"]["slot"])
    assert bool(leaves) is not value  # leaves of their own cost questions of their own


@pytest.mark.parametrize("text", ["0", "no", "1", "maybe"])
def test_a_setting_that_is_neither(call: Call, text: str) -> None:
    words = (*PROMISE, *TREES, "--set", f"reuse_histogram={text}")
    found = call("plan", "--schema", "schema.toml", *words)
    refused(found, SettingsError, "reuse_histogram must be true or false")
