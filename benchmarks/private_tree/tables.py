"""Real tables: the private tree against diffprivlib's, CART on the same bins and CART itself."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from accuracy.data import Data, Split, frame_for_trees, load, split_of
from hedgerow.data.binning import base_grid
from hedgerow.methods.private_tree.rule import tree_cuts
from hedgerow.queries.cuts import bin_of_codes, n_bins_of
from private_tree.bare import tree_of

TABLES = ("adult", "bank", "credit2")
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
DEPTH = 5


def diffprivlib_version(python: str) -> str:
    """The version that runs under another interpreter, or why none does.

    diffprivlib 0.6.6 does not import beside scikit-learn 1.6 and newer, so it has a place of its
    own: python -m venv; pip install scikit-learn==1.5.2 diffprivlib==0.6.6.
    """
    if not python:
        return "left out: no interpreter was given that has it (--diffprivlib)"
    code = "import diffprivlib.models, sklearn; print(diffprivlib.__version__, sklearn.__version__)"
    done = subprocess.run([python, "-W", "ignore", "-c", code], capture_output=True, text=True)
    if done.returncode:
        return f"left out: {done.stderr.strip().splitlines()[-1]}"
    return "{} beside scikit-learn {}".format(*done.stdout.split())


@lru_cache(maxsize=1)
def one_hot(data: Data, n_bins: int) -> np.ndarray:
    """Bin codes of ordered columns, categories one by one: what trees without sets need."""
    grid, cuts = base_grid(data.schema), tree_cuts(data.schema, n_bins)
    parts = []
    for j, column in enumerate(grid):
        bins = bin_of_codes(grid, (j,), (tuple(cuts[j]),))[0][0][data.rows.codes.column(j)]
        width = n_bins_of(column, cuts[j])
        parts.append(bins[:, None] if column.ordered else bins[:, None] == np.arange(width))
    return np.concatenate(parts, axis=1).astype(np.float64)


def measured(share: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    found = {"accuracy": float(((share > 0.5) == truth).mean())}
    return {**found, "auc": float(roc_auc_score(truth, share))}


def private(
    data: Data, split: Split, epsilon: float, seed: int, **settings: Any
) -> dict[str, float]:
    rows, parties = data.rows.take(split.train), int(settings.pop("parties", 1))
    parts = [rows.take(np.arange(i, rows.n_rows, parties)) for i in range(parties)]
    model = tree_of(parts, data.schema, epsilon, seed, **{"max_depth": DEPTH, **settings})
    return measured(model.predict(data.table.take(split.test))[:, 1], data.truth[split.test])


def cart(data: Data, split: Split, n_bins: int) -> dict[str, float]:
    return _cart(data, split, one_hot(data, n_bins))


def unbinned_cart(data: Data, split: Split) -> dict[str, float]:
    """Numbers as they are, lists one-hot: what no bin and no noise takes away."""
    import pandas as pd

    frame = frame_for_trees(data)
    return _cart(data, split, pd.get_dummies(frame).astype(np.float64).fillna(-1.0).to_numpy())


def _cart(data: Data, split: Split, X: np.ndarray) -> dict[str, float]:
    y = data.truth
    tree = DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=10, random_state=0)
    tree.fit(X[split.train], y[split.train])
    return measured(tree.predict_proba(X[split.test])[:, 1], y[split.test])


def other_library(
    python: str, data: Data, split: Split, epsilon: float, seed: int
) -> dict[str, float]:
    """diffprivlib's private tree: random splits, labels by a private choice. Bounds are public."""
    X, y = one_hot(data, 16), data.truth
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npy"
        np.savez(given, X=X[split.train], y=y[split.train], test=X[split.test])
        script = str(Path(__file__).with_name("theirs.py"))
        words = [str(given), str(found), str(DEPTH), str(epsilon), str(seed)]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        subprocess.run([python, "-W", "ignore", script, *words], check=True, env=environment)
        return measured(np.load(found), y[split.test])


def cell(table: str, name: str, epsilon: float, seed: int, python: str = "") -> dict[str, float]:
    """One fit: a method on one split of a table."""
    data = load(table)
    split = split_of(data, seed)
    if name == "cart, 16 bins":
        return cart(data, split, 16)
    if name == "cart, 10 bins":
        return cart(data, split, 10)
    if name == "cart, 128 bins":
        return cart(data, split, 128)
    if name == "cart, unbinned":
        return unbinned_cart(data, split)
    if name == "diffprivlib":
        return other_library(python, data, split, epsilon, seed)
    settings: dict[str, Any] = {
        "saving": {}, "saving, 5 parties": {"parties": 5}, "plain": {"save_budget": False},
    }[name]  # fmt: skip
    found = [private(data, split, epsilon, 100 * seed + r, **settings) for r in range(4)]
    return {key: float(np.mean([one[key] for one in found])) for key in found[0]}
