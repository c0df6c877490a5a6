"""Which cells (dataset, method, epsilon, split) to run, their cache, and running them."""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba

import hedgerow
from accuracy import rivals
from accuracy.data import SBDT, load, main_measure, sbdt_line, split_of
from accuracy.methods import AUTO, CONSTANT, DRAWS, EBM, NOT_PRIVATE, THREE, XGBOOST, measure
from accuracy.rivals import RIVALS

SOURCE = Path(hedgerow.__file__).parent
# DP-EBM takes minutes a fit on the largest table; these cells stand for it unless --full-ebm.
EBM_LIMIT = {"covtype": ((0.1, 1.0), 2)}  # epsilons, splits
# Raise this when measures change, so that cells measured otherwise are not reused.
CACHE_FORMAT = 2
Found = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One fit; `epsilon` is None for methods without privacy."""

    dataset: str
    method: str
    epsilon: float | None
    seed: int

    def __str__(self) -> str:
        epsilon = "not private" if self.epsilon is None else f"epsilon {self.epsilon:g}"
        return f"{self.dataset}, {self.method}, {epsilon}, seed {self.seed}"


def cells_of(options: argparse.Namespace) -> list[Cell]:
    """All cells of a run, dataset by dataset, so that a process loads each table once."""
    found: list[Cell] = []
    for dataset in options.datasets:
        wanted = _sbdt_cells if dataset in SBDT else _cells
        found += dict.fromkeys(wanted(dataset, options))
    return found


def _cells(dataset: str, options: argparse.Namespace) -> Iterator[Cell]:
    seeds = [options.first_seed + i for i in range(options.splits)]
    methods = [m for m in options.methods if m != EBM or _ebm_runs(dataset, options)]
    for i, seed in enumerate(seeds):
        for method in methods:
            for epsilon in (None,) if method in NOT_PRIVATE else options.epsilons:
                limited = method == EBM and not options.full_ebm and dataset in EBM_LIMIT
                if limited and (epsilon not in EBM_LIMIT[dataset][0] or i >= EBM_LIMIT[dataset][1]):
                    continue
                if method == THREE and i > 0:
                    continue  # traffic hardly varies: one split
                yield Cell(dataset, method, epsilon, seed)


def _sbdt_cells(dataset: str, options: argparse.Namespace) -> Iterator[Cell]:
    """`auto` at the published epsilons and at half of each, and the non-private anchors."""
    published = list(sbdt_line(dataset))
    epsilons = sorted({*published, *(half_of(e) for e in published)})
    for i in range(options.sbdt_splits):
        seed = options.first_seed + i
        for method in (m for m in options.methods if m in (AUTO, *NOT_PRIVATE)):
            for epsilon in (None,) if method in NOT_PRIVATE else epsilons:
                yield Cell(dataset, method, epsilon, seed)


def half_of(epsilon: float) -> float:
    return round(epsilon / 2, 6)


def _ebm_runs(dataset: str, options: argparse.Namespace) -> bool:
    return main_measure(dataset) != "accuracy" and dataset not in options.no_ebm


@cache
def source_of(method: str) -> str:
    """What a method's figures depend on: the hash of its grower, or a package's version."""
    if method == XGBOOST:
        return f"xgboost {version('xgboost-cpu')}"
    if method == EBM:
        return f"interpret-core {version('interpret-core')}"
    if method == CONSTANT:
        return "constant"
    if method in RIVALS:
        return hashlib.sha256(Path(rivals.__file__).read_bytes()).hexdigest()[:16]
    folder = SOURCE / "methods"
    if method in (AUTO, THREE):
        return f"{code_hash(sorted((folder / 'auto').glob('**/*.py')))} x {DRAWS}"
    others = sorted(set(folder.glob("**/*.py")) - set((folder / "auto").glob("**/*.py")))
    return code_hash(others)


@cache
def rest_of_source() -> str:
    """The hash of everything else a hedgerow model depends on, to say what was reused."""
    folders = ("coordinator", "data", "kernels", "model", "party", "privacy", "queries")
    return code_hash(p for f in folders for p in sorted((SOURCE / f).glob("**/*.py")))


def code_hash(files: Iterable[Path]) -> str:
    """A hash of programs without their comments and layout."""
    found, files = hashlib.sha256(), list(files)
    if not files:
        raise FileNotFoundError("no program to hash: it was moved, and old figures would be reused")
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found.update(f"{path.relative_to(SOURCE)}\n{ast.dump(tree)}\n".encode())
    return found.hexdigest()[:16]


class Cache:
    """Finished cells as JSON lines; a cell made by other code of its method is not reused."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rest = rest_of_source()  # read now: files may change during a long run
        self._lines: dict[tuple[Cell, str], Found] = {}
        self.stale = 0
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        for line in lines:
            self._keep(line)
        self._torn = bool(lines) and not path.read_text(encoding="utf-8").endswith("\n")

    def _keep(self, line: str) -> None:
        try:
            found = json.loads(line)
            cell = Cell(**found["cell"])
        except (ValueError, KeyError, TypeError):
            return  # the line that was being written when a run was stopped
        other = found.get("format") != CACHE_FORMAT
        self.stale += other or found["source"] != source_of(cell.method)
        if other:
            return
        self._lines[cell, found["source"]] = found

    def get(self, cell: Cell) -> Found | None:
        return self._lines.get((cell, source_of(cell.method)))

    def add(self, cell: Cell, found: Found) -> Found:
        found = {
            "format": CACHE_FORMAT, "cell": asdict(cell), "source": source_of(cell.method),
            "rest": self.rest, **found,
        }  # fmt: skip
        self._lines[cell, found["source"]] = found
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * self._torn + json.dumps(found) + "\n")
        self._torn = False
        return found


