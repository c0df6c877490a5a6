"""Plans: files round-trip, prices add up to the promise, and a changed plan is another plan."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import FormatError, HedgerowError, PlanError, SettingsError
from hedgerow.methods.registry import METHODS, method_named, plan_for
from hedgerow.model.tradeoff import EXACT_LIMIT
from hedgerow.privacy.accounting.budget import MAX_NUMBERS, DeclaredQuery, Slot
from hedgerow.privacy.accounting.plan import Plan, make_plan
from hedgerow.privacy.settings import BoostingSettings, Privacy, Settings
from tests.conftest import MIXED, promise

PLAN = plan_for(
    MIXED, Privacy(1.0, 1e-5), "random-trees", settings={"n_trees": 5}, seed=3, run="run-1"
)

declared_queries = st.lists(
    st.builds(
        DeclaredQuery,
        st.sampled_from(["base rate", "batch"]),
        st.sampled_from(["label-sums", "leaf-sums"]),
        st.floats(0.01, 1),
        st.integers(1, 10_000),
        st.integers(1, 5),
    ),
    min_size=1,
    max_size=5,
)
promises = st.builds(
    Privacy,
    st.floats(0.05, 50),
    st.sampled_from([1e-5, 1e-8]),
    st.sampled_from(["coordinator", "parties", "nobody"]),
    st.sampled_from(["exact", "renyi"]),
    spare=st.integers(0, 3),
)


@settings(max_examples=60, deadline=None)
@given(declared_queries, promises, st.integers(0, 2**62))
def test_a_plan_costs_its_promise_and_survives_its_file(
    tmp_path_factory: pytest.TempPathFactory,
    wanted: list[DeclaredQuery],
    privacy: Privacy,
    seed: int,
) -> None:
    plan = make_plan("hash", "method", Settings(), privacy, wanted, seed)
    assert plan.epsilon <= privacy.epsilon * (1 + 1e-9)
    # Above the limit of exact accounting Renyi costs more: a little below may be all there is.
    at_limit = privacy.accounting == "exact" and plan.mu == pytest.approx(EXACT_LIMIT, rel=1e-6)
    assert plan.epsilon > 0.99 * privacy.epsilon or at_limit
    squares = [slot.mu**2 for slot in plan.slots]
    assert math.fsum(squares) + privacy.spare * max(squares) == pytest.approx(plan.mu**2)
    path = tmp_path_factory.mktemp("plan") / "plan.toml"
    plan.write(path)
    again = Plan.read(path)
    assert again == plan
    assert again.hash == plan.hash


def test_shares_of_the_budget_are_shares_of_mu_squared() -> None:
    start, *batches = PLAN.slots
    assert start.kind == "label-sums"
    assert start.mu**2 / PLAN.mu**2 == pytest.approx(0.02)
    assert {slot.mu for slot in batches} == {batches[0].mu}
    assert len(batches) == 5


def test_spare_attempts_are_paid_in_advance() -> None:
    with_spare = plan_for(
        MIXED, Privacy(1.0, 1e-5, spare=2), "random-trees", settings={"n_trees": 5}, seed=3
    )
    assert with_spare.epsilon == pytest.approx(PLAN.epsilon, rel=1e-6)
    assert with_spare.slots[1].mu < PLAN.slots[1].mu
    assert with_spare.budget.coordinates == PLAN.budget.coordinates + 2 * PLAN.slots[1].coordinates


@pytest.mark.parametrize("method", METHODS)
def test_every_method_plans_from_public_facts_alone(method: str) -> None:
    chosen = METHODS[method]
    asked = chosen.grower.declared_queries(MIXED, chosen.settings({}))
    assert asked or chosen.grower.adaptive_queries(MIXED, chosen.settings({}))
    privacy = promise(method)
    one = plan_for(MIXED, privacy, method, seed=1, run="r")
    two = plan_for(MIXED, privacy, method, seed=1, run="r")
    assert one.hash == two.hash
    assert method_named("auto") is METHODS[method_named("auto").name]


def changed(**changes: Any) -> dict[str, Any]:
    document = PLAN.to_dict()
    for key, value in changes.items():
        if isinstance(value, dict):
            document[key] = {**document[key], **value}
        else:
            document[key] = value
    return document


@pytest.mark.parametrize(
    ("document", "error", "words"),
    [
        (changed(colour=1), PlanError, "unknown key 'colour'"),
        (changed(format=2), FormatError, "writes plan format 2"),
        (changed(format=0), PlanError, "must be 1"),
        (changed(privacy={"noise": 0}), SettingsError, "unknown privacy setting 'noise'"),
        (changed(settings={"trees": 1}), SettingsError, "unknown setting 'trees'"),
        (changed(privacy={"epsilon": 0}), SettingsError, "above 0"),
        (changed(privacy={"trust": "everybody"}), SettingsError, "choose one of"),
        (changed(privacy={"epsilon": 0.5}), PlanError, "more than the promised"),
        (changed(slot=[]), PlanError, "1 to"),
        (changed(slot=[{"name": "x"}]), PlanError, "not a readable plan"),
        (changed(slot=[{"name": "x", "repeat": 10**9}]), PlanError, "repeats"),
        (changed(seed="x"), PlanError, "whole number"),
        ({}, PlanError, "format"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_plan_is_refused(
    document: dict[str, Any], error: type[HedgerowError], words: str
) -> None:
    with pytest.raises(error, match=words):
        Plan.from_dict(document)


@pytest.mark.parametrize("mu", [0.0, -1.0, math.inf, math.nan])
def test_a_slot_has_a_price(mu: float) -> None:
    with pytest.raises(PlanError):
        replace(PLAN.budget, slots=(Slot("x", "label-sums", mu, 2),))


def test_a_slot_that_is_added_later_breaks_the_promise() -> None:
    with pytest.raises(PlanError, match="Nothing was asked"):
        replace(PLAN.budget, slots=(*PLAN.slots, PLAN.slots[-1]))


@pytest.mark.parametrize(
    "other",
    [
        {"run": "run-2"}, {"seed": 4}, {"method": "x"}, {"schema_hash": "x"},
        {"settings": BoostingSettings(n_trees=6)},
        {"budget": replace(PLAN.budget, privacy=Privacy(1.0, 1e-5, "parties"))},
        {"budget": replace(PLAN.budget, slots=PLAN.slots[:-1])},
    ],
)  # fmt: skip
def test_every_part_is_in_the_hash(other: dict[str, Any]) -> None:
    assert replace(PLAN, **other).hash != PLAN.hash


def test_files_that_are_no_plan_say_so(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_bytes(b"\xff")
    with pytest.raises(PlanError, match=r"plan\.toml"):
        Plan.read(path)
    with pytest.raises(PlanError, match="no plan file"):
        Plan.read(tmp_path / "absent.toml")


def test_a_plan_that_asks_nothing_is_refused() -> None:
    with pytest.raises(PlanError, match="asks nothing"):
        make_plan("hash", "method", Settings(), Privacy(1.0, 1e-5), [], seed=0)


@pytest.mark.parametrize("numbers", [-1, 0, MAX_NUMBERS + 1])
def test_a_question_of_nothing_or_of_too_much_is_no_slot(numbers: int) -> None:
    """A party's memory does not depend on what somebody plans to ask."""
    document = PLAN.to_dict()
    document["slot"][0]["coordinates"] = numbers
    with pytest.raises(HedgerowError):
        Plan.from_dict(document)
    slots = (replace(PLAN.slots[0], coordinates=numbers), *PLAN.slots[1:])
    with pytest.raises(PlanError, match="fit into one question"):
        replace(PLAN, budget=replace(PLAN.budget, slots=slots))
