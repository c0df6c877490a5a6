"""Mixes of bins: what they cost, what they gain, how columns agree on their total."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from hedgerow.data.binning import base_grid
from hedgerow.errors import FormatError
from hedgerow.methods.auto.evidence import (
    Evidence,
    nothing,
    pooled,
    product,
    said_by_bins,
    said_by_coordinates,
)
from hedgerow.methods.auto.main_effects import _matrices
from hedgerow.methods.auto.priors import kernels_of
from hedgerow.methods.auto.smoothing import smooth
from hedgerow.methods.auto.strategies import (
    _patterns,
    _water,
    is_wide,
    level_share,
    loud_patterns,
    plain,
    strategy_for,
)
from hedgerow.packing import pack, unpack
from hedgerow.queries import NO_TREES, ColumnSums, n_bins_of, query_bytes, query_from_bytes
from hedgerow.queries.strategy import (
    LARGEST_ENTRY,
    MOST,
    PLAIN,
    WIDEST,
    StrategyMatrix,
    check_matrices,
    largest_norms,
    pack_matrices,
    unpack_matrices,
)
from tests.contracts.attacks import SCHEMAS

Floats = NDArray[np.float64]


# What a strategy matrix costs


@pytest.mark.parametrize("n_bins", [2, 3, 4, 9, 33, WIDEST])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("strength", [0.0, 0.02, 0.3, 1.0, 5.0, 1e9])
def test_no_bin_is_louder_than_in_plain_sums(n_bins: int, ordered: bool, strength: float) -> None:
    strategy = strategy_for(n_bins, ordered, strength, level_share(10))
    assert strategy.matrix is not None
    norms = np.linalg.norm(strategy.matrix, axis=0)
    assert norms.max() == pytest.approx(1.0, abs=1e-12)
    assert norms.min() > 0.97  # rounding to whole numbers wastes little of what is paid for
    assert strategy.integer_matrix is not None
    assert np.abs(strategy.integer_matrix).max() <= LARGEST_ENTRY
    assert np.linalg.matrix_rank(strategy.matrix) == n_bins  # every pattern is heard


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(-LARGEST_ENTRY, LARGEST_ENTRY), min_size=n, max_size=n),
            min_size=n,
            max_size=n,
        )
    )
)
def test_largest_norms_are_those_of_the_longest_bin(rows: list[list[int]]) -> None:
    matrix = np.array(rows, np.int8)
    l1, l2 = largest_norms(matrix)
    whole = [[int(a) for a in column] for column in matrix.T]
    assert l1 == max(sum(abs(a) for a in column) for column in whole)
    assert l2 == pytest.approx(max(sum(a * a for a in column) for column in whole) ** 0.5)


# What it gains


def left_over(kernel: Floats, gram: Floats, square: float) -> float:
    """The variance of effects that is left, over that before; levels are not counted."""
    n = len(kernel)
    centred = np.eye(n) - 1 / n
    prior = centred @ kernel @ centred + 1e-9 * np.eye(n)
    after = np.linalg.inv(np.linalg.inv(prior) + square * gram)
    return float(np.trace(centred @ after @ centred) / np.trace(prior))


@pytest.mark.parametrize(
    ("strength", "at_most"), [(0.1, 0.95), (0.3, 0.75), (1.0, 0.7), (3.0, 0.9)]
)
@pytest.mark.parametrize("n_bins", [9, 16, 25, 33])
def test_strategy_matrices_leave_less_of_ordered_effects_unknown(
    n_bins: int, strength: float, at_most: float
) -> None:
    kernel = kernels_of(n_bins, True)[:, :-1, :-1].mean(axis=0)
    gram = strategy_for(n_bins, True, strength, 0.3).gram
    assert gram is not None
    square = strength**2
    before = left_over(kernel, np.eye(n_bins - 1), square)
    assert (
        left_over(kernel, gram[:-1, :-1], square) < max(at_most, 1 - 1.2 * (1 - at_most)) * before
    )


def test_two_categories_need_half_the_variance_once_their_level_is_known() -> None:
    strategy = strategy_for(2, False, 1.0, 0.01)
    assert strategy.gram is not None
    apart = np.array([1.0, -1.0]) / np.sqrt(2)
    assert apart @ strategy.gram @ apart == pytest.approx(2.0, rel=0.05)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=6))
def test_water_filling_leaves_least(signal: list[float]) -> None:
    s = np.array(signal)
    shares = _water(s)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(s.size)

    def left(free: Floats) -> float:
        w = s.size * np.exp(free) / np.exp(free).sum()
        return float(np.sum(s / (1 + w * s)))

    best = minimize(left, np.zeros(s.size), method="Nelder-Mead", options={"maxiter": 4000}).fun
    assert np.sum(s / (1 + shares * s)) <= best * (1 + 1e-6)


@pytest.mark.parametrize("n_bins", [4, 9, 33, WIDEST])
def test_patterns_are_those_along_which_effects_vary(n_bins: int) -> None:
    variance, patterns = _patterns(n_bins)
    kernel = kernels_of(n_bins, True)[:, :-1, :-1].mean(axis=0)
    centred = np.eye(n_bins - 1) - 1 / (n_bins - 1)
    assert np.allclose(patterns.T @ patterns, np.eye(n_bins - 1), atol=1e-9)
    assert np.allclose((patterns * variance) @ patterns.T, centred @ kernel @ centred, atol=1e-9)


def test_likely_patterns_are_louder_and_none_is_silent() -> None:
    matrix = loud_patterns(*_patterns(17), 0.1, 0.3)
    slow, fast = np.cos(np.pi * (np.arange(16) + 0.5) / 16), np.resize([1.0, -1.0], 16)
    heard = [np.linalg.norm(matrix @ v) / np.linalg.norm(v) for v in (slow, fast)]
    assert heard[0] > 2 * heard[1] > 0.5


def test_columns_share_matrices_and_too_many_are_asked_plainly() -> None:
    strategies = [strategy_for(n, False, 1.0, 0.3) for n in range(2, 2 + MOST + 3)]
    strategies += [strategy_for(2, False, 9.0, 0.3), plain(5, True)]
    matrices, matrix_of = _matrices(strategies)
    assert len(matrices) == MOST
    assert matrix_of == (*range(MOST), PLAIN, PLAIN, PLAIN, 0, PLAIN)
    assert [s.integer_matrix is None for s in strategies[MOST : MOST + 3]] == [True] * 3
    assert is_wide(WIDEST + 1, False)
    assert not is_wide(WIDEST + 1, True)
    assert plain(WIDEST + 1, False).gram is None
    assert strategy_for(WIDEST + 1, True, 1.0, 0.3).integer_matrix is None


# How products with a strategy matrix are asked and read


def matrix_query(task: str = "binary", update: str = "slope", clip: float = 0.5) -> ColumnSums:
    schema = SCHEMAS[task]
    grid = base_grid(schema)
    columns = tuple(range(len(schema.columns)))
    cuts = tuple(tuple(range(min(len(g.edges), 4))) if g.ordered else () for g in grid)
    n_bins = tuple(n_bins_of(g, c) for g, c in zip(grid, cuts, strict=True))
    strategies = [strategy_for(n, g.ordered, 0.5, 0.4) for n, g in zip(n_bins, grid, strict=True)]
    loss = {"binary": "logistic", "number": "squared"}.get(task, "softmax")
    weights = tuple(0.5 + 0.2 * j for j in columns)
    return ColumnSums(
        columns, cuts, n_bins, weights, loss, NO_TREES, update, clip, *_matrices(strategies)
    )


def test_a_question_with_matrices_travels_whole() -> None:
    query = matrix_query()
    again = query_from_bytes(query_bytes(query))
    assert isinstance(again, ColumnSums)
    assert again.matrix_of == query.matrix_of
    assert len(query.matrices) > 0
    assert all(np.array_equal(a, b) for a, b in zip(again.matrices, query.matrices, strict=True))
    assert query_bytes(again) == query_bytes(query)


WRONG: list[tuple[str, tuple[StrategyMatrix, ...], tuple[int, ...]]] = [
    ("no column has it", (np.eye(3, dtype=np.int8),), (PLAIN, PLAIN)),
    ("one that is not there", (np.eye(3, dtype=np.int8),), (0, 1)),
    ("of another size", (np.eye(4, dtype=np.int8),), (0, PLAIN)),
    ("not square", (np.ones((2, 3), np.int8),), (0, PLAIN)),
    ("of nothing", (np.zeros((3, 3), np.int8),), (0, PLAIN)),
    ("too large", (np.full((3, 3), -128, np.int8),), (0, PLAIN)),
    ("of other numbers", (np.eye(3),), (0, PLAIN)),  # type: ignore[arg-type]
    ("for fewer columns", (np.eye(3, dtype=np.int8),), (0,)),
    ("negative", (np.eye(3, dtype=np.int8),), (0, -2)),
    ("empty but named", (), (0, PLAIN)),
]


@pytest.mark.parametrize(("what", "matrices", "matrix_of"), WRONG, ids=[w[0] for w in WRONG])
def test_matrices_that_make_no_sense_are_refused(
    what: str, matrices: tuple[StrategyMatrix, ...], matrix_of: tuple[int, ...]
) -> None:
    check_matrices((np.eye(3, dtype=np.int8),), (0, PLAIN), (3, 5))
    with pytest.raises(FormatError, match="column sums"):
        check_matrices(matrices, matrix_of, (3, 5))
    query = matrix_query()
    with pytest.raises(FormatError):
        replace(query, matrices=matrices, matrix_of=matrix_of).check(SCHEMAS["binary"])


def test_matrices_of_more_or_larger_kinds_than_allowed_are_refused() -> None:
    many = tuple(np.eye(2, dtype=np.int8) for _ in range(MOST + 1))
    with pytest.raises(FormatError, match="more strategy matrices"):
        check_matrices(many, tuple(range(MOST + 1)), (2,) * (MOST + 1))
    with pytest.raises(FormatError, match="larger ones"):
        check_matrices((np.eye(WIDEST + 1, dtype=np.int8),), (0,), (WIDEST + 1,))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(-3, 5), max_size=5),
    st.lists(st.integers(-2, 6), max_size=5),
    st.integers(0, 40),
)
def test_matrices_of_any_message_are_read_or_refused(
    matrix_of: list[int], n_bins: list[int], size: int
) -> None:
    arrays = {"mixed": np.array(matrix_of, np.int32), "mixes": np.ones(size, np.int8)}
    try:
        matrices, of = unpack_matrices(unpack(pack({}, arrays))[1], n_bins)
    except FormatError:
        return
    again = pack_matrices(matrices, of)
    assert all(np.array_equal(again[name], arrays[name]) for name in arrays)


def test_coordinates_of_a_column_with_a_matrix_say_what_its_sums_are() -> None:
    rng = np.random.default_rng(2)
    for strategy in (
        strategy_for(9, True, 0.4, 0.5),
        strategy_for(4, False, 1.0, 0.5),
        plain(5, True),
    ):
        sums = rng.normal(0, 10, (2, strategy.n_bins))
        matrix = np.eye(strategy.n_bins) if strategy.matrix is None else strategy.matrix
        for one, said in zip(
            sums, said_by_coordinates(sums @ matrix.T, strategy, 4.0), strict=True
        ):
            assert np.allclose(np.linalg.solve(said.precision, said.moment), one)
            ones = np.ones(strategy.n_bins)
            assert said.total == pytest.approx(one.sum())
            assert said.total_variance == pytest.approx(
                ones @ np.linalg.solve(said.precision, ones)
            )


# How columns agree


def test_columns_learn_their_total_from_each_other() -> None:
    """The same as conditioning all columns at once on having one total."""
    rng = np.random.default_rng(3)
    hessians = [rng.uniform(5, 50, n) for n in (2, 3, 6)]
    noise = [rng.uniform(1, 9, h.size) for h in hessians]
    z = [rng.normal(0, 20, h.size) for h in hessians]
    said = [said_by_bins(a, v, False) for a, v in zip(z, noise, strict=True)]
    found, total, variance = pooled(said, hessians)
    precision = np.diag(1 / np.concatenate(noise))
    moment = precision @ np.concatenate(z)
    edges = np.cumsum([0, 2, 3, 6])
    sums = np.zeros((2, 11))  # the first total less each of the others is nothing
    sums[:, :2] = 1.0
    sums[0, 2:5] = sums[1, 5:] = -1.0
    sharp = precision + 1e9 * sums.T @ sums
    mean = np.linalg.solve(sharp, moment)
    assert total == pytest.approx(mean[:2].sum(), rel=1e-4)
    assert variance == pytest.approx(float(1 / sum(1 / v.sum() for v in noise)))
    for j, (one, h) in enumerate(zip(found, hessians, strict=True)):
        expected = mean[edges[j] : edges[j + 1]] - total * h / h.sum()
        assert np.allclose(np.linalg.solve(one.precision, one.moment), expected, atol=1e-3)
        assert np.linalg.solve(one.precision, one.moment).sum() == pytest.approx(0, abs=1e-3)


def test_a_total_learned_from_all_columns_makes_scores_of_rare_values_better() -> None:
    """Forty columns of two values, the second one rare, and an intercept that is off."""
    rng = np.random.default_rng(4)
    truth = np.where(np.arange(40) % 2 == 0, 0.6, -0.4)
    scores, off = np.stack([-truth * 0.1, truth * 0.9], axis=1), np.zeros(2)
    hessian, noise = np.array([900.0, 100.0]), np.full(2, 1600.0)
    for _ in range(30):
        z = hessian * scores + 0.3 * hessian + rng.normal(0, 40, (40, 2))
        together, total, _ = pooled([said_by_bins(one, noise, False) for one in z], [hessian] * 40)
        assert total == pytest.approx(300.0, abs=6 * 40 * (2 / 40) ** 0.5)
        alone = []
        for one in z:  # each by its own total, which has the noise of all of its bins
            said = said_by_bins(one - one.sum() * hessian / 1000, noise, False)
            alone.append(Evidence(said.precision, said.moment, said.precision))
        for way, evidence in enumerate((together, alone)):
            found = [smooth(one, hessian, False)[1] for one in evidence]
            off[way] += float(np.sum((np.array(found) - scores[:, 1]) ** 2))
    assert off[0] < 0.85 * off[1]


def test_evidence_adds_up_and_old_evidence_counts_less() -> None:
    rng = np.random.default_rng(5)
    said = [said_by_bins(rng.normal(0, 5, 3), np.full(3, 4.0), wide) for wide in (False, True)]
    for one in said:
        new = Evidence(one.precision, one.moment, one.precision)
        old = nothing(3, one.precision.ndim == 1).plus(new).times(0.5)
        both = old.plus(new.moved(np.array([1.0, 0.0, 0.0])))
        z = np.linalg.solve(
            np.diag(both.precision) if both.precision.ndim == 1 else both.precision, both.moment
        )
        single = product(new.precision, np.ones(3))[0]
        assert both.precision.sum() == pytest.approx(1.5 * new.precision.sum())
        assert both.variance.sum() == pytest.approx(1.25 * new.precision.sum())
        assert z[0] == pytest.approx(one.moment[0] / single + 1.0 / 1.5)
