"""Tables of times to an event for `survival.py`: with their public facts, times and events.

flchain (without `chapter`, the cause of death), gbsg2 and whas500 come with scikit-survival; rossi
(arrests), democracies and kidneys (transplants) with lifelines; one is made up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hedgerow import Categorical, Label, Numeric, Schema

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


def _of_lifelines(
    table: pd.DataFrame, time: str, event: str, bounds: dict[str, Any], cuts: list[float]
) -> Cohort:
    y = np.array(
        list(zip(table[event].astype(bool), table[time].astype(float), strict=True)),
        [("event", bool), ("time", float)],
    )
    return _cohort(table.drop(columns=[time, event]), y, bounds, cuts)


def rossi() -> Cohort:
    from lifelines.datasets import load_rossi

    bounds = {"age": (16, 50, True), "prio": (0, 20, True)}
    cuts = [float(week) for week in (6, 12, 18, 24, 30, 36, 42, 48)]
    return _of_lifelines(load_rossi(), "week", "arrest", bounds, cuts)


def democracies() -> Cohort:
    from lifelines.datasets import load_dd

    columns = ["un_continent_name", "democracy", "regime", "start_year", "duration", "observed"]
    table = load_dd()[columns].dropna()
    bounds = {"start_year": (1946, 2008, True)}
    return _of_lifelines(
        table, "duration", "observed", bounds, [1.5, 2.5, 3.5, 4.5, 6.5, 9.5, 15.5]
    )


def kidneys() -> Cohort:
    from lifelines.datasets import load_kidney_transplant

    cuts = [100.0, 250.0, 500.0, 1000.0, 1500.0, 2000.0, 2500.0]
    return _of_lifelines(load_kidney_transplant(), "time", "death", {"age": (0, 90, True)}, cuts)


COHORTS: dict[str, Callable[[], Cohort]] = {
    "flchain": flchain, "gbsg2": gbsg2, "whas500": whas500, "rossi": rossi,
    "democracies": democracies, "kidneys": kidneys, "made-up": made_up,
}  # fmt: skip
