"""The default method on hostile schemas: finite, and hardly worse than a constant."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow import PrivateBoostingClassifier, Schema
from hedgerow.data.schema import Categorical, Column, Label, Numeric

Floats = NDArray[np.float64]
N_ROWS = 2000


def _indicators(rng: np.random.Generator) -> tuple[list[Column], Floats, Floats]:
    columns: list[Column] = [Categorical(f"c{j}", (0, 1), missing=False) for j in range(500)]
    n_rows = 2 * N_ROWS  # S is 40; with half of the rows the loss is just above the line
    X = (rng.random((n_rows, 500)) < rng.uniform(0.001, 0.5, 500)).astype(float)
    return columns, X, (rng.random(n_rows) < 0.2).astype(float)


def _constant(rng: np.random.Generator) -> tuple[list[Column], Floats, Floats]:
    columns: list[Column] = [Numeric(f"x{j}", 0, 10) for j in range(6)]
    X = np.full((N_ROWS, 6), 3.0)
    X[:, 5] = np.nan
    return columns, X, (rng.random(N_ROWS) < 0.3).astype(float)


def _one_column(rng: np.random.Generator) -> tuple[list[Column], Floats, Floats]:
    X = rng.normal(0, 1, (N_ROWS, 1))
    return [Numeric("x", -4, 4)], X, (rng.random(N_ROWS) < 0.5).astype(float)


def _duplicates(rng: np.random.Generator) -> tuple[list[Column], Floats, Floats]:
    columns: list[Column] = [Numeric(f"x{j}", -4, 4) for j in range(20)]
    one = rng.normal(0, 1, (N_ROWS, 1))
    y = (rng.random(N_ROWS) < 1 / (1 + np.exp(-2 * one[:, 0]))).astype(float)
    return columns, np.repeat(one, 20, axis=1), y


def _one_class(rng: np.random.Generator) -> tuple[list[Column], Floats, Floats]:
    columns: list[Column] = [Numeric(f"x{j}", -4, 4) for j in range(5)]
    return columns, rng.normal(0, 1, (N_ROWS, 5)), np.ones(N_ROWS)


MAKERS: dict[str, Callable[[np.random.Generator], tuple[list[Column], Floats, Floats]]] = {
    "500 indicators": _indicators,
    "constant columns": _constant,
    "one column": _one_column,
    "duplicated columns": _duplicates,
    "one class": _one_class,
}


# Losses of fits were at least ten of their deviations below the line, so few are enough.
CASES = [(name, 1.0, 5) for name in MAKERS if name != "500 indicators"]
CASES += [("500 indicators", 1.0, 1), ("duplicated columns", 20.0, 2)]


@pytest.mark.parametrize(("name", "epsilon", "seeds"), CASES)
def test_a_hostile_schema_costs_little_beyond_a_constant(
    name: str, epsilon: float, seeds: int
) -> None:
    """Mean log loss over seeds, few where a fit is long; the constant is the true rate."""
    excess = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        columns, X, y = MAKERS[name](rng)
        schema = Schema(tuple(columns), Label("y", (0, 1)))
        model = PrivateBoostingClassifier(schema, epsilon=epsilon, delta=1e-5, random_state=seed)
        p = model.fit(X, y.astype(int)).predict_proba(X)[:, 1]
        assert np.isfinite(p).all()
        p = np.clip(p, 1e-15, 1 - 1e-15)
        loss = -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))
        rate = float(y.mean())
        constant = (
            0.0
            if rate in (0.0, 1.0)
            else -(rate * math.log(rate) + (1 - rate) * math.log(1 - rate))
        )
        excess.append(loss - constant)
    assert np.mean(excess) <= 0.05
