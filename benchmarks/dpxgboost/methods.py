"""One fit of one method on one split, and its error on the test rows."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from dpxgboost.data import (
    Data,
    Split,
    frame_for_trees,
    least_rows,
    numbers_for_peer,
    own_settings,
)
from hedgerow import PrivateBoostingClassifier, PrivateBoostingRegressor, local_federation
from hedgerow.privacy.accounting.pure import before_sampling
from hedgerow.testing import noise_off

PAPER, OWN, DELTA, AUTO = "paper's settings", "own settings", "own, with delta", "auto"
PRIVATE = (PAPER, OWN, DELTA, AUTO)
XGBOOST, XGBOOST_ALL = "XGBoost, paper's", "XGBoost, all rows"
PAPER_OFF, OWN_OFF = "paper's, noise off", "own, noise off"
NOT_PRIVATE = (XGBOOST, XGBOOST_ALL, PAPER_OFF, OWN_OFF)
PEER = "dp-xgboost of PyPI"
METHODS = (*PRIVATE, *NOT_PRIVATE, PEER)
OFF_EPSILON = 1000.0  # without noise, only floors that follow from the noise depend on it
TREES, DEPTH, RATE = 20, 6, 0.1
PUBLISHED_SETTINGS = {
    "n_trees": TREES, "learning_rate": 0.3, "reg_lambda": 0.1, "sample_rate": RATE,
    "max_depth": DEPTH, "loss": "squared", "utility": "gain", "selector": "exponential",
    "sketch_share": 1 / 3, "leaf_share": 1 / 3, "level_growth": 1.0, "leaf_rule": "least-rows",
}  # fmt: skip
PEER_SCRIPT = Path(__file__).with_name("peer.py")


def measure(
    data: Data, split: Split, method: str, epsilon: float | None, peer: str = ""
) -> dict[str, Any]:
    """The test error of one fit (percent, or RMSE), and how long the fit took."""
    wall, cpu = time.perf_counter(), time.process_time()
    facts: dict[str, Any] = {}
    if method in (XGBOOST, XGBOOST_ALL):
        predicted = _xgboost(data, split, RATE if method == XGBOOST else 1.0)
    elif method == PEER:
        predicted, facts = _peer(data, split, float(epsilon or 0), peer)
    else:
        predicted, facts = _hedgerow(data, split, method, epsilon)
    facts.setdefault("seconds", round(time.perf_counter() - wall, 3))
    facts.setdefault("cpu", round(time.process_time() - cpu, 3))
    return {"error": error_of(data, split, predicted), **facts}


def error_of(data: Data, split: Split, predicted: np.ndarray) -> float:
    truth = data.truth[split.test]
    if data.schema.label.classes:
        return float(100 * np.mean(predicted != truth))
    return float(np.sqrt(np.mean((predicted - truth) ** 2)))


def choices(data: Data, method: str, n_train: int) -> tuple[str, dict[str, Any], float]:
    """(method of hedgerow, its settings, delta) of a column of the table."""
    if method == AUTO:
        return "auto", {}, 1 / n_train
    given: dict[str, Any] = {"min_samples_leaf": least_rows(data.rows.n_rows)}
    if method not in (PAPER, PAPER_OFF):
        given.update(own_settings(data))
    if method == DELTA:
        return "dp-xgboost", given, 1 / n_train
    if method in (PAPER, PAPER_OFF):
        given.update(PUBLISHED_SETTINGS)
    return "dp-xgboost", {**given, "accounting": "pure"}, 0.0


def fitted(
    data: Data, split: Split, name: str, epsilon: float, delta: float, settings: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """A fit of hedgerow on the training rows, and its seconds."""
    federation = local_federation({"all": data.rows.take(split.train)}, data.schema)
    kind = PrivateBoostingClassifier if data.schema.label.classes else PrivateBoostingRegressor
    model = kind(
        epsilon=epsilon, delta=delta, method=name, settings=settings, random_state=split.seed
    )
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit_federation(federation)
    seconds = {
        "seconds": round(time.perf_counter() - wall, 3),
        "cpu": round(time.process_time() - cpu, 3),
    }
    return model, seconds


def _hedgerow(
    data: Data, split: Split, method: str, epsilon: float | None
) -> tuple[np.ndarray, dict[str, Any]]:
    name, settings, delta = choices(data, method, len(split.train))
    with noise_off() if epsilon is None else nullcontext():
        promised = OFF_EPSILON if epsilon is None else epsilon
        model, seconds = fitted(data, split, name, promised, delta, settings)
    return model.predict(data.table.take(split.test)), seconds


def _xgboost(data: Data, split: Split, subsample: float) -> np.ndarray:
    """Not private: classes as the numbers 0 and 1, as the paper has them."""
    from xgboost import XGBRegressor

    model = XGBRegressor(
        n_estimators=TREES, max_depth=DEPTH, learning_rate=0.3, reg_lambda=0.1,
        subsample=subsample, min_child_weight=least_rows(data.rows.n_rows), tree_method="hist",
        enable_categorical=True, random_state=split.seed, n_jobs=1,
    )  # fmt: skip
    frame = frame_for_trees(data)
    model.fit(frame.iloc[split.train], data.truth[split.train])
    predicted = model.predict(frame.iloc[split.test])
    return (predicted > 0.5).astype(int) if data.schema.label.classes else predicted


def _peer(
    data: Data, split: Split, epsilon: float, python: str
) -> tuple[np.ndarray, dict[str, Any]]:
    """The package of the paper's authors, in an interpreter of its own.

    It is told the bounds of the schema, and what a tree may cost so that all of them, with their
    sampling, cost epsilon.
    """
    label = data.schema.label
    low, high = (0.0, 1.0) if label.classes else (float(label.lower), float(label.upper))
    values, least, most = numbers_for_peer(data)
    given = {
        "dp_epsilon_per_tree": before_sampling(epsilon / TREES, RATE),
        "min_child_weight": least_rows(data.rows.n_rows),
        "max_depth": DEPTH, "learning_rate": 0.3, "reg_lambda": 0.1, "subsample": RATE,
        "seed": split.seed, "trees": TREES,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        np.savez(
            place / "in.npz", train=values[split.train], test=values[split.test],
            target=np.clip((data.truth[split.train] - low) / (high - low), 0, 1),
            low=least, high=most,
        )  # fmt: skip
        (place / "in.json").write_text(json.dumps(given), "utf-8")
        subprocess.run([python, str(PEER_SCRIPT), folder], check=True, capture_output=True)
        found = low + (high - low) * np.load(place / "out.npy").astype(np.float64)
        facts = json.loads((place / "out.json").read_text("utf-8"))
    return ((found > 0.5).astype(int) if label.classes else found), facts
