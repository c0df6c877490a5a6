"""One fit of one method on one split, and what is measured on the test rows."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from accuracy.data import Data, Split, delta_of, frame_for_ebm, frame_for_trees
from accuracy.rivals import RIVALS, fit_rival
from hedgerow import PrivateBoostingClassifier, PrivateBoostingRegressor, local_federation

AUTO, THREE, EBM, XGBOOST, CONSTANT = "auto", "auto-3-parties", "interpret", "xgboost", "constant"
NOT_PRIVATE = (XGBOOST, CONSTANT)  # one fit a split, whatever epsilon is
PRESETS = ("dp-tr-newton-ih", "dp-tr-newton-ih-ebm", "dp-tr-batch-newton-ih-ebm")
CALIBRATION_BINS = 15
# Fits of the default method a split, each with noise of its own, whose measures are averaged: at
# small epsilons noise moves them more than the split does. Large tables have one.
DRAWS, MOST_ROWS_DRAWN = 4, 100_000
# Predictions for the test rows: (row, class) probabilities or (row,) values; and further facts.
Fitted = tuple[np.ndarray, dict[str, Any]]


def measure(
    data: Data, split: Split, method: str, epsilon: float | None, threads: int = 1
) -> dict[str, Any]:
    """Fit, predict, and compare with the truth of the test rows."""
    delta = delta_of(data.name, len(split.train))
    begin = time.perf_counter()
    if method == XGBOOST:
        predicted, facts = _xgboost(data, split, threads)
    elif method == CONSTANT:
        predicted, facts = _constant(data, split)
    elif method == EBM:
        predicted, facts = _ebm(data, split, float(epsilon or 0), delta)
    elif method in RIVALS:
        predicted, facts = fit_rival(data, split, method, float(epsilon or 0), delta), {}
    elif method == AUTO:
        return _several(data, split, float(epsilon or 0), delta)
    else:
        predicted, facts = _hedgerow(data, split, method, float(epsilon or 0), delta)
    facts.setdefault("seconds", round(time.perf_counter() - begin, 2))
    found = compare(predicted, facts.pop("scores", None), data.truth[split.test])
    return {"measures": found, "delta": delta, "n_train": len(split.train), **facts}


def _several(data: Data, split: Split, epsilon: float, delta: float) -> dict[str, Any]:
    """The default method: measures averaged over several fits, the most of rounds and bytes."""
    n_draws = DRAWS if len(split.train) <= MOST_ROWS_DRAWN else 1
    measures, facts = [], []
    for draw in range(n_draws):
        predicted, found = _hedgerow(data, split, AUTO, epsilon, delta, draw)
        measures.append(compare(predicted, found.pop("scores", None), data.truth[split.test]))
        facts.append(found)
    return {
        "measures": {n: float(np.mean([one[n] for one in measures])) for n in measures[0]},
        "delta": delta, "n_train": len(split.train), "draws": n_draws,
        "seconds": round(float(np.mean([one["seconds"] for one in facts])), 2),
        "rounds": max(one["rounds"] for one in facts),
        "bytes_per_party": max(one["bytes_per_party"] for one in facts),
    }  # fmt: skip


def _hedgerow(
    data: Data, split: Split, method: str, epsilon: float, delta: float, draw: int = 0
) -> Fitted:
    n_parties = 3 if method == THREE else 1
    tables = {f"party{k}": data.rows.take(split.train[k::n_parties]) for k in range(n_parties)}
    federation = local_federation(tables, data.schema)
    classes = bool(data.schema.label.classes)
    model = (PrivateBoostingClassifier if classes else PrivateBoostingRegressor)(
        epsilon=epsilon,
        delta=delta,
        method=AUTO if method == THREE else method,
        random_state=split.seed + 10_000 * draw,
    )
    begin = time.perf_counter()
    model.fit_federation(federation)
    facts: dict[str, Any] = {
        "seconds": round(time.perf_counter() - begin, 2),
        "rounds": federation.rounds,
        "bytes_per_party": federation.bytes_from_parties // n_parties,
    }
    test = data.table.take(split.test)
    if not classes:
        return model.predict(test), facts
    facts["scores"] = model.decision_function(test)
    return model.predict_proba(test), facts


def _ebm(data: Data, split: Split, epsilon: float, delta: float) -> Fitted:
    """interpret's DP-EBM at its defaults, told the same public facts; its noise is not seeded."""
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    frame, types, bounds = frame_for_ebm(data)
    given: dict[str, Any] = {
        "feature_names": list(frame.columns), "feature_types": types, "privacy_bounds": bounds,
        "epsilon": epsilon, "delta": delta, "n_jobs": 1,
    }  # fmt: skip
    label = data.schema.label
    train, test = frame.iloc[split.train], frame.iloc[split.test]
    if label.classes:
        model = DPExplainableBoostingClassifier(**given)
        model.fit(train, data.truth[split.train])
        return model.predict_proba(test), {}
    model = DPExplainableBoostingRegressor(
        **given, privacy_target_min=label.lower, privacy_target_max=label.upper
    )
    model.fit(train, data.truth[split.train])
    return model.predict(test), {}


