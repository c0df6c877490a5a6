"""The default method's parts, one by one: bins, interactions, step trees, rule, intercept."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.metrics import roc_auc_score

from hedgerow import PrivateBoostingClassifier, PrivateBoostingRegressor
from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid
from hedgerow.data.rng import stream
from hedgerow.data.schema import Schema
from hedgerow.data.tables import rows_of
from hedgerow.errors import SettingsError, SlotSpent
from hedgerow.kernels import cells
from hedgerow.methods.auto import rule_for
from hedgerow.methods.auto.bins import Bins, bins_of, cell_cuts, equal_mass
from hedgerow.methods.auto.calibration import SCORE_EDGES, recalibrate
from hedgerow.methods.auto.evidence import said_by_coordinates
from hedgerow.methods.auto.interaction_tables import TAUS as TABLE_TAUS
from hedgerow.methods.auto.interaction_tables import (
    InteractionTables,
    Spread,
    leading,
    line_factor,
    overlap,
    weigh,
)
from hedgerow.methods.auto.main_effects import INTERCEPT_STEP, MOST_SHIFT, _Average
from hedgerow.methods.auto.parts import Cut, Parts, structure_of
from hedgerow.methods.auto.rule import SEVERAL, balance
from hedgerow.methods.auto.start import (
    Counted,
    Known,
    centre_and_spread,
    chord,
    clamped_variance,
    class_rates,
    counted_by_columns,
    even_counts,
    known_classes,
)
from hedgerow.methods.auto.strategies import plain
from hedgerow.methods.registry import plan_for
from hedgerow.model.routing import routes_of
from hedgerow.model.tree import Tree
from hedgerow.privacy.settings import AutoSettings, Privacy
from hedgerow.queries import n_bins_of
from hedgerow.testing.noise import seeded
from tests.conftest import MIXED, mixed_table

GRID = base_grid(MIXED)
ROWS = rows_of(mixed_table(400, seed=2), MIXED)


# Trees of several parts


def routed(structure: Any, values: NDArray[np.float64]) -> NDArray[np.float64]:
    tree = Tree(structure, values.reshape(-1, 1).astype(np.float32))
    tree.check(MIXED, 1)
    scores = np.zeros((ROWS.n_rows, 1))
    routes_of([structure], GRID).add_scores(ROWS.codes, scores, tree.values)
    return scores[:, 0]


def part_of_rows(parts: Parts) -> NDArray[np.int64]:
    """The part of every row, computed from codes without any tree."""
    grid, codes = GRID[parts.column], ROWS.codes.column(parts.column).astype(np.int64)
    bins = np.searchsorted(np.array(parts.cuts, np.int64), codes) if parts.cuts else 0 * codes
    bins = bins if grid.ordered else codes.copy()
    bins[codes == grid.missing_code] = len(parts.part) - 1
    return parts.part[bins]


def some_parts(column: int, rng: np.random.Generator, own_missing: bool) -> Parts:
    grid = GRID[column]
    if grid.ordered:
        n_cuts = int(rng.integers(0, min(6, len(grid.edges)) + 1))
        cuts = tuple(sorted(rng.choice(len(grid.edges), n_cuts, replace=False).tolist()))
        inner = np.cumsum(np.r_[0, rng.integers(0, 2, n_cuts)])
    else:
        cuts = ()
        inner = np.unique(rng.integers(0, 4, grid.n_cells), return_inverse=True)[1]
    last = inner.max() + 1 if own_missing else rng.integers(0, inner.max() + 1)
    return Parts(column, cuts, np.append(inner, last).astype(np.int64))


@pytest.mark.parametrize("seed", range(60))
def test_a_tree_of_parts_sends_every_row_to_its_cell(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chosen = rng.choice(5, int(rng.integers(1, 4)), replace=False)
    columns = [some_parts(int(j), rng, bool(rng.integers(2))) for j in chosen]
    structure, of_leaf = structure_of(MIXED, GRID, columns)
    cell = np.zeros(ROWS.n_rows, np.int64)
    for parts in columns:
        cell = cell * parts.n_parts + part_of_rows(parts)
    assert np.array_equal(routed(structure, of_leaf.astype(np.float64)), cell)


def test_a_column_without_edges_keeps_missing_values_in_its_bin() -> None:
    schema = Schema.from_bounds({"x": (0, 1)}, classes=[0, 1])
    grid = base_grid(schema)
    bare = type(grid[0])(grid[0].column, grid[0].edges[:0], 1)
    structure, of_leaf = structure_of(schema, [bare], [Parts(0, (), np.array([0, 1]))])
    assert structure.n_leaves == 1
    assert of_leaf.tolist() == [0]


# Cells and bins


@pytest.mark.parametrize("n_bins", [6, 12, 24, 32])
def test_cells_are_a_refinement_of_even_and_log_spaced_edges(n_bins: int) -> None:
    schema = Schema.from_bounds({"x": (0.0, 1000.0), "y": (-50.0, 20.0)}, classes=[0, 1])
    for grid in base_grid(schema):
        cuts = cell_cuts(grid, n_bins)
        assert list(cuts) == sorted(set(cuts))
        assert n_bins <= len(cuts) <= 2 * n_bins + 42
    heavy = base_grid(schema)[0].edges[list(cell_cuts(base_grid(schema)[0], n_bins))]
    assert heavy.min() < 1000 / 2**8  # values near zero are told apart


def test_whole_numbers_of_a_small_range_have_a_cell_each() -> None:
    assert cell_cuts(GRID[0], 32) == tuple(range(len(GRID[0].edges)))
    assert cell_cuts(GRID[3], 32) == ()


@settings(deadline=None)
@given(
    arrays(np.float64, st.integers(1, 80), elements=st.floats(0, 1e6)),
    st.integers(1, 32),
    st.booleans(),
)
def test_bins_are_in_order_and_not_too_many(
    mass: NDArray[np.float64], n_bins: int, heavy: bool
) -> None:
    found = equal_mass(mass, n_bins, heavy)
    assert found[0] == 0
    assert set(np.diff(found).tolist()) <= {0, 1}
    # Heavy cells cut the run of light bins they stand in: at most one more piece for each.
    assert found[-1] + 1 <= (2 * n_bins if heavy else n_bins)


def test_a_heavy_cell_is_a_bin_of_its_own() -> None:
    mass = np.r_[np.full(10, 1.0), 500.0, np.full(10, 1.0)]
    alone = equal_mass(mass, 6, True)
    assert np.sum(alone == alone[10]) == 1
    assert alone[-1] + 1 >= 6  # the light cells keep their bins
    assert equal_mass(mass, 6, False)[-1] + 1 == 3  # without it, the heavy one takes them all


def test_bins_add_up_to_their_cells() -> None:
    rng = np.random.default_rng(0)
    cuts = cell_cuts(GRID[1], 12)
    counts = rng.uniform(0, 50, len(cuts) + 2)
    bins = bins_of(GRID[1], cuts, counts, 1.0, 8, True)
    assert bins.add_up(counts).sum() == pytest.approx(counts.sum())
    assert set(bins.cuts) <= set(cuts)
    assert bins.n_bins == len(bins.cuts) + 2
    assert bins.n_cells.sum() == len(counts)
    by_class = rng.uniform(0, 9, (3, len(counts)))
    assert np.allclose(bins.add_up(by_class).sum(axis=1), by_class.sum(axis=1))


def test_bins_of_noise_alone_still_are_bins() -> None:
    cuts = cell_cuts(GRID[1], 12)
    bins = bins_of(GRID[1], cuts, np.full(len(cuts) + 2, -5.0), 10.0, 8, True)
    assert bins.n_bins == len(bins.cuts) + 2 >= 2


# Tables


def cut_at(spread: Spread, n_parts: int, shift: float = 0.0) -> NDArray[np.int64]:
    part = np.empty(spread.place.size, np.int64)
    n, begin = np.full(part.size, n_parts), np.zeros(1, np.int64)
    part[spread.order] = cells.parts_by_place(spread.place, n, np.full(part.size, shift), begin)
    return part


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("n_parts", [2, 4, 8])
def test_parts_are_numbered_without_gaps(ordered: bool, n_parts: int) -> None:
    rng = np.random.default_rng(n_parts)
    counts, theta = rng.uniform(0, 100, 15), rng.normal(0, 1, 15)
    part = cut_at(Spread.of(counts, ordered, theta, 1.0), n_parts)
    assert sorted(set(part.tolist())) == list(range(part.max() + 1))
    assert part.max() < n_parts
    order = np.arange(15) if ordered else np.argsort(theta)
    assert (np.diff(part[order]) >= 0).all()


def test_a_shift_moves_the_cuts_of_a_table() -> None:
    spread = Spread.of(np.full(24, 50.0), True, np.zeros(24), 0.5)
    cuts = {
        shift: np.flatnonzero(np.diff(cut_at(spread, 4, shift))).tolist()
        for shift in (-0.49, -0.25, 0.0, 0.25, 0.49)
    }
    assert cuts[0.0] == [5, 11, 17]
    assert len({tuple(found) for found in cuts.values()}) == 5
    assert all(len(found) == 3 for found in cuts.values())


def test_cell_weights_are_a_mean_over_tau_and_vanish_under_noise() -> None:
    g, h = np.array([40.0, -60.0, 5.0]), np.array([50.0, 80.0, 20.0])
    flat, ends = np.zeros((1, TABLE_TAUS.size)), np.array([3])
    weights, _, likely = weigh(g[None], h[None], ends, 2.0, 1.0, flat, 1.0)
    assert likely.sum() == pytest.approx(1.0)
    assert (np.sign(weights) == np.sign(g)).all()
    assert (np.abs(weights) < np.abs(g / h)).all()
    full = 2.0**2 + h[:, None] + np.outer(h, TABLE_TAUS) ** 2  # (cell, tau)
    plain = (likely[0, 0] * TABLE_TAUS**2 / full).sum(axis=1) * h * g
    np.testing.assert_allclose(weights[0], plain)
    drowned, _, _ = weigh(g[None], h[None], ends, 2000.0, 1.0, flat, 1.0)
    assert np.abs(drowned).max() < 1e-3


def test_tables_and_outputs_are_weighed_each_by_itself() -> None:
    rng = np.random.default_rng(8)
    g, h = rng.normal(0, 30, (2, 7)), rng.uniform(1, 90, (2, 7))
    log_tau, ends = rng.normal(0, 1, (2, TABLE_TAUS.size)), np.array([3, 7])
    together = weigh(g, h, ends, 3.0, 0.4, log_tau, 2.0)
    for k in range(2):
        for table, part in enumerate((slice(0, 3), slice(3, 7))):
            one, size = slice(k, k + 1), np.array([part.stop - part.start])
            alone = weigh(g[one, part], h[one, part], size, 3.0, 0.4, log_tau[one], 2.0)
            assert np.array_equal(alone[0], together[0][one, part])
            assert np.array_equal(alone[1], together[1][one, part])
            assert np.array_equal(alone[2][0, 0], together[2][k, table])


def test_categories_are_sorted_alike_however_the_classes_are_ordered() -> None:
    rng = np.random.default_rng(6)
    theta, counts = rng.normal(0, 1, (4, 9)), rng.uniform(1, 50, 9)
    found = leading(theta, counts)
    assert leading(theta[[2, 0, 3, 1]], counts) == pytest.approx(found)
    assert np.abs(found).max() == found.max()
    assert np.array_equal(leading(theta[:1], counts), theta[0])
    one = np.outer([1.0, -0.5, -0.5], np.arange(9) - 3.0)  # all classes vary along one line
    assert np.argsort(leading(one, counts)).tolist() == list(range(9))
    assert not leading(np.zeros((3, 9)), counts).any()


def test_an_overshoot_of_several_outputs_is_taken_back_faster() -> None:
    assert line_factor(-90.0, 100.0, 1.0, 1.0, 0.3) == pytest.approx(0.3)
    assert line_factor(-90.0, 100.0, 1.0, 1.0, 0.6) == pytest.approx(0.6)
    assert line_factor(20.0, 100.0, 1.0, 1.0, 0.3) == pytest.approx(1.2, abs=0.001)
    assert line_factor(90.0, 1.0, 500.0, 1.0, 0.3) == pytest.approx(1.0, abs=0.001)


def some_tables(
    chance: NDArray[np.float64],
) -> tuple[InteractionTables, list[tuple[int, ...]], list[Spread]]:
    """Tables over all columns of the mixed schema, with the cuts and places they are made from."""
    rng = np.random.default_rng(3)
    cuts = [cell_cuts(grid, 6) for grid in GRID]
    n_bins = [n_bins_of(grid, c) for grid, c in zip(GRID, cuts, strict=True)]
    spreads = [
        Spread.of(rng.uniform(1, 50, n), grid.ordered, rng.normal(0, 1, n), 0.5)
        for grid, n in zip(GRID, n_bins, strict=True)
    ]
    return InteractionTables.of(chance, Cut.of(MIXED, GRID, range(5), cuts), spreads), cuts, spreads


def test_a_round_of_tables_is_that_of_one_table_after_another() -> None:
    """By `Generator.choice` and one number a column for its cuts, one table at a time."""
    chance = np.array([0.4, 0.0, 0.3, 0.2, 0.1])
    tables, cuts, spreads = some_tables(chance)
    shapes = [(2, 4), (3, 3), (5, 2), (1, 6)] * 4
    for number in range(20):
        rng = stream(7, "tables", number)
        for structure, (size, n_parts) in zip(tables.draw(7, number, shapes), shapes, strict=True):
            columns = rng.choice(5, min(size, 4), replace=False, p=chance).tolist()
            assert 1 not in columns
            parts = [
                Parts(j, cuts[j], cut_at(spreads[j], n_parts, float(rng.random()) - 0.5))
                for j in columns
            ]
            assert structure.key == structure_of(MIXED, GRID, parts)[0].key


def test_columns_that_hardly_ever_come_are_drawn_in_the_end() -> None:
    """Chance that is all in one column: as many numbers are used as can be."""
    chance = np.array([1 - 4e-9, 1e-9, 1e-9, 1e-9, 1e-9])
    drawn = some_tables(chance)[0].draw(1, 0, [(5, 2)] * 3)
    assert [sorted(set(s.feature[s.feature >= 0].tolist())) for s in drawn] == [list(range(5))] * 3


def test_tables_of_many_columns_take_smaller_steps() -> None:
    assert overlap(np.full(4, 0.25), 16, 3.0) == pytest.approx(4 / 48)


# The start and the end


def test_denominators_have_the_base_rate_in_every_bin() -> None:
    cells = [np.array([[90.0, 10.0, 0.0], [5.0, 20.0, 0.0]])]
    bins = [Bins((0,), np.arange(3))]
    known = known_classes(cells, bins, np.array([0.8, 0.2]), 4.0, 2.0, 0.5)
    assert known.counts[0].tolist() == [95.0, 30.0, 8.0]  # the empty bin: two deviations
    assert known.hessians[0][0] == pytest.approx(0.16 * known.counts[0])
    assert known.z[0][0] == pytest.approx([5 - 0.2 * 95, 20 - 0.2 * 30, 0.0])
    # Gradients of .2 and, clamped, -.5: 0.7 apart.
    assert known.sampling[0][0] == pytest.approx(0.7**2 * known.hessians[0][0])


@pytest.mark.parametrize(("rate", "clip"), [(0.1, 0.5), (0.4, 0.7), (0.03, 2.0)])
def test_the_variance_by_chance_is_that_of_clamped_gradients(rate: float, clip: float) -> None:
    gradients = np.clip([rate, rate - 1], -clip, clip)
    mean = np.dot(gradients, [1 - rate, rate])
    variance = np.dot((gradients - mean) ** 2, [1 - rate, rate])
    cells, bins = [np.array([[500.0, 0.0], [500.0, 0.0]])], [Bins((), np.arange(2))]
    known = known_classes(cells, bins, np.array([1 - rate, rate]), 1.0, 1.0, clip)
    assert known.sampling[0][0, 0] == pytest.approx(1000 * variance)


@pytest.mark.parametrize("clip", [0.7, 1.0, 1.25])
def test_the_variance_by_chance_of_numbers_is_that_of_clamped_normal_ones(clip: float) -> None:
    grid = (np.arange(2_000_000) + 0.5) / 2_000_000
    normal = np.clip(ndtri(grid), -clip, clip)
    assert clamped_variance(clip) == pytest.approx(float(np.mean(normal**2)), rel=1e-4)


def test_a_rare_class_that_is_frequent_in_one_bin_has_a_larger_denominator_there() -> None:
    cells = [np.array([[900.0, 50.0, 0.0], [900.0, 50.0, 0.0], [3.0, 40.0, 0.0]])]
    bins, rates = [Bins((0,), np.arange(3))], np.array([0.49, 0.49, 0.02])
    plain, steep = (
        known_classes(cells, bins, rates, 2.0, 1.0, 0.5, steep) for steep in (False, True)
    )
    assert steep.hessians[0][:2] == pytest.approx(plain.hessians[0][:2], rel=1e-3)
    assert steep.hessians[0][2, 0] == plain.hessians[0][2, 0]
    assert steep.hessians[0][2, 1] > 2 * plain.hessians[0][2, 1]
    again = known_classes(cells, bins, rates, 40.0, 1.0, 0.5, True)  # less sure: noise, perhaps
    assert np.array_equal(
        again.hessians[0], known_classes(cells, bins, rates, 40.0, 1.0, 0.5).hessians[0]
    )


def test_a_chord_leads_from_the_base_rate_to_the_rate() -> None:
    base, rate = np.array([[0.01], [0.2]]), np.array([[0.3, 0.005], [0.9, 0.2]])
    found = chord(base, rate)
    apart = math.log(0.3 / 0.7) - math.log(0.01 / 0.99)
    assert found[0, 0] == pytest.approx(0.29 / apart)
    assert found[1, 0] > 0.2 * 0.8 / 2
    assert found[0, 1] == found[1, 1] == 0.0


def test_rates_are_shares_whatever_the_noise() -> None:
    rng = np.random.default_rng(0)
    cells = [rng.normal(0, 50, (3, n)) for n in (4, 9)]
    rates = class_rates(counted_by_columns(cells, 3.0))
    assert rates.sum() == pytest.approx(1.0)
    assert rates.min() > 0
    exact = [np.array([[30.0, 10.0], [5.0, 5.0]]), np.array([[20.0, 20.0, 0.0], [4.0, 3.0, 3.0]])]
    assert class_rates(counted_by_columns(exact, 0.0)) == pytest.approx([0.8, 0.2])


def test_the_first_count_steadies_the_shares_of_a_rare_class() -> None:
    """Where the cells of all columns say that nobody is of a class, the first question knows."""
    rng = np.random.default_rng(6)
    first = Counted(np.array([930.0, 70.0]), 20.0**2)
    alone, together = [], []
    for _ in range(200):
        cells = [np.outer([930, 70], np.full(30, 1 / 30)) + rng.normal(0, 16, (2, 30))] * 2
        by_columns = counted_by_columns(cells, 16.0 * math.sqrt(2))
        alone.append(class_rates(by_columns)[1])
        together.append(class_rates([*by_columns, first])[1])
    assert np.min(alone) < 0.006
    assert np.min(together) > 0.05


def test_centre_and_spread_of_a_label() -> None:
    histogram = np.zeros(64)
    histogram[[20, 40]] = 500.0
    centre, spread = centre_and_spread(histogram, 1.0)
    assert centre == pytest.approx(30.5 / 64)
    assert spread == pytest.approx(10 / 64, rel=1e-4)  # a little of the wide guess remains
    assert centre_and_spread(np.full(64, -1.0), 5.0) == (0.5, 0.25)


def test_recalibration_finds_a_wrong_slope() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(-1, 1.5, 200_000)
    labels = rng.random(200_000) < 1 / (1 + np.exp(-(0.4 + 1.6 * scores)))
    place = np.searchsorted(SCORE_EDGES, scores)
    ones = np.bincount(place[labels], minlength=16).astype(float)
    zeros = np.bincount(place[~labels], minlength=16).astype(float)
    shift, slope = recalibrate(ones, zeros, 5.0)
    assert shift == pytest.approx(0.4, abs=0.1)
    assert slope == pytest.approx(1.6, abs=0.15)
    shift, slope = recalibrate(rng.normal(0, 9e6, 16), rng.normal(0, 9e6, 16), 9e6)
    assert abs(shift) < 4
    assert 0.4 <= slope <= 2.5


# The rule


@settings(deadline=None)
@given(
    st.floats(-1e6, 1e12),
    st.integers(1, 5000),
    st.floats(1e-6, 100),
    st.sampled_from(["binary", "multiclass", "regression"]),
    st.one_of(st.none(), st.lists(st.floats(0.005, 0.995), min_size=2, max_size=9)),
)
def test_the_rule_spends_all_of_the_budget_and_no_more(
    n_rows: float, n_columns: int, mu: float, task: str, weights: list[float] | None
) -> None:
    rates = None if weights is None else [w / sum(weights) for w in weights]
    rule = rule_for(n_rows, n_columns, mu, task, rates)
    assert rule.n_rounds <= 16
    shares = (rule.start_share, rule.label_share, rule.final_share, rule.interaction_share)
    assert all(share >= 0 for share in shares)
    assert rule.main_share > 0.2
    assert (rule.interaction_share > 0) == (rule.interaction_rounds > 0)
    assert (4 if task == "regression" else 6) <= rule.n_bins <= 32
    cells = max(size**parts for parts, size in rule.shapes)
    assert rule.n_interaction_tables * cells <= 8192


@settings(deadline=None)
@given(
    st.floats(1, 1e9),
    st.integers(1, 500),
    st.floats(1e-6, 100),
    st.sampled_from(["binary", "multiclass", "regression"]),
    st.integers(16, 400),
)
def test_more_rounds_leave_a_rule_as_it_is_but_for_how_interactions_are_asked(
    n_rows: float, n_columns: int, mu: float, task: str, rounds: int
) -> None:
    few = rule_for(n_rows, n_columns, mu, task)
    many = rule_for(n_rows, n_columns, mu, task, most_rounds=rounds)
    assert many.n_rounds <= max(rounds, few.n_rounds)
    if not many.dictionary_rounds:
        assert many == few
        return
    assert many.dictionary_rounds >= 12
    assert many.dictionary_rounds * n_rows <= 40_000_000
    assert many.interaction_share == many.dictionary_share == few.interaction_share / 2
    assert many.main_share == pytest.approx(few.main_share)
    whole = few.interaction_share
    as_few = replace(many, dictionary_rounds=0, dictionary_share=0.0, interaction_share=whole)
    assert as_few == few


def test_binary_labels_have_interactions_only_where_the_rarer_one_carries_them() -> None:
    assert (
        rule_for(84_000, 10, 0.033, "binary", (0.93, 0.07)).interaction_share == 0.0
    )  # S = 877, effective 228
    assert rule_for(84_000, 10, 0.033, "binary", (0.5, 0.5)).interaction_share > 0.25


def test_a_column_alone_has_no_tables_and_their_part_of_the_budget() -> None:
    many, one = (rule_for(100_000, 4, 0.3, "binary", (0.5, 0.5), n) for n in (2, 1))
    assert many.interaction_rounds > 0
    assert one.interaction_rounds == 0
    assert one.main_share == many.main_share + many.interaction_share
    assert rule_for(100_000, 1, 0.3, "regression").interaction_share == 0


def test_multiclass_labels_have_interactions_only_where_they_carry_them() -> None:
    three, ten = [1 / 3] * 3, [0.1] * 10
    assert balance(three) * 800 > SEVERAL > balance(ten) * 1900
    for n_rows, rates, some in ((8000, three, True), (7000, three, False), (19_000, ten, False)):
        rule = rule_for(n_rows, 16, 0.4, "multiclass", rates)  # S is a tenth of the rows
        assert (rule.interaction_rounds > 0) == some
        assert rule.heavy == some
        assert rule.main_rounds == 6
    much = rule_for(400_000, 54, 0.25, "multiclass", three)
    assert much.interaction_share == pytest.approx(0.4)
    assert much.n_rounds == 16


def test_tables_have_fewer_cells_where_the_rarer_class_fills_fewer() -> None:
    def cells(rate: float, mu: float, task: str = "binary") -> int:
        rule = rule_for(36_000, 28, mu, task, (1 - rate, rate))
        assert rule.interaction_share > 0
        return max(parts**size for size, parts in rule.shapes)

    assert cells(0.5, 0.06) == 27  # S = 408: few tables, and small ones
    assert cells(0.5, 0.15) == 64  # S = 1021
    assert cells(0.5, 0.28) == 216  # S = 1905
    assert cells(0.15, 0.28) == 64  # effective 971
    assert cells(0.15, 0.28, "regression") == 216  # measured with binary labels only


def test_early_rounds_are_forgotten_where_the_rarer_class_is_seen_well() -> None:
    def memory(rate: float | None, n_rows: float = 24_000, task: str = "binary") -> float:
        rates = None if rate is None else (1 - rate, rate)
        return rule_for(n_rows, 6, 0.037, task, rates).memory  # S = 363

    assert memory(0.28) == pytest.approx(0.8, abs=0.01)
    assert 0.8 < memory(0.18) < 0.95
    assert memory(0.05) == memory(0.5, n_rows=1000) == 1.0
    assert memory(None, task="regression") == 1.0
    assert memory(None, 60_000, "regression") == 0.8


def test_a_number_seen_through_noise_has_few_label_cells_and_pays_more_for_them() -> None:
    low, high = rule_for(3000, 8, 0.01, "regression"), rule_for(30_000, 8, 0.1, "regression")
    assert low.label_cells < high.label_cells
    assert low.label_share > high.label_share


def test_few_columns_of_a_number_need_less_caution_than_many_or_than_classes() -> None:
    assert rule_for(3000, 8, 0.01, "binary").caution > 0  # S = 10.6
    assert rule_for(3000, 8, 0.01, "regression").caution == 0
    assert rule_for(20_000, 500, 0.01, "regression").caution > 0  # S = 8.9
    assert rule_for(3000, 8, 0.001, "regression").caution > 0  # S = 1.1


# The intercept


def intercept_after(task: str, said: list[float], noises: list[float]) -> float:
    """Where the intercept ends if every question finds the mean of 50 rows at `said`."""
    bins = [SimpleNamespace(n_bins=2, n_cells=np.array([1, 1])) for _ in range(2)]
    rows = [np.array([[20.0, 30.0]]), np.array([[10.0, 40.0]])]
    run = SimpleNamespace(
        task=task, spread=2.0, bins=bins, theta=[np.zeros((1, 2))] * 2, intercept=np.zeros(1),
        rule=rule_for(3000, 2, 0.01, task), n_effects=1,
        grid=[SimpleNamespace(ordered=True)] * 2, gate=SimpleNamespace(start=()),
    )  # fmt: skip
    run.shift = lambda by: setattr(run, "intercept", run.intercept + by)

    def sums() -> list[NDArray[np.float64]]:
        return [h * (said[0] - run.intercept[0]) / run.spread for h in rows]

    run.known = Known([h[0] for h in rows], rows, sums(), np.array([noises[0]]), rows)
    average = _Average(run)  # type: ignore[arg-type]
    for noise in noises[1:]:
        said = said[1:]
        average.add([said_by_coordinates(s, plain(2, True), noise) for s in sums()])
    return float(run.intercept[0])


def test_the_intercept_of_numbers_is_the_average_of_all_rounds_by_precision() -> None:
    said, noises = [0.3, 0.5, 0.1], [4.0, 1.0, 2.0]
    trust = 50.0**2 / np.array(noises)  # beside a guess of 0 with precision 1
    expected = trust @ said / (1 + trust.sum())
    assert intercept_after("regression", said, noises) == pytest.approx(expected)


def test_the_intercept_of_numbers_stays_where_labels_are_and_hears_no_noise() -> None:
    assert intercept_after("regression", [0.5, 900.0, 40.0], [4.0, 1.0, 2.0]) == 1.0
    assert intercept_after("regression", [0.5, -900.0], [4.0, 1.0]) == 0.0
    assert intercept_after("regression", [0.5, 9.0], [4e6, 1e6]) == pytest.approx(0.0, abs=0.03)


def test_the_intercept_of_classes_makes_no_large_step() -> None:
    assert intercept_after("binary", [0.0, 900.0], [4.0, 1.0]) == MOST_SHIFT


def test_the_intercept_of_classes_follows_the_last_rounds() -> None:
    expected = INTERCEPT_STEP * -0.3 + (1 - INTERCEPT_STEP) * INTERCEPT_STEP * 1.2
    found = intercept_after("binary", [3.0, 1.2, -0.3], [4.0, 1.0, 2.0])
    assert found == pytest.approx(expected)


# Lost counts


@pytest.mark.parametrize("regression", [True, False])
def test_a_run_whose_counts_were_lost_still_learns(
    regression: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row count, which was released before, stands in for them."""
    release = Gate.release

    def lossy(gate: Gate, query: Any, mu: float = 0.0, name: str = "") -> Any:
        if name == "counts":
            raise SlotSpent("lost")
        return release(gate, query, mu, name)

    monkeypatch.setattr(Gate, "release", lossy)
    rng = np.random.default_rng(4)
    X = rng.uniform(0, 1, (6000, 3))
    if regression:
        model: Any = PrivateBoostingRegressor(
            bounds=(0, 1), label_bounds=(0, 1), epsilon=8.0, delta=1e-6
        )
        y = X[:, 0]
    else:
        model = PrivateBoostingClassifier(bounds=(0, 1), classes=[0, 1], epsilon=8.0, delta=1e-6)
        y = (rng.random(6000) < X[:, 0]).astype(np.int64)
    model.fit(X, y)
    scores = model.predict(X) if regression else model.decision_function(X)
    assert np.corrcoef(scores, X[:, 0])[0, 1] > 0.9
    if regression:
        assert abs(scores.mean() - y.mean()) < 0.02


