"""Pure epsilon: what it books as, the filter over tree paths, plans, budgets and ledgers of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special
from scipy.stats import norm

from hedgerow.errors import BudgetExceeded, FormatError, LedgerError, PlanError, SettingsError
from hedgerow.methods.registry import plan_for
from hedgerow.model.tradeoff import delta_of, epsilon_of
from hedgerow.model.tree import single_leaf
from hedgerow.privacy.accounting.accountant import Price
from hedgerow.privacy.accounting.gaussian_budget import GaussianBudget
from hedgerow.privacy.accounting.path_budget import PathBudget
from hedgerow.privacy.accounting.paths import Paths, Priced, path_costs
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.accounting.pure import pure_mu
from hedgerow.privacy.accounting.rounds import Branches, Round
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.spending import Budget, Spending, month_spending, spending
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.settings import Privacy
from hedgerow.queries import ClassHistograms
from hedgerow.queries.calibration import noise_for
from hedgerow.queries.tree_nodes import Asked
from tests.conftest import MIXED

SPLIT = {1: "a" * 64}


def pure_plan(epsilon: float = 1.0, spare: int = 0, run: str | None = None) -> Plan:
    privacy = Privacy(epsilon, 0.0, accounting="pure", spare=spare)
    return plan_for(MIXED, privacy, "private-tree", {"max_depth": 3}, seed=1, run=run)


def gaussian_plan(epsilon: float = 1.0) -> Plan:
    return plan_for(MIXED, Privacy(epsilon, 1e-6), "random-trees", {"n_trees": 3}, seed=1)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0, 30.0])
def test_a_pure_epsilon_books_as_the_gaussian_that_covers_it(epsilon: float) -> None:
    mu = pure_mu(epsilon)
    assert mu == pytest.approx(-2 * norm.ppf(1 / (1 + math.exp(epsilon))), rel=1e-9)
    for other in np.linspace(0, 1.2 * epsilon, 40):  # randomised response, the worst of its kind
        p = math.exp(epsilon) / (1 + math.exp(epsilon))
        delta = max(0.0, p - math.exp(other) * (1 - p))
        assert delta_of(float(other), mu) >= delta - 1e-12


def test_a_huge_pure_epsilon_does_not_overflow() -> None:
    assert 40 < pure_mu(700.0) < pure_mu(5000.0) < math.inf


def paths(*questions: tuple[dict[int, str], dict[int, float]]) -> Paths:
    found = Paths()
    for splits, prices in questions:
        found.add(Priced(splits, prices))
    return found


def test_siblings_cost_the_dearer_one_and_paths_add_up() -> None:
    found = paths(({}, {1: 0.3}), (SPLIT, {2: 0.2, 3: 0.5}), (SPLIT, {2: 0.4}))
    assert found.most() == pytest.approx(0.3 + 0.6)
    deep = {**SPLIT, 2: "b" * 64}
    found.add(Priced(deep, {4: 0.1, 5: 0.05}))
    assert found.most() == pytest.approx(0.3 + 0.6 + 0.1)


def test_a_node_asked_about_after_its_children_counts_on_their_paths() -> None:
    found = paths((SPLIT, {2: 0.4, 3: 0.1}), ({}, {1: 0.5}))
    assert found.most() == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("splits", "prices", "why"),
    [
        ({}, {1: 0.71}, "a path would have cost 1.21"),
        ({1: "b" * 64}, {2: 0.1}, "split differently"),
        (SPLIT, {2: 0.71}, "a path would have cost"),
        (SPLIT, {1: 0.1}, "which nodes pay"),  # an inner node of its own tree
        (SPLIT, {4: 0.1}, "which nodes pay"),  # its parent is no inner node
        ({**SPLIT, 5: "c" * 64}, {10: 0.1}, "which nodes pay"),
        (SPLIT, {}, "which nodes pay"),
        (SPLIT, {2: 0.0}, "which nodes pay"),
        (SPLIT, {2: -0.5}, "which nodes pay"),
        (SPLIT, {2: math.nan}, "which nodes pay"),
        (SPLIT, {2: math.inf}, "which nodes pay"),
        ({}, {2: 0.1}, "which nodes pay"),  # below a root that is no inner node
        ({}, {0: 0.1}, "which nodes pay"),
        ({}, {-1: 0.1}, "which nodes pay"),
    ],
)
def test_the_filter_refuses(splits: dict[int, str], prices: dict[int, float], why: str) -> None:
    before = paths(({}, {1: 0.3}), (SPLIT, {3: 0.2}))
    assert before.objection(Priced(SPLIT, {2: 0.7 * (1 - 1e-9)}), 1.0) == ""
    assert why in before.objection(Priced(splits, prices), 1.0)


def test_a_further_attempt_costs_a_spare_and_no_path() -> None:
    spent = paths(({}, {1: 1.0}))
    assert spent.objection(Priced({}, {1: 0.2}), 1.0, 0.2) == ""
    assert "further attempt" in spent.objection(Priced({}, {1: 0.21}), 1.0, 0.2)


def test_the_filter_keeps_its_promise_whatever_is_asked() -> None:
    """Random adaptive questions over a random tree: no row ever pays more than the ceiling."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        found, splits, leaves = Paths(), {}, [1]
        paid = dict.fromkeys(range(64, 128), 0.0)  # 64 kinds of rows, by their path
        for _ in range(30):
            if rng.uniform() < 0.4 and (open_ := [h for h in leaves if h < 64]):
                h = int(rng.choice(open_))
                splits[h] = f"{h:064x}"
                leaves = [x for x in leaves if x != h] + [2 * h, 2 * h + 1]
            chosen = rng.choice(leaves, size=min(3, len(leaves)), replace=False)
            priced = Priced(dict(splits), {int(h): float(rng.exponential(0.2)) for h in chosen})
            if not found.objection(priced, 1.0):
                found.add(priced)
                for row in paid:
                    above = {row >> k for k in range(7)}
                    paid[row] += sum(p for h, p in priced.prices.items() if h in above)
        assert max(paid.values()) == pytest.approx(found.most(), rel=1e-9)
        assert max(paid.values()) <= 1.0 + 1e-12


