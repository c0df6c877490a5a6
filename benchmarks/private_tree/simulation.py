"""The report's simulation: Gaussian mixtures over five parties; private, central, local trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from hedgerow.data.schema import Schema
from hedgerow.data.tables import rows_of
from private_tree.bare import tree_of

PARTIES = 5
COMPONENTS = 5
BOUND = 5.0  # public, and hardly ever left: means lie within 1 and deviations are 1
SETTINGS = {"leaf_share": 0.5, "bounds_share": 0.25, "n_bins": 10, "min_samples_leaf": 10}


@dataclass(frozen=True)
class Panel:
    """One panel of figures 3 to 5."""

    n: int
    p: int
    depth: int
    rho: float

    @property
    def key(self) -> str:
        return f"n={self.n} p={self.p} depth={self.depth} rho={self.rho:g}"


def mixture(n: int, p: int, rho: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """n rows, half of each class, in random order."""
    lags = np.abs(np.arange(p)[:, None] - np.arange(p)[None, :])
    root = np.linalg.cholesky(rho**lags)
    half = n // 2
    means = rng.integers(1, COMPONENTS + 1, 2 * half) / COMPONENTS
    signs = np.repeat([1.0, -1.0], half)  # class 0 has the positive means
    X = (signs * means)[:, None] + rng.normal(size=(2 * half, p)) @ root.T
    order = rng.permutation(2 * half)
    return X[order], np.repeat([0, 1], half)[order]


def one_column(n: int, p: int, rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to train and to test on: two normal classes whose means lie 2 apart in one column of p.

    Which column that is, is drawn; the best rule is right at 84 %.
    """
    informative, drawn = rng.integers(p), []
    for _ in range(2):
        y = rng.permutation(np.repeat([0, 1], n // 2))
        X = rng.normal(size=(len(y), p))
        X[:, informative] += np.where(y == 0, 1.0, -1.0)
        drawn.append((X, y))
    return drawn


def schema_of(p: int) -> Schema:
    bounds = {f"x{j}": (-BOUND, BOUND) for j in range(p)}
    return Schema.from_bounds(bounds, classes=[0, 1])


def rows_of_round(panel: Panel, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to train and to test on, of round `seed`."""
    rng = np.random.default_rng([panel.n, panel.p, int(100 * panel.rho), seed])
    if panel.rho:
        return [mixture(panel.n, panel.p, panel.rho, rng) for _ in range(2)]
    return one_column(panel.n, panel.p, rng)


def round_of(
    panel: Panel, seed: int, epsilons: tuple[float, ...], settings: dict[str, object]
) -> dict[str, float]:
    """Test accuracies of one round, by method and epsilon; every method sees the same rows.

    A panel without a correlation has one informative column.
    """
    (X, y), (X_test, y_test) = rows_of_round(panel, seed)
    local = np.arange(0, len(y), PARTIES)
    found = {}
    for name, rows in (("central", slice(None)), ("local", local)):
        tree = DecisionTreeClassifier(max_depth=panel.depth, min_samples_leaf=10, random_state=0)
        found[name] = float(tree.fit(X[rows], y[rows]).score(X_test, y_test))
    schema = schema_of(panel.p)
    parts = [rows_of(X[i::PARTIES], schema, y[i::PARTIES]) for i in range(PARTIES)]
    for epsilon in epsilons:
        for name, saves in (("saving", True), ("plain", False)):
            chosen = {**settings, "max_depth": panel.depth, "save_budget": saves}
            if not saves:
                chosen.pop("bounds_share", None)
            model = tree_of(parts, schema, epsilon, seed, **chosen)
            right = model.predict(X_test).argmax(axis=1) == y_test
            found[f"{name} {epsilon:g}"] = float(right.mean())
    return found
