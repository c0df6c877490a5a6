"""Do the tables and figures of Maddock et al. 2022 come out, method by method?

Test AUC beside the published value, how far apart they are in published standard deviations,
average ranks, the paper's conclusions as yes or no, and its figures. Tables are read from the
folder named by HEDGEROW_DATA. Every finished fit is remembered in --cache, so a run that was
stopped goes on where it was. --quick takes some minutes, everything takes days on one core.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from maddock import cells, compare, earlier, figures, report
from maddock.compare import Chosen
from maddock.data import BOUNDS, DATASETS, ENCODINGS, SEEDS, folder
from maddock.fits import Cache, Fit, run_all
from maddock.variants import VARIANTS

HERE = Path(__file__).resolve().parent


def main() -> None:
    options = _options()
    present = tuple(n for n in options.datasets if (folder() / f"{n}.parquet").is_file())
    if not os.environ.get("HEDGEROW_DATA") or not present:
        sys.exit("Set HEDGEROW_DATA to a folder with adult.parquet, adult.toml and so on.")
    chosen = Chosen(
        options.splits, options.repeats, present, options.encoding, options.bounds,
        options.accounting, tuple(sorted(_setting(text) for text in options.set)),
        "+".join(sorted(options.variant)),
    )  # fmt: skip
    cache, began = Cache(options.cache), time.perf_counter()
    before = [earlier.read(path) for path in options.add_to]
    for document in before:
        earlier.take(cache, document)
    if not options.report_only:
        try:
            run_all(_wanted(options, chosen), chosen.splits, chosen.repeats, cache, options.jobs)
        except KeyboardInterrupt:
            print("Stopped; finished fits are kept. What they say so far:")
    report.show(cache, chosen, options.tables)
    drawn = figures.draw(cache, chosen, options.figures, options.out.parent / "maddock")
    seconds = time.perf_counter() - began
    report.write(cache, chosen, options.tables, drawn, options.out, seconds, before)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--tables", nargs="*", type=int, default=list(cells.TABLES), choices=cells.TABLES)
    add("--figures", nargs="*", type=int, default=[], choices=figures.NUMBERS)
    add("--datasets", nargs="+", default=list(DATASETS), choices=DATASETS)
    add("--rows", nargs="*", default=[], help="only rows that begin so, e.g. totally_random")
    add("--epsilons", nargs="*", type=float, default=[], help="only cells at these")
    add("--splits", type=int, default=5, help=f"at most {len(SEEDS)}")
    add("--repeats", type=int, default=3)
    add("--accounting", default="renyi", choices=("renyi", "exact"))
    add("--encoding", default="published", choices=ENCODINGS)
    add("--bounds", default="schema", choices=BOUNDS)
    add("--set", nargs="*", default=[], help="settings of every method, e.g. max_depth=3")
    add("--variant", nargs="*", default=[], choices=VARIANTS, help="rules of the authors' program")
    add("--outside", type=Path, help="only cells that this result file has outside two deviations")
    add("--jobs", type=int, default=1, help="processes, each with one thread")
    add("--cache", type=Path, default=HERE / "results" / "maddock_cache.jsonl")
    add("--out", type=Path, default=HERE / "results" / "maddock_tables.json")
    add("--add-to", nargs="*", type=Path, default=[], help="result files whose fits count as done")
    add("--report-only", action="store_true", help="fit nothing; report what the cache holds")
    add("--quick", action="store_true", help="adult and credit2, 1 split, parts of 12 and 6")
    options = parser.parse_args()
    if not 1 <= options.splits <= len(SEEDS) or options.repeats < 1 or options.jobs < 1:
        parser.error(f"--splits is 1 to {len(SEEDS)}; --repeats and --jobs are at least 1")
    if options.quick:
        options.tables, options.figures, options.epsilons = [6, 12], [], [1.0]
        options.datasets, options.splits, options.repeats = ["adult", "credit2"], 1, 1
        newton = ("hist_newton", "partially_random_newton", "totally_random_newton")
        options.rows = [*newton, *cells.RANKED]
        if options.out == parser.get_default("out"):
            options.out = HERE / "results" / "maddock_quick.json"
    return options


def _setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    return name, tomllib.loads(f"value = {value}")["value"]


def _wanted(options: argparse.Namespace, chosen: Chosen) -> list[Fit]:
    """The cells to fit, each once: a cell of one table is often a point of a figure."""
    found: dict[Fit, None] = {}
    outside = options.outside and compare.outside(earlier.read(options.outside)["cells"])
    for number in options.tables:
        for cell in cells.table_cells(number):
            if outside and (cell.table, cell.row, cell.dataset) not in outside:
                continue
            named = not options.rows or cell.row.startswith(tuple(options.rows))
            priced = not options.epsilons or cell.epsilon in options.epsilons
            if cell.dataset in chosen.datasets and named and priced:
                found[chosen.cell(cell.fit)] = None
    for number in options.figures:
        for one in figures.fits_of(number, chosen.datasets):
            found[chosen.cell(one)] = None
    return list(found)


if __name__ == "__main__":
    main()
