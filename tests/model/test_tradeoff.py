"""How often a guess can be right, against independent computations of the same distance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from hedgerow.model.tradeoff import (
    EXACT_LIMIT,
    delta_of,
    epsilon_of,
    gaussian_guess,
    plain_guess,
    tau_of,
)
from hedgerow.privacy.accounting.gaussian import mu_of
from hedgerow.privacy.accounting.pure import pure_mu


@pytest.mark.parametrize("mu", [0.01, 0.2367, 1.0, 3.9])
def test_the_guess_is_half_of_one_and_the_distance_of_two_gaussians(mu: float) -> None:
    def larger(x: float) -> float:
        return float(max(stats.norm.pdf(x), stats.norm.pdf(x - mu)))

    right, _ = integrate.quad(larger, -12, 16, points=[mu / 2], limit=200)
    assert gaussian_guess(mu) == pytest.approx(right / 2, abs=1e-9)
    assert 2 * gaussian_guess(mu) - 1 == pytest.approx(delta_of(0.0, mu), abs=1e-12)


def test_a_guess_after_several_slots_is_that_of_their_total() -> None:
    # The best guess from independent Gaussian releases adds up their log-likelihoods.
    mus = np.array([0.1] * 9 + [0.4])
    total = float(np.sqrt(np.sum(mus**2)))
    loss_mean, loss_deviation = total**2 / 2, total  # of the log-likelihood ratio
    right = float(stats.norm.cdf(loss_mean / loss_deviation))
    assert gaussian_guess(total) == pytest.approx(right, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_randomised_response_attains_the_guess_of_a_pure_epsilon(epsilon: float) -> None:
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert plain_guess(epsilon) == pytest.approx(truth, rel=1e-12)
    assert gaussian_guess(pure_mu(epsilon)) == pytest.approx(truth, rel=1e-9)


@given(mu=st.floats(0.01, EXACT_LIMIT), delta=st.floats(-12, -2).map(lambda x: 10**x))
def test_what_epsilon_and_delta_allow_is_never_less_than_what_mu_does(
    mu: float, delta: float
) -> None:
    assert plain_guess(epsilon_of(mu, delta, 0), delta) >= gaussian_guess(mu) - 1e-9


@given(mu=st.floats(0.0, 40.0))
def test_narrow_noise_never_has_the_smaller_bound(mu: float) -> None:
    assert 0.5 <= gaussian_guess(mu) <= gaussian_guess(mu, narrow=True) <= 1.0


def test_discreteness_adds_its_distance_once() -> None:
    many = 10**12
    assert gaussian_guess(1.0, many) - gaussian_guess(1.0) == pytest.approx(tau_of(many), rel=1e-3)


def test_no_number_overflows() -> None:
    assert plain_guess(1e6) == plain_guess(1e6, 1e-3) == gaussian_guess(1e6, narrow=True) == 1.0


def test_the_figures_that_documents_quote() -> None:
    mu = mu_of(1.0, 1e-6, 10_000)
    assert round(100 * gaussian_guess(mu), 1) == 54.7
    assert round(epsilon_of(2 * mu, 1e-6, 10_000), 1) == 2.1