def test_even_counts_hold_every_row_once_in_every_column() -> None:
    two = even_counts([4, 7], 50.0, (0.8, 0.2), 2)
    assert [c.sum(axis=1).tolist() for c in two] == [pytest.approx([40.0, 10.0])] * 2
    assert np.ptp(two[1], axis=1).max() == 0.0
    assert even_counts([5], 30.0, None, 3)[0].sum(axis=1) == pytest.approx([10.0, 10.0, 10.0])
    sums, rows = even_counts([5], 30.0, None, 0)[0]
    assert not sums.any()
    assert rows.sum() == pytest.approx(30.0)


# Directions


def test_directions_that_cannot_be_kept_are_refused() -> None:
    def plan(schema: Schema, monotone: Any) -> None:
        plan_for(schema, Privacy(1.0, 1e-6), settings={"monotone": monotone})

    plan(MIXED, {"age": 1, "stage": -1})
    with pytest.raises(SettingsError, match="which the schema does not have"):
        plan(MIXED, {"height": 1})
    with pytest.raises(SettingsError, match="without order"):
        plan(MIXED, {"site": 1})
    with pytest.raises(SettingsError, match="1 or -1"):
        plan(MIXED, {"age": 2})
    with pytest.raises(SettingsError, match="1 or -1"):
        AutoSettings(monotone="age")
    several = Schema.from_bounds({"age": (0, 1)}, classes=[0, 1, 2])
    with pytest.raises(SettingsError, match="multiclass"):
        plan(several, {"age": 1})


