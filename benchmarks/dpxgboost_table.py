"""`dp-xgboost` beside the published table of DP-XGBoost (figure 4), hedgerow's default and XGBoost.

    HEDGEROW_DATA=folder python benchmarks/dpxgboost_table.py --minutes 60

Goes on where it stopped; results go to results/dpxgboost_table.json beside this file. `--peer
PYTHON` names an interpreter that has the package dp-xgboost of PyPI.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpxgboost import extras, report
from dpxgboost.cells import EPSILONS, Cache, cells_of, run
from dpxgboost.data import DATASETS, MADE_UP, load, there
from dpxgboost.methods import METHODS, PEER

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "dpxgboost_table.json"
CACHE = HERE / ".cache" / "dpxgboost.jsonl"
PARTS = ("table", "composition", "runtime", "choices", "figures")


def main() -> None:
    given = options()
    deadline = time.monotonic() + 60 * given.minutes
    cache = Cache(given.cache)
    results = _read(given.out)
    results["parts"] = sorted({*results.get("parts", []), *given.parts})
    if "table" in given.parts:
        results.update(the_table(given, cache, deadline))
    real = [d for d in given.datasets if d not in MADE_UP]
    if "composition" in given.parts:
        first = "adult" if "adult" in given.datasets else given.datasets[0]
        results["composition"] = extras.composition(load(first))
        for one in results["composition"]:
            print(
                f"{one['n_trees']} trees, sampled at {one['sample_rate']:g} by "
                f"{one['sample_by']}: {one['pure']:g} added up, {one['composed']:.3f} composed"
            )
    if "runtime" in given.parts:
        data = load("covtype" if "covtype" in real else given.datasets[0])
        results["runtime"] = extras.runtime(data, given.repeats, say)
    if "choices" in given.parts:
        cells = extras.variant_cells(given.choice_datasets, 1.0, given.choice_splits)
        results["choices"] = list(extras.paired(extras.run_variants(cells, cache, deadline, say)))
        for one in results["choices"]:
            print(
                f"{one['dataset']}, {one['variant']}: error grows by {one['grows by']:+.3f} "
                f"(standard error {one['standard error']}, {one['splits']} splits)"
            )
    if "figures" in given.parts:
        known = results.get("figures", [])
        results["figures"] = extras.figures(known, given.figures, given.splits or 5, deadline, say)
    results["command"] = "python benchmarks/dpxgboost_table.py, again until nothing is left"
    results["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    names = ("hedgerow", "numpy", "scikit-learn", "xgboost-cpu")
    results["versions"] = {name: version(name) for name in names}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(results).replace("}, ", "},\n") + "\n", "utf-8")
    print(f"written: {given.out}")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no fit after so many")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--splits", type=int, default=0, help="0 = as many as stated for each")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--peer", default="", help="an interpreter that has dp-xgboost")
    parser.add_argument("--repeats", type=int, default=5, help="of the runtime")
    parser.add_argument("--figures", nargs="+", choices=("1", "2"), default=["1", "2"])
    parser.add_argument("--choice-datasets", nargs="+", default=["abalone", "adult"])
    parser.add_argument("--choice-splits", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="adult and abalone, one split")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--cache", type=Path, default=CACHE)
    given = parser.parse_args()
    if given.quick:
        given.datasets, given.epsilons, given.splits = ["abalone", "adult"], [1.0, 2.0], 1
        given.repeats, given.choice_splits, given.choice_datasets = 2, 1, ["abalone"]
        given.out = CACHE.with_name("dpxgboost_quick.json") if given.out == RESULTS else given.out
    if not os.environ.get("HEDGEROW_DATA"):
        print("HEDGEROW_DATA is not set: the real tables are left out")
        os.environ["HEDGEROW_DATA"] = ""
    given.datasets = [d for d in given.datasets if there(d)] or list(MADE_UP)
    given.choice_datasets = [d for d in given.choice_datasets if there(d)]
    return given


def the_table(given: argparse.Namespace, cache: Cache, deadline: float) -> dict[str, Any]:
    # Cells that were run before are shown, whatever is asked for now.
    wanted = [m for m in given.methods if m != PEER or given.peer]
    cells = cells_of(given.datasets, given.epsilons, given.splits)
    cells = [cell for cell in cells if cell.method in wanted or cache.get(cell)]
    found = run(cells, cache, given.peer, deadline, say)
    means = report.means_of(found)
    judged, beside = report.verdicts(means), report.against_auto(means)
    for line in (*report.table(means), *report.lines(judged, beside)):
        print(line)
    return {"results": report.entries(found), "judged": judged, "default method": beside}


def say(text: str) -> None:
    print(text, flush=True)


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


if __name__ == "__main__":
    main()
