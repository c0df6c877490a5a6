"""Is the working tree slower than a stored commit? Both side by side, in one run, interleaved.

The commit is unpacked beside the tree and runs with the same environment. Every cell is a fresh
process: imports and commands, first fits with nothing compiled, and fits and predictions with
compiled loops on disk, which a process measures several times. Ratios are of the best CPU seconds.
By hand it fails where a ratio is above 1.15. With --short, for continuous integration, it measures
what takes a few seconds, no cell of less than some milliseconds, and fails above 2, after it has
measured what is above twice more: a busy machine must not make it red. Where the commit is not in
the history, or does not run any more, it says so and does nothing. Writes
benchmarks/results/regression.json.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from speed.repeating import Figures, Found, Kept, best, repeated, stoppable
from speed.report import screen

STORED = "c6c32b81e3788808c3fafdadbe0adc07ab0998da"  # before first fits were made quick
ROOT = Path(__file__).resolve().parents[1]
BY_HAND, SHORT = 1.15, 2.0
AGAIN = 2  # times that a short run measures what was above its limit
NOW, THEN = "now", "then"

MODELS = """
import sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
def table(rows, columns):
    x = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(int)
def boosting(method, rows=20_000, columns=8, **settings):
    from hedgerow import PrivateBoostingClassifier
    x, y = table(rows, columns)
    model = PrivateBoostingClassifier(
        bounds=(-5, 5), classes=[0, 1], method=method, random_state=1, settings=settings)
    return lambda: model.fit(x, y), x
def private_tree():
    from hedgerow import PrivateTreeClassifier
    x, y = table(20_000, 8)
    return lambda: PrivateTreeClassifier(bounds=(-5, 5), classes=[0, 1]).fit(x, y), x
def vertical():
    from hedgerow import VerticalBoostingClassifier
    x, y = table(5_000, 6)
    model = VerticalBoostingClassifier(
        bounds=(-5, 5), classes=[0, 1], n_trees=3, protection="none", allow_unsafe=True)
    return lambda: model.fit(x, y, owners={"x4": "other", "x5": "other"}), x
def simfl():
    from hedgerow import SimilarityBoostingClassifier
    x, y = table(1_500, 6)
    model = SimilarityBoostingClassifier(bounds=(-5, 5), classes=[0, 1], n_trees=3, random_state=1)
    return lambda: model.fit(x, y, parties=np.arange(len(x)) % 3), x
def say(work, times):
    work()  # compiles or loads, which another cell measures
    found = []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        found.append((time.process_time() - cpu, time.perf_counter() - wall))
    print("best", *min(found))
"""
FITS = {
    "auto": "boosting('auto')",
    "dp-tr-newton": "boosting('dp-tr-newton')",
    "private-tree": "private_tree()",
    "dp-xgboost": "boosting('dp-xgboost')",
    "vertical": "vertical()",
    "simfl": "simfl()",
}
PREDICT = "fit, x = {model}; model = fit(); x = np.resize(x, ({rows}, x.shape[1]))\n"


def process(command: list[str], tree: Path, cache: Path | None) -> Figures:
    """CPU and wall seconds of a process, or what it says that its best repetition took."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as empty:
        environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
        environment["NUMBA_CACHE_DIR"] = str(cache or empty)
        wall = time.perf_counter()
        started = subprocess.Popen(
            command, env=environment, cwd=empty, stdout=subprocess.PIPE, text=True
        )
        said = started.stdout.read() if started.stdout else ""
        _, status, used = os.wait4(started.pid, 0)
        wall = time.perf_counter() - wall
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise SystemExit(f"{command[-1]} in {tree} ended with {started.returncode}")
    cpu = used.ru_utime + used.ru_stime
    for line in said.splitlines():
        if line.startswith("best "):
            cpu, wall = (float(text) for text in line.split()[1:])
    return {"wall": wall, "cpu": cpu, "load": os.getloadavg()[0]}


