"""What an attack's success says of mu and epsilon, compared with laws that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from hedgerow.audit.bounds import (
    BlockNoise,
    any_mechanism_bound,
    clopper_pearson,
    gaussian_bound,
    pure_bound,
    repeated_bound,
    separation,
    silent_block,
)
from hedgerow.data.rng import stream

ALPHA = 0.05


def block(energy: float, size: int = 100, mu: float = 0.5, name: str = "b") -> BlockNoise:
    return BlockNoise(name, size, energy, np.array([mu**2, 0.0]))


def test_the_gaussian_bound_is_below_the_truth_in_all_but_a_twentieth_of_runs() -> None:
    """4,000 runs of three blocks: P(Binomial(4000, 0.05) > 290) < 1e-9, of a fixed stream."""
    rng, sizes, true = stream(1, "bounds"), (2, 300, 40), math.sqrt(3 * 0.2**2)
    above = 0
    for _ in range(4000):
        blocks = [block(float(rng.chisquare(n)), n, 0.2) for n in sizes]
        above += gaussian_bound(blocks, ALPHA) > true
    assert 20 < above <= 290  # and it is not idle


def test_noise_that_is_half_as_wide_doubles_the_bound() -> None:
    wide = gaussian_bound([block(1000.0, 1000)], ALPHA)
    narrow = gaussian_bound([block(250.0, 1000)], ALPHA)
    assert narrow == pytest.approx(2 * wide)
    assert 0.45 < wide < 0.5


def test_a_block_without_noise_hides_nothing_however_small_it_is() -> None:
    loud = block(1e5, 100_000)
    assert gaussian_bound([loud, block(0.0, 2, 1e-3)], ALPHA) == math.inf
    assert gaussian_bound([loud, block(0.0, 2, 0.0)], ALPHA) < 1  # nobody contributes to it
    assert silent_block([loud, block(0.0, 2, name="quiet")], ALPHA) == "quiet"
    assert silent_block([loud, block(1.4, 2)], ALPHA) == ""


def test_guesses_bound_any_mechanism_and_half_right_says_nothing() -> None:
    assert any_mechanism_bound(1000, 1000, 500, ALPHA) == 0.0
    bounds = [any_mechanism_bound(1000, 1000, right, ALPHA) for right in (560, 700, 950)]
    assert bounds == sorted(bounds)
    assert bounds[0] > 0


def test_the_best_guesser_of_gaussian_canaries_never_exceeds_their_mu() -> None:
    """Independent canaries of mu, guessed as well as can be: Phi(mu / 2) of them are right."""
    rng = stream(2, "guesses")
    for mu in (0.25, 1.0, 3.0):
        right = rng.binomial(2000, stats.norm.cdf(mu / 2), 20)
        assert all(any_mechanism_bound(2000, 2000, int(r), ALPHA) < mu for r in right)


def test_randomised_response_gets_its_own_epsilon() -> None:
    n = 100_000
    right = round(n * math.e / (1 + math.e))
    assert 0.98 < pure_bound(n, right, ALPHA) < 1.0
    assert pure_bound(100, 50, ALPHA) == 0.0


@pytest.mark.parametrize(("hits", "tries"), [(0, 7), (7, 7), (3, 40), (39, 40)])
def test_intervals_are_those_of_clopper_and_pearson(hits: int, tries: int) -> None:
    ours = clopper_pearson(hits, tries, 0.025)
    theirs = stats.binomtest(hits, tries).proportion_ci(0.95, "exact")
    assert ours == pytest.approx((theirs.low, theirs.high))


def test_repeated_runs_tell_a_mu_of_two_from_one_of_a_half() -> None:
    rng = stream(3, "runs")
    outside = rng.normal(size=4000)
    for mu in (0.5, 2.0):
        bound = repeated_bound(outside + mu, rng.normal(size=4000), mu / 2, ALPHA)
        assert 0.7 * mu < bound < mu


def test_separation_is_the_distance_of_means_in_deviations() -> None:
    rng, coins = stream(4, "scores"), np.arange(40_000) % 2 == 0
    scores = 3.0 * rng.normal(size=40_000) + np.where(coins, 1.5, 0.0)
    assert separation(scores, coins) == pytest.approx(0.5, abs=0.05)
    assert separation(np.where(coins, 1.0, 0.0), coins) == math.inf
