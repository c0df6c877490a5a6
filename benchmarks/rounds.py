"""What do many rounds bring the default method, and what do they cost?

`auto` with 16 rounds, its default, and with more of them, on the same splits with the same
seeds, so that differences are paired. Prints gains with standard errors beside goals, rounds,
bytes that a party would send, seconds and calibration errors. Needs HEDGEROW_DATA. Finished fits
are kept in a cache, so a run that was stopped goes on where it was. Writes
benchmarks/results/rounds.json and a picture of accuracy against rounds beside it.
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

import matplotlib as mpl
import numpy as np
from rich.console import Console
from rich.table import Table

from accuracy.cells import source_of
from accuracy.data import Data, delta_of, load, main_measure, split_of
from accuracy.methods import AUTO, compare
from accuracy.pictures import STYLE
from hedgerow import PrivateBoostingClassifier, PrivateBoostingRegressor, local_federation

HERE = Path(__file__).resolve().parent
RESULT, CACHE = HERE / "results" / "rounds.json", HERE / ".cache" / "rounds.jsonl"
TABLES = ("adult", "bank", "nomao6", "higgs", "credit1", "credit2", "a9a", "covtype", "california")
USUAL = ("adult", "bank", "nomao6", "higgs", "credit1", "credit2", "a9a")
CURVES, BETWEEN = ("higgs", "bank"), (32, 64)  # tables of the picture, and their further rounds
EPSILONS, FEW, MANY = (1.0, 4.0), 16, 200
FIRST_SEED, ALLOWED = 5_000, 0.001
GOALS = {
    ("adult", 1.0): 0.003, ("bank", 1.0): 0.003, ("nomao6", 1.0): 0.002, ("higgs", 1.0): 0.005,
    ("adult", 4.0): 0.005, ("bank", 4.0): 0.002, ("nomao6", 4.0): 0.002, ("higgs", 4.0): 0.006,
}  # fmt: skip


def main() -> int:
    options = _options()
    console = Console(width=150, highlight=False)
    began, cells = time.perf_counter(), []
    for dataset in options.tables:
        for seed in range(options.first_seed, options.first_seed + options.splits):
            cells += _split_cells(dataset, seed, options)
    found = _summaries(cells)
    console.print(_shown(found))
    red = [one for one in found if one["gain"] < -(ALLOWED + 2 * one["error"])]
    console.print(f"{len(found)} comparisons, {len(red)} losses beyond {ALLOWED} plus two errors")
    result = {
        "command": "python benchmarks/rounds.py",
        "date_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "hedgerow": version("hedgerow"),
        "splits": options.splits,
        "draws": options.draws,
        "first_seed": options.first_seed,
        "losses_beyond": [[one["table"], one["epsilon"], one["rounds_allowed"]] for one in red],
        "cells": found,
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    _draw(found, options.out.with_suffix(".svg"))
    console.print(f"{time.perf_counter() - began:.0f} s; written to {options.out}")
    return 1 if red else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--draws", type=int, default=1, help="fits a split, their mean counts")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(USUAL))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--cache", type=Path, default=CACHE)
    return parser.parse_args()


def _split_cells(dataset: str, seed: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every epsilon and number of rounds on one split, from the cache where it has them."""
    options.cache.parent.mkdir(parents=True, exist_ok=True)
    lines = options.cache.read_text("utf-8").splitlines() if options.cache.exists() else []
    code = source_of(AUTO)
    known = {_key(one): one for one in map(json.loads, lines) if one["code"] == code}
    found = []
    for epsilon in options.epsilons:
        for rounds in (FEW, *(BETWEEN if dataset in CURVES else ()), MANY):
            for draw in range(options.draws):
                cell = {
                    "table": dataset, "epsilon": epsilon, "rounds_allowed": rounds, "seed": seed,
                    "draw": draw, "code": code,
                }  # fmt: skip
                if _key(cell) not in known:
                    cell |= _fit(load(dataset), seed, epsilon, rounds, draw)
                    with options.cache.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(cell) + "\n")
                found.append(known.get(_key(cell), cell))
    return found


def _key(cell: dict[str, Any]) -> tuple[Any, ...]:
    names = ("table", "epsilon", "rounds_allowed", "seed", "draw")
    return tuple(cell[name] for name in names)