def test_one_spelling_of_directions() -> None:
    assert AutoSettings(monotone={"b": 1, "a": -1}).monotone == '{"a": -1, "b": 1}'  # type: ignore[arg-type]
    assert AutoSettings(monotone='{"a":-1,"b":1}').directions == {"a": -1, "b": 1}


# More epsilon


@pytest.mark.parametrize("seed", [0, 1])
def test_more_epsilon_does_not_fit_the_sample(seed: int) -> None:
    """Few rows and many columns without effect: without sampling noise .72 fell to .63."""

    def made_up(n_rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
        X = rng.uniform(-1, 1, (n_rows, 20))
        chance = 1 / (1 + np.exp(-1.2 * X[:, 0] - X[:, 1] + 0.8 * X[:, 2]))
        return X, (rng.random(n_rows) < chance).astype(int)

    rng = np.random.default_rng(seed)
    (X, y), (X_test, y_test) = made_up(1000), made_up(5000)
    aucs = []
    for epsilon in (3.0, 100.0):
        with seeded(seed):
            model = PrivateBoostingClassifier(
                epsilon=epsilon, bounds=(-1, 1), classes=[0, 1], random_state=seed
            ).fit(X, y)
        aucs.append(roc_auc_score(y_test, model.predict_proba(X_test)[:, 1]))
    assert aucs[1] > aucs[0] - 0.01
    assert aucs[1] > 0.72
