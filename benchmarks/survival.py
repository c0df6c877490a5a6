"""Time to an event beside models without privacy: concordance and integrated Brier score.

On the tables of `cohorts.py`, a made-up one with interactions at 15 % of the score's variance among
them. Beside `PrivateSurvivalBoosting`, on the same splits: gradient boosting, random survival
forest and Cox regression of scikit-survival (the large cohort: XGBoost's Cox objective, since these
take hours there), XGBoost's accelerated failure times, one Kaplan-Meier curve for all, and one
private curve for all, which is what a model falls back on. `calibration` is the mean distance of
predicted and seen survival at the middle cut, over quintiles of the risk. Writes
benchmarks/results/survival.json.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from cohorts import COHORTS, Cohort
from hedgerow import Label, PrivateSurvivalBoosting
from hedgerow.data.survival import outcome_cells
from hedgerow.evaluation.survival import exact_measures, survival_of
from hedgerow.methods.auto import rule

RESULTS = Path(__file__).resolve().parent / "results" / "survival.json"
USED = ("hedgerow", "lifelines", "scikit-survival", "xgboost-cpu")
EPSILONS = (0.1, 0.5, 1.0, 4.0)
TREES = {"n_trees": 100, "batch_size": 10, "learning_rate": 1.0}  # of the random trees
Floats = NDArray[np.float64]


def measured(cohort: Cohort, test: NDArray[Any], survival: Floats) -> dict[str, float | None]:
    """What survival (row, cut) of the test rows is worth."""
    label, times, events = cohort.schema.label, cohort.times[test], cohort.events[test]
    cells = outcome_cells(label, times, events.astype(float))
    found = exact_measures(survival, times, events, cells, label.cuts)
    risk, k = -survival[:, -1], len(label.cuts) // 2
    order, apart = np.argsort(risk, kind="stable"), []
    for group in np.array_split(order, 5):
        counts = np.bincount(cells[group].astype(int), minlength=label.n_outcomes).astype(float)
        apart.append(abs(survival[group, k].mean() - survival_of(counts)[k]))
    return {**found, "calibration": float(np.mean(apart))}


def private(
    cohort: Cohort, train: Any, test: Any, epsilon: float, method: str = "auto"
) -> tuple[Floats, bool]:
    """Survival of the test rows by a private model; and whether it is one curve for all."""
    y = (cohort.times[train], cohort.events[train].astype(int))
    model = PrivateSurvivalBoosting(
        cohort.schema, epsilon=epsilon, delta=1 / len(train), method=method,
        settings=TREES if method == "random-trees" else {},
    )  # fmt: skip
    model.fit(cohort.table.iloc[train], y)
    return model.predict_survival_function(cohort.table.iloc[test]), model.curve_for_all_


def one_curve(cohort: Cohort, train: Any, test: Any, epsilon: float) -> Floats:
    """The private Kaplan-Meier curve that a model falls back on, whatever the noise is."""
    with mock.patch.object(rule, "FEW_EVENTS", math.inf):
        return private(cohort, train, test, epsilon)[0]


def without_privacy(cohort: Cohort, train: Any, test: Any) -> dict[str, Floats]:
    """Survival of the test rows by models without privacy."""
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis, RandomSurvivalForest
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    label, X = cohort.schema.label, cohort.numbers()
    y = np.array(
        list(zip(cohort.events[train], cohort.times[train], strict=True)),
        [("event", bool), ("time", float)],
    )
    cells = outcome_cells(label, cohort.times[train], cohort.events[train].astype(float))
    counts = np.bincount(cells.astype(int), minlength=label.n_outcomes).astype(float)
    found = {"Kaplan-Meier": np.tile(survival_of(counts), (len(test), 1))}
    found["XGBoost (AFT)"] = _failure_times(X, y, train, test, label)
    if len(train) > 20_000:
        return {**found, "XGBoost (Cox)": _xgboost(X, y, train, test, label)}
    for name, model in (
        ("gradient boosting", GradientBoostingSurvivalAnalysis(random_state=0)),
        ("random survival forest", RandomSurvivalForest(min_samples_leaf=15, random_state=0)),
        ("Cox", CoxPHSurvivalAnalysis(alpha=0.1)),
    ):
        model.fit(X.iloc[train], y)
        functions = model.predict_survival_function(X.iloc[test])
        cuts = np.clip(label.cuts, functions[0].x[0], functions[0].x[-1])
        found[name] = np.array([function(cuts) for function in functions])
    return found


def _failure_times(X: pd.DataFrame, y: Any, train: Any, test: Any, label: Label) -> Floats:
    """XGBoost's accelerated failure times, normal on the logarithm of time."""
    import xgboost
    from scipy.stats import norm

    scale, rows = 1.0, xgboost.DMatrix(X.iloc[train])
    times = np.maximum(y["time"], 1e-3)
    rows.set_float_info("label_lower_bound", times)
    rows.set_float_info("label_upper_bound", np.where(y["event"], times, np.inf))
    settings = {"objective": "survival:aft", "aft_loss_distribution": "normal", "eta": 0.05,
                "aft_loss_distribution_scale": scale, "max_depth": 3, "seed": 0}  # fmt: skip
    booster = xgboost.train(settings, rows, 200)
    margin = booster.predict(xgboost.DMatrix(X.iloc[test]), output_margin=True)
    return np.asarray(norm.sf((np.log(np.array(label.cuts)) - margin[:, None]) / scale))