def test_a_pure_plan_says_what_paths_and_spares_cost() -> None:
    plan = pure_plan(2.0, spare=2)
    branches, at = PathBudget.of(plan.budget).branches, plan.budget.epsilon_at
    assert plan.epsilon == pytest.approx(2.0, rel=1e-9)
    assert plan.epsilon == branches.rounds[0].epsilon + 2 * branches.retry
    assert at(0.0) == at(1e-300) == plan.epsilon
    assert at(0.3) <= plan.epsilon
    assert gaussian_plan().budget.epsilon_at(0.0) == math.inf
    assert plan.mu == pure_mu(plan.epsilon)
    assert plan.budget.coordinates == 0  # nothing is rounded away


def test_a_pure_plan_survives_its_file(tmp_path: Path) -> None:
    plan = pure_plan(spare=1)
    plan.write(tmp_path / "plan.toml")
    assert Plan.read(tmp_path / "plan.toml") == plan


def one_round(**change: Any) -> dict[str, Any]:
    slots = len(pure_plan(spare=1).slots)
    return {"slots": slots, "epsilon": 0.5, "rate": 1.0, "repeat": 1, **change}


@pytest.mark.parametrize(
    "change",
    [
        {"branches": {"retry": 0.1, "round": [one_round(epsilon=1.1)]}},
        {"branches": {"retry": 1.6, "round": [one_round()]}},
        {"branches": {"retry": 0.1, "round": [one_round(epsilon=math.nan)]}},
        {"branches": {"retry": 0.1, "round": [one_round(rate=0.0)]}},
        {"branches": {"retry": 0.1, "round": [one_round(rate=1.5)]}},
        {"branches": {"retry": 0.1, "round": [one_round(slots=3)]}},
        {"branches": {"retry": 0.1, "round": [one_round(repeat=2)]}},
        {"branches": {"retry": 0.1, "round": [one_round(slots=True)]}},
        {"branches": {"retry": 0.1, "round": []}},
        {"branches": {"retry": 0.1}},
        {"branches": {"retry": 0.1, "round": [one_round()], "more": 1}},
        {"branches": {"retry": 0.1, "round": [{**one_round(), "more": 1}]}},
        {"slot": [{"name": "x", "kind": "class-histograms", "mu": 0.1, "coordinates": 3}]},
    ],
    ids=str,
)
def test_a_pure_plan_that_does_not_add_up_is_refused(change: dict[str, Any]) -> None:
    document = {**pure_plan(spare=1).to_dict(), **change}
    with pytest.raises(PlanError):
        Plan.from_dict(document)


