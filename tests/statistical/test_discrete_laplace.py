"""The discrete Laplace and its shares have exactly the distribution that is promised."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.privacy.noise import mechanisms
from hedgerow.privacy.noise.bernoulli import Sampler
from hedgerow.privacy.noise.mechanisms import (
    LEAST_SCALE,
    WIDEST_LAPLACE,
    SecureSource,
    add_laplace,
    laplace_deviation,
)
from hedgerow.testing.noise import _Seeded, noise_off
from tests.statistical.measures import (
    UNNOTICED,
    counts_fit,
    counts_unnoticed,
    hits_fit,
    laplace_pmf,
    samples_agree,
    share_pmf,
)

SOURCE = SecureSource()


def cells(draws: NDArray[np.int64], top: int) -> NDArray[np.int64]:
    """How often each number from -top to top came, and in between all lower and all higher ones."""
    return np.bincount(np.clip(draws, -top - 1, top + 1) + top + 1, minlength=2 * top + 3)


def with_tails(pmf: NDArray[np.float64]) -> NDArray[np.float64]:
    tail = max((1 - pmf.sum()) / 2, 0.0)
    return np.array([tail, *pmf, tail])


def fits(draws: NDArray[np.int64], pmf: NDArray[np.float64]) -> bool:
    return counts_fit(cells(draws, len(pmf) // 2), with_tails(pmf))


@pytest.mark.parametrize("scale", [0.1, 0.4, 1.0, 3.0, math.pi])
def test_draws_have_the_exact_probabilities(scale: float) -> None:
    assert fits(SOURCE.laplace(20_000, scale), laplace_pmf(scale, 12))


@pytest.mark.parametrize("scale", [0.4, 3.7])
def test_opendp_draws_the_same_distribution(scale: float) -> None:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    reference = make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale)
    theirs = cells(np.array(reference([0] * 8_000), np.int64), 12)
    assert samples_agree(cells(SOURCE.laplace(20_000, scale), 12), theirs)
    assert not samples_agree(cells(SOURCE.laplace(20_000, 2 * scale), 12), theirs)


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.7])
def test_geometrics_have_the_exact_probabilities(scale: float) -> None:
    draws = Sampler().geometrics(20_000, *scale.as_integer_ratio())
    chances = -math.expm1(-1 / scale) * np.exp(-np.arange(12) / scale)
    seen = np.bincount(np.minimum(draws, 12), minlength=13)
    assert counts_fit(seen, np.append(chances, math.exp(-12 / scale)))


@pytest.mark.parametrize("scale", [LEAST_SCALE, math.pi, WIDEST_LAPLACE * (1 - 2.0**-53)])
@pytest.mark.parametrize("high", [0, 1, 1023, 1024])
def test_a_draw_is_the_quotient_of_integers_that_never_overflow(
    scale: float, high: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The largest `low` and so many draws of exp(-1) that succeed, against Python's integers."""
    above, under = scale.as_integer_ratio()
    rounds = iter([True] * (1 + high) + [False])
    sampler = Sampler()
    monkeypatch.setattr(sampler, "below", lambda size, limit: np.full(size, limit - 1, np.uint64))
    monkeypatch.setattr(sampler, "exp1", lambda parts, _: np.full(len(parts), next(rounds)))
    assert above < 2**53
    assert under <= 2**62
    if high == 1024:
        with pytest.raises(PlanError, match="out of range; nothing was sent"):
            sampler.geometrics(3, above, under)
    else:
        expected = (above - 1 + above * high) // under
        assert sampler.geometrics(3, above, under).tolist() == [expected] * 3


def test_the_widest_noise_has_the_exact_probabilities() -> None:
    """Of the geometric numbers' law at multiples of the scale."""
    scale = WIDEST_LAPLACE * (1 - 2.0**-53)  # the largest numerator
    draws = SOURCE.laplace(20_000, scale)
    seen = np.bincount((np.abs(draws) / scale).astype(np.int64).clip(max=5), minlength=6)
    edges = np.exp(-np.arange(6.0))
    assert counts_fit(seen, np.append(edges[:-1] - edges[1:], edges[-1]))
    assert hits_fit(int((draws < 0).sum()), 20_000, 0.5)


@pytest.mark.parametrize(("scale", "shares"), [(0.5, 3), (2.0, 2), (2.0, 4)])
def test_a_share_is_a_difference_of_negative_binomials(scale: float, shares: int) -> None:
    assert fits(SOURCE.laplace(12_000, scale, shares), share_pmf(scale, shares, 12))


@pytest.mark.parametrize(("scale", "shares"), [(1.5, 2), (1.0, 4)])
def test_honest_shares_add_up_to_one_discrete_laplace(scale: float, shares: int) -> None:
    total = np.sum([SOURCE.laplace(10_000, scale, shares) for _ in range(shares)], axis=0)
    assert fits(total, laplace_pmf(scale, 12))


class Scripted(Sampler):
    """A sampler that says of every uniform draw below which limit it is, and what comes."""

    def __init__(self, comes: Callable[[int], int], geometric: int = 0) -> None:
        self.limits, self._comes, self._geometric = list[int](), comes, geometric

    def below(self, size: int, limit: int) -> NDArray[np.uint64]:
        assert size == 1
        self.limits.append(limit)
        return np.array([self._comes(len(self.limits) - 1)], np.uint64)

    def geometrics(self, size: int, numerator: int, denominator: int = 1) -> NDArray[np.int64]:
        return np.full(size, self._geometric)