def _xgboost(X: pd.DataFrame, y: Any, train: Any, test: Any, label: Label) -> Floats:
    import xgboost
    from sksurv.linear_model.coxph import BreslowEstimator

    rows = xgboost.DMatrix(X.iloc[train], np.where(y["event"], y["time"], -y["time"]))
    settings = {"objective": "survival:cox", "eta": 0.1, "max_depth": 4, "seed": 0}
    booster = xgboost.train(settings, rows, 200)
    seen, new = (
        booster.predict(xgboost.DMatrix(X.iloc[of]), output_margin=True) for of in (train, test)
    )
    base = BreslowEstimator().fit(seen, y["event"], y["time"])
    hazards = base.cum_baseline_hazard_(np.array(label.cuts))
    return np.asarray(np.exp(-np.exp(new)[:, None] * hazards))


def fits_of(name: str, splits: int) -> list[dict[str, Any]]:
    """Every model on every split of one cohort: 70 % of the rows train."""
    cohort, found = COHORTS[name](), []
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(cohort.times))
        train, test = np.split(order, [int(0.7 * len(order))])
        for model, survival in without_privacy(cohort, train, test).items():
            found.append({"model": model, **measured(cohort, test, survival)})
        for epsilon in EPSILONS:
            survival, alone = private(cohort, train, test, epsilon)
            one = {"model": f"hedgerow, epsilon {epsilon:g}", "curve_for_all": alone}
            found.append({**one, **measured(cohort, test, survival)})
            curve = measured(cohort, test, one_curve(cohort, train, test, epsilon))
            found.append({"model": f"one private curve, epsilon {epsilon:g}", **curve})
        for epsilon in (1.0, 4.0):
            survival, _ = private(cohort, train, test, epsilon, "random-trees")
            one = {"model": f"random trees, epsilon {epsilon:g}"}
            found.append({**one, **measured(cohort, test, survival)})
    return [{"cohort": name, **one} for one in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--cohorts", nargs="+", choices=COHORTS, default=list(COHORTS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.cohorts:
        _keep(name, given.splits, fits_of(name, given.splits))


def _keep(name: str, splits: int, fits: list[dict[str, Any]]) -> None:
    """Show the means of one cohort, and write them beside those of the others."""
    frame = pd.DataFrame(fits)
    frame["curve_for_all"] = frame["curve_for_all"].fillna(False).astype(float)
    means = frame.groupby(["cohort", "model"], sort=False).mean().reset_index()
    shown = Table(*means.columns)
    for row in means.itertuples(index=False):
        shown.add_row(*(f"{v:.4f}" if isinstance(v, float) else str(v) for v in row))
    Console(width=120).print(shown)
    told = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    runs = {
        **told.get("runs", {}),
        name: {
            "command": ["benchmarks/survival.py", *sys.argv[1:]],
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {package: version(package) for package in USED},
            "splits": splits,
        },
    }
    in_order = {cohort: runs[cohort] for cohort in COHORTS if cohort in runs}
    document: dict[str, Any] = {"splits": splits, "runs": in_order}
    for key, fresh in (("means", means.to_dict("records")), ("fits", fits)):
        others = [one for one in told.get(key, []) if one["cohort"] != name]
        order = list(COHORTS)
        document[key] = sorted([*others, *fresh], key=lambda one: order.index(one["cohort"]))
    RESULTS.write_text(json.dumps(document) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
