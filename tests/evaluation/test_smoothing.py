"""What evaluations make of noisy counts: consistent, rising, wide enough. Pure functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.evaluation.binary import (
    FIRST_EDGES,
    MOST_EDGES,
    auc,
    counts_of,
    edges_for,
    first_grid,
    sigmoid,
)
from hedgerow.evaluation.calibration import calibrated, calibration_error, odds_fit
from hedgerow.evaluation.multiclass import confidence_edges
from hedgerow.evaluation.regression import SIZE_EDGES, frame_for
from hedgerow.evaluation.result import measure
from hedgerow.evaluation.smoothing import (
    agreed,
    group_means,
    joined_bins,
    rising,
    seen_range,
    variance_along,
)

numbers = st.lists(st.floats(-100, 100), min_size=1, max_size=8).map(np.array)


@given(numbers, numbers, st.floats(0.01, 50), st.floats(0.01, 50))
def test_two_tellings_agree_as_least_squares_has_it(
    first: np.ndarray, second: np.ndarray, a: float, b: float
) -> None:
    """The solution of the weighted normal equations under the one constraint."""
    n, m = len(first), len(second)
    both = agreed(first, a, second, b)
    weights = np.diag(np.concatenate([np.full(n, 1 / a), np.full(m, 1 / b)]))
    same = np.concatenate([np.ones(n), -np.ones(m)])
    system = np.block([[weights, same[:, None]], [same[None, :], np.zeros((1, 1))]])
    right = np.append(weights @ np.concatenate([first, second]), 0.0)
    solved = np.linalg.solve(system, right)[: n + m]
    assert np.allclose(np.concatenate([both.first, both.second]), solved, atol=1e-6)
    assert both.first.sum() == pytest.approx(both.total, abs=1e-6)
    assert both.second.sum() == pytest.approx(both.total, abs=1e-6)
    assert both.variance == pytest.approx(1 / (1 / (n * a) + 1 / (m * b)))


def test_without_noise_nothing_moves() -> None:
    both = agreed(np.array([1.0, 2.0]), 0.0, np.array([5.0]), 4.0)
    assert both.first.tolist() == [1.0, 2.0]
    assert (both.total, both.variance) == (3.0, 0.0)
    assert agreed(np.array([1.0]), 0.0, np.array([1.0]), 0.0).total == 1.0


def test_the_variance_of_an_agreed_list_is_that_of_its_covariance() -> None:
    n, a, of_total = 5, 2.0, 3.0
    covariance = a * (np.eye(n) - 1 / n) + of_total / n**2
    gradient = np.array([0.3, -1.0, 2.0, 0.0, 0.7])
    assert variance_along(gradient, a, of_total) == pytest.approx(gradient @ covariance @ gradient)


@given(numbers)
def test_rising_values_rise_and_stay_if_they_did(values: np.ndarray) -> None:
    found = rising(values)
    assert np.all(np.diff(found) >= -1e-9)
    assert found.mean() == pytest.approx(values.mean(), abs=1e-9)
    assert np.allclose(rising(np.sort(values)), np.sort(values))
    assert np.allclose(rising(found), found)


def test_bins_are_joined_until_they_hold_more_than_their_noise() -> None:
    groups = joined_bins(np.array([1.0, 2.0, 100.0, 1.0, 90.0, 3.0]), 2.0, 10.0)
    assert groups == [slice(0, 3), slice(3, 6)]
    assert joined_bins(np.zeros(4), 1.0, 10.0) == []


def test_a_range_is_seen_above_its_noise_only() -> None:
    counts = np.array([0.0, 1.0, 500.0, 900.0, 30.0, 0.0])
    assert seen_range(counts, 1.0, 0.001) == (2, 4)
    assert seen_range(counts, 1.0, 0.1) == (2, 3)
    assert seen_range(counts, 1e4, 0.001) is None


def test_means_of_bins_fall_back_where_nothing_is_seen() -> None:
    places = np.array([0, 0, 1, 1])
    counts, centres = np.array([300.0, 100.0, 0.0, -20.0]), np.array([0.1, 0.2, 0.6, 0.8])
    found = group_means(counts, centres, places, np.array([0.15, 0.7]), 1e-9)
    assert found == pytest.approx([0.125, 0.7])


@pytest.mark.parametrize(("shift", "spread"), [(-6.0, 1.5), (0.0, 1.5), (3.0, 1.0), (0.1, 0.02)])
def test_edges_follow_the_scores_and_hold_one_half(shift: float, spread: float) -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(shift, spread, 20_000)
    grid = first_grid(scores.min(), scores.max())
    ones = rng.uniform(size=len(scores)) < sigmoid(scores)
    place = np.searchsorted(grid, scores)
    cells = FIRST_EDGES + 1
    first = np.stack([np.bincount(place[ones == k], minlength=cells) for k in (False, True)])
    for noise in (0.0, 20.0):
        edges = edges_for(first + rng.normal(0, noise, first.shape), noise, grid)
        assert 0.0 in edges.tolist()
        assert len(edges) <= MOST_EDGES
        assert np.all(np.diff(edges) > 0)
        assert np.mean(scores[ones] > edges[0]) > 0.9
        assert np.mean(scores[~ones] < edges[-1]) > 0.9
        if spread < 1:
            assert np.diff(edges).min() < 0.05
    unseen = edges_for(rng.normal(0, 1, first.shape), 1e6, first_grid(-20.0, 20.0))
    assert (unseen[0], unseen[-1]) == pytest.approx((-4.0, 4.0))


def test_the_auc_of_bins_is_that_of_the_rows_and_its_error_that_of_repeats() -> None:
    rng = np.random.default_rng(2)
    scores = rng.normal(-1, 1.5, 30_000)
    ones = rng.uniform(size=len(scores)) < sigmoid(scores)
    edges = np.linspace(-4, 3, 15)
    place = np.searchsorted(edges, scores)
    by_bin = np.stack([np.bincount(place[ones == k], minlength=16) for k in (False, True)]) * 1.0
    cut = int(np.searchsorted(edges, 0.0)) + 1
    confusion = np.stack([by_bin[:, :cut].sum(axis=1), by_bin[:, cut:].sum(axis=1)], axis=1)
    order = np.argsort(scores)
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    n = ones.sum()
    exact = (ranks[ones].sum() - n * (n + 1) / 2) / (n * (len(scores) - n))
    without = auc(counts_of(confusion, by_bin, edges, (0.0, 0.0)))
    assert without.value == pytest.approx(exact, abs=0.001)
    assert without.noise_error == 0.0
    noise = (60.0, 40.0)
    repeats = [
        auc(counts_of(confusion + rng.normal(0, noise[0], (2, 2)),
                      by_bin + rng.normal(0, noise[1], by_bin.shape), edges, noise))
        for _ in range(400)
    ]  # fmt: skip
    away = np.sqrt(np.mean([(one.value - exact) ** 2 for one in repeats if one.value]))
    assert away == pytest.approx(np.mean([one.noise_error for one in repeats]), rel=0.2)


def test_calibration_error_is_not_made_of_noise() -> None:
    """A calibrated model under much noise: what noise adds on average is taken off."""
    rng = np.random.default_rng(3)
    means = np.linspace(0.05, 0.95, 12)
    n = np.full(12, 4000.0)
    right = np.stack([n * (1 - means), n * means])
    ends = np.linspace(0, 1, 13)
    exact = calibration_error(calibrated(right, means, ends, 0.0), n.sum())
    assert exact.value == pytest.approx(0.0, abs=1e-9)
    off = right + np.stack([-n, n]) * 0.05
    assert calibration_error(calibrated(off, means, ends, 0.0), n.sum()).value == pytest.approx(
        0.05
    )
    found = [
        calibration_error(
            calibrated(off + rng.normal(0, 60, right.shape), means, ends, 60.0), n.sum()
        )
        for _ in range(100)
    ]
    assert np.mean([one.value for one in found if one.value]) == pytest.approx(0.05, abs=0.005)
    assert calibration_error([], 0.0).value is None


@pytest.mark.parametrize("slope", [0.5, 1.0, 2.0, 20.0])
def test_the_slope_of_the_odds_is_found(slope: float) -> None:
    logits = np.linspace(-3, 3, 13) / max(slope, 1.0)
    p = sigmoid(slope * logits - 0.3)
    by_bin = np.stack([1000 * (1 - p), 1000 * p])
    assert odds_fit(by_bin, logits, 0.0) == pytest.approx((-0.3, slope), rel=0.02)
    assert odds_fit(np.zeros_like(by_bin), logits, 50.0) == pytest.approx((0.0, 1.0))


def test_the_frame_of_numbers_follows_what_is_seen() -> None:
    counts = np.zeros(len(SIZE_EDGES) + 1 + 24)
    counts[5:8] = 1000.0
    counts[len(SIZE_EDGES) + 1 + 6 : len(SIZE_EDGES) + 1 + 12] = 500.0
    frame = frame_for(counts, 1.0)
    assert frame.clip == pytest.approx(1.5 * SIZE_EDGES[7])
    assert frame.ends == pytest.approx((5 / 24, 13 / 24))
    assert frame.centre == pytest.approx(9 / 24)
    nothing = frame_for(np.zeros_like(counts), 10.0)
    assert (nothing.clip, nothing.ends) == (1.0, (0.0, 1.0))


def test_measures_stay_in_their_range() -> None:
    held = measure("auc", 1.2, 0.1)
    assert held.value == 1.0
    assert held.interval == (pytest.approx(1 - 0.196, abs=1e-3), 1.0)
    assert measure("accuracy", math.nan, 0.1).value is None
    assert measure("accuracy", 0.5, 0.3, 0.4).error == pytest.approx(0.5)


def test_confidence_has_edges_above_a_guess() -> None:
    assert confidence_edges(3)[0] == 0.4
    assert confidence_edges(20)[0] == 0.2
