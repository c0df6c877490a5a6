"""Sparse matrices, wide tables, columns in another order, columns that say nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from hedgerow import PrivateBoostingClassifier
from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Categorical, Column, Label, Numeric, Ordinal, Schema
from hedgerow.data.tables import Rows, encode_table, rows_of
from hedgerow.errors import TableError
from hedgerow.estimators.inputs import _told_apart, split_rows
from tests.conftest import mixed_rows, mixed_table
from tests.data.test_tables import COLUMNS, SCHEMA, same


def dotted() -> tuple[Schema, np.ndarray]:
    """A table of few entries: 0/1 categories (one with text names), numbers, whole numbers."""
    columns: list[Column] = [Categorical(f"c{j}", (0, 1)) for j in range(6)]
    columns += [Numeric("x", -2, 2), Numeric("n", 0, 9, integer=True), Ordinal("o", (0, 1, 2))]
    rng = np.random.default_rng(3)
    dense = np.where(rng.uniform(size=(50, 9)) < 0.2, 1.0, 0.0)
    dense[:, 6] *= rng.normal(size=50)
    dense[:, 7] *= 7
    dense[:, 8] *= 2
    return Schema(tuple(columns), Label("y", (0, 1))), dense


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dok", "lil", "dia", "bsr"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_sparse_tables_equal_dense_ones(format: str, kind: str) -> None:
    schema, dense = dotted()
    labels = dense[:, 0]
    sparse = getattr(scipy.sparse, f"{format}_{kind}")(dense)
    expected = rows_of(dense, schema, labels)
    rows = rows_of(sparse, schema, labels)
    assert same(rows.codes, expected.codes)
    assert same(encode_table(sparse, base_grid(schema)), expected.codes)
    assert np.array_equal(sparse.toarray(), dense)  # the caller's matrix is as it was


def test_a_place_that_a_sparse_matrix_stores_twice_is_added_up() -> None:
    schema = Schema.from_bounds({"a": (0, 4), "b": (0, 4)}, classes=[0, 1])
    twice = scipy.sparse.coo_array(([1.0, 2.0, 1.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    for matrix in (twice, twice.tocsr()):
        codes = encode_table(matrix, base_grid(schema))
        assert same(codes, encode_table(np.array([[0.0, 3.0], [1.0, 0.0]]), base_grid(schema)))


def test_sparse_entries_that_are_missing_complex_or_of_another_width() -> None:
    schema = Schema.from_bounds({"a": (0, 4), "b": (0, 4)}, classes=[0, 1])
    grid = base_grid(schema)
    codes = encode_table(scipy.sparse.csr_array([[np.nan, 0.0]]), grid)
    assert codes.column(0).tolist() == [grid[0].missing_code]
    assert codes.column(1).tolist() == [0]
    with pytest.raises(TableError, match="3 columns and the schema 2"):
        encode_table(scipy.sparse.eye_array(3).tocsr(), grid)
    for values in (np.eye(2) * 1j, scipy.sparse.csr_array(np.eye(2) * 1j)):
        with pytest.raises(TableError, match="Complex data not supported"):
            encode_table(values, grid)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "dict"])
def test_columns_are_found_by_name_in_any_order(kind: str) -> None:
    make: Any = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "dict": dict}
    turned = {name: COLUMNS[name] for name in reversed(COLUMNS)}
    rows = rows_of(make[kind](turned), SCHEMA)
    assert same(rows.codes, rows_of(COLUMNS, SCHEMA).codes)
    assert rows.target.tolist() == [1, 0, 0, 1]


TRAINED: dict[str, tuple[tuple[Column, ...], Any]] = {
    "a thousand categories": (
        (Categorical("c", tuple(range(1000))), Numeric("x", 0, 1)),
        lambda rng, n: {"c": rng.integers(0, 1000, n), "x": rng.uniform(size=n)},
    ),
    "a constant column": (
        (Numeric("x", 0, 1), Categorical("one", ("only",))),
        lambda rng, n: {"x": np.full(n, 0.5), "one": ["only"] * n},
    ),
    "a column that is always missing": (
        (Numeric("x", 0, 1), Categorical("c", ("a", "b"))),
        lambda rng, n: {"x": np.full(n, np.nan), "c": [None] * n},
    ),
    "booleans": (
        (Categorical("b", (False, True)), Numeric("x", 0, 1)),
        lambda rng, n: {"b": rng.uniform(size=n) < 0.5, "x": rng.uniform(size=n) < 0.5},
    ),
    "1,500 columns": (
        tuple(Numeric(f"x{j}", 0, 1) for j in range(1500)),
        lambda rng, n: {f"x{j}": rng.uniform(size=n) for j in range(1500)},
    ),
}


@pytest.mark.filterwarnings("ignore:column 'one' lists one category")
@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("candidates", ["uniform", "iterative-hessian"])
def test_unusual_tables_train_and_predict(name: str, candidates: str) -> None:
    columns, make = TRAINED[name]
    rng = np.random.default_rng(0)
    table = make(rng, 80)
    schema = Schema(columns, Label("y", (0, 1, 2)))
    labels = rng.integers(0, 3, 80)
    settings = {"candidates": candidates, "features_per_tree": min(40, len(columns))}
    model = PrivateBoostingClassifier(
        schema, method="random-trees", n_trees=3, max_depth=3, settings=settings
    )
    shares = model.fit(table, labels).predict_proba(table)
    assert shares.shape == (80, 3)
    assert np.isfinite(shares).all()
    if name.startswith(("a constant", "a column")):  # rows that cannot be told apart
        assert np.array_equal(shares, np.tile(shares[:1], (80, 1)))


def test_labels_of_many_rows_are_told_apart() -> None:
    names = np.array([f"{k}-{'x' * 38}" for k in range(9)])
    index = np.arange(450_000) % 9  # 18 MB of text
    found, places = _told_apart(names[index])
    assert found == sorted(names.tolist())
    assert np.array_equal(np.array(found)[places[:100]], names[index[:100]])
    assert np.array_equal(np.bincount(places), np.bincount(index))


@pytest.mark.parametrize("n_parties", [1, 3, 40])
def test_rows_split_among_parties_are_those_taken_for_each(n_parties: int) -> None:
    rows = mixed_rows(mixed_table(200, seed=2))
    rows = Rows(rows.codes, rows.target, np.arange(200), rows.schema, ids=tuple("x" * 200))
    labels = np.random.default_rng(1).integers(0, n_parties, 200).astype(str)
    assert rows.codes.wide.size
    parts = split_rows(rows, labels)
    assert list(parts) == sorted(set(labels))
    for name, part in parts.items():
        taken = rows.take(np.flatnonzero(labels == name))
        for mine, other in (
            (part.codes.narrow, taken.codes.narrow),
            (part.codes.wide, taken.codes.wide),
            (part.target, taken.target),
            (part.persons, taken.persons),
        ):
            assert mine is not None
            assert other is not None
            assert mine.flags.c_contiguous
            np.testing.assert_array_equal(mine, other)
            assert mine.dtype == other.dtype
        assert (part.ids, part.schema) == (taken.ids, taken.schema)