def programs(short: bool, long: bool) -> dict[str, tuple[list[str], bool]]:
    """Every cell's command, and whether it begins with nothing compiled."""

    def python(program: str) -> list[str]:
        return [sys.executable, "-c", program]

    found = {
        "import the classifier": (python("import hedgerow.estimators.boosting"), False),
        "hedgerow --help": ([sys.executable, "-m", "hedgerow", "--help"], False),
    }
    # Few trees of few rows: a short run compiles what the stored commit needs for them.
    small = "boosting('dp-tr-newton', 2_000, 4, n_trees=20)"
    model = small if short else FITS["auto"]
    one = MODELS + PREDICT.format(model=model, rows=1) + "say(lambda: model.predict(x), 200)"
    many, times = (200_000, 10) if short else (1_000_000, 3)
    rows = MODELS + PREDICT.format(model=model, rows=many)
    rows += f"say(lambda: model.predict(x), {times})"
    if not short:  # a tenth of a millisecond: chance decides how long that takes
        found["predict one row"] = (python(one), False)
    found[f"predict {many:,} rows"] = (python(rows), False)
    if short:
        found["fit, warm, small"] = (python(MODELS + f"say({small}[0], 20)"), False)
        return found
    for name, fit in FITS.items():
        found[f"fit, warm, {name}"] = (python(MODELS + f"say({fit}[0], 5)"), False)
        found[f"fit, cold, {name}"] = (python(MODELS + f"{fit}[0]()"), True)
    if long:
        for name in ("auto", "dp-tr-newton"):
            fit = f"boosting({name!r}, 1_000_000, 28)[0]"
            found[f"fit, warm, {name}, 1,000,000 x 28"] = (python(MODELS + f"say({fit}, 3)"), False)
    return found


def missing(commit: str, folder: Path) -> str:
    """Unpack a commit; say why there is nothing to compare with, or nothing."""
    try:
        told = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True)
    except OSError as error:
        return f"git cannot be run here ({error})"
    if told.returncode:
        return f"{commit} is not in the history here"
    with tarfile.open(fileobj=io.BytesIO(told.stdout)) as files:
        files.extractall(folder, filter="data")
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    program = [sys.executable, "-c", "import hedgerow.estimators.boosting"]
    if subprocess.run(program, env=environment, capture_output=True).returncode:
        return f"{commit} does not run with the libraries that are installed"
    return ""


def ratios_of(found: Found) -> dict[str, float]:
    """CPU seconds now over then, the best of each, by what was measured."""
    names = [cell.rpartition(" | ")[0] for cell in found if cell.endswith(f" | {NOW}")]
    return {
        name: best(found[f"{name} | {NOW}"], "cpu") / best(found[f"{name} | {THEN}"], "cpu")
        for name in names
    }


def show(console: Console, found: Found, limit: float) -> None:
    """Print CPU seconds of both trees, and their ratios."""
    shown = Table(title="CPU seconds, the best of each")
    shown.add_column("what", no_wrap=True)
    for column in (THEN, NOW, "now / then"):
        shown.add_column(column, justify="right")
    for name, ratio in ratios_of(found).items():
        now, then = (best(found[f"{name} | {tree}"], "cpu") for tree in (NOW, THEN))
        style = "red" if ratio > limit else ""
        shown.add_row(name, f"{then:.4f}", f"{now:.4f}", f"{ratio:.2f}", style=style)
    console.print(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", nargs="?", default=STORED, help="what to compare with")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="cells whose name has this in it")
    parser.add_argument("--long", action="store_true", help="fits of 1,000,000 rows, too")
    parser.add_argument("--short", action="store_true", help="a few seconds, for each change")
    parser.add_argument("--fresh", action="store_true", help="forget what a stopped run measured")
    options, console, begun = parser.parse_args(), screen(), time.time()
    limit, repeats = (SHORT, 1) if options.short else (BY_HAND, options.repeats)
    kept = Kept("regression", options.short, options.fresh or options.short)
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as name:
        stored = Path(name) / "stored"
        if why := missing(options.commit, stored):
            console.print(f"{why}; nothing to compare with")
            return
        cells: dict[str, Callable[[], Figures]] = {}
        for cell, (command, cold) in programs(options.short, options.long).items():
            if options.only in cell:
                for tree, path in ((THEN, stored), (NOW, ROOT)):
                    cache = None if cold else Path(name) / f"cache-{tree}"
                    cells[f"{cell} | {tree}"] = partial(process, command, path, cache)
        found = repeated("processes", cells, repeats, kept, console)
        for k in range(AGAIN if options.short else 0):
            above = {name for name, ratio in ratios_of(found).items() if ratio > limit}
            if again := {c: run for c, run in cells.items() if c.rpartition(" | ")[0] in above}:
                more = repeated(f"processes, again {k + 1}", again, 1, kept, console)
                found = {cell: [*runs, *more.get(cell, [])] for cell, runs in found.items()}
    show(console, found, limit)
    ratios = ratios_of(found)
    values = {"stored": options.commit, "limit": limit, "ratios": ratios, "processes": found}
    kept.finish(begun, values, console, whole=not options.only)
    slower = [name for name, ratio in ratios.items() if ratio > limit]
    if slower:
        raise SystemExit(f"above {limit} of the stored commit: {json.dumps(slower)}")


if __name__ == "__main__":
    stoppable(main)
