"""What noise costs, checked against dp-accounting and against itself."""

from __future__ import annotations

import math

import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import PlanError
from hedgerow.model.tradeoff import (
    EXACT_LIMIT,
    FLOOR,
    delta_of,
    epsilon_of,
    renyi_epsilon,
    tau_of,
)
from hedgerow.privacy.accounting.gaussian import mu_of, sigma_floor

CASES = [(0.1, 1e-6), (0.25, 1e-5), (0.5, 1e-6), (1.0, 1e-5), (2.0, 1e-8), (3.5, 1e-5)]
epsilons = st.floats(0.01, 1e4)
deltas = st.floats(-12, -2).map(lambda x: 10**x)


@pytest.mark.parametrize(("mu", "delta"), CASES)
def test_the_closed_form_agrees_with_privacy_loss_distributions(mu: float, delta: float) -> None:
    event = GaussianDpEvent(1 / mu)
    expected = PLDAccountant(value_discretization_interval=1e-4).compose(event).get_epsilon(delta)
    assert epsilon_of(mu, delta, coordinates=1) == pytest.approx(expected, rel=1e-4)


def test_slots_compose_as_privacy_loss_distributions_do() -> None:
    mus = [0.1] * 30 + [0.3] * 4
    accountant = PLDAccountant(value_discretization_interval=1e-3)
    for mu in mus:
        accountant.compose(GaussianDpEvent(1 / mu))
    total = math.sqrt(math.fsum(mu * mu for mu in mus))
    assert epsilon_of(total, 1e-6, 1000) == pytest.approx(accountant.get_epsilon(1e-6), rel=5e-3)


@pytest.mark.parametrize(("mu", "delta"), CASES)
def test_renyi_agrees_with_the_reference_accountant(mu: float, delta: float) -> None:
    orders = [1 + 2.0 ** (k / 16) for k in range(-160, 160)]
    expected = RdpAccountant(orders).compose(GaussianDpEvent(1 / mu)).get_epsilon(delta)
    assert renyi_epsilon(mu, delta) == pytest.approx(expected, rel=1e-3)
    assert renyi_epsilon(mu, delta) <= expected * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-6])
def test_exact_accounting_needs_less_noise_than_renyi(epsilon: float, delta: float) -> None:
    exact = mu_of(epsilon, delta, 5000)
    renyi = mu_of(epsilon, delta, 5000, "renyi")
    assert 0.05 < 1 - renyi / exact < 0.20


@given(epsilons, deltas, st.integers(1, 10**7), st.sampled_from(["exact", "renyi"]))
def test_mu_inverts_epsilon(epsilon: float, delta: float, n: int, accounting: str) -> None:
    try:
        mu = mu_of(epsilon, delta, n, accounting)
    except PlanError:  # tau alone may be more than a tiny delta allows at a tiny epsilon
        return
    cost = epsilon_of(mu, delta, n, accounting)
    assert cost <= epsilon * (1 + 1e-9)
    if mu != EXACT_LIMIT:  # above it Renyi counts, so the last exact mu may cost less
        assert cost >= epsilon * (1 - 1e-6)


@given(st.floats(0.01, 20), st.floats(0.01, 20), deltas)
def test_more_mu_costs_more_and_more_delta_costs_less(a: float, b: float, delta: float) -> None:
    low, high = sorted((a, b))
    assert epsilon_of(low, delta, 10) <= epsilon_of(high, delta, 10) * (1 + 1e-9)
    assert epsilon_of(low, delta, 10) >= epsilon_of(low, min(0.4, delta * 2), 10) * (1 - 1e-9)
    assert delta_of(1.0, low) <= delta_of(1.0, high)
    assert 0 <= delta_of(2.0, high) <= delta_of(1.0, high) <= 1


@given(st.floats(0.05, EXACT_LIMIT), deltas, st.integers(1, 10**7))
def test_the_cost_never_hides_the_distance_to_discrete_noise(
    mu: float, delta: float, n: int
) -> None:
    epsilon = epsilon_of(mu, delta, n)
    if epsilon < renyi_epsilon(mu, delta):
        whole = delta_of(epsilon, mu) + (1 + math.exp(epsilon)) * tau_of(n)
        assert whole <= delta * (1 + 1e-9)


def test_tau_is_pinskers_bound_at_the_floor() -> None:
    sigma = 2.0**FLOOR
    assert tau_of(1) == pytest.approx(math.sqrt(1 / (576 * sigma**4) / 2), rel=1e-12)
    assert tau_of(400) == pytest.approx(20 * tau_of(1), rel=1e-12)
    assert sigma_floor(EXACT_LIMIT) == FLOOR
    assert sigma_floor(EXACT_LIMIT * 1.001) < FLOOR  # Renyi counts, without tau


def test_released_numbers_cost_something_when_delta_is_tiny() -> None:
    few, many = epsilon_of(1.0, 1e-13, 1), epsilon_of(1.0, 1e-13, 10**9)
    assert few < many <= renyi_epsilon(1.0, 1e-13)


def test_a_huge_epsilon_can_be_planned_and_costs_what_it_says() -> None:
    mu = mu_of(1e6, 1e-6, 10_000)
    assert epsilon_of(mu, 1e-6, 10_000) == pytest.approx(1e6, rel=1e-6)
    assert 1000 < mu < 1500  # rho is a little below a million


def test_no_budget_is_an_error_that_says_nothing_was_asked() -> None:
    with pytest.raises(PlanError, match="Nothing was asked"):
        mu_of(1e-9, 1e-16, 10**9)