def run(
    cells: list[Cell], cache: Cache, jobs: int, say: Callable[[str], None], seconds: float
) -> tuple[dict[Cell, Found], list[str]]:
    """Results of all cells, from the cache or run now; and the cells that failed.

    No cell is started when so many seconds are over; what is left is said and not made up.
    """
    done = {cell: found for cell in cells if (found := cache.get(cell)) is not None}
    _say_reused(done, cache, say)
    left = [cell for cell in cells if cell not in done]
    stop = time.monotonic() + seconds
    failed: list[str] = []
    for i, (cell, outcome) in enumerate(_outcomes(left, jobs, stop), start=1):
        if isinstance(outcome, str):
            failed.append(f"{cell}: {outcome.strip().splitlines()[-1]}")
            say(f"[{i}/{len(left)}] {cell}: FAILED\n{outcome}")
            continue
        done[cell] = cache.add(cell, outcome)
        figures = ", ".join(f"{name} {value:.4f}" for name, value in outcome["measures"].items())
        say(f"[{i}/{len(left)}] {cell}: {figures} ({outcome['seconds']:.1f} s)")
    if missing := len(cells) - len(done) - len(failed):
        say(f"{missing} of {len(cells)} cells were not run: the time was over")
    return done, failed


def _outcomes(cells: list[Cell], jobs: int, stop: float) -> Iterator[tuple[Cell, Found | str]]:
    threads = max(1, numba.get_num_threads() // jobs)
    if jobs == 1 or len(cells) < 2:
        for cell in cells:
            if time.monotonic() >= stop:
                return
            yield cell, outcome_of(cell, threads)
        return
    spawn, sources = multiprocessing.get_context("spawn"), (source_of(AUTO), rest_of_source())
    with ProcessPoolExecutor(jobs, spawn, check_source, sources) as pool:
        running = {pool.submit(outcome_of, cell, threads): cell for cell in cells}
        for future in as_completed(running):
            if time.monotonic() >= stop:
                pool.shutdown(cancel_futures=True)
            if not future.cancelled():
                yield running[future], future.result()


def check_source(auto: str, rest: str) -> None:
    """Refuse to run other code than the one whose hash goes into the cache."""
    if (source_of(AUTO), rest_of_source()) != (auto, rest):
        raise RuntimeError("hedgerow's source changed while the run was starting; run it again")


def outcome_of(cell: Cell, threads: int) -> Found | str:
    """What one cell measured, or why it could not: one failure does not end a long run."""
    numba.set_num_threads(threads)
    try:
        data = load(cell.dataset)
        return measure(data, split_of(data, cell.seed), cell.method, cell.epsilon, threads)
    except Exception:
        return traceback.format_exc()


def _say_reused(done: dict[Cell, Found], cache: Cache, say: Callable[[str], None]) -> None:
    if cache.stale:
        say(f"{cache.path}: {cache.stale} cells of older code or packages are left alone")
    if not done:
        return
    by_method: dict[str, int] = {}
    for cell in done:
        by_method[cell.method] = by_method.get(cell.method, 0) + 1
    say("reused: " + ", ".join(f"{name} {count}" for name, count in sorted(by_method.items())))
    elsewhere = [
        cell for cell, found in done.items()
        if cell.method not in (*NOT_PRIVATE, EBM) and found["rest"] != cache.rest
    ]  # fmt: skip
    if elsewhere:
        say(
            f"of these, {len(elsewhere)} were made before a change outside the method (queries, "
            "losses, accounting ...); delete the cache if it matters"
        )
