"""Split search against brute force over every cut, every category and both sides for missing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.splitting import BestSplit, GainRule, best_category, best_ordered

RULE = GainRule(reg_lambda=1.0, floor=0.5, penalty=0.1)


def score(sums: np.ndarray, first: int) -> float:
    second = np.broadcast_to(sums[first:], (first,))
    return float(
        sum(g * g / (max(h, 0.5) + 1.0) for g, h in zip(sums[:first], second, strict=True))
    )


def gain(histogram: np.ndarray, right: set[int], first: int) -> float:
    goes = [b for b in range(histogram.shape[1]) if b in right]
    stays = [b for b in range(histogram.shape[1]) if b not in right]
    left, others = histogram[:, stays].sum(axis=1), histogram[:, goes].sum(axis=1)
    parent = score(histogram.sum(axis=1), first)
    return 0.5 * (score(left, first) + score(others, first) - parent) - 0.1


def histograms(first: int, second: int) -> st.SearchStrategy[np.ndarray]:
    shape = st.integers(3, 7)
    numbers = st.floats(-50, 50, width=32)
    return shape.flatmap(
        lambda bins: st.lists(
            st.lists(numbers, min_size=bins, max_size=bins),
            min_size=first + second,
            max_size=first + second,
        ).map(np.array)
    )


def agree(found: BestSplit, best: float, histogram: np.ndarray, first: int) -> None:
    assert found.gain == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert found.left + found.right == pytest.approx(histogram.sum(axis=1), rel=1e-9, abs=1e-6)
    parent = score(histogram.sum(axis=1), first)
    both = score(found.left, first) + score(found.right, first)
    assert 0.5 * (both - parent) - 0.1 == pytest.approx(best, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("first", "second"), [(1, 1), (3, 3), (3, 1)])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_best_cut_of_an_ordered_column(first: int, second: int, data: st.DataObject) -> None:
    histogram = data.draw(histograms(first, second))
    n = histogram.shape[1] - 1
    choices = [
        gain(histogram, set(range(cut, n)) | ({n} if missing_right else set()), first)
        for cut in range(1, n)
        for missing_right in (False, True)
    ]
    found = best_ordered(histogram, first, RULE)
    agree(found, max(choices), histogram, first)
    right = set(range(found.cut, n)) | (set() if found.missing_left else {n})
    assert gain(histogram, right, first) == pytest.approx(found.gain, rel=1e-6, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(histograms(1, 1))
def test_the_best_single_category(histogram: np.ndarray) -> None:
    n = histogram.shape[1] - 1
    choices = [
        gain(histogram, {category} | ({n} if missing_right else set()), 1)
        for category, missing_right in itertools.product(range(n), (False, True))
    ]
    found = best_category(histogram, 1, RULE, subsets=False)
    agree(found, max(choices), histogram, 1)
    assert found.members.sum() == 1


@settings(max_examples=60, deadline=None)
@given(histograms(1, 1))
def test_the_best_set_of_categories_is_the_best_of_all_when_hessians_are_positive(
    histogram: np.ndarray,
) -> None:
    histogram = np.abs(histogram) * [[1], [1]] + [[0], [1]]
    histogram[0] *= np.where(np.arange(histogram.shape[1]) % 2, 1, -1)
    rule = GainRule(reg_lambda=0.0, floor=0.0, penalty=0.0)
    n = histogram.shape[1] - 1
    histogram[:, n] = 0  # without missing values the sorted order is optimal (Fisher 1958)

    def exact(right: set[int]) -> float:
        stays = [b for b in range(n) if b not in right]
        sums = [histogram[:, list(part)].sum(axis=1) for part in (stays, sorted(right))]
        parent = histogram.sum(axis=1)
        return 0.5 * (sum(s[0] ** 2 / s[1] for s in sums) - parent[0] ** 2 / parent[1])

    sets = itertools.chain.from_iterable(itertools.combinations(range(n), r) for r in range(1, n))
    best = max(exact(set(right)) for right in sets)
    assert best_category(histogram, 1, rule, subsets=True).gain == pytest.approx(best, rel=1e-6)


def test_a_column_without_a_cut_gains_nothing() -> None:
    assert best_ordered(np.array([[3.0, 1.0], [2.0, 1.0]]), 1, RULE).gain == -np.inf
