"""Time to an event beside models without privacy: concordance and integrated Brier score.

On flchain (without `chapter`, the cause of death), gbsg2 and whas500, which come with
scikit-survival, and on a made-up cohort with interactions at 15 % of the score's variance. Beside
`PrivateSurvivalBoosting`: gradient boosting and Cox regression of scikit-survival on the same
splits (the cohort: XGBoost's Cox objective, since the former takes hours there), and one
Kaplan-Meier curve for all. `calibration` is the mean distance of predicted and seen survival at the
middle cut, over quintiles of the risk. Writes benchmarks/results/survival.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from hedgerow import Categorical, Label, Numeric, PrivateSurvivalBoosting, Schema
from hedgerow.data.survival import outcome_cells
from hedgerow.evaluation.survival import exact_measures, survival_of

RESULTS = Path(__file__).resolve().parent / "results" / "survival.json"
USED = ("hedgerow", "scikit-survival", "xgboost-cpu")
EPSILONS = (0.1, 0.5, 1.0, 4.0)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cohort:
    """A table, its public facts, times and events."""

    schema: Schema
    table: pd.DataFrame
    times: Floats
    events: NDArray[np.bool_]

    def numbers(self) -> pd.DataFrame:
        """Columns as models without categories take them, scaled; missing values are medians."""
        wide = pd.get_dummies(self.table, drop_first=True).astype(float)
        wide = wide.fillna(wide.median())
        return (wide - wide.mean()) / wide.std()


def _cohort(X: pd.DataFrame, y: Any, bounds: dict[str, Any], cuts: list[float]) -> Cohort:
    """A cohort of scikit-survival; columns without bounds have categories."""
    event, time = y.dtype.names
    columns: list[Any] = []
    for name in X.columns:
        if name in bounds:
            columns.append(Numeric(name, *bounds[name]))
            X[name] = X[name].astype(float)
        else:
            X[name] = X[name].astype(str)
            columns.append(Categorical(name, tuple(sorted(X[name].unique()))))
    schema = Schema(tuple(columns), Label("time", event="event", cuts=cuts))
    return Cohort(schema, X, y[time].astype(float), y[event].astype(bool))


def flchain() -> Cohort:
    from sksurv.datasets import load_flchain

    X, y = load_flchain()
    bounds = {"age": (50, 105, True), "creatinine": (0, 11), "kappa": (0, 21), "lambda": (0, 27)}
    X["sample.yr"] = X["sample.yr"].astype(float)
    bounds["sample.yr"] = (1995, 2003, True)
    return _cohort(X.drop(columns="chapter"), y, bounds, [500.0 * k for k in range(1, 11)])


def gbsg2() -> Cohort:
    from sksurv.datasets import load_gbsg2

    bounds = {
        "age": (20, 85, True), "estrec": (0, 1200), "pnodes": (0, 55, True), "progrec": (0, 2400),
        "tsize": (0, 130),
    }  # fmt: skip
    return _cohort(*load_gbsg2(), bounds, [250.0 * k for k in range(1, 10)])


def whas500() -> Cohort:
    from sksurv.datasets import load_whas500

    bounds = {
        "age": (20, 110), "bmi": (10, 50), "diasbp": (0, 200), "hr": (20, 200), "los": (0, 60),
        "sysbp": (50, 250),
    }  # fmt: skip
    return _cohort(*load_whas500(), bounds, [200.0 * k for k in range(1, 10)])


def made_up() -> Cohort:
    """100,000 rows of ten columns; two products are 15 % of the score's variance."""
    rng, n = np.random.default_rng(0), 100_000
    X = rng.uniform(-1, 1, (n, 10))
    main = 1.2 * X[:, 0] - 0.8 * X[:, 1] + np.abs(X[:, 2]) + 0.6 * X[:, 3] ** 2
    pairs = X[:, 4] * X[:, 5] + X[:, 0] * X[:, 6]
    pairs *= np.sqrt(0.15 / 0.85 * main.var() / pairs.var())
    time = 5 * rng.weibull(1.3, n) * np.exp(-(main + pairs) / 1.3)
    seen = rng.uniform(1, 8, n)
    schema = Schema(
        tuple(Numeric(f"x{j}", -1, 1) for j in range(10)),
        Label("time", event="event", cuts=[0.5 * k for k in range(1, 13)]),
    )
    table = pd.DataFrame(X, columns=list(schema.names))
    return Cohort(schema, table, np.minimum(time, seen), time <= seen)


COHORTS: dict[str, Callable[[], Cohort]] = {
    "flchain": flchain, "gbsg2": gbsg2, "whas500": whas500, "made-up": made_up,
}  # fmt: skip


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


def private(cohort: Cohort, train: Any, test: Any, epsilon: float) -> tuple[Floats, bool]:
    """Survival of the test rows by a private model; and whether it is one curve for all."""
    y = (cohort.times[train], cohort.events[train].astype(int))
    model = PrivateSurvivalBoosting(cohort.schema, epsilon=epsilon, delta=1 / len(train))
    model.fit(cohort.table.iloc[train], y)
    return model.predict_survival_function(cohort.table.iloc[test]), model.curve_for_all_


def without_privacy(cohort: Cohort, train: Any, test: Any) -> dict[str, Floats]:
    """Survival of the test rows by models without privacy."""
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    label, X = cohort.schema.label, cohort.numbers()
    y = np.array(
        list(zip(cohort.events[train], cohort.times[train], strict=True)),
        [("event", bool), ("time", float)],
    )
    cells = outcome_cells(label, cohort.times[train], cohort.events[train].astype(float))
    counts = np.bincount(cells.astype(int), minlength=label.n_outcomes).astype(float)
    found = {"Kaplan-Meier": np.tile(survival_of(counts), (len(test), 1))}
    if len(train) > 20_000:
        return {**found, "XGBoost (Cox)": _xgboost(X, y, train, test, label)}
    for name, model in (
        ("gradient boosting", GradientBoostingSurvivalAnalysis(random_state=0)),
        ("Cox", CoxPHSurvivalAnalysis(alpha=0.1)),
    ):
        model.fit(X.iloc[train], y)
        functions = model.predict_survival_function(X.iloc[test])
        cuts = np.clip(label.cuts, functions[0].x[0], functions[0].x[-1])
        found[name] = np.array([function(cuts) for function in functions])
    return found


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
    return [{"cohort": name, **one} for one in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--cohorts", nargs="+", choices=COHORTS, default=list(COHORTS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    fits = [fit for name in given.cohorts for fit in fits_of(name, given.splits)]
    frame = pd.DataFrame(fits)
    frame["curve_for_all"] = frame["curve_for_all"].fillna(False).astype(float)
    means = frame.groupby(["cohort", "model"], sort=False).mean().reset_index()
    shown = Table(*means.columns)
    for row in means.itertuples(index=False):
        shown.add_row(*(f"{v:.4f}" if isinstance(v, float) else str(v) for v in row))
    Console().print(shown)
    told = {
        "command": ["benchmarks/survival.py", *sys.argv[1:]],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {name: version(name) for name in USED},
        "splits": given.splits, "means": means.to_dict("records"), "fits": fits,
    }  # fmt: skip
    RESULTS.write_text(json.dumps(told) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
