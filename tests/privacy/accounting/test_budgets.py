"""Budgets of every kind: one interface, and accountants that stop where the budget does."""

from __future__ import annotations

import math

import pytest

from hedgerow.errors import PlanError
from hedgerow.methods.registry import plan_for
from hedgerow.model.tradeoff import EXACT_LIMIT, FLOOR, renyi_epsilon
from hedgerow.privacy.accounting.accountant import Price
from hedgerow.privacy.accounting.gaussian_budget import GaussianBudget
from hedgerow.privacy.accounting.path_budget import PathBudget
from hedgerow.privacy.accounting.paths import Priced
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.settings import Privacy
from hedgerow.queries.calibration import CALIBRATIONS
from tests.conftest import MIXED

KINDS = ("random-trees", "auto", "private-tree", "dp-xgboost")


def plan_of(method: str, epsilon: float = 1.0, spare: int = 1) -> Plan:
    pure = method in ("private-tree", "dp-xgboost")
    delta, accounting = (0.0, "pure") if pure else (1e-6, "exact")
    privacy = Privacy(epsilon, delta, accounting=accounting, spare=spare)
    return plan_for(MIXED, privacy, method, seed=1, run="r")


@pytest.mark.parametrize("method", KINDS)
def test_numbers_of_a_budget_agree(method: str) -> None:
    budget = plan_of(method).budget
    assert budget.epsilon == pytest.approx(1.0, rel=1e-6)
    assert budget.epsilon_at(budget.privacy.delta) == pytest.approx(budget.epsilon, rel=1e-9)
    assert budget.epsilon_at(0.0) == budget.pure_epsilon
    assert budget.mechanism in CALIBRATIONS
    reserved = budget.reserved()
    assert reserved.get("pure", math.inf) == budget.pure_epsilon
    assert (reserved["mu"], reserved["epsilon"]) == (budget.mu, budget.epsilon)
    assert budget.epsilon_of_less_noise(1.0) == pytest.approx(budget.epsilon, rel=1e-6)
    assert budget.epsilon_of_less_noise(2.0) > 1.9 * budget.epsilon


@pytest.mark.parametrize("method", KINDS)
def test_a_new_accountant_has_spent_nothing(method: str) -> None:
    accountant = plan_of(method).budget.accountant()
    assert (accountant.newest, accountant.extra, accountant.last_attempt(0)) == (0, 0, 0)
    assert accountant.epsilon() == 0.0


def test_a_method_that_needs_another_budget_says_so() -> None:
    with pytest.raises(PlanError, match=r"needs a plan with a PathBudget.*has a GaussianBudget"):
        PathBudget.of(plan_of("auto").budget)
    with pytest.raises(PlanError, match="Nothing was asked"):
        GaussianBudget.of(plan_of("private-tree").budget)


def test_what_charges_cost_so_far_ends_at_the_budget() -> None:
    plan, ledger = plan_of("random-trees", spare=0), Ledger.in_memory()
    reservation = Reservation(ledger, plan)
    spent = []
    for slot in range(len(plan.slots)):
        reservation.charge(slot, "q")
        spent.append(plan.budget.accountant(ledger.lines(COORDINATOR, "charge")).epsilon())
    assert spent == sorted(spent)
    assert spent[-1] == pytest.approx(plan.epsilon, rel=1e-9)


def test_charges_of_a_plan_with_narrow_noise_are_never_counted_by_the_closed_form() -> None:
    """Beyond EXACT_LIMIT noise may have 2**8 steps, and tau is that of 2**26: also at the start."""
    plan, ledger = plan_of("random-trees", epsilon=200.0, spare=0), Ledger.in_memory()
    assert plan.mu > EXACT_LIMIT
    assert plan.budget.floor < FLOOR
    Reservation(ledger, plan).charge(0, "q")
    accountant = plan.budget.accountant(ledger.lines(COORDINATOR, "charge"))
    assert plan.slots[0].mu < EXACT_LIMIT
    assert accountant.epsilon() == renyi_epsilon(plan.slots[0].mu, 1e-6)


def test_an_accountant_that_reads_line_by_line_knows_as_much() -> None:
    plan, ledger = plan_of("random-trees"), Ledger.in_memory()
    reservation, accountant = Reservation(ledger, plan), plan.budget.accountant()
    for slot in (0, 1, 1, 2):
        reservation.charge(slot, "q")
        for line in ledger.lines(COORDINATOR, "charge", after=accountant.newest):
            accountant.add(line)
        again = plan.budget.accountant(ledger.lines(COORDINATOR, "charge"))
        assert accountant.epsilon() == again.epsilon()
    assert (accountant.extra, accountant.last_attempt(1)) == (1, 2)


def test_nodes_pay_under_one_kind_of_budget_alone() -> None:
    """A line that prices nodes, under a budget of mu, would be refused by `verify` later."""
    nodes = Price(nodes=Priced({}, {1: 0.01}))
    with pytest.raises(PlanError, match="no node pays"):
        plan_of("random-trees").budget.accountant().accept(0, nodes)
    with pytest.raises(PlanError, match="says what each node pays"):
        plan_of("private-tree").budget.accountant().accept(0, Price(mu=0.1, numbers=1))
    with pytest.raises(PlanError, match="no slot"):
        plan_of("random-trees").budget.accountant().accept(10**6, Price(mu=0.1, numbers=1))
