"""How long until hedgerow does something? Imports, commands and first fits in fresh processes.

Beside an empty Python process, and importing XGBoost and scikit-learn's ensembles. The first fit
is of 2,000 rows; it and `hedgerow demo` are run once with compiled loops on disk and once with an
empty folder for them. Prints the best of several interleaved repetitions, writes
benchmarks/results/startup.json.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from speed.repeating import Figures, Found, Kept, best, repeated, stoppable
from speed.report import screen
from speed.tables import data_folder, names_of, schema_of

FIT = """
import numpy as np
from hedgerow import PrivateBoostingClassifier
x = np.random.default_rng(0).normal(size=({rows}, 28)).astype(np.float32)
model = PrivateBoostingClassifier(bounds=(-5, 5), classes=[0, 1], method={method!r})
model.fit(x, (x[:, 0] + x[:, 1] > 0).astype(int))
"""
EMPTY = "python -c pass"
DEMO = "hedgerow demo, {} cache"
MOST_DEMO_SECONDS = 15.0  # goal for the demonstration with nothing compiled


def process(command: list[str], cache: str | None = None) -> Figures:
    """Wall and CPU seconds of a process from its start to its end, in a folder of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="hedgerow-") as empty,
        tempfile.TemporaryDirectory(prefix="hedgerow-") as here,
    ):
        environment = dict(os.environ)
        if cache == "cold":
            environment["NUMBA_CACHE_DIR"] = empty
        wall = time.perf_counter()
        started = subprocess.Popen(command, env=environment, cwd=here, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(started.pid, 0)
        wall = time.perf_counter() - wall
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise SystemExit(f"{command} ended with {started.returncode}")
    cpu = used.ru_utime + used.ru_stime
    return {"wall": wall, "cpu": cpu, "load": os.getloadavg()[0]}


def cells_of(schema: Path, rows: int) -> dict[str, Callable[[], Figures]]:
    def python(program: str, cache: str | None = None) -> Callable[[], Figures]:
        return partial(process, [sys.executable, "-c", program], cache)

    command = [sys.executable, "-m", "hedgerow"]
    cells = {EMPTY: python("pass")}
    for name in ("xgboost", "sklearn.ensemble", "hedgerow"):
        cells[f"import {name}"] = python(f"import {name}")
    cells["import hedgerow, the classifier"] = python("import hedgerow.estimators.boosting")
    cells["hedgerow --help"] = partial(process, [*command, "--help"])
    plan = ["plan", "--schema", str(schema), "--epsilon", "1", "--delta", "1e-5"]
    cells[f"hedgerow plan, {schema.name}"] = partial(process, [*command, *plan])
    for method in ("dp-tr-newton", "auto"):
        program = FIT.format(rows=rows, method=method)
        for cache in ("warm", "cold"):
            cells[f"first fit, {method}, {cache} cache"] = python(program, cache)
    for cache in ("warm", "cold"):
        cells[DEMO.format(cache)] = partial(process, [*command, "demo"], cache)
    return cells


def show(console: Console, found: Found) -> None:
    shown = Table(title=f"Fresh processes, best of {len(found[EMPTY])}")
    shown.add_column("process", no_wrap=True)
    for column in ("wall s", "CPU s", f"CPU beyond {EMPTY}"):
        shown.add_column(column, justify="right")
    for name, figures in found.items():
        cpu = best(figures, "cpu")
        beyond = cpu - best(found[EMPTY], "cpu")
        shown.add_row(name, f"{best(figures, 'wall'):.2f}", f"{cpu:.2f}", f"{beyond:.2f}")
    console.print(shown)
    seconds = best(found[DEMO.format("cold")], "wall")
    met = "yes" if seconds <= MOST_DEMO_SECONDS else "no "
    console.print(f"{met} {DEMO.format('cold')}: {seconds:.1f} s, goal {MOST_DEMO_SECONDS:g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one repetition")
    parser.add_argument("--fresh", action="store_true", help="forget what a stopped run measured")
    options, console, begun = parser.parse_args(), screen(), time.time()
    kept = Kept("startup", options.quick, options.fresh)
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as name:
        folder = data_folder("adult.toml")
        schema = folder / "adult.toml" if folder else Path(name) / "made-up.toml"
        if folder is None:
            console.print("adult.toml is not in HEDGEROW_DATA; a made-up schema takes its place")
            schema_of(len(names_of(28))).write(schema)
        cells = cells_of(schema, rows=2_000)
        for cell in cells:
            if "warm" in cell and not options.quick:
                cells[cell]()  # compiles what is not on disk yet
        repeats = 1 if options.quick else options.repeats
        found = repeated("processes", cells, repeats, kept, console)
    show(console, found)
    kept.finish(begun, {"processes": found}, console)


if __name__ == "__main__":
    stoppable(main)
