"""Do the tables of Le et al. 2021 (FedXGBoost) come out, and what does each protection cost?

Tables 1 and 2 (time beside plain training; only ratios can be compared), figures 4 and 5 (loss
after every tree), bytes a tree, and AUC beside XGBoost at the same settings: credit1_full and
credit2, two and three parties. SMM-2, which the paper left open, is among them. Slow protections
are timed on one tree; Paillier on credit1_full on 20,000 rows, extrapolated to all and labelled so.
Real tables are read from HEDGEROW_DATA. What was computed stays in the result file: run it again to
go on.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from fedxgboost.cells import SLOW, TREES, WAYS, Cell, folder, measured, xgboost_auc

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "fedxgboost_tables.json"
PUBLISHED = {
    "Paillier": "paillier",
    "LDP Laplace, 1 a tree": "ldp_laplace_epsilon_1",
    "LDP Duchi, 1 a tree": "ldp_duchi_epsilon_1",
    "LDP Duchi, first order, 1 a tree": "ldp_duchi_first_order_epsilon_1",
    "LDP Laplace, 3 a tree": "ldp_laplace_epsilon_3",
    "LDP Duchi, 3 a tree": "ldp_duchi_epsilon_3",
    "LDP Duchi, first order, 3 a tree": "ldp_duchi_first_order_epsilon_3",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=["credit2", "credit1_full"])
    parser.add_argument("--parties", nargs="+", type=int, default=[2, 3])
    parser.add_argument("--repeats", type=int, default=3, help="of quick ways; the best counts")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--again", action="store_true", help="measure recorded cells anew")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin nothing after so many")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    results.setdefault("cells", {})
    results.setdefault("xgboost", {})
    datasets = [d for d in options.datasets if (folder() / f"{d}.parquet").exists()]
    if not datasets:
        raise SystemExit("no table in HEDGEROW_DATA; nothing was measured")
    begun = time.monotonic()
    for dataset in datasets:
        if dataset not in results["xgboost"]:
            results["xgboost"][dataset] = xgboost_auc(dataset)
        for parties in options.parties:
            for repeat in range(options.repeats):  # interleaved
                for way in options.ways:
                    cell = Cell(dataset, parties, way, repeat)
                    slow = way in SLOW and repeat > 0
                    late = time.monotonic() - begun > 60 * options.minutes
                    known = cell.name in results["cells"] and not options.again
                    if known or slow or late:
                        continue
                    found = measured(cell)
                    found["load"] = os.getloadavg()[0]
                    results["cells"][cell.name] = found
                    print(f"{cell.name}: {found['processor']:.2f} s of CPU a tree", flush=True)
                    written(options.out, results)
    written(options.out, results)
    for dataset in datasets:
        for parties in options.parties:
            show(results, dataset, parties)
    print(f"written: {options.out}")


def written(out: Path, results: dict[str, Any]) -> None:
    results["made"] = datetime.now(UTC).isoformat(timespec="seconds")
    results["command"] = "HEDGEROW_DATA=folder python benchmarks/fedxgboost_tables.py"
    out.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", "utf-8")


def best(results: dict[str, Any], dataset: str, parties: int, way: str) -> dict[str, Any] | None:
    """The quickest repetition of a cell."""
    names = [Cell(dataset, parties, way, r).name for r in range(100)]
    found = [results["cells"][name] for name in names if name in results["cells"]]
    return min(found, key=lambda one: one["processor"]) if found else None


def show(results: dict[str, Any], dataset: str, parties: int) -> None:
    published = tomllib.loads((HERE / "published" / "fedxgboost2021.toml").read_text())["seconds"]
    place = published["datasets"].index(dataset)
    plain = best(results, dataset, parties, "plain")
    if plain is None:
        return
    shown = Table(title=f"{dataset}, {parties} parties: time, bytes and loss of {TREES} trees")
    for name in ("way", "CPU / plain", "wall / plain", "published", "MB a tree", "loss", "AUC"):
        shown.add_column(name, justify="left" if name == "way" else "right")
    for way in WAYS:
        found = best(results, dataset, parties, way)
        if found is None:
            continue
        key = PUBLISHED.get(way)
        told = published[key][place] / published["plain_xgboost"][place] if key else None
        star = "*" if found["extrapolated_from"] else ""
        full = found["trees"] == TREES
        shown.add_row(
            way,
            f"{found['processor'] / plain['processor']:.2f}{star}",
            f"{found['wall'] / plain['wall']:.2f}{star}",
            f"{told:.2f}" if told else "",
            f"{found['bytes'] / 1e6:.2f}{star}",
            f"{found['loss'][-1]:.4f}" if full else "as plain",
            f"{found['auc']:.4f}" if full else "as plain",
        )
    known = results["xgboost"][dataset]
    shown.add_row(
        "XGBoost hist, 32 bins", "", "", "", "", f"{known['loss'][-1]:.4f}", f"{known['auc']:.4f}"
    )
    Console(width=120).print(shown)
    print("* extrapolated from 20,000 rows" if dataset == "credit1_full" else "")
    verdicts(results, dataset, parties, plain)


def verdicts(results: dict[str, Any], dataset: str, parties: int, plain: dict[str, Any]) -> None:
    """What was to be shown, each with its figure."""
    ratios = [("LDP Duchi, 1 a tree", "plain", 1.1), ("LDP Duchi, 3 a tree", "plain", 1.1),
              ("SMM-1", "Paillier", 0.5), ("SMM-2", "Paillier", 0.5)]  # fmt: skip
    for way, anchor, goal in ratios:
        one, other = (best(results, dataset, parties, name) for name in (way, anchor))
        if one and other:
            ratio = one["processor"] / other["processor"]
            word = "yes" if ratio <= goal else "no "
            print(f"{word} ({ratio:.3f}): {way} over {anchor}, time of CPU, goal {goal}")
    apart = abs(plain["auc"] - results["xgboost"][dataset]["auc"])
    print(f"{'yes' if apart <= 0.003 else 'no '} ({apart:.4f}): AUC beside XGBoost, goal 0.003")


if __name__ == "__main__":
    main()
