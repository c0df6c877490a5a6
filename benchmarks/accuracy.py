"""How accurate is the default method, against every anchor there is?

`auto` beside published methods, interpret's DP-EBM and plain XGBoost on the same 70-30 splits,
over six epsilons and eleven datasets; and the setting of S-BDT beside its published line. Needs
HEDGEROW_DATA and the extra `benchmarks`. Finished cells are kept in a cache, so a run that was
stopped goes on where it was. Writes benchmarks/results/accuracy.json and a picture a dataset;
runs on development seeds, quick runs and parts are written beside the cache instead.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from accuracy.cells import EBM_LIMIT, Cache, cells_of, rest_of_source, run, source_of
from accuracy.data import DATASETS, SBDT, is_present, measures
from accuracy.methods import AUTO, CONSTANT, EBM, PRESETS, THREE, XGBOOST
from accuracy.pictures import draw
from accuracy.report import Results, dataset_table, sbdt_table
from accuracy.requirements import Line, lines_of
from accuracy.rivals import RIVALS

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache" / "accuracy.jsonl"
EPSILONS = [0.01, 0.03, 0.1, 0.5, 1.0, 4.0]
FIRST_SEED = {"final": 0, "dev": 100}
METHODS = (AUTO, THREE, "presets", EBM, XGBOOST, CONSTANT)
# Other private ways to a model, in a result file of their own: on these tables, at these epsilons.
RIVAL_TABLES, RIVAL_EPSILONS = ["adult", "bank", "higgs"], [0.1, 1.0, 4.0]


def main() -> int:
    options = _options()
    console = Console(width=170, highlight=False)
    began = time.perf_counter()
    cells = cells_of(options)
    seeds = f"{options.seeds} seeds from {options.first_seed}"
    console.print(f"{len(cells)} cells, {seeds}, method hash {source_of(AUTO)}")
    limited = [d for d in options.datasets if d in EBM_LIMIT and not options.full_ebm]
    if EBM in options.methods and limited:
        console.print(f"DP-EBM only in part on {', '.join(limited)} (--full-ebm: everywhere)")
    done, failed = run(
        cells, Cache(options.cache), options.jobs,
        lambda text: console.print(text, markup=False), 60 * options.minutes,
    )  # fmt: skip
    results = Results(done)
    note = f"{options.seeds} splits"
    for dataset in results.datasets:
        show = sbdt_table if dataset in SBDT else dataset_table
        console.print(show(results, dataset, note))
    lines = lines_of(results)
    _show_lines(lines, options, console)
    for text in failed:
        console.print(f"failed: {text}", markup=False)
    pictures = [] if options.rivals else draw(results, options.out.with_suffix(""))
    _write(results, lines, failed, options)
    seconds = time.perf_counter() - began
    console.print(f"{seconds:.0f} s; written to {options.out}, {len(pictures)} pictures beside it")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="adult and abalone, 2 splits, epsilon 0.1 and 1")
    add("--seeds", choices=FIRST_SEED, default="final", help="choices are made on dev alone")
    add("--splits", type=int, default=5)
    add("--sbdt-splits", type=int, default=20)
    add("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS), metavar="NAME",
        help=", ".join(DATASETS))  # fmt: skip
    add("--epsilons", nargs="+", type=float, default=EPSILONS)
    add("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="NAME",
        help=", ".join(METHODS))  # fmt: skip
    add("--rivals", action="store_true", help="other private ways instead: " + ", ".join(RIVALS))
    add("--presets", nargs="*", choices=PRESETS, default=[PRESETS[-1]])
    add("--no-ebm", nargs="*", choices=DATASETS, default=[], metavar="DATASET",
        help="leave DP-EBM out there")  # fmt: skip
    add("--full-ebm", action="store_true", help="DP-EBM on all of covtype too")
    add("--minutes", type=float, default=1e9, help="start no fit after so long; report what is")
    add("--jobs", type=int, default=1, help="processes")
    add("--cache", type=Path, default=CACHE, help="finished cells")
    add("--out", type=Path, help="JSON; pictures go into a folder of that name")
    options = parser.parse_args()
    if not os.environ.get("HEDGEROW_DATA"):
        sys.exit("Set HEDGEROW_DATA to a folder with adult.parquet, adult.toml and so on.")
    if options.quick:
        options.datasets, options.splits, options.epsilons = ["adult", "abalone"], 2, [0.1, 1.0]
    if options.rivals:
        options.datasets, options.epsilons = RIVAL_TABLES, RIVAL_EPSILONS
    options.out = options.out or _default_out(options)
    options.first_seed = FIRST_SEED[options.seeds]
    options.methods = [m for m in METHODS if m in options.methods]
    if options.rivals:
        options.methods = list(RIVALS)
    if "presets" in options.methods:
        at = options.methods.index("presets")
        options.methods[at : at + 1] = options.presets
    missing = [d for d in options.datasets if not is_present(d)]
    if missing:
        print(f"no table for {', '.join(missing)}")
    options.datasets = [d for d in DATASETS if d in options.datasets and d not in missing]
    return options


def _default_out(options: argparse.Namespace) -> Path:
    """The result file for whole final runs; anything less must not replace it."""
    whole = (
        set(options.datasets) == set(DATASETS) and set(options.methods) == set(METHODS)
        and set(options.epsilons) >= set(EPSILONS) and options.splits >= 5
        and options.sbdt_splits >= 20 and not options.no_ebm
    )  # fmt: skip
    if options.rivals and options.splits >= 5 and options.seeds == "final":
        return HERE / "results" / "accuracy_rivals.json"
    if whole and options.seeds == "final":
        return HERE / "results" / "accuracy.json"
    return CACHE.parent / ("accuracy_dev.json" if options.seeds == "dev" else "accuracy_part.json")


def _show_lines(lines: list[Line], options: argparse.Namespace, console: Console) -> None:
    console.print("\nWhat the default method must show")
    if options.seeds != "final" or options.splits < 5:
        console.print("(an indication only: the requirements ask for 5 final splits)")
    for group in dict.fromkeys(line.group for line in lines):
        part = [line for line in lines if line.group == group]
        measured = [line for line in part if line.holds is not None]
        if not measured:
            console.print(f"not measured: {group}")
            continue
        held = sum(bool(line.holds) for line in measured)
        word = "yes" if len(measured) == len(part) else "yes where measured"
        word = "no" if held < len(measured) else word
        asked = "" if part[0].required else "; not required"
        console.print(f"{word}: {group}: {held} of {len(measured)}{asked}")
        for line in measured:
            console.print(f"    {line.word:>3}  {line.what}: {line.shown}")
        if len(measured) < len(part):
            left = ", ".join(line.what for line in part if line.holds is None)
            console.print(f"    not measured: {left}")
    console.print("not measured here: equality and variance over 1, 3 and 20 parties (see tests)")


def _write(
    results: Results, lines: list[Line], failed: list[str], options: argparse.Namespace
) -> None:
    packages = ["hedgerow", "numpy", "numba", "scikit-learn"]
    packages += ["scipy"] if options.rivals else ["xgboost-cpu", "interpret-core"]
    document = {
        "command": " ".join(["python", "benchmarks/accuracy.py", *_without_paths(sys.argv[1:])]),
        "date_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "source": {"auto": source_of(AUTO), "rest": rest_of_source()},
        "seeds": options.seeds,
        "delta": "1 / training rows; 5e-8 in the setting of S-BDT",
        "requirements": [
            {"group": line.group, "what": line.what, "holds": line.word, "shown": line.shown,
             "required": line.required}
            for line in lines
        ],
        "failed": failed,
        "results": [entry for dataset in results.datasets for entry in _entries(results, dataset)],
    }  # fmt: skip
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _without_paths(arguments: list[str]) -> list[str]:
    """Where files lie on one machine says nothing to others."""
    places = [i for i, word in enumerate(arguments) if word in ("--cache", "--out")]
    left_out = {*places, *(i + 1 for i in places)}
    return [word for i, word in enumerate(arguments) if i not in left_out]


def _entries(results: Results, dataset: str) -> list[dict[str, Any]]:
    """One entry for each method and epsilon, with every single figure by split."""
    keys = dict.fromkeys((c.method, c.epsilon) for c in results.done if c.dataset == dataset)
    entries = []
    for method, epsilon in sorted(keys, key=lambda key: (key[0], key[1] or 0.0)):
        found = {m: results.values(dataset, method, epsilon, m) for m in measures(dataset)}
        cells = [
            result for cell, result in sorted(results.done.items(), key=lambda item: item[0].seed)
            if (cell.dataset, cell.method, cell.epsilon) == (dataset, method, epsilon)
        ]  # fmt: skip
        entry: dict[str, Any] = {"dataset": dataset, "method": method, "epsilon": epsilon}
        entry["seeds"] = list(next(iter(found.values())))
        entry |= {name: [round(v, 6) for v in by.values()] for name, by in found.items()}
        for fact in ("delta", "n_train", "draws", "seconds", "rounds", "bytes_per_party"):
            if fact in cells[0]:
                entry[fact] = [cell[fact] for cell in cells]
        entries.append(entry)
    return entries


if __name__ == "__main__":
    sys.exit(main())
