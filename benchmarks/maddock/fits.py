"""One fit of the comparison as a value, how it is run, and the file that remembers it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Settings = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Fit:
    """What is trained and on which rows; equal fits are repetitions of one another."""

    dataset: str
    method: str
    epsilon: float
    settings: Settings = ()
    accounting: str = "renyi"
    encoding: str = "published"
    bounds: str = "schema"
    variant: str = ""  # rules of the authors' program, joined by +
    split: int = 0
    repeat: int = 0

    @property
    def key(self) -> str:
        told = {**asdict(self), "settings": dict(self.settings)}
        if not self.variant:
            del told["variant"]
        return json.dumps(told, sort_keys=True)

    @property
    def cell(self) -> Fit:
        """The fit without its split and repeat: what a table cell averages over."""
        return replace(self, split=0, repeat=0)


def fit(dataset: str, method: str, epsilon: float, **settings: Any) -> Fit:
    return Fit(dataset, method, float(epsilon), tuple(sorted(settings.items())))


@dataclass
class Cache:
    """Finished fits, one JSON line each; a line cut short by a crash is skipped."""

    path: Path
    found: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.is_file():
            text = self.path.read_text(encoding="utf-8")
            if text and not text.endswith("\n"):
                self.path.write_text(text + "\n", encoding="utf-8")
            for line in text.splitlines():
                with contextlib.suppress(json.JSONDecodeError, KeyError):
                    entry = json.loads(line)
                    if entry["auc"] is not None:  # a refused method may be known by now
                        self.found[json.dumps(entry["fit"], sort_keys=True)] = entry
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, one: Fit, result: Mapping[str, Any]) -> None:
        entry = {"fit": json.loads(one.key), **result}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        self.found[one.key] = entry

    def scores(self, cell: Fit, splits: int, repeats: int) -> list[float]:
        """AUCs of the repetitions of a cell, in order of split and repeat, as far as done."""
        return [
            entry["auc"]
            for entry in self.entries(cell, splits, repeats)
            if entry.get("auc") is not None
        ]

    def entries(self, cell: Fit, splits: int, repeats: int) -> Iterator[dict[str, Any]]:
        for one in repetitions(cell, splits, repeats):
            if one.key in self.found:
                yield self.found[one.key]


def repetitions(cell: Fit, splits: int, repeats: int) -> Iterator[Fit]:
    for repeat in range(repeats):
        for split in range(splits):
            yield replace(cell, split=split, repeat=repeat)


def run_fit(one: Fit) -> dict[str, Any]:
    """Train and test once; a method this version refuses gives its reason instead of an AUC."""
    from sklearn.metrics import roc_auc_score

    from hedgerow import PrivateBoostingClassifier
    from hedgerow.errors import SettingsError
    from maddock import data, variants

    table = data.dataset(one.dataset, one.encoding, one.bounds)
    train, test = data.split(table, one.split)
    trust = "nobody" if one.method == "ldp" else "coordinator"
    began = time.perf_counter()
    try:
        model = PrivateBoostingClassifier(
            table.schema,
            epsilon=one.epsilon,
            delta=1 / len(train),
            method=one.method,
            trust=trust,
            settings={"accounting": one.accounting, **dict(one.settings)},
            random_state=1000 * one.repeat + one.split,
        )
        with variants.applied(one.variant.split("+") if one.variant else []):
            model.fit(table.table.take(train))
    except SettingsError as error:
        return {"auc": None, "refused": str(error), "source": source()}
    auc = roc_auc_score(table.rows.target[test], model.decision_function(table.table.take(test)))
    return {
        "auc": float(auc),
        "mu": model.plan_.mu,
        "seconds": round(time.perf_counter() - began, 2),
        "source": source(),
    }


def source() -> str:
    """A short hash of the hedgerow that is being measured."""
    import hedgerow

    digest = hashlib.sha256()
    root = Path(hedgerow.__file__).parent
    for file in sorted(root.rglob("*.py")):
        digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def run_all(cells: Iterable[Fit], splits: int, repeats: int, cache: Cache, jobs: int) -> None:
    """Run what the cache does not hold; the first split of every cell comes first."""
    wanted = dict.fromkeys(
        one
        for number in range(splits * repeats)
        for cell in cells
        for one in [list(repetitions(cell, splits, repeats))[number]]
        if one.key not in cache.found
    )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn()) as progress:
        task = progress.add_task("fits", total=len(wanted))
        for one, result in _results(list(wanted), jobs):
            cache.add(one, result)
            progress.update(task, advance=1, description=f"{one.dataset} {one.method}")


def _results(wanted: Sequence[Fit], jobs: int) -> Iterator[tuple[Fit, dict[str, Any]]]:
    if jobs <= 1:
        for one in wanted:
            yield one, run_fit(one)
        return
    os.environ["NUMBA_NUM_THREADS"] = "1"  # inherited by the processes started below
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting: dict[Future[dict[str, Any]], Fit] = {}
        queue = list(reversed(wanted))
        try:
            while queue or waiting:
                while queue and len(waiting) < 2 * jobs:
                    one = queue.pop()
                    waiting[pool.submit(run_fit, one)] = one
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield waiting.pop(future), future.result()
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
