"""Split search against brute force over every cut, every category and both sides for missing."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.model.splitting import (
    BestSplit,
    GainRule,
    Histogram,
    best_split,
    category_cuts,
    ordered_cuts,
    reconciled,
)

RULE = GainRule(
    reg_lambda=1.0, penalty=0.1, caution=0.0, floor_deviations=0.5, first=1, second_scale=2.0
)
CAUTIOUS = replace(RULE, caution=1.5)
WIDTHS = [(1, 1), (3, 3), (3, 1), (2, 0)]  # numbers of the first and of the second part


def rule_of(first: int, caution: float = 0.0) -> GainRule:
    return replace(RULE, first=first, caution=caution)


def score(sums: np.ndarray, variance: float, rule: GainRule) -> float:
    """The rule in plain words: (G^2 - c v) / (max(D, floor) + lambda), summed over outputs."""
    first, rest = sums[: rule.first], sums[rule.first :]
    deviation = variance**0.5 / 2.0 if len(rest) else (rule.first * variance) ** 0.5
    below = rest if len(rest) else [first.sum()]
    total = 0.0
    for k, g in enumerate(first):
        d = max(float(below[k % len(below)]), 0.5 * deviation)
        total += (g * g - rule.caution * variance) / (d + 1.0)
    return total


def gain(histogram: Histogram, right: set[int], rule: GainRule) -> float:
    """What a cut gains, or minus infinity if a side holds no more than an empty one would."""
    sides = []
    for part in (set(range(len(histogram.possible))) - right, right):
        bins = [b for b in part if histogram.possible[b]]
        if not bins:
            return -np.inf
        sums, variance = histogram.sums[:, bins].sum(axis=1), len(bins) * histogram.variance
        rest = sums[rule.first :] if len(sums) > rule.first else sums
        noise = (len(rest) * variance) ** 0.5 / (2.0 if len(sums) > rule.first else 1.0)
        if rule.caution and rest.sum() < rule.caution * noise:
            return -np.inf
        sides.append((sums, variance))
    parent = score(histogram.total, histogram.total_variance, rule)
    return 0.5 * (sum(score(s, v, rule) for s, v in sides) - parent) - 0.1


def histograms(first: int, second: int) -> st.SearchStrategy[Histogram]:
    numbers = st.floats(-50, 50, width=32)
    width = first + second

    def of(bins: int) -> st.SearchStrategy[Histogram]:
        row = st.lists(numbers, min_size=bins, max_size=bins)
        sums = st.lists(row, min_size=width, max_size=width).map(np.array)
        possible = st.lists(st.booleans(), min_size=bins, max_size=bins).map(np.array)
        return st.builds(Histogram.of, sums, possible, st.sampled_from([0.0, 1.0, 30.0]))

    return st.integers(3, 7).flatmap(of)


def agree(
    found: BestSplit | None, choices: list[float], histogram: Histogram, rule: GainRule
) -> None:
    best = max(choices, default=-np.inf)
    if found is None or found.gain == -np.inf:
        assert best == -np.inf
        return
    assert found.gain == pytest.approx(best, rel=1e-6, abs=1e-6)
    right = set(np.flatnonzero(found.right).tolist())
    assert gain(histogram, right, rule) == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert sum(found.sums) == pytest.approx(histogram.total, rel=1e-9, abs=1e-6)
    assert sum(found.variances) == pytest.approx(histogram.total_variance)


@pytest.mark.parametrize("caution", [0.0, 1.5])
@pytest.mark.parametrize(("first", "second"), WIDTHS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_the_best_cut_of_an_ordered_column(
    first: int, second: int, caution: float, data: st.DataObject
) -> None:
    histogram, rule = data.draw(histograms(first, second)), rule_of(first, caution)
    n = len(histogram.possible) - 1
    choices = [
        gain(histogram, set(range(cut, n)) | ({n} if missing_right else set()), rule)
        for cut, missing_right in itertools.product(range(1, n), (False, True))
        if histogram.possible[n] or not missing_right
    ]
    found = best_split(histogram, ordered_cuts(histogram.possible), rule)
    agree(found, choices, histogram, rule)


@pytest.mark.parametrize("caution", [0.0, 1.5])
@settings(max_examples=60, deadline=None)
@given(histogram=histograms(1, 1))
def test_the_best_single_category(histogram: Histogram, caution: float) -> None:
    rule, n = rule_of(1, caution), len(histogram.possible) - 1
    choices = [
        gain(histogram, {category} | ({n} if missing_right else set()), rule)
        for category, missing_right in itertools.product(range(n), (False, True))
        if histogram.possible[category]
    ]
    found = best_split(histogram, category_cuts(histogram, rule, subsets=False), rule)
    agree(found, choices, histogram, rule)
    assert found is None or found.right[:-1].sum() == 1


@settings(max_examples=60, deadline=None)
@given(histograms(1, 1))
def test_the_best_set_of_categories_is_the_best_of_all_when_hessians_are_positive(
    noisy: Histogram,
) -> None:
    sums = np.abs(noisy.sums) + np.array([[0], [1]])
    sums[0] *= np.where(np.arange(sums.shape[1]) % 2, 1, -1)
    n = sums.shape[1] - 1  # without missing values the sorted order is optimal (Fisher 1958)
    possible = np.arange(n + 1) < n
    histogram = Histogram.of(sums, possible, 0.0)
    rule = GainRule(0.0, 0.0, 0.0, 0.0, 1, 1.0)

    def exact(right: set[int]) -> float:
        parts = [sorted(set(range(n)) - right), sorted(right)]
        sides = [sums[:, part].sum(axis=1) for part in parts]
        parent = sums[:, :n].sum(axis=1)
        return 0.5 * (sum(s[0] ** 2 / s[1] for s in sides) - parent[0] ** 2 / parent[1])

    sets = itertools.chain.from_iterable(itertools.combinations(range(n), r) for r in range(1, n))
    best = max(exact(set(right)) for right in sets)
    found = best_split(histogram, category_cuts(histogram, rule, subsets=True), rule)
    assert found is not None
    assert found.gain == pytest.approx(best, rel=1e-6, abs=1e-9)


def test_a_column_without_a_cut_gains_nothing() -> None:
    single = Histogram.of(np.array([[3.0, 1.0], [2.0, 1.0]]), np.array([True, True]), 1.0)
    assert best_split(single, ordered_cuts(single.possible), RULE) is None


def test_the_order_of_the_classes_changes_no_gain() -> None:
    rng = np.random.default_rng(1)
    sums = rng.normal(size=(6, 9)) * 10.0 ** rng.integers(-8, 8, (6, 9))
    rule, order = rule_of(3), [2, 0, 1, 5, 3, 4]
    one, two = (
        best_split(h, ordered_cuts(h.possible), rule)
        for h in (Histogram.of(s, np.ones(9, np.bool_), 1.0) for s in (sums, sums[order]))
    )
    assert one is not None
    assert two is not None
    assert one.gain == two.gain
    assert np.array_equal(one.right, two.right)


def test_an_empty_side_does_not_win_by_its_noise() -> None:
    """Rows in four of 32 bins only; the released rest is noise, and hides the one real cut."""
    rng = np.random.default_rng(3)
    sums = np.zeros((2, 33))
    sums[:, 10:14] = [[200, 200, -200, -200], [300, 300, 300, 300]]
    cautious, plain = replace(RULE, caution=2.0), replace(RULE, floor_deviations=0.0)
    hits = {id(cautious): 0, id(plain): 0}
    for _ in range(200):
        noisy = sums + rng.normal(0, 20, sums.shape) / [[1], [2]]
        histogram = Histogram.of(noisy, np.ones(33, np.bool_), 400.0)
        for rule in (cautious, plain):
            found = best_split(histogram, ordered_cuts(histogram.possible), rule)
            hits[id(rule)] += found is not None and not found.right[11] and bool(found.right[12])
    assert hits[id(cautious)] >= 190
    assert hits[id(plain)] <= 100


def test_noise_alone_gains_nothing_on_average() -> None:
    """E[G^2] of a side of pure noise is its variance: with caution 1 the numerators cancel."""
    rng = np.random.default_rng(5)
    half = np.array([[False] * 4 + [True] * 4])
    rule = replace(rule_of(1, 1.0), penalty=0.0)
    gains = []
    for _ in range(4000):
        noise = np.stack([rng.normal(0, 10, 8), np.full(8, 1e4)])
        histogram = Histogram.of(noise, np.ones(8, np.bool_), 100.0)
        found = best_split(histogram, half, rule)
        assert found is not None
        gains.append(found.gain)
    assert abs(np.mean(gains)) < 6 * np.std(gains) / 4000**0.5


@settings(max_examples=60, deadline=None)
@given(st.lists(histograms(1, 1), min_size=1, max_size=4), st.sampled_from([0.5, 7.0]))
def test_reconciled_histograms_agree_on_the_weighted_total(
    parts: list[Histogram], variance: float
) -> None:
    parts = [replace(h, variance=1.0, total_variance=float(h.possible.sum())) for h in parts]
    parts = [h for h in parts if h.possible.any()]
    if not parts:
        return
    known = (np.array([4.0, -9.0]), variance)
    agreed = reconciled(parts, known)
    weights = [1 / h.total_variance for h in parts] + [1 / variance]
    totals = [h.total for h in parts] + [known[0]]
    expected = np.average(totals, axis=0, weights=weights)
    for before, after in zip(parts, agreed, strict=True):
        assert after.total == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert after.total_variance == pytest.approx(1 / sum(weights))
        moves = (after.sums - before.sums)[:, before.possible]
        assert moves == pytest.approx(moves[:, :1].repeat(moves.shape[1], axis=1))
        assert not after.sums[:, ~before.possible].any()


def test_histograms_without_noise_are_not_moved_at_all() -> None:
    sums = np.array([[0.1, 0.2, 0.4], [1.3, 0.7, 0.9]])
    parts = [Histogram.of(sums[:, order], np.ones(3, np.bool_), 1.0) for order in ([0, 1, 2],) * 3]
    agreed = reconciled(parts, (parts[0].total, 2.0))
    assert all(np.array_equal(a.sums, b.sums) for a, b in zip(parts, agreed, strict=True))


def test_the_stated_variance_of_a_side_is_its_measured_one() -> None:
    rng, n_times = np.random.default_rng(8), 20_000
    true = np.array([[5.0, 1.0, 2.0, 0.0, 4.0, 3.0]])
    sides = []
    for _ in range(n_times):
        released = [
            Histogram.of(true + rng.normal(0, 3, true.shape), np.ones(6, np.bool_), 9.0)
            for _ in range(4)
        ]
        known = (np.array([15.0 + rng.normal(0, 2)]), 4.0)
        agreed = reconciled(released, known)[2]
        sides.append(agreed.sums[0, :2].sum())
    stated = float(agreed.variances(np.array([2]))[0])
    assert stated < 2 * 9.0  # less than two released numbers carry
    ratio = np.var(np.array(sides) - 6.0) / stated
    assert abs(ratio - 1) < 6 * (2 / n_times) ** 0.5
    assert abs(np.mean(sides) - 6.0) < 6 * (stated / n_times) ** 0.5
