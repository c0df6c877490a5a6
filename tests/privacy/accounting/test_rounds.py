"""Rounds of pure questions: samples of rows, what they cost, and how rounds compose."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_randomized_response
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.methods.registry import plan_for
from hedgerow.privacy.accounting import pure
from hedgerow.privacy.accounting.path_budget import PathBudget
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.accounting.pure import amplified, before_sampling, composed, composed_delta
from hedgerow.privacy.accounting.rounds import Branches, Draw, Round
from hedgerow.privacy.settings import Privacy
from tests.conftest import MIXED

OUTCOMES = np.arange(-60, 61)


def answers(total: int, epsilon: float) -> NDArray[np.float64]:
    """A sum with two-sided geometric noise: epsilon-private for rows of -1, 0 or 1."""
    a = math.exp(-epsilon)
    return np.asarray((1 - a) / (1 + a) * a ** np.abs(OUTCOMES - total))


def on_a_sample(rows: list[int], rate: float, epsilon: float) -> NDArray[np.float64]:
    """The same on a Poisson sample of rows, over every sample there is."""
    found = np.zeros(len(OUTCOMES))
    for taken in product((0, 1), repeat=len(rows)):
        chance = math.prod(rate if t else 1 - rate for t in taken)
        found += chance * answers(sum(t * r for t, r in zip(taken, rows, strict=True)), epsilon)
    return found


def on_one_row(rows: list[int], epsilon: float) -> NDArray[np.float64]:
    """The same on one row of them, drawn at random: a sample of a fixed size."""
    return np.asarray(np.mean([answers(row, epsilon) for row in rows], axis=0))


def loss(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    return float(np.abs(np.log(one / two)).max())


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a_question_on_a_sample_costs_exactly_what_the_formula_says(
    rate: float, epsilon: float
) -> None:
    for rows in ([], [1], [0, 1, -1], [-1, -1, -1]):
        for row in (-1, 1):
            one, two = (on_a_sample(table, rate, epsilon) for table in (rows, [*rows, row]))
            assert loss(one, two) == pytest.approx(amplified(epsilon, rate), rel=1e-6)
    assert before_sampling(amplified(epsilon, rate), rate) == pytest.approx(epsilon)


def test_a_sample_of_a_fixed_size_costs_more() -> None:
    """Adding a row pushes another one out, so the formula is not used for such samples."""
    one, two = on_one_row([-1, -1, -1], 2.0), on_one_row([-1, -1, -1, 1], 2.0)
    assert loss(one, two) > 2 * amplified(2.0, 1 / 3)


def test_a_further_attempt_costs_its_price_on_top_of_its_round() -> None:
    for rate in (0.01, 0.3, 1.0):
        for a, b in ((0.1, 0.2), (1.0, 3.0)):  # two samples within a round cost no more than one
            assert amplified(a, rate) + amplified(b, rate) <= amplified(a + b, rate) * (1 + 1e-12)
        assert amplified(1.0 + 0.2, rate) <= amplified(1.0, rate) + 0.2


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_rows_of_a_person_that_are_drawn_apart_cost_no_more(rate: float, epsilon: float) -> None:
    """As on a cluster, where a person's rows lie in several parts: noise is that of all of them."""
    for k in (2, 3):
        for rows in ([], [1], [0, 1, -1]):
            for row in (-1, 1):
                tables = (rows, [*rows, *[row] * k])
                apart = loss(*(on_a_sample(table, rate, epsilon / k) for table in tables))
                assert apart <= amplified(epsilon, rate) * (1 + 1e-6)


def brute_force(costs: list[float], epsilon: float) -> float:
    """Over every sequence of true and false responses."""
    delta = 0.0
    for truths in product((1, -1), repeat=len(costs)):
        chance = math.prod(1 / (1 + math.exp(-t * e)) for t, e in zip(truths, costs, strict=True))
        lost = sum(t * e for t, e in zip(truths, costs, strict=True))
        delta += chance * max(0.0, -math.expm1(epsilon - lost))
    return delta


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 1.9])
def test_rounds_compose_as_randomised_responses_do(epsilon: float) -> None:
    costs = [(0.1, 3), (0.5, 2), (0.7, 1)]
    every = [cost for cost, n in costs for _ in range(n)]
    expected = brute_force(every, epsilon)
    assert composed_delta(costs, epsilon) == pytest.approx(expected, rel=2e-7)
    assert composed_delta(costs, epsilon) >= expected
    if expected > 0:
        assert composed(costs, composed_delta(costs, epsilon)) == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize(("cost", "n"), [(0.05, 120), (0.4, 20), (2.0, 5)])
