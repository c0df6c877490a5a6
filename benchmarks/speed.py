"""Is private training faster than the fastest libraries without privacy, on the same table?

Trains 100 trees of depth 4, from a data frame to a fitted model, with one party, with several and
under every trust, beside XGBoost, LightGBM and scikit-learn on all cores and on 32 bins: on a
made-up table of 1,000,000 rows and 28 columns, and on covtype. Then the default method beside
DP-EBM on adult, each at its defaults. Repetitions are interleaved and the best counts. Prints the
ratios and writes benchmarks/results/speed.json. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from rich.console import Console

from speed import fits
from speed.adult import EBM_ADULT, OURS_ADULT, adult_cells
from speed.fits import AUTO, EBM, ONE, OTHERS, SECURE, XGBOOST, XGBOOST_1, measured
from speed.repeating import Found, Kept, repeated, stoppable
from speed.report import Requirement, of_ratio, screen, show_requirements, show_seconds
from speed.tables import Given, covtype, synthetic

ANCHOR = (XGBOOST, XGBOOST_1)
TABLES = ("synthetic", "covtype", "adult")
WARM_UP = 20_000  # rows: everything is compiled and imported before a clock runs


def compared(given: Given, options: argparse.Namespace, kept: Kept, console: Console) -> Found:
    """All ways to train on one table, one after another."""
    ways: dict[str, fits.Fit] = dict(fits.ANCHORS)
    ways |= {ours.name: ours.fit for ours in (ONE, SECURE, *OTHERS, AUTO)}
    if options.required:
        ways = {name: ways[name] for name in (*ANCHOR, ONE.name, SECURE.name)}
    repeats = dict.fromkeys(ways, options.repeats)
    for fit in ways.values():
        fit(given.head(WARM_UP))
    if options.ebm:
        ways[EBM], repeats[EBM] = fits.ebm, 1
    cells = {name: (lambda fit=fit: measured(fit, given)) for name, fit in ways.items()}
    return repeated(given.name, cells, repeats, kept, console)


def requirements(found: dict[str, Found]) -> list[Requirement]:
    lines = []
    for table in TABLES[:2]:
        for ours, goal in ((ONE, 0.25), (SECURE, 0.35)):
            what = f"{table}, {ours.name}, of XGBoost's time"
            lines.append(of_ratio(what, goal, found.get(table, {}), ours.name, ANCHOR))
    what = "adult, default method, of DP-EBM's time"
    lines.append(of_ratio(what, 0.1, found.get("adult", {}), OURS_ADULT, (EBM_ADULT,)))
    return lines


def tables_of(options: argparse.Namespace, console: Console) -> dict[str, Given]:
    small, wanted = (20_000 if options.quick else None), options.tables
    given: dict[str, Given | None] = {}
    if "synthetic" in wanted:
        given["synthetic"] = synthetic(small or 1_000_000)
    if "covtype" in wanted:
        given["covtype"] = covtype(small)
        if given["covtype"] is None:
            console.print("covtype is left out: HEDGEROW_DATA names no folder with its files")
    return {name: table for name, table in given.items() if table is not None}


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--ebm", action="store_true", help="DP-EBM on the large tables: minutes")
    parser.add_argument("--required", action="store_true", help="only what has a goal")
    parser.add_argument("--quick", action="store_true", help="small tables, two repetitions")
    parser.add_argument("--fresh", action="store_true", help="forget what a stopped run measured")
    options = parser.parse_args()
    if options.quick:
        options.repeats = min(options.repeats, 2)
    return options


def main() -> None:
    options, console, begun = options_of(), screen(), time.time()
    kept, found = Kept("speed", options.quick, options.fresh), dict[str, Found]()
    values: dict[str, Any] = {}
    for name, given in tables_of(options, console).items():
        found[name] = compared(given, options, kept, console)
        values[name] = {"table": given.name, "repetitions": found[name]}
        show_seconds(console, given.name, found[name], ANCHOR)
    if "adult" in options.tables and (cells := adult_cells(console)) is not None:
        found["adult"] = repeated("adult", cells, options.repeats, kept, console)
        values["adult"] = {"table": "adult 32,561 x 14", "repetitions": found["adult"]}
        show_seconds(console, "adult, defaults", found["adult"], (EBM_ADULT,))
    lines = requirements(found)
    show_requirements(console, lines)
    values["requirements"] = [line.values() for line in lines]
    kept.finish(begun, values, console, whole=set(options.tables) == set(TABLES))


if __name__ == "__main__":
    stoppable(main)
