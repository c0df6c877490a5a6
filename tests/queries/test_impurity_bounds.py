"""Bounds of the split impurity: one row moves them by at most 1, and they are lower bounds."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from hedgerow.queries.impurity_bounds import impurity_steps, lowest_impurity

CASES = [(2, 3, True, False), (2, 3, False, True), (2, 3, False, False), (3, 2, True, False)]
CASES += [(3, 2, False, False), (2, 2, True, False)]


def tables(n_cells: int, n_rows: int) -> Iterator[tuple[int, ...]]:
    """Every way to put at most so many rows into the cells."""
    if n_cells == 0:
        yield ()
        return
    for here in range(n_rows + 1):
        for rest in tables(n_cells - 1, n_rows - here):
            yield (here, *rest)


def exact(counts: np.ndarray, ordered: bool, subsets: bool) -> Fraction:
    """The smallest impurity by trying every split, in fractions."""

    def impurity(side: np.ndarray) -> Fraction:
        n = int(side.sum())
        return Fraction(n * n - int((side**2).sum()), 2 * n) if n else Fraction(0)

    n_bins = counts.shape[1]
    goes = list(product((False, True), repeat=n_bins))
    if ordered:
        goes = [g for g in goes if list(g[:-1]) == sorted(g[:-1])]
    elif not subsets:
        goes = [g for g in goes if sum(g[:-1]) == 1]
    sides = [counts[:, list(g)].sum(axis=1) for g in goes]
    return min(impurity(side) + impurity(counts.sum(axis=1) - side) for side in sides)


@pytest.mark.parametrize(("k", "bins", "ordered", "subsets"), CASES)
@pytest.mark.parametrize("bits", [0, 7])
def test_no_table_of_up_to_eight_rows_moves_by_more_than_one(
    k: int, bins: int, ordered: bool, subsets: bool, bits: int
) -> None:
    """Exhaustive: every table, every row taken away. 5/4, as published, is never needed."""
    found = {
        cells: lowest_impurity(np.array(cells).reshape(k, bins), ordered, subsets, bits)
        for cells in tables(k * bins, 8)
    }
    moves = [
        found[cells] - found[(*cells[:i], cells[i] - 1, *cells[i + 1 :])]
        for cells in found
        for i in range(k * bins)
        if cells[i]
    ]
    assert min(moves) >= 0
    assert max(moves) <= 2**bits
    assert max(moves) >= 0.8 * 2**bits  # the bound is not idle


def test_the_smallest_over_sets_of_categories_is_rounded_once() -> None:
    """Rounding every side, one row moved the smallest of this table by 2."""
    counts = np.array([[3, 1, 0], [5, 3, 1]])
    more = counts + np.array([[0, 1, 0], [0, 0, 0]])
    assert lowest_impurity(more, False, True, 0) - lowest_impurity(counts, False, True, 0) in (0, 1)


@pytest.mark.parametrize("bits", [0, 1, 4])
def test_larger_tables_of_categories_move_by_at_most_one(bits: int) -> None:
    rng = np.random.default_rng(bits)
    for _ in range(1500):
        counts = rng.integers(0, rng.integers(2, 40), (2, int(rng.integers(2, 7))))
        before = lowest_impurity(counts, False, True, bits)
        assert before == (exact(counts, False, True) * 2**bits).__floor__()
        counts[rng.integers(2), rng.integers(counts.shape[1])] += 1
        assert 0 <= lowest_impurity(counts, False, True, bits) - before <= 2**bits


@pytest.mark.parametrize(("k", "bins", "ordered", "subsets"), CASES)
def test_the_bound_is_the_smallest_over_every_split(
    k: int, bins: int, ordered: bool, subsets: bool
) -> None:
    for cells in list(tables(k * bins, 5)):
        counts = np.array(cells).reshape(k, bins)
        least = exact(counts, ordered, subsets)
        steps = lowest_impurity(counts, ordered, subsets, 16)
        assert least - Fraction(2, 2**16) < Fraction(steps, 2**16) <= least


def test_a_count_rule_inside_the_minimum_would_be_far_more_sensitive() -> None:
    """Why there is none: with at least 10 rows a side, one row moves the minimum by a lot."""

    def with_rule(counts: np.ndarray) -> int:
        right = counts.sum(axis=1, keepdims=True) - np.cumsum(counts, axis=1)
        left = counts.sum(axis=1, keepdims=True) - right
        fits = (right.sum(axis=0) >= 10) & (left.sum(axis=0) >= 10)
        both = impurity_steps(right, 0) + impurity_steps(left, 0)
        both = np.append(both[fits], impurity_steps(counts.sum(axis=1, keepdims=True), 0))
        return int(both.min())

    ten, nine = np.array([[40, 0], [0, 10]]), np.array([[40, 0], [0, 9]])
    assert abs(with_rule(ten) - with_rule(nine)) >= 7


@pytest.mark.parametrize("ordered", [True, False])
def test_parties_sum_to_a_lower_bound_of_every_split_of_all_rows(ordered: bool) -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        parts = [rng.integers(0, 9, (2, 4)) for _ in range(3)]
        together = lowest_impurity(sum(parts), ordered, not ordered, 10)
        apart = sum(lowest_impurity(part, ordered, not ordered, 10) for part in parts)
        assert apart <= together + 2


def test_large_counts_do_not_overflow() -> None:
    side = np.array([[2**29], [2**29]])
    assert impurity_steps(side, 10)[0] == 2**28 * 2**10
    big = np.array([[2**29, 1, 7], [3, 2**29, 7]])
    # One side rounded down once, two sides rounded down each: a step between them.
    assert lowest_impurity(big, False, True, 4) <= lowest_impurity(big, False, False, 4) + 1


@pytest.mark.parametrize("ordered", [True, False])
def test_one_row_moves_a_table_of_four_thousand_million_rows_by_at_most_one(ordered: bool) -> None:
    """Where n^2 - sum n_k^2 passes 2^63; wrapped, one row would move the bound by 2^31."""
    before = np.array([[2**31, 0], [2**31 - 1, 0]])
    after = before + np.array([[0, 0], [1, 0]])
    moved = [lowest_impurity(counts, ordered, False, 7) for counts in (before, after)]
    assert 0 <= moved[1] - moved[0] <= 2**7
    assert moved[1] == int(exact(after.astype(object), ordered, False) * 2**7)
