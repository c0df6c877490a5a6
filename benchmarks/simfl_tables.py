"""Do the tables and figures of Li et al. 2020 (SimFL) come out?

Tables 2 and 3 (two parties), figure 2 (theta), figures 3 and 4 (2 to 10 parties), table 4 (time and
bytes, ten parties), and how preprocessing grows with rows on a made-up table. Real tables are read
from HEDGEROW_DATA and left out where absent. What was computed stays in the result file: run it
again to go on. Seconds are of the processor, one core.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from simfl.cells import DATASETS, METHODS, Cell, folder, run
from simfl.report import report
from simfl.scaling import grown

RESULT = Path(__file__).resolve().parent / "results" / "simfl_tables.json"
THETAS = (0.6, 0.7, 0.8, 0.9)
PARTIES = (2, 4, 6, 8, 10)


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    """The cells, those of the tables before those of the figures."""
    datasets = [d for d in options.datasets if (folder() / f"{d}.parquet").exists()]
    for seed in range(options.seeds):
        for dataset in datasets:
            for theta in (0.8, None):
                for method in METHODS:
                    yield Cell(dataset, theta, 2, method, seed, options.trees)
    if options.quick or options.main:
        return
    for seed in range(options.seeds):
        for dataset in datasets:
            for theta in THETAS:
                for method in METHODS:
                    yield Cell(dataset, theta, 2, method, seed, options.trees)
            for n in PARTIES:
                for theta in (0.8, None):
                    for method in METHODS:
                        yield Cell(dataset, theta, n, method, seed, options.trees)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument(
        "--seeds", type=int, default=3, help="splits, partitions and hash functions"
    )
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="one seed, 100 trees, two parties")
    parser.add_argument("--main", action="store_true", help="tables 2 and 3 alone")
    parser.add_argument("--ten", action="store_true", help="table 4 alone: ten parties, balanced")
    parser.add_argument(
        "--scaling", type=int, nargs="+", default=[], help="rows of a made-up table"
    )
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.trees = 1, 100
    results: dict[str, Any] = {"cells": [], "scaling": []}
    if options.out.exists():
        results = json.loads(options.out.read_text(encoding="utf-8"))
    done = {tuple(c[k] for k in Cell.__annotations__) for c in results["cells"]}
    wanted = [] if options.scaling else list(cells(options))
    if options.ten:
        wanted = [
            Cell(d, None, 10, m, 0, options.trees)
            for d in options.datasets
            if (folder() / f"{d}.parquet").exists()
            for m in METHODS
        ]
    for cell in dict.fromkeys(wanted):
        if tuple(cell.__dict__.values()) not in done:
            results["cells"].append(run(cell))
            print(json.dumps(results["cells"][-1]), flush=True)
            save(results, options.out)
    for n_rows in options.scaling:
        results["scaling"].append(grown(n_rows, options.trees))
        print(json.dumps(results["scaling"][-1]), flush=True)
        save(results, options.out)
    print(report(results))


def save(results: dict[str, Any], path: Path) -> None:
    results["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    results["command"] = "python benchmarks/simfl_tables.py"
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
