"""Scores of columns from noisy sums: the posterior mean, its derivative, directions, weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.linalg import null_space

from hedgerow.methods.auto.deviations import smooth_deviation
from hedgerow.methods.auto.evidence import Evidence
from hedgerow.methods.auto.priors import ROUGH, TAUS, kernels_of, prior
from hedgerow.methods.auto.smoothing import (
    column_weights,
    directed,
    smooth,
    smoothed,
    smoothed_levels,
)

Floats = NDArray[np.float64]


def known(z: Floats, noise: Floats) -> Evidence:
    """Evidence of sums with independent noise."""
    precision = np.diag(1 / noise)
    return Evidence(precision, z / noise, precision)


def brute_force(evidence: Evidence, h: Floats, kernels: Any, caution: float = 0.0) -> Floats:
    """The same posterior mean by plain Gaussian algebra: scores are counted from their level."""
    n, means, logs = h.size, [], []
    z, noise = (
        np.linalg.solve(evidence.precision, evidence.moment),
        np.linalg.inv(evidence.precision),
    )
    from_level = np.eye(n) - np.outer(np.ones(n), h / h.sum())
    for k, kernel in enumerate(kernels):
        for tau in TAUS[min(k, 1) :]:  # tau = 0 is one prior, whatever the kernel
            of_scores = tau**2 * from_level @ kernel @ from_level.T
            cov = np.diag(h) @ of_scores @ np.diag(h) + noise
            sign, logdet = np.linalg.slogdet(cov)
            solved = np.linalg.solve(cov, z)
            assert sign > 0
            means.append(of_scores @ np.diag(h) @ solved)
            logs.append(-0.5 * (logdet + z @ solved) + caution * (tau == 0))
    weights = np.exp(np.array(logs) - max(logs))
    return np.asarray(weights @ np.array(means) / weights.sum())


def correlated(n_bins: int, seed: int = 0) -> tuple[Evidence, Floats]:
    """Evidence whose noise is correlated, as strategy matrices and totals make it, and Hessians."""
    rng = np.random.default_rng([n_bins, seed])
    scatter = rng.normal(0, 0.06, (n_bins, n_bins))
    precision = scatter.T @ scatter + 0.002 * np.eye(n_bins) + 0.01
    z = rng.normal(0, 30, n_bins)
    return Evidence(precision, precision @ z, precision), rng.uniform(1, 200, n_bins)


@pytest.mark.parametrize("n_bins", [2, 3, 4, 9, 21])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("caution", [0.0, 3.0])
def test_smoothing_is_the_posterior_mean(n_bins: int, ordered: bool, caution: float) -> None:
    evidence, h = correlated(n_bins)
    expected = brute_force(evidence, h, kernels_of(n_bins, ordered), caution)
    assert np.allclose(smooth(evidence, h, ordered, caution), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("n_bins", [2, 3, 9, 200])
def test_wide_columns_are_smoothed_on_contrasts_which_know_no_level(n_bins: int) -> None:
    rng = np.random.default_rng(n_bins)
    z, h = rng.normal(0, 30, n_bins), rng.uniform(1, 200, n_bins)
    noise, means, logs = rng.uniform(10, 400, n_bins), [], []
    contrasts = null_space(h[None, :]).T  # (bins - 1, bin): z plus a multiple of h is the same
    for tau in TAUS:
        cov = contrasts @ np.diag(tau**2 * h**2 + noise) @ contrasts.T
        solved = np.linalg.solve(cov, contrasts @ z)
        means.append(solved @ contrasts @ np.diag(h) * tau**2)
        logs.append(-0.5 * (np.linalg.slogdet(cov)[1] + (contrasts @ z) @ solved))
    weights = np.exp(np.array(logs) - max(logs))
    mean = weights @ np.array(means) / weights.sum()
    mean -= mean @ h / h.sum()
    assert np.allclose(smoothed_levels(z, noise, h), mean, rtol=1e-7, atol=1e-9)
    diagonal = Evidence(1 / noise, z / noise, 1 / noise)
    assert np.allclose(smooth(diagonal, h, False), smoothed_levels(z, noise, h), rtol=1e-12)


def test_noise_is_smoothed_away_and_a_strong_signal_is_kept() -> None:
    rng = np.random.default_rng(1)
    h, noise = np.full(12, 100.0), np.full(12, 900.0)
    drawn = rng.normal(0, 30, (50, 12))
    quiet = [np.abs(smooth(known(z, noise), h, True)).max() for z in drawn]
    assert np.median(quiet) < 0.05
    truth = np.linspace(-1, 1, 12)
    loud = smooth(known(1000 * truth, noise), np.full(12, 1000.0), True)
    assert np.allclose(loud, truth, atol=0.1)


def test_a_smooth_curve_is_found_better_than_by_rough_kernels_alone() -> None:
    rng = np.random.default_rng(3)
    truth, h = np.append(np.sin(np.arange(20) / 4), 0.0), np.full(21, 100.0)
    truth = truth - truth.mean()
    rough = kernels_of(21, True)[: len(ROUGH)]
    off = np.zeros(2)
    for _ in range(40):
        evidence = known(h * truth + rng.normal(0, 30, 21), np.full(21, 900.0))
        found = smooth(evidence, h, True), smoothed(evidence, h, rough)
        off += [float(np.sum((scores - truth)[:-1] ** 2)) for scores in found]
    assert off[0] < 0.9 * off[1]


@pytest.mark.parametrize("ordered", [True, False])
def test_scores_have_no_level(ordered: bool) -> None:
    evidence, h = correlated(11, 5)
    scores = smooth(evidence, h, ordered)
    assert scores @ h == pytest.approx(0.0, abs=1e-8)
    assert np.abs(scores).max() > 0.1


@pytest.mark.parametrize("ordered", [True, False])
def test_a_bin_with_nearly_all_rows_does_not_hide_the_others(ordered: bool) -> None:
    h = np.array([4000.0, *[50.0] * 7])
    truth = np.array([0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 0.0, 0.0])
    truth = truth - truth @ h / h.sum()
    scores = smooth(known(h * truth, np.full(8, 40.0**2)), h, ordered)
    assert scores[4:6].min() > 0.3  # a prior around 0, the heavy bin's too, gives about 0.1


def slopes_of(evidence: Evidence, h: Floats, ordered: bool, caution: float) -> Floats:
    """Scores differentiated by the moment, number by number: (bin, bin)."""
    columns, step = [], 1e-6
    for k in range(h.size):
        by = step * np.eye(h.size)[k]
        ends = [
            smooth(Evidence(evidence.precision, evidence.moment + s * by, by), h, ordered, caution)
            for s in (1, -1)
        ]
        columns.append((ends[0] - ends[1]) / (2 * step))
    return np.array(columns).T


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("caution", [0.0, 3.0])
@pytest.mark.parametrize("wide", [False, True])
def test_smoothing_moves_with_its_sums_as_stated(ordered: bool, caution: float, wide: bool) -> None:
    rng = np.random.default_rng(4)
    h, noise = rng.uniform(20, 80, 9), rng.uniform(50, 90, 9)
    z = h * np.linspace(-0.4, 0.5, 9) + rng.normal(0, 8, 9)
    precision, spread = 1 / noise, rng.uniform(0.3, 1.0, 9) / noise
    if not wide:
        precision = np.diag(precision) + 0.004
        spread = 0.5 * precision
    moment = precision * z if wide else precision @ z
    evidence = Evidence(precision, moment, spread)
    slopes = slopes_of(evidence, h, ordered, caution)
    whole = np.diag(spread) if wide else spread
    expected = np.sqrt(np.diag(slopes @ whole @ slopes.T))
    said = smooth_deviation(evidence, h, ordered, caution)
    np.testing.assert_allclose(said, expected, rtol=1e-4)
    assert said.min() > 0


def test_nothing_is_counted_once_however_many_kernels_there_are() -> None:
    assert prior(2.0, 5)[0] == pytest.approx(2.0 - math.log(5))
    assert not prior(2.0, 5)[1:].any()


@settings(deadline=None)
@given(
    arrays(np.float64, 9, elements=st.floats(-5, 5)),
    arrays(np.float64, 9, elements=st.floats(0.1, 100)),
    st.sampled_from([1, -1]),
)
def test_a_direction_is_kept_and_missing_values_are_left_alone(
    scores: Floats, h: Floats, sign: int
) -> None:
    found = directed(scores, h, sign)
    assert (sign * np.diff(found[:-1]) >= -1e-12).all()
    assert found[-1] == scores[-1]
    assert np.allclose(directed(found, h, sign), found)
    assert np.array_equal(directed(scores, h, 0), scores)


@settings(deadline=None)
@given(st.lists(st.integers(2, 8), min_size=1, max_size=6), st.integers(0, 2**31))
def test_column_weights_are_a_unit_vector_without_zeros(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    theta = [rng.normal(0, rng.choice([0.0, 1.0]), n) for n in sizes]
    weights = column_weights(theta, [rng.uniform(0.1, 9, n) for n in sizes], 0.3)
    assert np.sum(weights**2) == pytest.approx(1.0)
    assert weights.min() >= math.sqrt(0.3 / len(sizes)) - 1e-7


def test_a_column_of_many_bins_has_less_noise_in_each() -> None:
    theta = [np.tile([1.0, -1.0], n) for n in (1, 8)]  # as important as each other
    weights = column_weights(theta, [np.full(2, 8.0), np.ones(16)], 0.6)
    assert weights[1] > 1.2 * weights[0]


# Sampling


@pytest.mark.parametrize("wide", [False, True])
def test_what_is_known_of_a_sample_has_the_variance_of_both(wide: bool) -> None:
    evidence, hessian = correlated(7)
    if wide:
        diagonal = np.diag(evidence.precision)
        evidence = Evidence(diagonal, evidence.moment, 0.5 * diagonal)
    variance = 0.3 * hessian
    found = evidence.of_a_sample(variance)
    full, moved = (np.diag(p) if wide else p for p in (evidence.precision, found.precision))
    assert np.linalg.inv(moved) == pytest.approx(np.linalg.inv(full) + np.diag(variance), rel=1e-6)
    # What it says the sums are stays the same.
    at = np.linalg.solve(full, evidence.moment)
    assert np.linalg.solve(moved, found.moment) == pytest.approx(at, rel=1e-6)
    # Only privacy noise is in its variance: that of the old moment, taken through the same map.
    through = moved @ np.linalg.inv(full)
    spread, after = (np.diag(e.variance) if wide else e.variance for e in (evidence, found))
    assert after == pytest.approx(through @ spread @ through.T, rel=1e-6)


def test_effects_that_chance_makes_are_shrunk_however_little_noise_there_is() -> None:
    """Sums of a column without any effect, exactly known: all that they say is the sample's."""
    rng, hessian = np.random.default_rng(3), np.full(21, 40.0)
    z = rng.normal(0.0, np.sqrt(hessian))
    z -= z.mean()
    exact = known(z, np.full(21, 1e-6))
    alone = smooth(exact, hessian, True)
    calm = smooth(exact.of_a_sample(hessian), hessian, True)
    assert np.abs(alone).max() > 0.2  # without it the sample's own bumps are the scores
    assert np.abs(calm).max() < 0.15 * np.abs(alone).max()
