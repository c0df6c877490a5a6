"""Many histories: seeds in chunks over processes, counted, resumable; failing ones are shrunk."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hedgerow.testing.simulation.faults import Fault
from hedgerow.testing.simulation.history import Outcome, simulate
from hedgerow.testing.simulation.states import rare

FORMAT = 2
COLLECT = 25
CHUNK = 50  # seeds between two writes of the result
TOLD = 1_000  # histories between two lines that say how far it is
Check = Callable[[Outcome], bool]


@dataclass
class Failure:
    """A seed that broke a rule, with the fewest of its faults that still do."""

    seed: int
    violations: list[str]
    faults: list[str]

    def to_dict(self) -> dict[str, Any]:
        return {"seed": self.seed, "violations": self.violations, "faults": self.faults}


@dataclass
class Tally:
    """What a set of histories added up to."""

    histories: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[int] = field(default_factory=Counter)  # histories by number of faults
    finished: Counter[int] = field(default_factory=Counter)  # by number of commands that finished
    simulated_seconds: float = 0.0
    processor_seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.histories += 1
        self.counts += outcome.counts
        self.faults[len(outcome.happened)] += 1
        self.finished[outcome.counts["finished"]] += 1
        self.simulated_seconds += outcome.seconds

    def merge(self, other: Tally) -> None:
        self.histories += other.histories
        self.counts += other.counts
        self.faults += other.faults
        self.finished += other.finished
        self.simulated_seconds += other.simulated_seconds
        self.processor_seconds += other.processor_seconds
        self.failures += other.failures

    def to_dict(self) -> dict[str, Any]:
        return {
            "histories": self.histories,
            "violations": len(self.failures),
            "faults": sum(n * count for n, count in self.faults.items()),
            "median_faults": median(self.faults),
            "median_finished": median(self.finished),
            "releases": self.counts["releases"],
            "answers": self.counts["answers"],
            "simulated_days": round(self.simulated_seconds / 86_400, 1),
            "processor_seconds": round(self.processor_seconds, 1),
            "faults_in_a_history": {str(n): self.faults[n] for n in sorted(self.faults)},
            "finished_in_a_history": {str(n): self.finished[n] for n in sorted(self.finished)},
            "counts": {name: self.counts[name] for name in sorted(self.counts)},
            "rare": rare(self.counts),
            "failures": [failure.to_dict() for failure in self.failures],
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Tally:
        return Tally(
            values["histories"],
            Counter(values["counts"]),
            Counter({int(n): count for n, count in values["faults_in_a_history"].items()}),
            Counter({int(n): count for n, count in values["finished_in_a_history"].items()}),
            values["simulated_days"] * 86_400,
            values["processor_seconds"],
            [Failure(**failure) for failure in values["failures"]],
        )


def median(histogram: Counter[int]) -> int:
    """The middle of what was counted."""
    half, seen = sum(histogram.values()) / 2, 0
    for value in sorted(histogram):
        seen += histogram[value]
        if seen >= half:
            return value
    return 0


def shrink(seed: int, outcome: Outcome, **how: Any) -> tuple[list[Fault], Outcome]:
    """Faults of a failing history that still break its rule, and none of them can be left out."""
    rule = outcome.violations[0].partition(":")[0]
    faults, found = list(outcome.happened), outcome
    place = needed = 0  # `needed` of those before `place` were tried since the last one left
    while needed < len(faults):
        place %= len(faults)
        fewer = faults[:place] + faults[place + 1 :]
        tried = simulate(seed, fewer, **how)
        if any(one.startswith(rule) for one in tried.violations):
            faults, found, needed = fewer, tried, 0
        else:
            place, needed = place + 1, needed + 1
    return faults, found


@contextmanager
def _without_gc() -> Iterator[None]:
    """Garbage is looked for between histories, and not among what was there before them."""
    enabled = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        if enabled:
            gc.enable()


@_without_gc()
def tally_of(seeds: Iterable[int], backups: bool = False) -> Tally:
    """Run these histories in this process."""
    tally, began = Tally(), time.process_time()
    for number, seed in enumerate(seeds):
        if number % COLLECT == 0:  # and not whenever Python thinks so: that takes a tenth longer
            gc.collect()
        outcome = simulate(seed, backups=backups)
        tally.add(outcome)
        if outcome.violations:
            faults, shrunk = shrink(seed, outcome, backups=backups)
            texts = [str(fault) for fault in faults]
            tally.failures.append(Failure(seed, shrunk.violations[:5], texts))
    tally.processor_seconds = time.process_time() - began
    return tally


def _chunk(asked: tuple[int, int, bool]) -> tuple[int, int, Tally]:
    first, stop, backups = asked
    return first, stop, tally_of(range(first, stop), backups)


def run_campaign(
    first: int,
    count: int,
    jobs: int = 1,
    result: Path | None = None,
    backups: bool = False,
    say: Callable[[str], None] = print,
) -> Tally:
    """Run histories `first`, ..., `first + count - 1`; those that the result file has are not run.

    The file is written after every chunk, so that the same command goes on after an interruption.
    """
    total, done = _resumed(result, backups)
    waiting = [
        (start, min(start + CHUNK, stop), backups)
        for gap, stop in _gaps(done, first, first + count)
        for start in range(gap, stop, CHUNK)
    ]
    for start, stop, tally in _results(waiting, jobs):
        told = total.histories // TOLD
        total.merge(tally)
        done.append([start, stop])
        for failure in tally.failures:
            say(f"seed {failure.seed}: {failure.violations[0]}")
            say(f"  with {'; '.join(failure.faults) or 'no fault at all'}")
        if total.histories // TOLD > told:
            say(f"{total.histories:,} histories, {len(total.failures)} violations")
        if result is not None:
            _write(result, total, done, backups)
    return total


def _results(chunks: list[tuple[int, int, bool]], jobs: int) -> Iterator[tuple[int, int, Tally]]:
    if jobs <= 1:
        yield from map(_chunk, chunks)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(_chunk, chunks)


def _gaps(done: list[list[int]], first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Ranges of seeds that are still to be run."""
    for start, end in _merged(done):
        if first < min(start, stop):
            yield first, min(start, stop)
        first = max(first, end)
    if first < stop:
        yield first, stop


def _resumed(result: Path | None, backups: bool) -> tuple[Tally, list[list[int]]]:
    if result is None or not result.exists():
        return Tally(), []
    values = json.loads(result.read_text())
    if values.get("format") != FORMAT or values.get("backups") != backups:
        raise SystemExit(
            f"{result} is of another campaign; give another file, or remove it to begin anew"
        )
    return Tally.from_dict(values), _merged(values["seeds"])


def _merged(ranges: list[list[int]]) -> list[list[int]]:
    found: list[list[int]] = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], stop)
        else:
            found.append([start, stop])
    return found


def _write(result: Path, total: Tally, done: list[list[int]], backups: bool) -> None:
    about = {
        "format": FORMAT, "command": "python -m hedgerow.testing.simulation",
        "backups": backups, "seeds": _merged(done),
    }  # fmt: skip
    partial = result.with_name(result.name + ".partial")
    partial.write_text(json.dumps({**about, **total.to_dict()}, indent=1) + "\n")
    os.replace(partial, result)
