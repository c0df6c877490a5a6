"""Cuts that are drawn: bounds of what one row does to a choice or a leaf, reached, not passed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.data.binning import base_grid, gather_codes
from hedgerow.data.schema import Label, Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.methods.maddock.growing_tree import GrowingTree
from hedgerow.queries import NO_TREES, LeafAverages, SplitChoices, leaf_averages, split_choices
from hedgerow.queries.gradients import Gradients
from hedgerow.testing import check_neighbours, check_query
from tests.contracts.attacks import SCHEMAS, choices_of, saturated, three_leaves

SCHEMA = Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, classes=[0, 1])
CUT = 64  # code of an edge in the middle of a column
LEFT, RIGHT = 0, 127
ROOT = GrowingTree()
NO_ROWS = np.zeros(0, np.int64)


def sums(
    query: Any, kinds: list[tuple[int, int, float, int]], schema: Schema = SCHEMA
) -> NDArray[np.int64]:
    """Exact sums of a table: (code of a, code of b, +1 or -1 of its gradient, how many rows)."""
    total, grid, bits = NO_ROWS, base_grid(schema), query.fine_bits
    for a, b, sign, times in kinds:
        codes = gather_codes([np.array([a]), np.array([b])], grid, 1)
        # Scores far away, so that gradients are saturated: p - y is 1 or -1.
        row, score = Rows(codes, np.array([float(sign < 0)]), None), np.array([[800.0 * sign]])
        one = times * query.answer(row, score, schema, bits)
        total = one if total is NO_ROWS else total + one
    return total


def asked(utility: str, clip: float = math.inf, reg_lambda: float = 0.0) -> SplitChoices:
    gradients = Gradients("logistic", NO_TREES, clip)
    more = {"utility": utility, "reg_lambda": reg_lambda}
    return choices_of(SCHEMA, ROOT, (0, 1), gradients, **more)


def part_of_range(query: SplitChoices, table: list[Any], row: Any) -> float:
    before = sums(query, table)
    return check_neighbours(query, SCHEMA, before, before + sums(query, [row])[None])


def moved(query: SplitChoices, table: list[Any], row: Any) -> NDArray[np.float64]:
    """Of every way, in units of the utility."""
    before = sums(query, table)
    totals = (before, before + sums(query, [row]))
    one, two = (query.utilities(total, SCHEMA, query.fine_bits)[0][0] for total in totals)
    return np.asarray(two - one) / 2.0**split_choices.UTILITY_BITS


@pytest.mark.parametrize("clip", [math.inf, 0.5, 0.25])
def test_one_row_moves_two_gains_apart_by_nearly_four_squares(clip: float) -> None:
    """A thousand equal rows, and one of the opposite sign that some ways send to an empty side."""
    query, b = asked("gain", clip), min(clip, 1.0)
    table, row = [(LEFT, LEFT, -1, 1000)], (LEFT, RIGHT, 1, 1)
    found = moved(query, table, row)
    assert found.min() == pytest.approx(-3 * b**2, rel=0.01)
    assert found.max() == pytest.approx(b**2, rel=0.01)
    assert 0.97 < part_of_range(query, table, row) <= 1


@pytest.mark.parametrize("n_rows", [0, 1, 2, 3, 10])
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("reg_lambda", [0.0, 0.1, 7.0])
def test_gains_of_small_tables_stay_within(n_rows: int, sign: int, reg_lambda: float) -> None:
    query = asked("gain", reg_lambda=reg_lambda)
    table = [(LEFT, LEFT, -1, n_rows), (RIGHT, LEFT, 1, n_rows // 2)]
    found = moved(query, table, (LEFT, RIGHT, sign, 1))
    assert -3 < found.min() <= found.max() <= 1
    assert part_of_range(query, table, (LEFT, RIGHT, sign, 1)) <= 1


@pytest.mark.parametrize("clip", [math.inf, 0.5])
def test_one_row_moves_two_separations_apart_by_nearly_four_bounds(clip: float) -> None:
    """One way sends it to an empty side; by the other it joins few rows of less than the mean."""
    query, b = asked("separation", clip), min(clip, 1.0)
    table = [(RIGHT, LEFT, -1, 10**6), (RIGHT, LEFT, 1, 5000), (LEFT, LEFT, -1, 1000)]
    found = moved(query, table, (LEFT, RIGHT, 1, 1))
    assert found.min() == pytest.approx(-2 * b, rel=0.02)
    assert found.max() == pytest.approx(2 * b, rel=0.02)
    assert 0.97 < part_of_range(query, table, (LEFT, RIGHT, 1, 1)) <= 1


@pytest.mark.parametrize("utility", split_choices.UTILITIES)
def test_a_range_that_is_too_small_is_found(utility: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_choices, f"_{utility.upper()}", 3.0)
    table = [(RIGHT, LEFT, -1, 10**6), (RIGHT, LEFT, 1, 5000), (LEFT, LEFT, -1, 1000)]
    if utility == "gain":
        table = [(LEFT, LEFT, -1, 1000)]
    with pytest.raises(AssertionError, match="times as far as stated"):
        part_of_range(asked(utility), table, (LEFT, RIGHT, 1, 1))


@pytest.mark.parametrize("task", ["binary", "softmax-3"])
def test_the_contract_itself_finds_half_of_a_range(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = SCHEMAS[task]
    name = "logistic" if task == "binary" else task
    rows, scores = saturated(schema)
    query = choices_of(schema, ROOT, (0, 2, 3), Gradients(name, NO_TREES), utility="gain")
    check_query(query, schema, rows, scores, query.fine_bits)
    monkeypatch.setattr(split_choices, "_GAIN", 2.0)
    with pytest.raises(AssertionError, match="times as far as stated"):
        check_query(query, schema, rows, scores, query.fine_bits)


def leaves(rule: str, least: int, reg_lambda: float, price: float = 0.5) -> LeafAverages:
    gradients = Gradients("logistic", NO_TREES)
    return LeafAverages(ROOT.structure(), gradients, price, rule, least, reg_lambda)


@pytest.mark.parametrize(
    ("rule", "least", "reg_lambda", "n_rows"),
    [
        ("plain", 0, 0.0, 0),
        ("plain", 0, 0.0, 1),
        ("plain", 50, 2.0, 0),  # a least number is not used
        ("least-rows", 1, 0.0, 1),
        ("least-rows", 50, 0.0, 50),
        ("least-rows", 50, 0.1, 50),
        ("least-rows", 10, 30.0, 10),
    ],
)
def test_a_leaf_moves_as_far_as_its_bound_says(
    rule: str, least: int, reg_lambda: float, n_rows: int
) -> None:
    query = leaves(rule, least, reg_lambda)
    before = sums(query, [(LEFT, LEFT, -1, n_rows)])
    row = sums(query, [(LEFT, LEFT, 1, 1)])[None]
    assert 0.98 < check_neighbours(query, SCHEMA, before, before + row) <= 1
    for n in (0, 1, 2, least - 1, least, least + 1, 2 * least + 1, 10**6):
        before = sums(query, [(LEFT, LEFT, -1, max(n, 0))])
        check_neighbours(query, SCHEMA, before, before + row)


def test_half_of_a_leafs_bound_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = LeafAverages.released_blocks.fget  # type: ignore[attr-defined]

    def halved(self: LeafAverages) -> Any:
        return tuple(replace(block, weight=block.weight / 2) for block in right(self))

    schema = SCHEMAS["number"]
    tree = three_leaves(schema).structure()
    query = LeafAverages(tree, Gradients("squared", NO_TREES), 0.7, "plain")
    rows, scores = saturated(schema)
    check_query(query, schema, rows, scores, query.fine_bits)
    monkeypatch.setattr(leaf_averages.LeafAverages, "released_blocks", property(halved))
    with pytest.raises(AssertionError, match="times as far as stated"):
        check_query(query, schema, rows, scores, query.fine_bits)


def test_a_leaf_is_the_negative_mean_over_enough_rows() -> None:
    query = leaves("least-rows", 10, 0.5)
    total = sums(query, [(LEFT, LEFT, -1, 4), (RIGHT, LEFT, 1, 1)])
    value = query.finish(total, query.fine_bits) / 2.0**query.fine_bits
    assert value == pytest.approx(3 / 10.5, abs=2e-6)


@pytest.mark.parametrize("utility", split_choices.UTILITIES)
def test_utilities_are_those_of_a_plain_sum_over_rows(utility: str) -> None:
    """Every way on a small table, missing values included, against sums over masks."""
    rng = np.random.default_rng(3)
    query = asked(utility, reg_lambda=0.3)
    a, b = rng.integers(0, 129, (2, 60))  # code 128 is missing
    sign = rng.choice([-1, 1], 60)
    total = sums(query, [(*row, 1) for row in zip(a, b, sign, strict=True)])  # type: ignore[misc]
    ((found, ways),) = query.utilities(total, SCHEMA, query.fine_bits)
    assert len(ways) == len(set(ways.tolist())) == 2 * 2 * 3
    for utility_found, way in zip(found, ways.tolist(), strict=True):
        bin_, missing_right = divmod(way, 2)
        column, number = divmod(bin_, 5)
        codes = (a, b)[column]
        edge = query.cuts[column][number]
        right = np.where(codes == 128, bool(missing_right), codes > edge)
        g = sign.astype(float)
        if utility == "gain":
            sides = [(g[side].sum() ** 2, side.sum() + 0.3) for side in (right, ~right)]
            expected = sum(square / below for square, below in sides)
        else:
            expected = abs(g[right].sum() - right.mean() * g.sum())
        assert utility_found / 2**16 == pytest.approx(expected, abs=1e-4)


def test_what_is_offered_follows_from_the_bins_that_can_hold_rows() -> None:
    schema = Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, classes=[0, 1])
    query = asked("gain")
    some = query.possible.copy()
    some[0, :5] = [False, True, True, False, True]  # of a: two bins and missing values
    some[0, 5:] = [True, False, False, False, False]  # of b: one bin, nothing missing
    found = replace(query, possible=some).utilities(np.zeros(20, np.int64), schema, 20)
    # Between the two bins with missing values on either side, and missing ones against the rest.
    assert found[0][1].tolist() == [2, 3, 5]


@pytest.mark.parametrize(
    "changes",
    [
        {"leaves": ()},
        {"leaves": (0, 0), "possible": np.ones((2, 10), np.bool_)},
        {"leaves": (1,)},
        {"leaves": (-1,)},
        {"possible": np.ones((1, 9), np.bool_)},
        {"possible": np.zeros((1, 10), np.bool_)},
        {"price": 0.0},
        {"price": math.nan},
        {"price": 1e9},
        {"reg_lambda": -1.0},
        {"reg_lambda": math.inf},
        {"selector": "best"},
        {"utility": "gini"},
        {"n_bins": (5, 6)},
        {"columns": (0, 0)},
        {"gradients": Gradients("softmax-3", NO_TREES)},
        {"gradients": Gradients("logistic", NO_TREES, clip=1.5)},
        {"gradients": Gradients("logistic", NO_TREES, clip=0.0)},
    ],
    ids=str,
)
def test_choices_that_make_no_sense_are_refused(changes: dict[str, Any]) -> None:
    right = asked("gain")
    right.check(SCHEMA)
    with pytest.raises(FormatError):
        replace(right, **changes).check(SCHEMA)


@pytest.mark.parametrize(
    "changes",
    [
        {"price": 0.0},
        {"price": -1.0},
        {"rule": "exact"},
        {"least_rows": -1},
        {"reg_lambda": -0.5},
        {"reg_lambda": math.nan},
        {"gradients": Gradients("softmax-4", NO_TREES)},
    ],
    ids=str,
)
def test_leaves_that_make_no_sense_are_refused(changes: dict[str, Any]) -> None:
    right = leaves("plain", 0, 1.0)
    right.check(SCHEMA)
    with pytest.raises(FormatError):
        replace(right, **changes).check(SCHEMA)


def test_rows_of_multiclass_labels_are_not_left_out_by_one_gradient() -> None:
    schema = SCHEMA.with_label(Label("y", (0, 1, 2)))
    with pytest.raises(FormatError, match="by one gradient"):
        Gradients("softmax-3", NO_TREES, 0.5, drop=True).check(schema, "they")


def test_a_row_is_left_out_by_its_own_gradient_and_no_other() -> None:
    cells = gather_codes([np.zeros(4, int), np.zeros(4, int)], base_grid(SCHEMA), 4)
    rows = Rows(cells, np.array([0.0, 1.0, 0.0, 1.0]), None)
    scores = np.array([[-1.0], [-1.0], [math.nan], [3.0]])  # |p - y|: 0.27, 0.73, none, 0.05
    found, left = Gradients("logistic", NO_TREES, 0.5, drop=True).kept(rows, scores)
    assert found.target.tolist() == [0.0, 1.0]
    assert left[:, 0].tolist() == [-1.0, 3.0]
    same, _ = Gradients("logistic", NO_TREES, 0.5).kept(rows, scores)
    assert same is rows


def test_two_floors_are_in_the_range() -> None:
    """With very many rows one row comes so near to the exact range that floors pass it."""
    query = asked("gain", clip=0.3)
    rows = [(LEFT, LEFT, -1, 159_213_414), (LEFT, RIGHT, 1, 45), (RIGHT, LEFT, -1, 45)]
    row = (LEFT, RIGHT, 1, 1)
    steps = np.rint(moved(query, rows, row) * 2.0**split_choices.UTILITY_BITS)
    exact = math.ceil(4 * 0.3**2 * 2.0**split_choices.UTILITY_BITS)
    assert steps.max() - steps.min() == exact + 1
    assert part_of_range(query, rows, row) <= 1