def test_pure_and_gaussian_parts_do_not_mix_in_one_plan() -> None:
    rounds = Branches(0.2, (Round(len(gaussian_plan().slots), 0.1),))
    with pytest.raises(PlanError, match="has no mu"):
        PathBudget(gaussian_plan().slots, gaussian_plan().privacy, branches=rounds)
    with pytest.raises(PlanError, match="pure accounting goes with"):
        GaussianBudget(pure_plan().slots, pure_plan().privacy)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"delta": 1e-6, "accounting": "pure"}, "pure accounting has none"),
        ({"delta": 0.0}, "delta is 0.0"),
        ({"delta": 0.0, "accounting": "pure", "trust": "nobody"}, "trust in nobody"),
    ],
)
def test_promises_that_cannot_be_kept_are_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        Privacy(1.0, **given)


def test_a_method_is_counted_in_its_own_way() -> None:
    with pytest.raises(SettingsError, match='set accounting = "pure" and delta = 0'):
        plan_for(MIXED, Privacy(1.0, 1e-6), "private-tree")
    with pytest.raises(SettingsError, match="private-tree"):
        plan_for(MIXED, Privacy(1.0, 0.0, accounting="pure"), "random-trees")


def reserve(ledger: Ledger, plan: Plan, **more: Any) -> Reservation:
    return Reservation(ledger, plan, **more)


def test_pure_runs_add_up_and_count_as_gaussians_in_a_budget_that_is_one_filter() -> None:
    ledger = Ledger.in_memory()
    for _ in range(3):
        reserve(ledger, pure_plan(0.4))
    pure = spending(ledger)
    assert pure.epsilon(0.0) == pytest.approx(1.2)
    assert pure.epsilon(1e-9) <= 1.2 + 1e-9
    reserve(ledger, gaussian_plan(1.0))
    mixed = spending(ledger)
    assert mixed.epsilon(0.0) == math.inf
    # Added on top of what the Gaussian run costs, they would not bound a choice made after it.
    counted = mixed.epsilon(1e-6, as_gaussians=True)
    assert counted == epsilon_of(mixed.mu, 1e-6, mixed.coordinates)
    assert Budget(9.0, 1e-6).counts(mixed) == counted
    assert mixed.epsilon(1e-6) < 1.2 + 1.0  # each kind by itself, see test_mixed.py
    assert counted > 2.2
    assert mixed.mu == pytest.approx(
        math.sqrt(3 * pure_mu(0.4) ** 2 + gaussian_plan(1.0).mu ** 2), rel=1e-9
    )
    assert month_spending(ledger) == mixed
    many = Spending(math.sqrt(400) * pure_mu(0.05), 0, 400, 400 * 0.05, 0.0)
    assert many.epsilon(1e-6) < 0.5 * 20  # as Gaussians, far below the sum
    assert spending(Ledger.in_memory()).with_plan(pure_plan(0.4)).epsilon(0.0) == pytest.approx(0.4)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("monthly", [False, True])
def test_budgets_of_any_delta_stop_pure_runs(delta: float, monthly: bool) -> None:
    ledger, budget = Ledger.in_memory(), Budget(1.0, delta)
    ceiling: dict[str, Any] = {"per_month" if monthly else "budget": budget}
    reserve(ledger, pure_plan(0.6), **ceiling)
    with pytest.raises(BudgetExceeded, match="No party was asked"):
        reserve(ledger, pure_plan(0.6), **ceiling)
    left = spending(ledger).room(budget)
    assert left >= 0.4 - 1e-6
    reserve(ledger, pure_plan(0.39), **ceiling)


def test_a_budget_without_delta_takes_no_gaussian_run() -> None:
    with pytest.raises(BudgetExceeded):
        reserve(Ledger.in_memory(), gaussian_plan(0.01), budget=Budget(100.0, 0.0))
    assert spending(Ledger.in_memory()).room(Budget(2.0, 0.0)) == 2.0


