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

from simfl.cells import BASE, DATASETS, METHODS, Cell, folder, run
from simfl.report import report
from simfl.scaling import grown

RESULT = Path(__file__).resolve().parent / "results" / "simfl_tables.json"
THETAS = (0.6, 0.7, 0.9)
PARTIES = (4, 6, 8, 10)
SPLITS = range(20, 30)  # others than those by which settings were chosen (docs/simfl.md)


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    """The cells of the tables, split by split; then those of the figures, of the first splits."""
    datasets = [d for d in options.datasets if (folder() / f"{d}.parquet").exists()]

    def those(splits: int, thetas: Any, parties: int) -> Iterator[Cell]:
        for split in SPLITS[:splits]:
            for dataset in datasets:
                for theta in thetas:
                    for method in options.methods:
                        yield Cell(dataset, theta, parties, method, split, options.trees)

    yield from those(options.splits, (0.8, None), 2)
    if options.quick:
        return
    yield from those(options.figures, (None,), 10)
    yield from those(options.figures, THETAS, 2)
    for n in PARTIES:
        yield from those(options.figures, (0.8, None), n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument(
        "--splits", type=int, default=5, help="splits of the tables, each with its hash functions"
    )
    parser.add_argument("--figures", type=int, default=1, help="splits of the figures; 0 is none")
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="one split, 100 trees, no figures")
    parser.add_argument(
        "--scaling", type=int, nargs="+", default=[], help="rows of a made-up table, nothing else"
    )
    parser.add_argument("--report", action="store_true", help="print what is in the file")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    if options.quick:
        options.splits, options.trees = 1, 100
    results: dict[str, Any] = {"cells": [], "scaling": []}
    if options.out.exists():
        results = json.loads(options.out.read_text(encoding="utf-8"))
    wanted = [] if options.scaling or options.report else list(cells(options))
    done = {tuple(c[k] for k in Cell.__annotations__) for c in results["cells"]}
    for cell in dict.fromkeys(one.computed for one in wanted):
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
    results["settings"] = BASE.to_dict()
    results["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    results["command"] = "python benchmarks/simfl_tables.py"
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
