"""Which fits the table needs, in the order of what matters, and those that were run already."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from accuracy.cells import SOURCE, code_hash, source_of
from dpxgboost.data import LARGE_CLASSES, REAL, load, split_of
from dpxgboost.methods import AUTO, NOT_PRIVATE, OWN_OFF, PAPER, PAPER_OFF, PEER, PRIVATE, measure
from hedgerow.methods.registry import method_named

EPSILONS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
# A fit of the large tables takes many seconds: these stand for five.
SPLITS = {"adult": 5, "abalone": 5, "covtype": 2, "synthetic-classes": 2, "synthetic-numbers": 2}
Found = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One fit; `epsilon` is None without privacy. A variant changes settings of the method."""

    dataset: str
    method: str
    epsilon: float | None
    seed: int
    variant: str = ""

    def __str__(self) -> str:
        epsilon = "not private" if self.epsilon is None else f"epsilon {self.epsilon:g}"
        variant = f", {self.variant}" if self.variant else ""
        return f"{self.dataset}, {self.method}{variant}, {epsilon}, seed {self.seed}"


def cells_of(datasets: Sequence[str], epsilons: Sequence[float], splits: int) -> list[Cell]:
    """All cells: epsilon 1 and 2 of the real tables first, then 4, then what is left."""
    methods = (*PRIVATE, PEER)
    found = []
    for dataset in datasets:
        for seed in range(splits or SPLITS[dataset]):
            found += [Cell(dataset, method, None, seed) for method in NOT_PRIVATE]
            found += [Cell(dataset, m, e, seed) for m in methods for e in epsilons]
    return sorted(found, key=_urgency)


def _urgency(cell: Cell) -> tuple[float, bool, str]:
    """A split after another within a stage, so that a run that is stopped has some of all."""
    epsilon, later = cell.epsilon or 1.0, cell.dataset not in REAL
    stage = (0 if epsilon <= 2 else 1 if epsilon <= 4 else 2) + later
    return (stage + 0.4 * min(cell.seed, 4), later, cell.dataset)


@cache
def code_of(method: str) -> str:
    """What a cell depends on: hedgerow's code of the method, or the version of a package."""
    if method == PEER:
        return "dp-xgboost 0.2.10, a tree a second"
    if method in NOT_PRIVATE and method not in (PAPER_OFF, OWN_OFF):
        return f"xgboost {version('xgboost-cpu')}"
    if method == AUTO:
        return source_of(AUTO)
    files = sorted((SOURCE / "methods" / "dp_xgboost").glob("*.py"))
    files += [SOURCE / "queries" / f"{n}.py" for n in ("split_choices", "leaf_averages")]
    files += [SOURCE / "queries" / "gradients.py", SOURCE / "model" / "losses.py"]
    defaults = json.dumps(dict(method_named("dp-xgboost").settings({}).to_dict()), sort_keys=True)
    if method not in (PAPER, PAPER_OFF):
        defaults += json.dumps(LARGE_CLASSES, sort_keys=True)
    return f"{code_hash(files)} {hash_text(defaults)}"


def hash_text(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()[:8]


class Cache:
    """Finished cells as JSON lines; those made by other code are left alone."""

    def __init__(self, path: Path) -> None:
        self.path, self.stale = path, 0
        self._found: dict[Cell, Found] = {}
        text = path.read_text("utf-8") if path.is_file() else ""
        self._torn = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            self._keep(line)

    def _keep(self, line: str) -> None:
        try:
            found = json.loads(line)
            cell = Cell(**found.pop("cell"))
        except (ValueError, KeyError, TypeError):
            return  # the line that was being written when a run was stopped
        if found["source"] == code_of(cell.method):
            self._found[cell] = found
        else:
            self.stale += 1

    def get(self, cell: Cell) -> Found | None:
        return self._found.get(cell)

    def add(self, cell: Cell, found: Found) -> None:
        found = {**found, "source": code_of(cell.method)}
        self._found[cell] = found
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * self._torn + json.dumps({"cell": asdict(cell), **found}) + "\n")
        self._torn = False


def run(
    cells: Sequence[Cell], cache: Cache, peer: str, deadline: float, say: Callable[[str], None]
) -> dict[Cell, Found]:
    """What all cells measured; none is begun after the deadline, and what is left is said."""
    left = [cell for cell in cells if cache.get(cell) is None]
    if len(left) < len(cells):
        say(f"{len(cells) - len(left)} of {len(cells)} cells were run before")
    if cache.stale:
        say(f"{cache.path}: {cache.stale} cells of other code are left alone")
    for number, cell in enumerate(left, start=1):
        if time.monotonic() > deadline:
            say(f"{len(left) - number + 1} cells were not run: the time was over")
            break
        data = load(cell.dataset)
        found = measure(data, split_of(data, cell.seed), cell.method, cell.epsilon, peer)
        cache.add(cell, found)
        say(f"[{number}/{len(left)}] {cell}: {found['error']:.3f} ({found['seconds']:.1f} s)")
    return dict(_known(cells, cache))


def _known(cells: Sequence[Cell], cache: Cache) -> Iterator[tuple[Cell, Found]]:
    for cell in cells:
        if (found := cache.get(cell)) is not None:
            yield cell, found