def _fit(data: Data, seed: int, epsilon: float, rounds: int, draw: int) -> dict[str, Any]:
    """One fit over one party, and what it scores on the test rows."""
    split, classes = split_of(data, seed), bool(data.schema.label.classes)
    federation = local_federation({"all": data.rows.take(split.train)}, data.schema)
    made = PrivateBoostingClassifier if classes else PrivateBoostingRegressor
    model = made(
        epsilon=epsilon,
        delta=delta_of(data.name, len(split.train)),
        random_state=seed + 10_000 * draw,
        settings={"rounds": rounds},
    )
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit_federation(federation)
    seconds, cpu = time.perf_counter() - wall, time.process_time() - cpu
    test, truth = data.table.take(split.test), data.truth[split.test]
    if classes:
        scores = model.decision_function(test) if len(data.schema.label.classes) == 2 else None
        measures = compare(model.predict_proba(test), scores, truth)
    else:
        measures = compare(model.predict(test), None, truth)
    return {
        "measures": measures, "rounds": federation.rounds, "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu, 3), "bytes": federation.bytes_from_parties,
    }  # fmt: skip


def _summaries(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means by table, epsilon and rounds, and how far each is above 16 rounds, by split."""
    places = dict.fromkeys((c["table"], c["epsilon"], c["rounds_allowed"]) for c in cells)
    found = []
    for dataset, epsilon, rounds in places:
        measure = main_measure(dataset)
        sign = -1.0 if measure == "rmse" else 1.0
        mine, few = (_of(cells, dataset, epsilon, r) for r in (rounds, FEW))
        gains = sign * (_by_split(mine, measure) - _by_split(few, measure))
        error = float(np.std(gains, ddof=1) / math.sqrt(len(gains))) if len(gains) > 1 else 0.0
        found.append({
            "table": dataset, "epsilon": epsilon, "rounds_allowed": rounds, "measure": measure,
            "mean": round(float(_by_split(mine, measure).mean()), 5),
            "gain": round(float(gains.mean()), 5), "error": round(error, 5),
            "worst_split": round(float(gains.min()), 5),
            "goal": GOALS.get((dataset, epsilon)) if rounds > FEW else None,
            "ece": round(float(np.mean([c["measures"].get("ece", 0.0) for c in mine])), 4),
            "rounds": max(c["rounds"] for c in mine),
            "bytes": max(c["bytes"] for c in mine),
            "seconds": round(float(np.median([c["seconds"] for c in mine])), 2),
            "cpu_seconds": round(float(np.median([c["cpu_seconds"] for c in mine])), 2),
        })  # fmt: skip
    return found


def _of(
    cells: list[dict[str, Any]], dataset: str, epsilon: float, rounds: int
) -> list[dict[str, Any]]:
    wanted = (dataset, epsilon, rounds)
    return [c for c in cells if (c["table"], c["epsilon"], c["rounds_allowed"]) == wanted]


def _by_split(cells: list[dict[str, Any]], measure: str) -> Any:
    """Means over the fits of each split, in the order of seeds: (split,)."""
    seeds = sorted({c["seed"] for c in cells})
    return np.array(
        [np.mean([c["measures"][measure] for c in cells if c["seed"] == seed]) for seed in seeds]
    )


def _shown(found: list[dict[str, Any]]) -> Table:
    names = ("table", "epsilon", "rounds", "mean", "gain (error)", "goal", "worst split", "ECE",
             "MB sent", "seconds", "CPU seconds")  # fmt: skip
    shown = Table(*names)
    for one in found:
        few = one["rounds_allowed"] == FEW
        gain = "" if few else f"{one['gain']:+.4f} ({one['error']:.4f})"
        goal = "" if one["goal"] is None else f"{one['goal']:+.3f}"
        shown.add_row(
            one["table"], f"{one['epsilon']:g}", f"{one['rounds']} of {one['rounds_allowed']}",
            f"{one['mean']:.4f}", gain, goal, "" if few else f"{one['worst_split']:+.4f}",
            f"{one['ece']:.3f}", f"{one['bytes'] / 1e6:.2f}", f"{one['seconds']:.2f}",
            f"{one['cpu_seconds']:.2f}",
        )  # fmt: skip
    return shown


def _draw(found: list[dict[str, Any]], path: Path) -> None:
    """Gains against rounds, of the tables that have several."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(5.0, 3.2), layout="constrained")
        for dataset in CURVES:
            for epsilon in EPSILONS:
                mine = [o for o in found if (o["table"], o["epsilon"]) == (dataset, epsilon)]
                if len(mine) > 1:
                    x = [one["rounds"] for one in mine]
                    y, error = [o["gain"] for o in mine], [o["error"] for o in mine]
                    name = f"{dataset}, epsilon {epsilon:g}"
                    axes.errorbar(x, y, error, marker="o", ms=3, lw=1.2, label=name)
        axes.axhline(0.0, color="0.5", lw=0.8)
        axes.set(xscale="log", xlabel="rounds", ylabel="gain over 16 rounds", title="AUC by rounds")
        ticks = (FEW, *BETWEEN, MANY)
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.set_xticks([], minor=True)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize=7)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
