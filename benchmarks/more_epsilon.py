"""Does more epsilon ever make the default method worse?

`auto` on six tables (and two with numeric labels), trained on 1,500, 6,000 and all rows of a split,
at epsilons from .5 to 100 and with the noise switched off. A split has the same training and test
rows at every epsilon, so changes are paired; each figure is a mean of several fits. Every epsilon
is held against every smaller one: the mean over splits may fall by .003 plus two standard errors.
Numeric labels are judged by R^2.

Needs HEDGEROW_DATA. Finished cells are kept in a cache, so a run that was stopped goes on where it
was. Writes benchmarks/results/more_epsilon.json.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from accuracy.cells import source_of
from accuracy.data import Data, Split, load, split_of
from accuracy.methods import AUTO, measure
from hedgerow.testing.noise import noise_off

HERE = Path(__file__).resolve().parent
RESULT, CACHE = HERE / "results" / "more_epsilon.json", HERE / ".cache" / "more_epsilon.jsonl"
TABLES = ("credit2", "bank", "adult", "higgs", "nomao6", "credit1", "abalone", "california")
SIZES = (1_500, 6_000, 0)  # 0: all
EPSILONS = (0.5, 1.0, 3.0, 10.0, 100.0)
OFF = "off"  # at the last epsilon, which the shrinkage goes by, and no noise at all
FIRST_SEED, ALLOWED = 2_000, 0.003


def main() -> int:
    options = _options()
    console = Console(width=150, highlight=False)
    began, cells = time.perf_counter(), []
    for dataset in options.tables:
        for seed in range(FIRST_SEED, FIRST_SEED + options.splits):
            cells += _split_cells(dataset, seed, options.cache)
    found = _summaries(cells)
    console.print(_table(found))
    falls = [fall for one in found for fall in one["falls"]]
    worst = max(falls, key=lambda fall: fall["by"] - fall["allowed"])
    red = [fall for fall in falls if fall["by"] > fall["allowed"]]
    console.print(f"{len(falls)} comparisons, {len(red)} falls beyond what is allowed")
    console.print(f"nearest to it: {json.dumps(worst)}")
    result = {
        "command": "python benchmarks/more_epsilon.py",
        "date_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "hedgerow": version("hedgerow"),
        "splits": options.splits,
        "first_seed": FIRST_SEED,
        "allowed": f"{ALLOWED} plus two standard errors of the paired change",
        "falls_beyond": red,
        "nearest": worst,
        "tables": found,
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    console.print(f"{time.perf_counter() - began:.0f} s; written to {options.out}")
    return 1 if red else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--cache", type=Path, default=CACHE)
    return parser.parse_args()


def _split_cells(dataset: str, seed: int, cache: Path) -> list[dict[str, Any]]:
    """Every number of rows and epsilon of one split, from the cache where it has them."""
    cache.parent.mkdir(parents=True, exist_ok=True)
    lines = cache.read_text("utf-8").splitlines() if cache.exists() else []
    code = source_of(AUTO)
    known = {_key(one): one for one in map(json.loads, lines) if one["code"] == code}
    found = []
    for n in SIZES:
        for epsilon in (*EPSILONS, OFF):
            cell = {"table": dataset, "rows": n, "epsilon": epsilon, "seed": seed, "code": code}
            if _key(cell) not in known:
                data = load(dataset)
                cell["value"] = _value(data, _part(split_of(data, seed), n), epsilon)
                with cache.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(cell) + "\n")
            found.append(known.get(_key(cell), cell))
    return found


def _key(cell: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(cell[name] for name in ("table", "rows", "epsilon", "seed"))


def _part(split: Split, n: int) -> Split:
    """So many of the training rows, drawn by the split's seed."""
    if not n or n >= len(split.train):
        return split
    some = np.random.default_rng(split.seed).choice(split.train, n, replace=False)
    return Split(split.seed, np.sort(some), split.test)


def _value(data: Data, split: Split, epsilon: float | str) -> float:
    off = epsilon == OFF
    with noise_off() if off else nullcontext():
        found = measure(data, split, AUTO, EPSILONS[-1] if off else float(epsilon))["measures"]
    if "auc" in found:
        return float(found["auc"])
    return 1 - float(found["rmse"]) ** 2 / float(np.var(data.truth[split.test]))


def _summaries(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means by table, number of rows and epsilon, and how far each falls below a smaller one."""
    places = list(dict.fromkeys((cell["table"], cell["rows"]) for cell in cells))
    summaries = []
    for dataset, n in places:
        mine = [cell for cell in cells if (cell["table"], cell["rows"]) == (dataset, n)]
        by = {
            e: np.array([c["value"] for c in sorted(mine, key=_key_of_seed) if c["epsilon"] == e])
            for e in (*EPSILONS, OFF)
        }
        falls = []
        for less, more in combinations(by, 2):
            fall = by[less] - by[more]
            error = float(np.std(fall, ddof=1) / math.sqrt(len(fall))) if len(fall) > 1 else 0.0
            falls.append({
                "table": dataset, "rows": n, "from": less, "to": more,
                "by": round(float(fall.mean()), 5), "allowed": round(ALLOWED + 2 * error, 5),
            })  # fmt: skip
        means = {str(e): round(float(values.mean()), 5) for e, values in by.items()}
        summaries.append({"table": dataset, "rows": n, "means": means, "falls": falls})
    return summaries


def _key_of_seed(cell: dict[str, Any]) -> int:
    return int(cell["seed"])


def _table(found: list[dict[str, Any]]) -> Table:
    shown = Table("table", "rows", *(f"{e:g}" for e in EPSILONS), OFF, "largest fall (allowed)")
    for one in found:
        worst = max(one["falls"], key=lambda fall: fall["by"])
        means = [f"{value:.4f}" for value in one["means"].values()]
        last = f"{max(worst['by'], 0):.4f} ({worst['allowed']:.4f})"
        shown.add_row(one["table"], str(one["rows"] or "all"), *means, last)
    return shown


if __name__ == "__main__":
    sys.exit(main())