def test_rounds_compose_as_another_accountant_says(cost: float, n: int) -> None:
    responses = from_randomized_response(
        2 / (1 + math.exp(cost)), 2, value_discretization_interval=1e-4
    )
    theirs = responses.self_compose(n)
    for delta in (1e-3, 1e-6, 1e-9):
        found = composed([(cost, n)], delta)
        assert found == pytest.approx(theirs.get_epsilon_for_delta(delta), abs=2e-4 * n)
        assert found <= cost * n


def test_without_a_delta_costs_add_up() -> None:
    assert composed([(0.25, 4), (0.5, 2)], 0.0) == 2.0
    assert composed([(0.25, 4), (0.5, 2)], 1e-300) == pytest.approx(2.0)


def test_losses_that_are_too_many_are_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = [(0.1, 5), (0.0317, 6), (0.0731, 4), (0.2113, 3)]
    exact = [composed_delta(costs, epsilon) for epsilon in (0.2, 0.8, 1.2)]
    monkeypatch.setattr(pure, "_LOSSES", 60)
    rough = [composed_delta(costs, epsilon) for epsilon in (0.2, 0.8, 1.2)]
    assert all(r >= e for r, e in zip(rough, exact, strict=True))
    assert rough == pytest.approx(exact, abs=0.05)
    assert rough != exact


def plan_of(
    accounting: str = "pure", spare: int = 0, epsilon: float = 2.0, **settings: Any
) -> Plan:
    delta = 0.0 if accounting == "pure" else 1e-6
    privacy = Privacy(epsilon, delta, accounting=accounting, spare=spare)
    small = {"n_trees": 5, "max_depth": 3, "n_bins": 8, **settings}
    return plan_for(MIXED, privacy, "dp-xgboost", small, seed=1, run="r")


@pytest.mark.parametrize("sample_rate", [1.0, 0.2])
@pytest.mark.parametrize("sample_by", ["tree", "question"])
@pytest.mark.parametrize("spare", [0, 2])
@pytest.mark.parametrize("accounting", ["pure", "exact"])
def test_a_plan_costs_what_is_promised(
    accounting: str, spare: int, sample_by: str, sample_rate: float
) -> None:
    plan = plan_of(accounting, spare, sample_by=sample_by, sample_rate=sample_rate)
    budget = PathBudget.of(plan.budget)
    assert plan.epsilon == pytest.approx(2.0, rel=1e-6)
    assert plan.epsilon <= 2.0 * (1 + 1e-9)
    assert len(plan.slots) == 5 * 5
    rounds = budget.branches.rounds
    assert len(rounds) == (5 if sample_by == "tree" else 25)
    assert {r.rate for r in rounds} == {sample_rate}
    again = spare * budget.branches.retry
    assert budget.pure_epsilon == pytest.approx(math.fsum(r.cost for r in rounds) + again)
    assert budget.epsilon_at(0.0) == pytest.approx(budget.pure_epsilon, rel=1e-9)
    if accounting == "exact":
        every = budget.branches.costs()
        assert composed(every, 1e-6 * math.exp(-again)) + again == pytest.approx(2.0, rel=1e-6)
        assert budget.pure_epsilon >= plan.epsilon * (1 - 1e-9)


def test_a_delta_buys_less_noise_where_there_are_many_rounds() -> None:
    many = {"n_trees": 60}
    free, paid = (
        PathBudget.of(plan_of(accounting, **many).budget).branches.rounds[0].epsilon
        for accounting in ("pure", "exact")
    )
    assert paid > 1.5 * free


def test_a_sampled_plan_survives_its_file(tmp_path: Path) -> None:
    plan = plan_of("exact", 1, sample_rate=0.1, sample_by="question")
    plan.write(tmp_path / "plan.toml")
    assert Plan.read(tmp_path / "plan.toml") == plan


@pytest.mark.parametrize("accounting", ["pure", "exact"])
def test_a_plan_that_states_less_than_it_costs_is_refused(accounting: str) -> None:
    document = plan_of(accounting, sample_rate=0.2).to_dict()
    for change in ({"rate": 1.0}, {"rate": 0.25}, {"epsilon": 9.0}):
        branches = document["branches"]
        entry = {**branches, "round": [{**one, **change} for one in branches["round"]]}
        with pytest.raises(PlanError, match="more than the promised"):
            Plan.from_dict({**document, "branches": entry})


def test_slots_belong_to_their_round_and_its_sample() -> None:
    rounds = (Round(2, 0.5, 0.1), Round(1, 0.4), Round(3, 0.5, 0.2))
    branches = Branches(0.1, rounds)
    assert [branches.round_of(slot)[0] for slot in range(6)] == [0, 0, 1, 2, 2, 2]
    expected = [Draw(0, 0.1), Draw(0, 0.1), None, Draw(2, 0.2), Draw(2, 0.2), Draw(2, 0.2)]
    assert [branches.draw_of(slot) for slot in range(6)] == expected
    assert Branches.from_dict(branches.to_dict()) == branches
