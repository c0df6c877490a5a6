"""Candidates: cuts are edges of the public grid, refined by releases and by nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Categorical, Label, Numeric, Ordinal, Schema
from hedgerow.data.tables import rows_of
from hedgerow.errors import PlanError, SettingsError
from hedgerow.methods.maddock.boosting import declared_queries
from hedgerow.methods.maddock.candidates import CANDIDATES, refine
from hedgerow.methods.maddock.candidates.quantiles import equal_mass
from hedgerow.methods.maddock.splits.totally_random import columns_to_cut
from hedgerow.privacy.settings import BoostingSettings, Privacy
from hedgerow.queries import ColumnCounts, ColumnHessians
from hedgerow.testing import seeded
from tests.conftest import MIXED, train
from tests.oracle.parts import equal_mass_cuts, first_cuts, refined

EDGES = [grid.edges for grid in base_grid(MIXED)]
BOUNDS = st.sampled_from([(0.0, 1.0), (-1.0, 5.0), (-900.0, -3.0), (10.0, 1e6)])


@pytest.mark.parametrize("name", CANDIDATES)
@pytest.mark.parametrize("n_bins", [4, 8, 32, 128])
def test_first_cuts_are_those_of_the_reference(name: str, n_bins: int) -> None:
    found = CANDIDATES[name](MIXED, n_bins)
    expected = first_cuts(MIXED, EDGES, name, n_bins)
    assert {j: cuts for j, cuts in enumerate(found) if j in expected} == expected
    for j, cuts in enumerate(found):
        assert len(cuts) < n_bins
        assert list(cuts) == sorted(set(cuts))
        assert (len(cuts) == 0) == isinstance(MIXED.columns[j], Categorical)


def test_log_cuts_are_denser_toward_zero_than_uniform_ones() -> None:
    schema = Schema.from_bounds({"x": (0, 1)}, classes=[0, 1])
    edges = base_grid(schema)[0].edges
    log, uniform = (edges[list(CANDIDATES[n](schema, 16)[0])] for n in ("log", "uniform"))
    assert np.sum(log < 0.05) >= 10
    assert np.sum(uniform < 0.05) == 1  # the one that parts rows at the lower bound


def test_a_uniform_cut_parts_the_rows_at_the_lower_bound_from_all_others() -> None:
    columns = (Numeric("children", 0, 200, integer=True), Numeric("dose", 0, 10))
    schema = Schema(columns, Label("y", (0, 1)))
    cuts = CANDIDATES["uniform"](schema, 8)
    first = [grid.edges[of[0]] for grid, of in zip(base_grid(schema), cuts, strict=True)]
    assert first[0] == 1
    assert 0 < first[1] < 1e-3
    assert [len(of) for of in cuts] == [7, 7]
    middle = [grid.edges[of[0]] for grid, of in zip(
        base_grid(schema), CANDIDATES["uniform"](schema, 2), strict=True
    )]  # fmt: skip
    assert middle == [100, 5]


@settings(deadline=None, max_examples=200)
@given(BOUNDS, st.integers(2, 32), st.data())
def test_any_release_refines_as_the_reference_does(
    bounds: tuple[float, float], n_bins: int, data: st.DataObject
) -> None:
    schema = Schema((Numeric("x", *bounds),), Label("y", (0, 1)))
    grid = base_grid(schema)[0]
    cuts = CANDIDATES["uniform"](schema, n_bins)[0]
    for _ in range(3):
        # Whole numbers keep sums exact; noise makes some of them negative.
        numbers = st.lists(st.integers(-50, 1000), min_size=len(cuts) + 1, max_size=len(cuts) + 1)
        hessians = data.draw(numbers)
        fresh = refine(grid, cuts, np.array(hessians, np.float64), n_bins)
        expected = refined(schema.columns[0], grid.edges, cuts, hessians, n_bins)
        assert fresh == expected
        assert len(fresh) < n_bins
        assert list(fresh) == sorted(set(fresh))
        assert not fresh or (fresh[0] >= 0 and fresh[-1] < len(grid.edges))
        cuts = fresh


def test_refining_moves_cuts_to_where_the_uncertain_rows_lie() -> None:
    schema = Schema.from_bounds({"x": (0, 1)}, classes=[0, 1])
    grid = base_grid(schema)[0]
    cuts = CANDIDATES["uniform"](schema, 8)[0]
    assert refine(grid, cuts, np.full(8, -1.0), 8) == cuts  # nothing but noise: stay
    rows = np.linspace(0.25, 0.375, 1000)  # all uncertain rows lie here
    for _ in range(5):
        hessians = np.histogram(rows, [-np.inf, *grid.edges[list(cuts)], np.inf])[0]
        cuts = refine(grid, cuts, hessians.astype(np.float64), 8)
    inside = grid.edges[list(cuts)]
    assert np.sum((inside >= 0.25) & (inside <= 0.375)) >= 5


def test_a_light_bin_does_not_swallow_the_heavy_one_on_its_right() -> None:
    """The edge where the heavy bin begins stays, and the light ones before it are merged."""
    schema = Schema.from_bounds({"x": (0, 1)}, classes=[0, 1])
    grid = base_grid(schema)[0]
    cuts = CANDIDATES["uniform"](schema, 8)[0]
    fresh = refine(grid, cuts, np.array([1.0, 1, 1, 500, 1, 1, 300, 1]), 8)
    assert {cuts[2], cuts[3], cuts[5], cuts[6]} <= set(fresh)
    assert not {cuts[0], cuts[1], cuts[4]} & set(fresh)
    inside = grid.edges[[k for k in fresh if cuts[2] < k < cuts[3]]]
    assert len(inside) >= 1  # the heavy bin is halved


def test_no_cut_goes_where_no_row_is() -> None:
    """A long tail: heavy bins run out of edges, and the empty ones beside them stay whole."""
    schema = Schema.from_bounds({"x": (0, 1000)}, classes=[0, 1])
    grid = base_grid(schema)[0]
    cuts = CANDIDATES["uniform"](schema, 32)[0]
    rows = np.concatenate([np.zeros(900), np.linspace(0, 2, 100)])
    for _ in range(5):
        hessians = np.histogram(rows, [-np.inf, *grid.edges[list(cuts)], np.inf])[0]
        cuts = refine(grid, cuts, hessians.astype(np.float64), 32)
    assert cuts
    assert np.sum(grid.edges[list(cuts)] > 10) <= 1


COUNTS = st.lists(st.integers(-30, 1000), min_size=1, max_size=60)


@settings(deadline=None, max_examples=300)
@given(COUNTS, st.sampled_from([0.0, 5.0, 60.0]), st.integers(2, 32))
def test_any_counts_are_cut_as_the_reference_does(
    counts: list[int], deviation: float, n_bins: int
) -> None:
    found = equal_mass(np.array(counts, np.float64), deviation, n_bins)
    assert found == equal_mass_cuts(counts, deviation, n_bins)
    assert len(found) < n_bins
    assert list(found) == sorted(set(found))
    assert not found or (found[0] >= 0 and found[-1] < len(counts) - 1)


def test_bins_between_equal_mass_cuts_hold_equal_shares() -> None:
    counts = np.random.default_rng(2).integers(5, 15, 250).astype(np.float64)
    edges = equal_mass(counts, 0.0, 16)
    masses = [part.sum() for part in np.split(counts, np.array(edges) + 1)]
    assert len(masses) == 16
    assert max(masses) - min(masses) <= 2 * counts.max()


def test_a_heavy_cell_is_a_bin_of_its_own_and_noise_is_no_mass() -> None:
    rng = np.random.default_rng(4)
    counts = rng.normal(0, 10, 200)
    counts[40] += 5000  # a spike, as zeros are in many columns
    counts[100:180] += 200
    edges = equal_mass(counts, 10.0, 9)
    assert {39, 40} <= set(edges)
    inside = [edge for edge in edges if 100 <= edge < 180]
    assert len(inside) >= 5  # what is not the spike is cut evenly
    assert equal_mass(np.full(50, 3.0), 10.0, 8) == ()  # nothing but noise


def test_private_quantiles_find_a_heavy_tail_that_uniform_cuts_miss() -> None:
    rng = np.random.default_rng(6)
    x = rng.lognormal(0, 1.5, 4000).clip(0, 1000)
    y = (x > 1.0).astype(int)
    schema = Schema.from_bounds({"x": (0, 1000)}, classes=[0, 1], label="y")
    rows = rows_of({"x": x, "y": y}, schema)
    found = {}
    for candidates in ("uniform", "quantiles"):
        chosen = {"candidates": candidates, "n_trees": 40, "n_bins": 16, "max_depth": 3}
        with seeded(1):
            model, plan, _ = train({"all": rows}, schema, Privacy(2.0, 1e-5), chosen)
        cuts = np.concatenate(
            [t.structure.threshold[t.structure.feature >= 0] for t in model.trees]
        )
        found[candidates] = np.mean((cuts > 0.01) & (cuts < 10))
        kinds = [slot.kind for slot in plan.slots]
        assert kinds.count("column-counts") == (candidates == "quantiles")
    assert found["quantiles"] > 0.7
    assert found["uniform"] == 0


@pytest.mark.parametrize("share", [0.2, 0.0])
def test_counts_cost_their_share_or_as_much_a_column_as_a_tree(share: float) -> None:
    choice = BoostingSettings(
        candidates="quantiles", candidate_share=share, n_trees=8, start_share=0.0
    )
    asked = declared_queries(MIXED, choice)
    counts = [declared for declared in asked if declared.kind == ColumnCounts.kind]
    assert [declared.kind for declared in asked].index(
        ColumnCounts.kind
    ) == 1  # after the base rate
    columns = [grid for grid in base_grid(MIXED) if grid.ordered and len(grid.edges) >= 32]
    assert [declared.coordinates for declared in counts] == [sum(grid.n_codes for grid in columns)]
    tree = asked[-1].share
    expected = 0.2 if share else tree * len(columns)
    assert counts[0].share == pytest.approx(expected)


def test_columns_with_few_edges_are_not_counted() -> None:
    schema = Schema(
        (Ordinal("o", ("a", "b", "c")), Numeric("n", 0, 10, integer=True)), Label("y", (0, 1))
    )
    kinds = {
        declared.kind
        for declared in declared_queries(schema, BoostingSettings(candidates="quantiles"))
    }
    assert ColumnCounts.kind not in kinds


@pytest.mark.parametrize("n_bins", [2, 5, 32])
def test_no_question_about_cuts_outgrows_its_slot(n_bins: int) -> None:
    """A slot has room for n_bins numbers a column, which no refinement exceeds."""
    choice = BoostingSettings(
        candidates="iterative-hessian", n_bins=n_bins, n_trees=7, candidate_rounds=3
    )
    asked = [
        declared
        for declared in declared_queries(MIXED, choice)
        if declared.kind == ColumnHessians.kind
    ]
    assert [declared.coordinates for declared in asked] == [2 * n_bins] * 3  # age and dose
    assert sum(declared.share for declared in asked) == pytest.approx(choice.candidate_share)


def test_a_schema_that_cannot_be_cut_is_refused_before_anything_is_asked() -> None:
    flat = Schema((Numeric("x", 0.2, 0.9, integer=True),), Label("y", (0, 1)))
    for name in CANDIDATES:
        assert columns_to_cut(flat, CANDIDATES[name](flat, 8)) == []
        with pytest.raises(PlanError, match="can be cut"):
            declared_queries(flat, BoostingSettings(candidates=name))
    with pytest.raises(SettingsError, match="leave nothing"):
        declared_queries(
            MIXED,
            BoostingSettings(candidates="iterative-hessian", candidate_share=0.9, start_share=0.2),
        )


def test_without_numeric_columns_nothing_is_asked_about_cuts() -> None:
    schema = Schema((Categorical("c", ("a", "b")),), Label("y", (0, 1)))
    kinds = {
        declared.kind
        for declared in declared_queries(schema, BoostingSettings(candidates="iterative-hessian"))
    }
    assert ColumnHessians.kind not in kinds