def charged() -> tuple[Ledger, Reservation]:
    ledger = Ledger.in_memory()
    held = reserve(ledger, pure_plan(1.0, spare=1))
    held.charge(0, "r0", price=Price(nodes=Priced({}, {1: 0.04})))
    held.charge(1, "r1", price=Price(nodes=Priced({}, {1: 0.1})))
    held.charge(4, "r4", price=Price(nodes=Priced(SPLIT, {2: 0.1, 3: 0.3})))
    return ledger, held


def test_the_ledger_shows_what_each_branch_drew() -> None:
    ledger, held = charged()
    lines = ledger.lines(COORDINATOR, "charge")
    assert path_costs(lines) == pytest.approx({2: 0.24, 3: 0.44})
    held.charge(4, "r4", price=Price(nodes=Priced(SPLIT, {2: 0.05, 3: 0.08})))  # the spare
    lines = ledger.lines(COORDINATOR, "charge")
    assert path_costs(lines) == pytest.approx({2: 0.32, 3: 0.52})
    assert held.plan.budget.accountant(lines).epsilon() == pytest.approx(0.52)
    assert verify(ledger)[0].charges == 4


@pytest.mark.parametrize(
    "priced",
    [
        None,
        Priced(SPLIT, {2: 0.7}),
        Priced({1: "d" * 64}, {2: 0.01}),
        Priced({**SPLIT, 2: "e" * 64}, {2: 0.01}),
    ],
)
def test_a_reservation_refuses_what_no_path_has_left(priced: Priced | None) -> None:
    ledger, held = charged()
    before = len(ledger.lines())
    with pytest.raises(PlanError):
        held.charge(5, "r5", price=Price(nodes=priced))
    again = Reservation(ledger, held.plan)  # another process knows as much
    with pytest.raises(PlanError):
        again.charge(5, "r5", price=Price(nodes=priced))
    assert len(ledger.lines()) == before


@pytest.mark.parametrize(
    ("slot", "values", "priced"),
    [
        (5, {"epsilon": 0.9}, Priced(SPLIT, {2: 0.9})),
        (5, {"epsilon": 0.1}, Priced({1: "b" * 64}, {2: 0.1})),
        (5, {"epsilon": 0.01}, Priced(SPLIT, {2: 0.1})),
        (4, {"epsilon": 0.5}, Priced(SPLIT, {2: 0.5})),  # a spare that costs too much
    ],
)
def test_verify_finds_a_charge_that_the_filter_would_have_refused(
    slot: int, values: dict[str, Any], priced: Priced
) -> None:
    ledger, held = charged()
    line = {"request": "x", **values}
    ledger.append(COORDINATOR, "charge", held.plan.run, slot, 9, line, priced.arrays())
    with pytest.raises(LedgerError):
        verify(ledger)


def test_a_charge_without_paths_is_no_charge_of_a_pure_run() -> None:
    ledger, held = charged()
    ledger.append(COORDINATOR, "charge", held.plan.run, 5, 1, {"request": "x", "epsilon": 0.1})
    with pytest.raises(FormatError, match="charges no path"):
        verify(ledger)


def test_noise_too_wide_to_share_is_refused_before_a_charge() -> None:
    """A party's share takes time in proportion to its scale; one Laplace of the whole does not."""
    leaf = single_leaf(np.zeros(1)).structure
    query = ClassHistograms.of(MIXED, leaf, [Asked(0, (-1,), 1e-5)], [()] * len(MIXED.columns))
    alone = pure_plan()
    privacy = Privacy(1.0, 0.0, "parties", accounting="pure")
    shared = plan_for(MIXED, privacy, "private-tree", {"max_depth": 3}, seed=1)
    assert noise_for(query, 0.0, alone, MIXED).sigmas == pytest.approx((1e5,))
    with pytest.raises(PlanError, match="Nothing was asked"):
        noise_for(query, 0.0, shared, MIXED)


@pytest.mark.parametrize("epsilon", np.geomspace(1e-3, 30, 25).tolist())
def test_a_booked_mu_is_above_the_exact_one_by_more_than_floats_lose(epsilon: float) -> None:
    exact = -2 * float(special.ndtri(special.expit(-epsilon)))
    assert exact * (1 + 2e-13) < pure_mu(epsilon) < exact * (1 + 1e-10)
