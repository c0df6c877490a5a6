"""Ours and every anchor, from a data frame to a fitted model, all with trees of the same size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow import PrivateBoostingClassifier
from speed.clock import cores, timed
from speed.tables import Given

TREES, DEPTH, BINS = 100, 4, 32
EPSILON, DELTA = 1.0, 1e-6
XGBOOST, XGBOOST_1 = "XGBoost hist", "XGBoost hist, 1 thread"
LIGHTGBM, SKLEARN, EBM = "LightGBM", "scikit-learn hist", "DP-EBM"
Fit = Callable[[Given], Any]


@dataclass(frozen=True)
class Ours:
    """One way to train: how many parties, and who is trusted."""

    parties: int
    trust: str
    method: str = "dp-tr-newton"

    @property
    def name(self) -> str:
        who = "1 party" if self.parties == 1 else f"{self.parties} parties, trust {self.trust}"
        return f"ours, {who}" + ("" if self.method == "dp-tr-newton" else f", {self.method}")

    def fit(self, given: Given) -> PrivateBoostingClassifier:
        trees = {} if self.method == "auto" else {"n_trees": TREES, "max_depth": DEPTH}
        model = PrivateBoostingClassifier(
            given.schema, EPSILON, DELTA, self.method, self.trust, random_state=0, **trees
        )
        return model.fit(given.frame, given.label, labels_of(len(given.label), self.parties))


ONE = Ours(1, "coordinator")
SECURE = Ours(3, "parties")
OTHERS = (Ours(10, "parties"), Ours(3, "coordinator"), Ours(3, "nobody"))
AUTO = Ours(1, "coordinator", "auto")


def labels_of(n_rows: int, n_parties: int) -> np.ndarray | None:
    """Which party each row belongs to, in turn; None for one party."""
    if n_parties == 1:
        return None
    return np.array([f"party-{k}" for k in range(n_parties)])[np.arange(n_rows) % n_parties]


def xgboost(given: Given, threads: int | None = None) -> Any:
    import xgboost as library

    rows = library.QuantileDMatrix(
        given.frame, label=given.label, max_bin=BINS, nthread=threads or cores()
    )
    settings = {
        "objective": "binary:logistic", "tree_method": "hist", "max_depth": DEPTH,
        "max_bin": BINS, "nthread": threads or cores(),
    }  # fmt: skip
    return library.train(settings, rows, TREES)


def lightgbm(given: Given) -> Any:
    import lightgbm as library

    rows = library.Dataset(given.frame, given.label, params={"max_bin": BINS, "verbose": -1})
    settings = {
        "objective": "binary", "num_leaves": 2**DEPTH, "max_depth": DEPTH, "max_bin": BINS,
        "num_threads": cores(), "verbose": -1,
    }  # fmt: skip
    return library.train(settings, rows, TREES)


def sklearn(given: Given) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_depth=DEPTH, max_bins=BINS, max_iter=TREES, early_stopping=False
    )
    return model.fit(given.frame, given.label)


def ebm(given: Given) -> Any:
    """interpret's DP-EBM at its defaults, told the same bounds and privacy."""
    from interpret.privacy import DPExplainableBoostingClassifier

    columns = given.schema.columns
    nominal = [column.kind == "categorical" for column in columns]
    model = DPExplainableBoostingClassifier(
        feature_names=[column.name for column in columns],
        feature_types=["nominal" if is_nominal else "continuous" for is_nominal in nominal],
        privacy_bounds={
            column.name: (float(column.lower), float(column.upper))
            for column, is_nominal in zip(columns, nominal, strict=True)
            if not is_nominal
        },
        epsilon=EPSILON,
        delta=DELTA,
        n_jobs=1,
    )
    return model.fit(given.frame, given.label)


ANCHORS: dict[str, Fit] = {
    XGBOOST: xgboost,
    XGBOOST_1: lambda given: xgboost(given, threads=1),  # no thread waits: its work alone
    LIGHTGBM: lightgbm,
    SKLEARN: sklearn,
}


def measured(fit: Fit, given: Given) -> dict[str, Any]:
    """Seconds of one fit, and how well the model ranks some of its own rows."""
    figures, model = timed(lambda: fit(given))
    return {**figures, "auc": auc(model, given.head(100_000))}


def auc(model: Any, given: Given) -> float:
    from sklearn.metrics import roc_auc_score

    if hasattr(model, "predict_proba"):
        scores = model.predict_proba(given.frame)[:, 1]
    else:
        inplace = getattr(model, "inplace_predict", model.predict)
        scores = inplace(given.frame)
    return round(float(roc_auc_score(given.label, scores)), 4)
