"""Do Poisson, quantile and Huber beat the squared loss in their own metric on skewed tables?

    HEDGEROW_DATA=folder python benchmarks/counts.py

Counts: made-up claims with exposure, contacts of a campaign (bank), rings (abalone); mean deviance.
Numbers: made-up costs, house values (california), lengths of calls (bank); pinball loss at 0.5 and
0.9, and mean absolute error for Huber. Beside every loss stands the squared one of the same epsilon
on the same rows. It gets the exposure as a column; its predictions of counts are held above a
twentieth of the mean, without which their deviance is infinite; and for quantiles it is also shown
with the exact quantile of its training errors added, which is not private. `one for all` is the
training rows' own rate or quantile. Writes benchmarks/results/counts.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from hedgerow import Label, Numeric, PrivateBoostingRegressor, Schema

RESULTS = Path(__file__).resolve().parent / "results" / "counts.json"
EPSILONS = (0.5, 1.0, 4.0)
LEVELS = (0.5, 0.9)
LEAST = 0.05  # of the mean: what the squared loss is taken to expect at least
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """A table with its public facts; `exposure` where rows were seen for different times."""

    columns: tuple[Any, ...]
    table: pd.DataFrame
    label: Floats
    cap: float
    exposure: Floats | None = None
    bend: float = 0.0  # of Huber's loss


def made_up_claims() -> Case:
    """30,000 policies of up to a year: a claim for every seven years, two of three without any."""
    rng, n = np.random.default_rng(0), 30_000
    X, years = rng.uniform(-1, 1, (n, 8)), rng.uniform(0.05, 1, n)
    score = X[:, 0] + np.abs(X[:, 1]) + 0.5 * (X[:, 2] > 0.3) + 0.6 * X[:, 0] * X[:, 3]
    counts = rng.poisson(0.15 * years * np.exp(score) * rng.gamma(2, 0.5, n))
    columns = tuple(Numeric(f"x{j}", -1, 1) for j in range(8))
    table = pd.DataFrame(X, columns=[c.name for c in columns])
    return Case(columns, table, counts.astype(float), 20, years)


def made_up_costs() -> Case:
    """20,000 bills: logarithms with a spread of their own, and one in fifty ten times as high."""
    rng, n = np.random.default_rng(1), 20_000
    X = rng.uniform(-1, 1, (n, 8))
    spread = 0.5 + 0.25 * X[:, 1]
    cost = 1000 * np.exp(X[:, 0] + 0.5 * X[:, 2] * X[:, 3] + spread * rng.normal(size=n))
    cost[::50] *= 10
    columns = tuple(Numeric(f"x{j}", -1, 1) for j in range(8))
    table = pd.DataFrame(X, columns=[c.name for c in columns])
    return Case(columns, table, cost, 20_000, bend=500)


def _real(
    name: str, label: str, cap: float, bend: float = 0.0, without: tuple[str, ...] = ()
) -> Case:
    folder = Path(os.environ["HEDGEROW_DATA"])
    schema = Schema.read(folder / f"{name}.toml")
    table = pd.read_parquet(folder / f"{name}.parquet")
    left = {label, "label", *without}
    columns = tuple(column for column in schema.columns if column.name not in left)
    return Case(columns, table, table[label].to_numpy(float), cap, bend=bend)


COUNTS: dict[str, Callable[[], Case]] = {
    "made-up claims": made_up_claims,
    "bank contacts": lambda: _real("bank", "campaign", 40, without=("duration",)),
    "abalone rings": lambda: _real("abalone", "label", 40),
}
NUMBERS: dict[str, Callable[[], Case]] = {
    "made-up costs": made_up_costs,
    "california": lambda: _real("california", "label", 6, bend=0.5),
    "bank calls": lambda: _real("bank", "duration", 5000, bend=200, without=("campaign",)),
}


def deviance(counts: Floats, expected: Floats) -> float:
    logs = np.where(counts > 0, counts * np.log(np.maximum(counts, 1) / expected), 0.0)
    return float(np.mean(2 * (logs - counts + expected)))


def pinball(labels: Floats, predicted: Floats, level: float) -> float:
    error = labels - predicted
    return float(np.mean(np.maximum(level * error, (level - 1) * error)))


def fitted(case: Case, train: Any, epsilon: float, with_exposure: bool, **facts: Any) -> Any:
    """A model of the training rows; with the exposure as a column, or as an exposure."""
    columns, label = case.columns, Label("y", lower=0, upper=case.cap)
    table: pd.DataFrame = case.table.iloc[train]
    y: Any = case.label[train]
    if case.exposure is not None and with_exposure:
        y = (y, case.exposure[train])
        label = replace(label, loss="poisson", exposure="e", max_exposure=1.0)
        facts = {}
    elif case.exposure is not None:
        columns, table = (*columns, Numeric("e", 0, 1)), table.assign(e=case.exposure[train])
    model = PrivateBoostingRegressor(
        Schema(columns, label), epsilon=epsilon, delta=1 / len(train), **facts
    )
    return model.fit(table, y)


def of_counts(case: Case, train: Any, test: Any) -> Iterator[tuple[str, str, float]]:
    counts = case.label[test]
    seen = np.ones(len(case.label)) if case.exposure is None else case.exposure
    rate = case.label[train].sum() / seen[train].sum()
    yield "deviance", "one for all", deviance(counts, rate * seen[test])
    for epsilon in EPSILONS:
        model = fitted(case, train, epsilon, True, loss="poisson")
        expected = model.predict(case.table.iloc[test], exposure=seen[test])
        yield "deviance", f"poisson, epsilon {epsilon:g}", deviance(counts, expected)
        model = fitted(case, train, epsilon, False)
        expected = model.predict(case.table.assign(e=seen).iloc[test])
        expected = np.maximum(expected, LEAST * case.label[train].mean())
        yield "deviance", f"squared, epsilon {epsilon:g}", deviance(counts, expected)


def of_numbers(case: Case, train: Any, test: Any) -> Iterator[tuple[str, str, float]]:
    labels, known = case.label[test], case.label[train]
    for level in LEVELS:
        one = np.full(len(test), np.quantile(known, level))
        yield f"pinball {level:g}", "one for all", pinball(labels, one, level)
    yield "absolute error", "one for all", float(np.mean(np.abs(labels - np.median(known))))
    for epsilon in EPSILONS:
        squared = fitted(case, train, epsilon, False)
        plain = squared.predict(case.table.iloc[test])
        errors = known - squared.predict(case.table.iloc[train])
        for level in LEVELS:
            model = fitted(case, train, epsilon, False, loss="quantile", quantile=level)
            own = model.predict(case.table.iloc[test])
            shifted = plain + np.quantile(errors, level)
            for name, made in (("quantile", own), ("squared", plain), ("shifted", shifted)):
                loss = pinball(labels, made, level)
                yield f"pinball {level:g}", f"{name}, epsilon {epsilon:g}", loss
            yield (
                f"coverage {level:g}",
                f"quantile, epsilon {epsilon:g}",
                float(np.mean(labels <= own)),
            )
        model = fitted(case, train, epsilon, False, loss="huber", huber=case.bend)
        robust = model.predict(case.table.iloc[test])
        for name, made in (("huber", robust), ("squared", plain)):
            error = float(np.mean(np.abs(labels - made)))
            yield "absolute error", f"{name}, epsilon {epsilon:g}", error


def fits_of(name: str, splits: int) -> list[dict[str, Any]]:
    """Every model on every split of one table: 70 % of the rows train."""
    case, found = (COUNTS | NUMBERS)[name](), []
    measured = of_counts if name in COUNTS else of_numbers
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(case.label))
        train, test = np.split(order, [int(0.7 * len(order))])
        for metric, model, value in measured(case, train, test):
            found.append({"table": name, "metric": metric, "model": model, "value": value})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=3)
    given = parser.parse_args()
    if not os.environ.get("HEDGEROW_DATA"):
        sys.exit("Set HEDGEROW_DATA to a folder with bank.parquet, bank.toml and so on.")
    warnings.simplefilter("ignore")
    fits = [fit for name in (*COUNTS, *NUMBERS) for fit in fits_of(name, given.splits)]
    by = pd.DataFrame(fits).groupby(["table", "metric", "model"], sort=False)["value"]
    means = by.agg(["mean", "std"]).reset_index().rename(columns={"std": "deviation"})
    shown = Table(*means.columns)
    for row in means.itertuples(index=False):
        shown.add_row(*(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row))
    Console().print(shown)
    told = {
        "command": ["benchmarks/counts.py", *sys.argv[1:]],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"hedgerow": version("hedgerow")},
        "splits": given.splits, "means": means.to_dict("records"), "fits": fits,
    }  # fmt: skip
    RESULTS.write_text(json.dumps(told) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
