"""The discrete Laplace and its shares have exactly the distribution that is promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2, nbinom

from hedgerow.privacy.noise import bernoulli
from hedgerow.privacy.noise.mechanisms import SecureSource, add_laplace, laplace_deviation
from hedgerow.testing.noise import _Seeded, noise_off

ALPHA = 1e-7
SOURCE = SecureSource()


def laplace_pmf(scale: float, top: int) -> NDArray[np.float64]:
    a = math.exp(-1 / scale)
    return (1 - a) / (1 + a) * a ** np.abs(np.arange(-top, top + 1))


def share_pmf(scale: float, shares: int, top: int) -> NDArray[np.float64]:
    """NB(1/shares) less another, by adding up products."""
    side = nbinom.pmf(np.arange(40 * top), 1 / shares, -math.expm1(-1 / scale))
    return np.array(
        [(side[abs(k) :] * side[: len(side) - abs(k)]).sum() for k in range(-top, top + 1)]
    )


def fits(draws: NDArray[np.int64], pmf: NDArray[np.float64]) -> None:
    """Chi-square over the cells that expect 10 draws or more, all others together."""
    top, n = len(pmf) // 2, len(draws)
    found = np.bincount(np.clip(draws, -top - 1, top + 1) + top + 1, minlength=2 * top + 3)
    expected = n * np.concatenate([[(1 - pmf.sum()) / 2], pmf, [(1 - pmf.sum()) / 2]])
    usual = expected >= 10
    seen = np.append(found[usual], found[~usual].sum())
    wanted = np.append(expected[usual], max(expected[~usual].sum(), 1e-9))
    if wanted[-1] < 10:
        seen, wanted = seen[:-1], wanted[:-1]
    statistic = float(((seen - wanted) ** 2 / wanted).sum())
    assert statistic < chi2.ppf(1 - ALPHA, len(wanted) - 1)


@pytest.mark.parametrize("scale", [0.4, 1.0, 3.0])
def test_draws_have_the_exact_probabilities(scale: float) -> None:
    fits(SOURCE.laplace(20_000, scale), laplace_pmf(scale, 12))


@pytest.mark.parametrize(("scale", "shares"), [(0.5, 3), (2.0, 2), (2.0, 4)])
def test_a_share_is_a_difference_of_negative_binomials(scale: float, shares: int) -> None:
    fits(SOURCE.laplace(12_000, scale, shares), share_pmf(scale, shares, 12))


@pytest.mark.parametrize(("scale", "shares"), [(1.5, 2), (1.0, 4)])
def test_honest_shares_add_up_to_one_discrete_laplace(scale: float, shares: int) -> None:
    total = np.sum([SOURCE.laplace(10_000, scale, shares) for _ in range(shares)], axis=0)
    fits(total, laplace_pmf(scale, 12))


@pytest.mark.parametrize(("scale", "shares"), [(40.0, 1), (40.0, 3)])
def test_the_variance_is_the_stated_one(scale: float, shares: int) -> None:
    """Of wide noise, whose probabilities are too many to compare: kurtosis 6 or more a share."""
    n = 4_000
    draws = SOURCE.laplace(n, scale, shares).astype(np.float64)
    expected = laplace_deviation(scale) ** 2 / shares
    spread = math.sqrt((3 + 3 * shares - 1 + 2) / n)  # of the mean of squares, relative
    assert abs(float((draws**2).mean()) / expected - 1) < 6 * spread


def test_half_the_scale_is_noticed() -> None:
    with pytest.raises(AssertionError):
        fits(SOURCE.laplace(20_000, 0.5), laplace_pmf(1.0, 12))
    with pytest.raises(AssertionError):  # shares of shape 1/S where 1/(S - c) is promised
        fits(SOURCE.laplace(12_000, 2.0, 4), share_pmf(2.0, 3, 12))


def test_the_seeded_source_draws_the_same_distribution() -> None:
    fits(_Seeded(3).laplace(20_000, 2.0), laplace_pmf(2.0, 12))
    fits(_Seeded(4).laplace(20_000, 2.0, 4), share_pmf(2.0, 4, 12))


def test_every_number_has_a_draw_of_its_own_and_wraps_modulo_two_to_64() -> None:
    high = np.full(3000, 2**64 - 1, np.uint64)
    noisy = add_laplace(high, [1000, 2000], [30.0, 30.0])
    moved = (noisy - high).view(np.int64)
    assert 0 < np.abs(moved).max() < 3000
    assert len(np.unique(moved)) > 60
    assert abs(np.corrcoef(moved[:1000], moved[1000:2000])[0, 1]) < 0.2
    with noise_off():
        assert np.array_equal(add_laplace(high, [3000], [30.0], 4), high)


def test_whole_numbers_below_a_limit_are_uniform() -> None:
    draws = bernoulli.below(30_000, 7)
    seen = np.bincount(draws.astype(np.int64), minlength=7)
    assert len(seen) == 7
    assert float(((seen - 30_000 / 7) ** 2 / (30_000 / 7)).sum()) < chi2.ppf(1 - ALPHA, 6)


@pytest.mark.parametrize("scale", [0.0, 1e-6, 2.0**50, math.nan])
def test_noise_that_cannot_be_drawn_is_refused(scale: float) -> None:
    with pytest.raises(Exception, match="cannot be drawn"):
        SOURCE.laplace(3, scale)
