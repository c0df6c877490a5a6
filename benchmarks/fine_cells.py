"""What do fine cells of wide integer columns change in the default method?

`auto` with and without them on the tables of the accuracy benchmark that have such columns, paired
by split, several fits a split with noise of their own. Elsewhere, and where the public rule does
not ask for them, both are the same method. Splits are their own: nothing was chosen on them.

Needs HEDGEROW_DATA. Finished cells are kept in a cache, so a run that was stopped goes on where it
was. Writes benchmarks/results/fine_cells.json.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from accuracy.cells import source_of
from accuracy.data import load, main_measure, split_of
from accuracy.methods import AUTO, measure
from hedgerow.data.binning import base_grid, fine_columns
from hedgerow.methods.auto import rule

HERE = Path(__file__).resolve().parent
RESULT, CACHE = HERE / "results" / "fine_cells.json", HERE / ".cache" / "fine_cells.jsonl"
TABLES = ("adult", "bank", "credit1", "credit2", "covtype", "california")
EPSILONS = (0.5, 1.0, 4.0)
FIRST_SEED = {"final": 6_000, "dev": 1_000}
WITH, WITHOUT = "with", "without"
# By how much a table should gain, and may lose besides two standard errors.
GOALS = {("adult", 1.0): 0.0024, ("adult", 4.0): 0.0068}
ALLOWED = 0.0005


def main() -> int:
    options = _options()
    console = Console(width=120, highlight=False)
    began, cells = time.perf_counter(), []
    first = FIRST_SEED[options.seeds]
    for dataset in options.tables:
        for seed in range(first, first + options.splits):
            cells += _split_cells(dataset, seed, options)
            console.print(f"{dataset}, split {seed}: {time.perf_counter() - began:.0f} s")
    found = _summaries(cells)
    console.print(_table(found))
    worse = [one for one in found if one["holds"] is False]
    console.print(f"{len(found)} cells, {len(worse)} worse by more than is allowed")
    result = {
        "command": " ".join(["python", "benchmarks/fine_cells.py", *sys.argv[1:]]),
        "date_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "hedgerow": version("hedgerow"),
        "splits": options.splits,
        "first_seed": first,
        "allowed": f"{ALLOWED} plus two standard errors of the paired change",
        "cells": found,
    }
    if options.seeds == "final" and options.splits >= 6:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        console.print(f"written to {options.out}")
    return 1 if worse else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--seeds", choices=FIRST_SEED, default="final", help="dev: to choose on")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--cache", type=Path, default=CACHE)
    return parser.parse_args()


def _split_cells(dataset: str, seed: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every epsilon of one split, with and without, from the cache where it has them."""
    cache: Path = options.cache
    cache.parent.mkdir(parents=True, exist_ok=True)
    lines = cache.read_text("utf-8").splitlines() if cache.exists() else []
    code = source_of(AUTO)
    known = {_key(one): one for one in map(json.loads, lines) if one["code"] == code}
    found = []
    for epsilon in options.epsilons:
        for way in (WITHOUT, WITH):
            cell = {"table": dataset, "epsilon": epsilon, "seed": seed, "way": way, "code": code}
            if _key(cell) not in known:
                cell |= _measured(dataset, seed, epsilon, way)
                with cache.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(cell) + "\n")
            found.append(known.get(_key(cell), cell))
    return found


def _key(cell: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(cell[name] for name in ("table", "epsilon", "seed", "way"))


def _measured(dataset: str, seed: int, epsilon: float, way: str) -> dict[str, Any]:
    data = load(dataset)
    share = rule.FINE_SHARE if way == WITH else 0.0
    with patch.object(rule, "FINE_SHARE", share):
        found = measure(data, split_of(data, seed), AUTO, epsilon)
    return {
        "value": found["measures"][main_measure(dataset)],
        **{name: found[name] for name in ("seconds", "rounds", "bytes_per_party", "draws")},
    }


def _summaries(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means with and without by table and epsilon, and the paired change, positive if better."""
    summaries = []
    for dataset, epsilon in dict.fromkeys((cell["table"], cell["epsilon"]) for cell in cells):
        mine = [c for c in cells if (c["table"], c["epsilon"]) == (dataset, epsilon)]
        by = {way: [c for c in mine if c["way"] == way] for way in (WITHOUT, WITH)}
        before, after = (np.array([c["value"] for c in by[way]]) for way in by)
        sign = -1 if main_measure(dataset) == "rmse" else 1
        change = sign * (after - before)
        error = float(np.std(change, ddof=1) / math.sqrt(len(change))) if len(change) > 1 else 0.0
        summaries.append({
            "table": dataset, "epsilon": epsilon, "measure": main_measure(dataset),
            "fine_columns": len(fine_columns(base_grid(load(dataset).schema))),
            "without": round(float(before.mean()), 5), "with": round(float(after.mean()), 5),
            "change": round(float(change.mean()), 5), "error": round(error, 5),
            "goal": GOALS.get((dataset, epsilon)),
            "holds": bool(change.mean() >= -(ALLOWED + 2 * error)),
            **{
                name: [max(c[name] for c in by[way]) for way in by]
                for name in ("seconds", "rounds", "bytes_per_party")
            },
        })  # fmt: skip
    return summaries


def _table(found: list[dict[str, Any]]) -> Table:
    shown = Table("table", "epsilon", "without", "with", "change (error)", "goal", "kB, s")
    for one in found:
        goal = "" if one["goal"] is None else f"+{one['goal']:.4f}"
        size = " to ".join(f"{size / 1000:.0f}" for size in one["bytes_per_party"])
        seconds = " to ".join(f"{seconds:.2f}" for seconds in one["seconds"])
        shown.add_row(
            one["table"], f"{one['epsilon']:g}", f"{one['without']:.4f}", f"{one['with']:.4f}",
            f"{one['change']:+.4f} ({one['error']:.4f})", goal, f"{size}, {seconds}",
        )  # fmt: skip
    return shown


if __name__ == "__main__":
    sys.exit(main())
