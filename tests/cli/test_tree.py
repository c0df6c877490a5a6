"""`hedgerow train --method private-tree` and `hedgerow tree`, from schema to picture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hedgerow import Ensemble, Plan
from tests.cli.conftest import Call

TREE = ("--method", "private-tree", "--epsilon", 40, "--depth", 3)


def test_from_tables_to_a_picture(call: Call, train: Call, folder: Path) -> None:
    assert train(*TREE, "--json").exit_code == 0
    plan = Plan.read(folder / "m.hedge.plan.toml")
    assert (plan.privacy.accounting, plan.privacy.delta) == ("pure", 0.0)
    drawn = call("tree", "m.hedge", "--svg", "out.svg")
    assert drawn.exit_code == 0
    assert drawn.stdout == ""
    assert (folder / "out.svg").read_text("utf-8").startswith("<svg ")
    text = call("tree", "m.hedge").stdout
    assert text.startswith("Predicts sick.")
    assert "|-- " in text
    rules = call("tree", "m.hedge", "--rules").stdout
    assert "THEN sick is " in rules
    found = json.loads(call("tree", "m.hedge", "--json").stdout)
    assert found["classes"] == ["no", "yes"]
    assert len(found["rules"]) == sum(node["left"] < 0 for node in found["nodes"])
    assert call("evaluate", "m.hedge", "--data", "a.csv").exit_code == 0
    assert "pure epsilon = 40" in call("statement", "m.hedge").stdout.replace("\n", " ")
    again = train(*TREE, "--json")  # replayed, nothing is asked
    assert json.loads(again.stdout)["rounds"] == 0


def test_the_ledger_of_a_tree_adds_up_branch_by_branch(call: Call, train: Call) -> None:
    assert train(*TREE, "--budget-epsilon", 50).exit_code == 0
    assert call("ledger", "verify", "m.hedge.ledger").exit_code == 0
    shown = json.loads(call("ledger", "show", "m.hedge.ledger", "--json").stdout)
    run = shown["runs"][0]
    assert (run["epsilon"], run["delta"]) == (pytest.approx(40), 0.0)
    assert 0 < max(run["branches"].values()) <= 40
    assert shown["totals"][0]["left_epsilon"] == pytest.approx(10)
    assert "branches drew" in call("ledger", "show", "m.hedge.ledger").stdout
    over = train(*TREE, "--out", "n.hedge", "--ledger", "m.hedge.ledger")
    assert "over the budget of 50 at delta = 0" in str(over.exception)


def test_a_plan_of_a_tree_says_what_its_paths_may_cost(call: Call) -> None:
    words = ("plan", "--schema", "schema.toml", *TREE)
    shown = call(*words).stdout
    assert "pure epsilon = 40 on any path" in shown
    assert "impurity-bounds" in shown
    made = json.loads(call(*words, "--json").stdout)
    assert made["plan"]["branches"]["round"][0]["epsilon"] == pytest.approx(40)
    wrong = call(*words, "--delta", "1e-6")
    assert "pure accounting has none" in str(wrong.exception)
    boosted = call(
        "plan", "--schema", "schema.toml", "--epsilon", 1, "--accounting", "pure", "--delta", 0
    )
    assert "promises no pure epsilon" in str(boosted.exception)


def test_a_plan_file_lends_nothing_of_its_delta_to_a_tree(call: Call, train: Call) -> None:
    made = call(
        "plan", "--schema", "schema.toml", "--epsilon", 2, "--delta", "1e-6", "--out", "p.toml"
    )
    assert made.exit_code == 0
    done = train("--plan", "p.toml", "--method", "private-tree", "--depth", 2)
    assert done.exit_code == 0, done.exception
    assert Ensemble.load("m.hedge").statement.guarantee == "pure"


def test_other_models_and_options_are_refused(call: Call, train: Call) -> None:
    small = ("--method", "random-trees", "--epsilon", 1, "--delta", "1e-6", "--trees", 2)
    assert train(*small).exit_code == 0
    assert "cannot be drawn as one readable tree" in str(call("tree", "m.hedge").exception)
    assert "leave out --text" in str(call("tree", "m.hedge", "--json", "--text").exception)
