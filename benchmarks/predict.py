"""Does a private model predict as fast as XGBoost's?

Predicts 1,000,000 rows of 28 columns from a data frame with 100 trees of depth 4, ours and
XGBoost's, and with the default method's model; then one row at a time. Repetitions are interleaved
and the best counts. Prints rows a second and the ratios, writes benchmarks/results/predict.json.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from speed.clock import cores, timed
from speed.fits import AUTO, ONE, xgboost
from speed.repeating import Figures, Found, Kept, best, repeated, stoppable
from speed.report import Requirement, ratio, screen, show_requirements
from speed.tables import Given, synthetic

TRAINED_ON = 100_000  # rows: the models' size, not their making, is what counts here
OURS, OURS_AUTO = "ours, 100 trees", "ours, auto"
INPLACE, DMATRIX = "XGBoost, inplace_predict", "XGBoost, DMatrix and predict"
ROW_OURS, ROW_DICT, ROW_AUTO = "ours, array", "ours, dict", "ours, auto, array"
ROW_XGBOOST = "XGBoost, inplace_predict of an array"


def tables_cells(given: Given, models: dict[str, Any]) -> dict[str, Callable[[], Figures]]:
    """All rows at once."""
    import xgboost as library

    booster, frame = models["xgboost"], given.frame

    def rows(work: Callable[[], Any]) -> Callable[[], Figures]:
        return lambda: timed(work)[0]

    return {
        OURS: rows(lambda: models["ours"].predict_proba(frame)),
        INPLACE: rows(lambda: booster.inplace_predict(frame)),
        DMATRIX: rows(lambda: booster.predict(library.DMatrix(frame, nthread=cores()))),
        OURS_AUTO: rows(lambda: models["auto"].predict_proba(frame)),
    }


def row_cells(given: Given, models: dict[str, Any], n: int) -> dict[str, Callable[[], Figures]]:
    """One row at a time: the median of n predictions, each of another row."""
    values = given.frame.iloc[:n].to_numpy()
    arrays = [values[i : i + 1] for i in range(n)]
    names = list(given.frame.columns)
    dicts = [{name: [float(row[0, j])] for j, name in enumerate(names)} for row in arrays]

    def rows(predict: Callable[[Any], Any], each: list[Any]) -> Callable[[], Figures]:
        def run() -> Figures:
            predict(each[0])
            taken = []
            begun = time.process_time()
            for row in each:
                at = time.perf_counter()
                predict(row)
                taken.append(time.perf_counter() - at)
            cpu = (time.process_time() - begun) / n
            return {"wall": float(np.median(taken)), "cpu": cpu, "p99": np.quantile(taken, 0.99)}

        return run

    return {
        ROW_OURS: rows(models["ours"].predict_proba, arrays),
        ROW_DICT: rows(models["ours"].predict_proba, dicts),
        ROW_AUTO: rows(models["auto"].predict_proba, arrays),
        ROW_XGBOOST: rows(models["xgboost"].inplace_predict, arrays),
    }


def show(console: Console, n_rows: int, tables: Found, single: Found) -> None:
    shown = Table(title=f"Prediction of {n_rows:,} rows, best of {len(tables[OURS])}")
    shown.add_column("model", no_wrap=True)
    for column in ("wall s", "CPU s", "rows/s", "time / inplace", "time / DMatrix"):
        shown.add_column(column, justify="right")
    for name, figures in tables.items():
        wall = best(figures, "wall")
        shown.add_row(
            name,
            f"{wall:.3f}",
            f"{best(figures, 'cpu'):.3f}",
            f"{n_rows / wall:,.0f}",
            *(_both(tables, name, (anchor,)) for anchor in (INPLACE, DMATRIX)),
        )
    console.print(shown)
    shown = Table(title="One row at a time, microseconds")
    shown.add_column("model", no_wrap=True)
    for column in ("median", "CPU, mean", "99 %", "time / XGBoost"):
        shown.add_column(column, justify="right")
    for name, figures in single.items():
        micro = (f"{1e6 * best(figures, what):.0f}" for what in ("wall", "cpu", "p99"))
        shown.add_row(name, *micro, _both(single, name, (ROW_XGBOOST,)))
    console.print(shown)


def _both(found: Found, name: str, anchors: tuple[str, ...]) -> str:
    wall, cpu = (ratio(found, name, anchors, what) for what in ("wall", "cpu"))
    return f"{wall:.2f} (CPU {cpu:.2f})"


def requirement(n_rows: int, tables: Found) -> list[Requirement]:
    """Against the quicker of XGBoost's two ways."""
    what = f"{n_rows:,} rows, our time over that of XGBoost's quicker way"
    wall, cpu = (ratio(tables, OURS, (INPLACE, DMATRIX), w) for w in ("wall", "cpu"))
    return [Requirement(what, 1.0, wall, cpu)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="100,000 rows, two repetitions")
    parser.add_argument("--fresh", action="store_true", help="forget what a stopped run measured")
    options, console, begun = parser.parse_args(), screen(), time.time()
    n_rows, singles = (100_000, 200) if options.quick else (1_000_000, 2_000)
    repeats = min(2, options.repeats) if options.quick else options.repeats
    kept, given = Kept("predict", options.quick, options.fresh), synthetic(n_rows)
    part = given.head(TRAINED_ON)
    console.print(f"training three models on {len(part.label):,} rows", style="dim")
    models = {"ours": ONE.fit(part), "auto": AUTO.fit(part), "xgboost": xgboost(part)}
    cells = tables_cells(given, models)
    for work in cells.values():
        work()
    tables = repeated(f"{n_rows:,} rows", cells, repeats, kept, console)
    rows = row_cells(given, models, singles)
    single = repeated("one row", rows, min(3, repeats), kept, console)
    show(console, n_rows, tables, single)
    lines = requirement(n_rows, tables)
    show_requirements(console, lines)
    values = {
        "rows": n_rows, "tables": tables, "single_rows": single,
        "trees": {name: len(models[name].model_.trees) for name in ("ours", "auto")},
        "requirements": [line.values() for line in lines],
    }  # fmt: skip
    kept.finish(begun, values, console)


if __name__ == "__main__":
    stoppable(main)