def _xgboost(data: Data, split: Split, threads: int) -> Fitted:
    """Not private: 100 trees of depth 4, learning rate 0.3."""
    from xgboost import XGBClassifier, XGBRegressor

    frame, classes = frame_for_trees(data), bool(data.schema.label.classes)
    model = (XGBClassifier if classes else XGBRegressor)(
        n_estimators=100, max_depth=4, learning_rate=0.3, tree_method="hist",
        enable_categorical=True, random_state=split.seed, n_jobs=threads,
    )  # fmt: skip
    model.fit(frame.iloc[split.train], data.truth[split.train])
    test = frame.iloc[split.test]
    return (model.predict_proba(test) if classes else model.predict(test)), {}


def _constant(data: Data, split: Split) -> Fitted:
    """Not private: the class shares or the mean of the training rows."""
    truth, n_test = data.truth[split.train], len(split.test)
    if not data.schema.label.classes:
        return np.full(n_test, truth.mean()), {}
    shares = np.bincount(truth, minlength=len(data.schema.label.classes)) / len(truth)
    return np.tile(shares, (n_test, 1)), {}


def compare(
    predicted: np.ndarray, scores: np.ndarray | None, truth: np.ndarray
) -> dict[str, float]:
    """The measures of a dataset's kind; rows are ranked by `scores` where a method has them."""
    if predicted.ndim == 1:
        return {"rmse": float(np.sqrt(np.mean((predicted - truth) ** 2)))}
    given = np.clip(predicted[np.arange(len(truth)), truth], 1e-15, 1.0)
    log_loss = float(-np.mean(np.log(given)))
    if predicted.shape[1] > 2:
        hits = predicted.argmax(axis=1) == truth
        return {"accuracy": float(np.mean(hits)), "log_loss": log_loss}
    positive = predicted[:, 1]
    auc = float(roc_auc_score(truth, positive if scores is None else scores))
    return {"auc": auc, "ece": calibration_error(positive, truth), "log_loss": log_loss}


def calibration_error(positive: np.ndarray, truth: np.ndarray) -> float:
    """Expected calibration error over equal-mass bins of the predicted probability.

    Rows of equal probability may fall into two bins; each counts with their common rate, so that
    the order of the rows in the table plays no part.
    """
    _, place, counts = np.unique(positive, return_inverse=True, return_counts=True)
    rate = (np.bincount(place, weights=truth) / counts)[place]
    order = np.argsort(positive, kind="stable")
    total = 0.0
    for part in np.array_split(order, CALIBRATION_BINS):
        total += len(part) * abs(float(positive[part].mean() - rate[part].mean()))
    return total / len(truth)
