"""Every registered query is attacked with the worst rows; a kind without an attack is an error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.binning import base_grid, gather_codes
from hedgerow.errors import FormatError
from hedgerow.growing.candidates import CANDIDATES
from hedgerow.growing.splits.totally_random import totally_random
from hedgerow.losses import LOSSES
from hedgerow.queries import (
    NO_TREES,
    QUERIES,
    ColumnCounts,
    LabelSums,
    LeafSums,
    Sensitivity,
    SumQuery,
    query_bytes,
    query_from_bytes,
    size_of,
)
from hedgerow.rng import stream
from hedgerow.tables import Rows
from hedgerow.testing import check_query
from tests.conftest import MIXED

GOLDEN = (1 + math.sqrt(5)) / 2
# The score at which |p - y| is 1 / GOLDEN, where the joint bound of (g, h) is tight.
TIGHT = math.log(1 / (GOLDEN - 1))
SCORES = [0.0, *(s * v for v in (1e6, 800.0, 40.0, 1.0, TIGHT, 1e-300) for s in (1, -1))]
SCORES += [math.inf, -math.inf, math.nan]


def leaf_sums(n_trees: int) -> LeafSums:
    candidates = CANDIDATES["uniform"](MIXED, 32)
    columns = list(range(len(MIXED.columns)))
    structures = tuple(
        totally_random(MIXED, candidates, columns, 3, "subset", stream(1, "tree", i))
        for i in range(n_trees)
    )
    return LeafSums(structures, "logistic", NO_TREES)


# A kind of query and the questions it is attacked with.
ATTACKS: dict[str, Callable[[], list[SumQuery]]] = {
    LabelSums.kind: lambda: [LabelSums(2)],
    ColumnCounts.kind: lambda: [ColumnCounts.of(MIXED), ColumnCounts.of(MIXED, (4, 0))],
    LeafSums.kind: lambda: [leaf_sums(1), leaf_sums(7)],
}


def every_cell() -> Rows:
    """Rows that visit every code of every column, missing ones too, in both classes."""
    grid = base_grid(MIXED)
    n_rows = 2 * max(g.n_codes for g in grid)
    columns = [np.arange(n_rows) % g.n_codes for g in grid]
    target = (np.arange(n_rows) * 2 // n_rows).astype(np.float64)
    return Rows(gather_codes(columns, grid, n_rows), target, None)


def saturated() -> tuple[Rows, NDArray[np.float64]]:
    """A row of each class at each score that could break a bound."""
    index = np.arange(2 * len(SCORES))
    rows = every_cell().take(index * 17 % every_cell().n_rows)
    target = (index % 2).astype(np.float64)
    return Rows(rows.codes, target, None), np.repeat(SCORES, 2)[:, None].astype(np.float64)


def test_every_registered_kind_has_an_attack() -> None:
    assert set(ATTACKS) == set(QUERIES)


@pytest.mark.parametrize("kind", QUERIES)
def test_no_cell_exceeds_the_stated_sensitivity(kind: str) -> None:
    rows = every_cell()
    scores = np.resize(np.array(SCORES), (rows.n_rows, 1))
    for query in ATTACKS[kind]():
        check_query(query, MIXED, rows, scores, bits=31)


@pytest.mark.parametrize("bits", range(16, 32))
@pytest.mark.parametrize("kind", QUERIES)
def test_no_saturated_score_exceeds_the_stated_sensitivity(kind: str, bits: int) -> None:
    rows, scores = saturated()
    for query in ATTACKS[kind]():
        check_query(query, MIXED, rows, scores, bits)


@pytest.mark.parametrize("kind", QUERIES)
def test_a_query_survives_its_own_bytes(kind: str) -> None:
    rows, scores = saturated()
    for query in ATTACKS[kind]():
        data = query_bytes(query)
        again = query_from_bytes(data)
        assert query_bytes(again) == data
        assert (again.blocks, again.sensitivity) == (query.blocks, query.sensitivity)
        expected = query.answer(rows, scores, MIXED, 20)
        assert np.array_equal(again.answer(rows, scores, MIXED, 20), expected)
        assert expected.shape == (size_of(query),)


@pytest.mark.parametrize("kind", QUERIES)
def test_cut_or_foreign_bytes_are_not_a_query(kind: str) -> None:
    data = query_bytes(ATTACKS[kind]()[0])
    for broken in (
        data[:-1],
        data[1:],
        data + b"\0",
        data.replace(kind.encode(), b"x" * len(kind)),
    ):
        with pytest.raises(FormatError):
            query_from_bytes(broken)


# The attacks can fail.


def test_a_hessian_scale_beyond_the_bound_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOSSES, "logistic", replace(LOSSES["logistic"], hessian_scale=3.34))
    rows, scores = saturated()
    with pytest.raises(AssertionError, match="a row moves the answer"):
        check_query(leaf_sums(1), MIXED, rows, scores, bits=26)


def test_a_forgotten_tree_of_the_batch_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeafSums, "sensitivity", Sensitivity(l1=99.0, l2=math.sqrt(6)))
    rows, scores = saturated()
    with pytest.raises(AssertionError, match="a row moves the answer"):
        check_query(leaf_sums(7), MIXED, rows, scores, bits=26)


def test_rounding_away_from_zero_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = LeafSums.answer

    def rounded_up(self: LeafSums, *arguments: object) -> NDArray[np.int64]:
        exact = right(self, *arguments)  # type: ignore[arg-type]
        half = len(exact) // 2
        exact[half:] += exact[:half] != 0  # one step more wherever a row lands
        return exact

    monkeypatch.setattr(LeafSums, "answer", rounded_up)
    rows, scores = saturated()
    with pytest.raises(AssertionError, match="a row moves the answer"):
        check_query(leaf_sums(1), MIXED, rows, scores, bits=16)


def test_counting_a_row_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = LabelSums.answer
    monkeypatch.setattr(LabelSums, "answer", lambda self, *a: 2 * right(self, *a))
    rows, scores = saturated()
    with pytest.raises(AssertionError, match="a row moves the answer"):
        check_query(LabelSums(2), MIXED, rows, scores, bits=20)


# The joint bound of (g, c h) on the grid, in whole numbers.


def worst_square(bits: int, scale: tuple[int, int], rounding: str) -> int:
    """Largest (n g)^2 + (m h)^2 - (n one)^2 with c = m / n, over a dense set of q."""
    m, n = scale
    one = 1 << bits
    # Quarter steps: everywhere at 16 bits, around the tight point and the ends above.
    centres = [4 * one - 4, 4 * round(one / GOLDEN), 4]
    wanted = (
        range(4 * one + 1)
        if bits == 16
        else [q for c in centres for q in range(c - 40_000, c + 40_000) if 0 <= q <= 4 * one]
    )
    worst = -(n**2) * one**2
    for quarter in wanted:
        if rounding == "truncate":
            g = quarter // 4
            h = g * (one - g) >> bits
        else:
            g = (quarter + 2) // 4
            h = (quarter * (4 * one - quarter) + 8 * one) // (16 * one)
        worst = max(worst, (n * g) ** 2 + (m * h) ** 2 - (n * one) ** 2)
    return worst


@pytest.mark.parametrize("bits", [16, 31])
def test_the_joint_bound_holds_on_the_grid_because_q_is_truncated(bits: int) -> None:
    assert worst_square(bits, (333, 100), "truncate") <= 0
    just_below = (math.floor(GOLDEN**2.5 * 10**12), 10**12)
    assert worst_square(bits, just_below, "truncate") <= 0
    assert worst_square(bits, (334, 100), "truncate") > 0
    assert worst_square(bits, just_below, "nearest") > 0


@pytest.mark.parametrize("bits", range(16, 32))
def test_the_compiled_gradient_keeps_the_joint_bound(bits: int) -> None:
    one = 1 << bits
    tight = TIGHT + np.linspace(-1e-4, 1e-4, 1500)
    scores = np.concatenate([np.linspace(-60, 60, 1500), tight, -tight])
    for score in scores.tolist():
        for target in (0.0, 1.0):
            g, h = (int(v) for v in kernels._logistic(score, target, bits))
            assert (100 * g) ** 2 + (333 * h) ** 2 <= (100 * one) ** 2
            assert (g <= 0) == (target == 1.0) or g == 0
