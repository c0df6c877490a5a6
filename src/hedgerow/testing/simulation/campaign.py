"""Many histories: seeds in chunks over processes, counted, resumable; failing ones are shrunk."""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hedgerow.testing.simulation.faults import Fault
from hedgerow.testing.simulation.history import Outcome, simulate
from hedgerow.testing.simulation.record import Record
from hedgerow.testing.simulation.source import Source, this_source
from hedgerow.testing.simulation.tally import Failure, Tally

CHUNK = COLLECT = 50  # seeds between two writes of the result, and between looks for garbage
TOLD = 1_000  # histories between two lines that say how far it is


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
    for number, seed in enumerate(seeds, start=1):
        outcome = simulate(seed, backups=backups)
        tally.add(outcome)
        if outcome.violations:
            faults, shrunk = shrink(seed, outcome, backups=backups)
            texts = [str(fault) for fault in faults]
            tally.failures.append(Failure(seed, shrunk.violations[:5], texts))
        if number % COLLECT == 0:  # and not whenever Python thinks so: that takes a tenth longer
            gc.collect()
    tally.processor_seconds = time.process_time() - began
    return tally


def _chunk(asked: tuple[int, int, bool, Source]) -> tuple[int, int, Tally]:
    first, stop, backups, source = asked
    if not this_source().is_same(source):
        raise RuntimeError("the source changed while the campaign began; run the command again")
    return first, stop, tally_of(range(first, stop), backups)


def run_campaign(
    first: int,
    count: int,
    jobs: int = 1,
    result: Path | None = None,
    backups: bool = False,
    say: Callable[[str], None] = print,
) -> Record:
    """Run histories `first`, ..., `first + count - 1`; those that the result file has are not run.

    The file is written after every chunk, so that the same command goes on after an interruption.
    Where it goes on with another source, that begins a part of its own, and seeds that broke a rule
    before are looked at again first.
    """
    source = this_source()
    record = Record.read(result, backups) if result is not None else Record(backups)
    for failure in record.failures_before(source):
        if not simulate(failure.seed, backups=backups).violations:
            failure.mended = source.hash
    waiting = [
        (start, min(start + CHUNK, stop), backups, source)
        for gap, stop in record.gaps(first, first + count)
        for start in range(gap, stop, CHUNK)
    ]
    for start, stop, tally in _results(waiting, jobs):
        told = record.total.histories // TOLD
        record.add(source, start, stop, tally)
        for failure in tally.failures:
            say(f"seed {failure.seed}: {failure.violations[0]}")
            say(f"  with {'; '.join(failure.faults) or 'no fault at all'}")
        if record.total.histories // TOLD > told:
            say(f"{record.total.histories:,} histories, {len(record.total.failures)} violations")
        if result is not None:
            record.write(result)
    if result is not None:
        record.write(result)
    return record


def _results(
    chunks: list[tuple[int, int, bool, Source]], jobs: int
) -> Iterator[tuple[int, int, Tally]]:
    if jobs <= 1:
        yield from map(_chunk, chunks)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(_chunk, chunks)
