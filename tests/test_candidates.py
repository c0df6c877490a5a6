"""Candidates: cuts are edges of the public grid, refined by releases and by nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.binning import base_grid
from hedgerow.errors import PlanError, SettingsError
from hedgerow.growing.boost import wishes
from hedgerow.growing.candidates import CANDIDATES, refine
from hedgerow.growing.splits.totally_random import columns_to_cut
from hedgerow.queries import ColumnHessians
from hedgerow.schema import Categorical, Label, Numeric, Schema
from hedgerow.settings import Settings
from tests.conftest import MIXED
from tests.oracle.parts import first_cuts, refined

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
    assert np.sum(uniform < 0.05) == 0


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


@pytest.mark.parametrize("n_bins", [2, 5, 32])
def test_no_question_about_cuts_outgrows_its_slot(n_bins: int) -> None:
    """A slot has room for n_bins numbers a column, which no refinement exceeds."""
    choice = Settings(candidates="iterative-hessian", n_bins=n_bins, n_trees=7, candidate_rounds=3)
    asked = [wish for wish in wishes(MIXED, choice) if wish.kind == ColumnHessians.kind]
    assert [wish.coordinates for wish in asked] == [2 * n_bins] * 3  # age and dose
    assert sum(wish.share for wish in asked) == pytest.approx(choice.candidate_share)


def test_a_schema_that_cannot_be_cut_is_refused_before_anything_is_asked() -> None:
    flat = Schema((Numeric("x", 1e9, 1e9 + 1),), Label("y", (0, 1)))
    for name in CANDIDATES:
        assert columns_to_cut(flat, CANDIDATES[name](flat, 8)) == []
        with pytest.raises(PlanError, match="can be cut"):
            wishes(flat, Settings(candidates=name))
    with pytest.raises(SettingsError, match="leave nothing"):
        wishes(
            MIXED, Settings(candidates="iterative-hessian", candidate_share=0.9, start_share=0.2)
        )


def test_without_numeric_columns_nothing_is_asked_about_cuts() -> None:
    schema = Schema((Categorical("c", ("a", "b")),), Label("y", (0, 1)))
    kinds = {wish.kind for wish in wishes(schema, Settings(candidates="iterative-hessian"))}
    assert ColumnHessians.kind not in kinds
