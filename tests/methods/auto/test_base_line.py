"""Hazards of all rows together: against curves and sums computed otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from hedgerow.methods.auto.base_line import (
    Outcomes,
    Scores,
    kaplan_meier,
    matched,
    recalibrated,
    residuals,
)
from hedgerow.methods.auto.rule import events_needed, rule_for

CUTS = (1.0, 2.0, 4.0)


def test_the_curve_without_noise_is_the_actuarial_one() -> None:
    counts = np.array([4.0, 10.0, 6.0, 5.0, 2.0, 8.0, 65.0])  # censored, event, ..., still there
    survival, alive = [], 1.0
    at_risk = 100.0
    for censored, events in ((4, 10), (6, 5), (2, 8)):
        alive *= 1 - events / (at_risk - censored / 2)
        at_risk -= censored + events
        survival.append(alive)
    hazards = kaplan_meier(Outcomes(counts, 0.0), CUTS)
    assert np.allclose(np.exp(-np.cumsum(hazards)), survival)


def test_counts_of_noise_alone_give_a_curve_that_can_be_used() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        counts = rng.normal(0, 50, 7)
        survival = np.exp(-np.cumsum(kaplan_meier(Outcomes(counts, 50.0), CUTS)))
        assert np.all(np.diff(np.append(1.0, survival)) < 0)
        assert np.all(survival > 0)


def test_two_counts_together_are_nearer_than_each() -> None:
    exact, far = Outcomes(np.full(7, 10.0), 1.0), Outcomes(np.full(7, 20.0), 3.0)
    both = exact.together(far)
    assert np.allclose(both.counts, (10 * 9 + 20) / 10)
    assert both.noise == pytest.approx((1 + 1 / 9) ** -0.5)


def test_rows_that_differ_survive_as_the_curve_says() -> None:
    survival, u, share = np.array([0.9, 0.7, 0.4]), np.array([-1.0, 0.2, 1.5]), np.full(3, 1 / 3)
    hazards = matched(survival, u, share)
    alive = np.exp(-np.exp(u)[:, None] * hazards.cumsum()).T @ share
    assert np.allclose(alive, survival)


def test_residuals_add_up_to_nothing_where_the_curve_is_right() -> None:
    counts = np.array([4.0, 10.0, 6.0, 5.0, 2.0, 8.0, 65.0])
    hazards = kaplan_meier(Outcomes(counts, 0.0), CUTS)
    assert abs(counts @ residuals(hazards)) < 0.05 * 23


def test_scores_are_spread_as_sums_of_independent_columns() -> None:
    theta = [np.array([-1.0, 1.0]), np.array([0.0, 0.5, 2.0])]
    counts = [np.array([3.0, 1.0]), np.array([1.0, 1.0, 2.0])]
    scores = Scores.of(theta, counts)
    mean = sum(float(t @ n / n.sum()) for t, n in zip(theta, counts, strict=True))
    assert scores.share.sum() == pytest.approx(1.0)
    assert abs(scores.values @ scores.share - mean) < 0.03
    edges = scores.edges(16)
    u, law = scores.by_bin(edges)
    assert len(u) == len(law) == 16
    assert np.all(np.diff(u) > 0)


@pytest.mark.parametrize("true", [0.7, 1.0, 1.3])
def test_recalibration_finds_the_slope_that_rows_have(true: float) -> None:
    """Rows of known hazards, counted without noise: their scores are off by a factor."""
    rng, n = np.random.default_rng(5), 200_000
    u = np.linspace(-1.5, 1.5, 16)
    of = rng.integers(0, 16, n)
    hazards = np.array([0.1, 0.1, 0.2])
    time = rng.exponential(1.0, n) / np.exp(true * u[of])
    seen = np.cumsum(hazards)
    k = np.searchsorted(seen, time)
    cells = np.where(k < 3, 2 * k + 1, 6)
    table = np.zeros((7, 16))
    np.add.at(table, (cells, of), 1.0)
    known = Outcomes(table.sum(axis=1), 1e-3)
    slope, found = recalibrated(table, 1e-3, u, np.full(16, 1 / 16), known, CUTS)
    assert abs(slope - true) < 0.03
    assert np.abs(found / hazards - 1).max() < 0.05


def test_few_events_are_one_curve_for_all_and_the_plan_knows_how_many() -> None:
    needed = events_needed(9, 0.1)
    below, above = (rule_for(1e5, 9, 0.1, "survival", (1 - r, r)) for r in (
        0.99 * needed / 1e5, 1.01 * needed / 1e5))  # fmt: skip
    assert (below.main_rounds, below.n_rounds, below.start_share) == (0, 2, 1.0)
    assert (above.main_rounds, above.n_rounds) == (6, 9)
    rounds = [rule_for(n, 1, 0.1, "survival", (0.5, 0.5)).main_rounds for n in (1e5, 5e3, 2.5e3)]
    assert rounds == [6, 4, 2]
