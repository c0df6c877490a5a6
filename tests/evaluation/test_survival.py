"""Private evaluation of times to an event: from counts by cell and risk, and through the gate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow import Evaluation, Label, PrivateSurvivalBoosting, Schema, evaluate_privately
from hedgerow.data.survival import outcome_cells
from hedgerow.evaluation.log_rank import log_rank
from hedgerow.evaluation.risk_groups import (
    GROUPS,
    Reach,
    RiskGroups,
    edges_for,
    first_grid,
    reachable,
)
from hedgerow.evaluation.survival import (
    brier_scores,
    concordance,
    earlier,
    exact_measures,
    findings,
    grouped_concordance,
    integrated,
    survival_of,
)
from hedgerow.testing import noise_off
from tests.randomness import cached

CUTS = (0.25, 0.5, 1.0, 1.5, 2.0)
LABEL = Label("years", event="died", cuts=CUTS)
SCHEMA = Schema.from_bounds({"a": (-1, 1), "b": (-1, 1)}, time_to_event=LABEL)


def made_up(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = {"a": rng.uniform(-1, 1, n), "b": rng.uniform(-1, 1, n)}
    time, seen = rng.exponential(np.exp(-2 * X["a"])), rng.uniform(0.2, 4.0, n)
    return X, np.minimum(time, seen), time <= seen


@cached
def fitted() -> PrivateSurvivalBoosting:
    X, times, events = made_up(6000)
    return PrivateSurvivalBoosting(SCHEMA, epsilon=8.0).fit(X, (times, events.astype(int)))


def test_a_private_evaluation_without_noise_is_near_the_exact_one() -> None:
    model = fitted()
    X, times, events = made_up(9000, seed=1)
    with noise_off():
        found = evaluate_privately(model, X, (times, events.astype(int)), epsilon=50.0)
    survival = model.predict_survival_function(X)
    cells = outcome_cells(LABEL, times, events.astype(float))
    exact = exact_measures(survival, times, events, cells, CUTS)
    assert exact["integrated_brier"] is not None
    assert found["rows"].value == 9000
    assert found["events"].value == np.sum(cells % 2 == 1)
    assert abs(found["integrated_brier"].value - exact["integrated_brier"]) < 0.002
    # Up to the horizon, and in groups by risk and time: near what all pairs of rows say.
    clamped = np.minimum(times, CUTS[-1])
    up_to = concordance(model.predict(X), clamped, events & (times <= CUTS[-1]))
    assert abs(found["concordance"].value - up_to) < 0.015
    curve = [p for p in found.findings.survival if p.group == 0]
    assert [p.time for p in curve] == list(CUTS)
    assert all(p.low < p.observed < p.high for p in curve)
    assert {p.group for p in found.findings.survival} == {0, 1, 2, 3, 4, 5}
    assert len(found.findings.calibration) == 5
    assert np.all(np.diff([p.observed for p in found.findings.calibration]) < 0)
    assert found["calibration_error"].value < 0.05
    assert [p.time for p in found.findings.brier] == list(CUTS)


def test_noise_moves_measures_by_about_as_much_as_they_say() -> None:
    model = fitted()
    X, times, events = made_up(4000, seed=2)
    y = (times, events.astype(int))
    with noise_off():
        exact = evaluate_privately(model, X, y, epsilon=1.0)
    found = evaluate_privately(model, X, y, epsilon=1.0)
    for name in ("rows", "events", "concordance", "integrated_brier"):
        one = found[name]
        assert one.noise_error is not None
        assert one.noise_error > 0
        assert abs(one.value - exact[name].value) < 6 * one.noise_error  # by chance below 1e-8
    assert found.statement.epsilon == 1.0


def test_groups_lie_where_rows_are_also_where_noise_hides_their_risks() -> None:
    """Curves by risk at an epsilon that sees few cells: several groups, predicted as they are."""
    model, (X, times, events) = fitted(), made_up(2500, seed=9)
    found = evaluate_privately(model, X, (times, events.astype(int)), epsilon=1.0)
    reach, risk = reachable(model.model_), model.predict(X)
    assert reach.likely[0] < np.quantile(risk, 0.02) < np.quantile(risk, 0.98) < reach.likely[1]
    groups = [p for p in found.findings.survival if p.time == CUTS[-1] and p.group]
    assert len(groups) >= 3
    whole = next(p for p in found.findings.survival if p.time == CUTS[-1] and not p.group)
    exact = model.predict_survival_function(X)[:, -1].mean()
    assert abs(whole.predicted - exact) < 0.12


def test_few_rows_say_that_noise_hides_everything(tmp_path: Path) -> None:
    X, times, events = made_up(12, seed=3)
    found = evaluate_privately(fitted(), X, (times, events.astype(int)), epsilon=0.1)
    assert found["concordance"].value is None
    assert "noise is as large as the events" in found.findings.notes[0]
    found.save(tmp_path / "e.json")
    assert Evaluation.load(tmp_path / "e.json") == found


def test_an_evaluation_is_read_back_with_its_curves(tmp_path: Path) -> None:
    X, times, events = made_up(3000, seed=4)
    found = evaluate_privately(fitted(), X, (times, events.astype(int)), epsilon=4.0)
    found.save(tmp_path / "e.json")
    again = Evaluation.load(tmp_path / "e.json")
    assert again == found
    assert len(again.findings.survival) == 6 * len(CUTS)
    assert again.task == "survival"


def test_one_curve_for_all_is_evaluated_too() -> None:
    X, times, events = made_up(60, seed=5)
    y = (times, events.astype(int))
    with pytest.warns(Warning, match="one Kaplan-Meier curve"):
        model = PrivateSurvivalBoosting(SCHEMA, epsilon=0.5).fit(X, y)
    X, times, events = made_up(3000, seed=6)
    found = evaluate_privately(model, X, (times, events.astype(int)), epsilon=4.0)
    assert found["concordance"].value == pytest.approx(0.5, abs=0.1)


def test_grouped_concordance_is_that_of_pairs() -> None:
    """Rows of one interval are in either order, as they come: an event first half of the time."""
    rng = np.random.default_rng(7)
    cells, group = rng.integers(0, 7, 300), rng.integers(0, 4, 300)
    counts = np.zeros((7, 4))
    np.add.at(counts, (cells, group), 1.0)
    agreed = pairs = 0.0
    happened, interval = cells % 2 == 1, cells // 2
    for i in np.flatnonzero(happened):
        for j in range(300):
            weight = float(interval[j] > interval[i])
            if interval[j] == interval[i] and j != i:
                weight = 0.5  # two events are seen from both sides
            pairs += weight
            agreed += weight * (1.0 if group[i] > group[j] else 0.5 if group[i] == group[j] else 0)
    found = grouped_concordance(counts, np.full((3, 4, 4), 0.5))
    assert found == pytest.approx(agreed / pairs)


def test_who_is_first_within_an_interval() -> None:
    rng, (a, b) = np.random.default_rng(1), (2.5, 0.4)
    times = rng.exponential(1.0, (400_000, 2)) / np.array([a, b])
    inside = times[(times < 1).all(axis=1)]
    first = earlier(np.array([[a], [b]]))
    assert abs(first[0, 0, 1] - np.mean(inside[:, 0] < inside[:, 1])) < 0.005
    assert first[0, 0, 0] == pytest.approx(0.5)
    assert first[0, 0, 1] + first[0, 1, 0] == pytest.approx(1.0)


def test_brier_scores_without_censoring_are_mean_squares() -> None:
    rng = np.random.default_rng(8)
    n, cuts = 500, (1.0, 2.0, 3.0)
    cells, predicted = rng.choice([1, 3, 5, 6], n), np.sort(rng.random((n, 3)))[:, ::-1]
    counts = np.zeros((7, n))
    counts[cells, np.arange(n)] = 1.0
    alive = np.stack([cells > 2 * k + 1 for k in range(3)], axis=1)
    expected = np.mean((alive - predicted) ** 2, axis=0)
    assert np.allclose(brier_scores(counts, predicted), expected)
    flat = integrated(np.full(3, 0.2), cuts)
    assert flat == pytest.approx((0.1 + 0.2 + 0.2) / 3)


def test_bands_hold_the_true_curve_as_often_as_they_say() -> None:
    """Kaplan-Meier bands over fresh rows and fresh noise: 95 % by first order, 90 to 99 % here."""
    rng, true, held, n_seen = np.random.default_rng(9), np.exp(-np.array(CUTS)), 0, 0
    hazards, n_groups = np.diff(CUTS, prepend=0.0) / CUTS[-1], 4
    groups = RiskGroups(Reach(-2.0, 2.0, hazards), np.array([-1.0, 0.0, 1.0]))
    for _ in range(150):
        time, seen = rng.exponential(1.0, 600), rng.uniform(0.2, 4.0, 600)
        cells = outcome_cells(LABEL, np.minimum(time, seen), (time <= seen).astype(float))
        counts = np.zeros((11, n_groups))
        np.add.at(counts, (cells.astype(int), rng.integers(0, n_groups, 600)), 1.0)
        found = findings(counts + rng.normal(0, 5.0, counts.shape), 5.0, groups, CUTS)
        for point, value in zip(found.survival[: len(CUTS)], true, strict=True):
            held += point.low <= value <= point.high
            n_seen += 1
    assert 0.90 < held / n_seen < 0.99


def test_edges_lie_where_rows_are_seen() -> None:
    reach = Reach(-4.0, 4.0, np.ones(5), (-1.5, 2.0))
    grid = first_grid(reach)
    first = np.zeros((11, len(grid) + 1))
    first[:, 20:30] = 40.0
    edges = edges_for(first, 1.0, grid, reach)
    assert len(edges) == GROUPS - 1
    assert np.all(np.diff(edges) > 0)
    assert grid[17] < edges[0] < edges[-1] < grid[32]
    noisy = first + np.random.default_rng(0).normal(0, 90.0, first.shape)
    for counts, noise in ((np.zeros_like(first), 1.0), (noisy, 90.0)):
        unseen = edges_for(counts, noise, grid, reach)  # where the model says that most rows are
        assert (unseen[0], unseen[-1]) == (-1.5, 2.0)


def test_the_curve_of_a_row_follows_from_its_risk() -> None:
    model = fitted()
    reach = reachable(model.model_)
    X = {"a": np.linspace(-1, 1, 9), "b": np.linspace(1, -1, 9)}
    risk = model.predict(X)
    assert np.all((risk >= reach.low - 1e-6) & (risk <= reach.high + 1e-6))
    parts = np.cumsum(reach.hazards) / reach.hazards.sum()
    expected = np.exp(-np.exp(risk)[:, None] * parts)
    assert np.allclose(model.predict_survival_function(X), expected, atol=1e-6)


CHANGING = Schema(SCHEMA.columns, Label("years", event="died", cuts=CUTS, change_at=1.0))


@cached
def changing() -> PrivateSurvivalBoosting:
    """The hazard rises with `a` up to 1 year, and falls with it afterwards."""
    rng, (X, _, _) = np.random.default_rng(3), made_up(20_000)
    first = rng.exponential(2.5 * np.exp(-1.5 * X["a"]))
    time = np.where(first < 1.0, first, 1.0 + rng.exponential(2.5 * np.exp(1.5 * X["a"])))
    seen = rng.uniform(0.5, 4.0, 20_000)
    model = PrivateSurvivalBoosting(CHANGING, epsilon=4.0, random_state=0)
    return model.fit(X, (np.minimum(time, seen), (time <= seen).astype(int)))


def test_groups_by_risk_and_ratio_say_the_curves_of_a_model_whose_effects_change() -> None:
    model, X = changing(), made_up(4000, seed=5)[0]
    reach = reachable(model.model_)
    scores = model.model_.decision_function(X)
    first, second = (np.log(np.exp(s).sum(axis=1)) for s in (scores[:, :3], scores[:, 3:]))
    low, high = np.min(first - second), np.max(first - second)
    assert reach.ratios[0] - 1e-5 <= low < high <= reach.ratios[1] + 1e-5
    groups = RiskGroups(reach, np.linspace(*np.quantile(model.predict(X), [0.01, 0.99]), 11))
    risk = np.searchsorted(groups.edges, model.predict(X), side="right")
    group = risk * groups.n_ratios + np.searchsorted(reach.ratio_edges, first - second)
    predicted = groups.survival[group]
    apart = np.abs(predicted - model.predict_survival_function(X)).mean()
    one = RiskGroups(Reach(reach.low, reach.high, reach.hazards), groups.edges).survival[risk]
    assert apart < 0.03 < np.abs(one - model.predict_survival_function(X)).mean()


def test_a_model_whose_effects_change_is_evaluated_as_exactly_as_others() -> None:
    model, rng, n = changing(), np.random.default_rng(8), 9000
    X = made_up(n, seed=6)[0]
    first = rng.exponential(2.5 * np.exp(-1.5 * X["a"]))
    time = np.where(first < 1.0, first, 1.0 + rng.exponential(2.5 * np.exp(1.5 * X["a"])))
    seen = rng.uniform(0.5, 4.0, n)
    times, events = np.minimum(time, seen), time <= seen
    with noise_off():
        found = evaluate_privately(model, X, (times, events.astype(int)), epsilon=50.0)
    cells = outcome_cells(LABEL, times, events.astype(float))
    exact = exact_measures(model.predict_survival_function(X), times, events, cells, CUTS)
    assert exact["integrated_brier"] is not None
    assert abs(found["integrated_brier"].value - exact["integrated_brier"]) < 0.003
    assert found["rows"].value == n
    assert found["calibration_error"].value < 0.05


def groups_alike(rng: Any, n: int, sigma: float, ratio: float = 1.0) -> list[Any]:
    """Noisy counts of three groups; the last has so many times the hazard."""
    found = []
    for of in (1.0, 1.0, ratio):
        time, seen = rng.exponential(1.0 / of, n), rng.uniform(0.2, 4.0, n)
        cells = outcome_cells(LABEL, np.minimum(time, seen), (time <= seen).astype(float))
        counts = np.bincount(cells.astype(int), minlength=11).astype(float)
        found.append(counts + rng.normal(0, sigma, 11))
    return found


@pytest.mark.parametrize("sigma", [0.0, 6.0, 20.0])
def test_the_log_rank_test_calls_equal_groups_different_as_often_as_it_says(sigma: float) -> None:
    """At the 5 % level, with noise in every count: 2.5 to 8 % of 400 times."""
    rng = np.random.default_rng(12)
    tests = [log_rank(groups_alike(rng, 400, sigma), [sigma] * 3)[1] for _ in range(400)]
    assert 0.025 < np.mean([test.value < 0.05 for test in tests]) < 0.08


def test_the_log_rank_test_without_noise_is_the_textbook_one() -> None:
    rng = np.random.default_rng(2)
    groups = groups_alike(rng, 300, 0.0, 1.3)
    statistic, p_value = log_rank(groups, [0.0] * 3)
    counts, excess, variance = np.stack(groups), np.zeros(3), np.zeros((3, 3))
    for k in range(5):
        events = counts[:, 2 * k + 1]
        at_risk = counts[:, 2 * k :].sum(axis=1) - counts[:, 2 * k] / 2
        n, d = at_risk.sum(), events.sum()
        excess += events - d * at_risk / n
        spread = d * (n - d) / (n - 1)
        variance += spread * (np.diag(at_risk / n) - np.outer(at_risk, at_risk) / n**2)
    expected = excess[:2] @ np.linalg.solve(variance[:2, :2], excess[:2])
    assert statistic.value == pytest.approx(expected)
    assert p_value.value == pytest.approx(np.exp(-expected / 2))  # two degrees of freedom


def test_an_evaluation_says_that_risk_tells_groups_apart() -> None:
    X, times, events = made_up(4000, seed=2)
    found = evaluate_privately(fitted(), X, (times, events.astype(int)), epsilon=2.0)
    assert found["log_rank"].value > 100
    assert found["log_rank_p"].value < 1e-6


def test_concordance_of_rows_that_cannot_be_compared_is_left_open() -> None:
    nobody = exact_measures(np.full((3, 5), 0.9), np.ones(3), np.zeros(3, bool), np.zeros(3), CUTS)
    assert nobody["concordance"] is None


def test_the_curve_of_counts_is_the_actuarial_one() -> None:
    counts = np.array([4.0, 10.0, 6.0, 5.0, 2.0, 8.0, 65.0])
    first = 1 - 10 / 98
    second = first * (1 - 5 / 83)
    assert np.allclose(survival_of(counts)[:2], [first, second])
