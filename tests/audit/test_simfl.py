"""The audit: intervals contain the truth, narrow windows narrow more, one unknown is worst."""

from __future__ import annotations

import numpy as np

from hedgerow.audit.simfl import _Unknowns, lone_rows, narrowing
from hedgerow.data.binning import base_grid
from hedgerow.methods.simfl.hashing import code_values, hash_family
from hedgerow.methods.simfl.neighbours import Neighbours, Pair
from tests.methods.simfl.tables import mixed_rows, numbers


def test_smaller_windows_narrow_rows_down_further() -> None:
    schema, rows = numbers(60, 5)
    wide = narrowing(hash_family(schema, 1, 4, 1.0), rows, n_rows=8)
    narrow = narrowing(hash_family(schema, 1, 4, 0.05), rows, n_rows=8)
    for found in (wide, narrow):
        assert np.all(found.nothing_known >= found.all_but_one_known - 0.02)  # cells have a width
        assert np.all((found.nothing_known >= 0) & (found.nothing_known <= 1 + 1e-9))
    assert narrow.nothing_known.mean() < wide.nothing_known.mean()
    assert narrow.all_but_one_known.mean() < 0.2 < wide.all_but_one_known.mean()
    assert narrow.unique_hashes > wide.unique_hashes
    assert "of its range" in narrow.words()


def test_the_unknowns_give_the_same_projections() -> None:
    schema, rows = mixed_rows(100)
    codes = [rows.codes.column(j) for j in range(4)]
    grid = base_grid(schema)
    whole = np.all([c < g.n_cells for c, g in zip(codes, grid, strict=True)], axis=0)
    rows = rows.take(np.flatnonzero(whole))
    family = hash_family(schema, 1, 5, 0.7)
    unknowns = _Unknowns.of(family)
    x = np.zeros((rows.n_rows, unknowns.slopes.shape[1]))
    for j, column in enumerate(grid):
        held = rows.codes.column(j).astype(int)
        if column.ordered:
            x[:, unknowns.places[j]] = code_values(column)[held, 0]
        else:
            x[np.arange(rows.n_rows), unknowns.places[j] + held] = 1
    projected = (unknowns.base + x @ unknowns.slopes.T) / family.width
    assert np.allclose(projected, family.projections(rows))


def test_a_category_that_alone_is_unknown_is_found() -> None:
    """Hashes tell categories apart unless all of them fall into the same windows."""
    schema, rows = mixed_rows(200)
    found = narrowing(hash_family(schema, 1, 5, 0.05), rows, n_rows=30, n_columns=1)
    assert np.isnan(found.nothing_known[:, 3]).all()
    assert np.mean(found.all_but_one_known[:, 3] == 1 / 5) > 0.9


def test_rows_whose_gradient_travels_alone_are_counted() -> None:
    found = np.zeros((5, 3), np.uint64)
    found[:, 2] = [4, 4, 7, 1, 4]  # the most similar rows
    assert lone_rows(Neighbours(Pair(0, "a", "b"), 3, 9, found)) == 2 / 5