@pytest.mark.parametrize("shares", [2, 5])
def test_the_urn_takes_a_ball_with_exactly_its_chance(shares: int) -> None:
    """Step i takes (1 + m x) of m (1 + i) draws, x taken so far: the last that is, or the next.

    A chance that is off by one part in fifty is too little for samples to show.
    """
    for taken in product([True, False], repeat=7):
        balls = [shares * sum(taken[:i]) + (0 if taken[i] else 1) for i in range(7)]
        sampler = Scripted(balls.__getitem__, 7)
        found = mechanisms._negative_binomials(sampler, 1, (1, 1), shares)
        assert found.tolist() == [sum(taken)]
        assert sampler.limits == [shares * (1 + i) for i in range(7)]


@pytest.mark.parametrize("limit", [3, 3 * 2**62, 2**63 + 1, 2**64 - 1])
def test_words_that_would_favour_small_numbers_are_drawn_again(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 2**64 words as many are taken as divide evenly: the last of these, and the next."""
    top, sampler = 2**64 // limit * limit, Sampler()
    words = iter([[top, top - 1, 2**64 - 1, 1], [top, 5], [7]])  # one of the second is refused
    monkeypatch.setattr(sampler, "words", lambda _: np.array(next(words), np.uint64))
    assert sampler.below(4, limit).tolist() == [7 % limit, limit - 1, 5 % limit, 1]


@pytest.mark.parametrize("successes", range(6))
@pytest.mark.parametrize(("part", "scale"), [(1, 1), (3, 7), (7, 7), (2**52, 2**53 - 1)])
def test_an_exponential_event_is_made_of_exactly_its_draws(
    part: int, scale: int, successes: int
) -> None:
    """Draw k succeeds for `part` of k scale draws; the first failure decides, at an odd k."""
    sampler = Scripted(lambda i: part - 1 if i < successes else part)
    assert sampler.exp1(np.array([part]), scale).tolist() == [successes % 2 == 0]
    assert sampler.limits == [scale * k for k in range(1, successes + 2)]


@pytest.mark.parametrize("shares", [1, 3])
def test_wide_noise_has_the_exact_probabilities(shares: int) -> None:
    """By tens: single numbers are too many and too rare to compare."""
    draws, top = SOURCE.laplace(20_000, 40.0, shares), 204
    pmf = share_pmf(40.0, shares, top) if shares > 1 else laplace_pmf(40.0, top)
    edges = np.arange(0, 2 * top + 3, 10)  # of cells, the first and last with all beyond
    seen = np.add.reduceat(cells(draws, top), edges)
    chances = np.add.reduceat(with_tails(pmf), edges)
    assert counts_fit(seen, chances)
    narrow = np.add.reduceat(with_tails(laplace_pmf(20.0, top)), edges)
    assert counts_unnoticed(len(draws), chances, narrow) < UNNOTICED


@pytest.mark.parametrize("scale", [0.4, 3.0, 40.0])
def test_the_stated_deviation_is_that_of_the_probabilities(scale: float) -> None:
    top = int(60 * scale) + 20
    variance = float(laplace_pmf(scale, top) @ np.arange(-top, top + 1) ** 2.0)
    assert laplace_deviation(scale) ** 2 == pytest.approx(variance, rel=1e-9)


def test_half_the_scale_is_noticed() -> None:
    narrow, wide = laplace_pmf(0.5, 12), laplace_pmf(1.0, 12)
    assert counts_unnoticed(20_000, with_tails(wide), with_tails(narrow)) < UNNOTICED
    assert not fits(SOURCE.laplace(20_000, 0.5), wide)
    # shares of shape 1/S where 1/(S - c) is promised
    small, promised = share_pmf(2.0, 4, 12), share_pmf(2.0, 3, 12)
    assert counts_unnoticed(12_000, with_tails(promised), with_tails(small)) < UNNOTICED
    assert not fits(SOURCE.laplace(12_000, 2.0, 4), promised)


def test_the_seeded_source_draws_the_same_distribution() -> None:
    assert fits(_Seeded(3).laplace(20_000, 2.0), laplace_pmf(2.0, 12))
    assert fits(_Seeded(4).laplace(20_000, 2.0, 4), share_pmf(2.0, 4, 12))


def test_every_number_has_a_draw_of_its_own_and_wraps_modulo_two_to_64() -> None:
    """Beyond 3,000 with a chance of 3,000 exp(-100); one of the 41 numbers around 0, whose chances
    are above 0.0085, is missing with one below 41 (1 - 0.0085)^3000 = 4e-10."""
    high = np.full(3000, 2**64 - 1, np.uint64)
    noisy = add_laplace(high, [1000, 2000], [30.0, 30.0])
    moved = (noisy - high).view(np.int64)
    assert 0 < np.abs(moved).max() < 3000
    assert len(np.unique(moved)) >= 41
    signs = np.sign(moved[:1000] * moved[1000:2000])  # both blocks' numbers agree half of the time
    assert hits_fit(int((signs > 0).sum()), int((signs != 0).sum()), 0.5)
    with noise_off():
        assert np.array_equal(add_laplace(high, [3000], [30.0], 4), high)


def test_whole_numbers_below_a_limit_are_uniform() -> None:
    draws = Sampler().below(30_000, 7)
    seen = np.bincount(draws.astype(np.int64), minlength=7)
    assert counts_fit(seen, np.full(7, 1 / 7))


@pytest.mark.parametrize("scale", [0.0, 1e-6, 2.0**50, math.nan])
def test_noise_that_cannot_be_drawn_is_refused(scale: float) -> None:
    with pytest.raises(Exception, match="cannot be drawn"):
        SOURCE.laplace(3, scale)
