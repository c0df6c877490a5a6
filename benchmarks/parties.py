"""What do many parties of one process cost, beside an earlier commit and party by party?

Every fit of the default method runs in a process of its own, warm. The earlier commit is checked
out beside this one and measured in the same run. Prints CPU seconds against the number of parties
with fitted exponents, what one party takes a round in time and bytes, and what follows for a
million of them; writes benchmarks/results/parties.json. A run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from speed.clock import FOLDER
from speed.repeating import Figures, Found, Kept, best, repeated, stoppable
from speed.report import Requirement, screen, show_requirements

EARLIER = "c6c32b8"  # all parties masked with all others
SHARED = 40_000  # rows that all parties share, of eight columns
EACH = 100  # rows of a party, where each has as many
MILLION = 1_000_000


def checked_out(commit: str) -> Path:
    """The source of a commit; it is kept, with the loops that it has compiled."""
    folder = FOLDER / ".cache" / commit
    if not folder.is_dir():
        folder.mkdir(parents=True)
        archive = ["git", "archive", commit, "src"]
        packed = subprocess.run(archive, cwd=FOLDER.parent, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return folder / "src"


def fit(
    source: Path, n_rows: int, n_columns: int, n_parties: int, trust: str, repeats: int
) -> Figures:
    """The figures of one fit in a process of its own, with this source."""
    given = [str(n) for n in (n_rows, n_columns, n_parties, trust, repeats)]
    environment = {**os.environ, "PYTHONPATH": str(source), "NUMBA_NUM_THREADS": "1"}
    program = FOLDER / "speed" / "party_work.py"
    wall = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(program), *given], env=environment, check=True, capture_output=True
    )
    wall = time.perf_counter() - wall
    return {"wall": wall, **json.loads(done.stdout), "parties": n_parties, "rows": n_rows}


def shared(n_parties: int, source: str = "now") -> str:
    return f"{source}: {SHARED:,} rows among {n_parties:,}"


def each(n_parties: int) -> str:
    return f"now: {n_parties:,} of {EACH} rows each"


def few(what: str, source: str) -> str:
    return f"{source}: {what}"


THREE, TWO_HUNDRED = "1,000,000 x 28 among 3", "1,000,000 x 28 among 200, trust coordinator"


def cells_of(options: argparse.Namespace, earlier: Path) -> dict[str, Callable[[], Figures]]:
    now = FOLDER.parent / "src"
    cells = {}
    for n in options.each:
        cells[each(n)] = partial(fit, now, n * EACH, 8, n, "parties", 1)
    for n in options.parties:
        cells[shared(n)] = partial(fit, now, SHARED, 8, n, "parties", 1)
        if n in options.earlier:
            cells[shared(n, EARLIER)] = partial(fit, earlier, SHARED, 8, n, "parties", 1)
    if not options.quick:
        for source, path in ((EARLIER, earlier), ("now", now)):
            cells[few(THREE, source)] = partial(fit, path, MILLION, 28, 3, "parties", 3)
            cells[few(TWO_HUNDRED, source)] = partial(fit, path, MILLION, 28, 200, "coordinator", 3)
    return cells


def exponent(found: Found, cells: list[str], what: str) -> float:
    """The power of the number of parties that a figure grows with, by least squares."""
    parties = [float(found[cell][0]["parties"]) for cell in cells]
    return float(np.polyfit(np.log(parties), np.log([best(found[c], what) for c in cells]), 1)[0])


def requirements(found: Found) -> list[Requirement]:
    def ratio(ours: str, beside: str, what: str = "cpu") -> float | None:
        if not found.get(ours) or not found.get(beside):
            return None
        return best(found[ours], what) / best(found[beside], what)

    old, now = few(THREE, EARLIER), few(THREE, "now")
    old_many, now_many = few(TWO_HUNDRED, EARLIER), few(TWO_HUNDRED, "now")
    work = ratio(each(1000), each(20), "round_microseconds")
    size = ratio(each(1000), each(20), "round_bytes")
    return [
        Requirement("400 parties beside the earlier commit", 0.1,
                    cpu=ratio(shared(400), shared(400, EARLIER))),
        Requirement("1,000 parties beside 400", 4.0, cpu=ratio(shared(1000), shared(400))),
        Requirement("a party's own round with 1,000 parties beside 20", 1.5, cpu=work),
        Requirement("bytes of a party's round with 1,000 parties beside 20", 1.5, memory=size),
        Requirement(f"{THREE}, beside the earlier commit", 1.05, cpu=ratio(now, old)),
        Requirement(f"{TWO_HUNDRED}, beside the earlier commit", 1.05,
                    cpu=ratio(now_many, old_many)),
    ]  # fmt: skip


def a_million(found: Found, most: str) -> Figures:
    """What follows for a million parties: a round as it is, a joining in proportion."""
    last = found[most][0]
    return {
        "one process, hours of CPU": last["cpu"] / last["parties"] * MILLION / 3600,
        "a party's round, milliseconds": last["round_microseconds"] / 1e3,
        "a party's round, kB": last["round_bytes"] / 1e3,
        "a party's joining, MB": last["join_bytes"] / last["parties"] * MILLION / 1e6,
    }


def show(console: Console, found: Found) -> None:
    table = Table(title="fits under trust `parties`, one process, one thread")
    table.add_column("fit", no_wrap=True)
    for column in ("CPU s", "ms a party", "us a round", "bytes a round", "kB to join"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, repetitions in found.items():
        one = repetitions[0]
        table.add_row(
            name,
            f"{best(repetitions, 'cpu'):.2f}",
            f"{1e3 * best(repetitions, 'cpu') / one['parties']:.1f}",
            f"{best(repetitions, 'round_microseconds'):.0f}",
            f"{one['round_bytes']:,.0f}",
            f"{one['join_bytes'] / 1e3:,.1f}",
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 100 parties")
    parser.add_argument("--repeats", type=int, default=2, help="times each cell is measured")
    parser.add_argument("--fresh", action="store_true", help="measure everything again")
    options = parser.parse_args()
    options.earlier = (3, 20, 100) if options.quick else (3, 20, 100, 400)
    options.parties = (3, 20, 100) if options.quick else (3, 20, 100, 400, 1000, 3000)
    options.each = (20, 100) if options.quick else (20, 200, 1000)
    console, begun = screen(), time.time()
    kept = Kept("parties", options.quick, options.fresh)
    cells = cells_of(options, checked_out(EARLIER))
    once = ("among 400", "among 3,000")  # minutes each
    count = {name: 1 if name.endswith(once) else options.repeats for name in cells}
    found = repeated("parties", cells, count, kept, console)
    show(console, found)
    many = [shared(n) for n in options.parties if n >= 20]
    exponents = {
        "CPU": exponent(found, many, "cpu"),
        "CPU of the earlier commit": exponent(
            found, [shared(n, EARLIER) for n in options.earlier if n >= 20], "cpu"
        ),
        "a party's own round": exponent(
            found, [each(n) for n in options.each], "round_microseconds"
        ),
        "bytes of a party's round": exponent(found, [each(n) for n in options.each], "round_bytes"),
    }
    needed, paper = requirements(found), a_million(found, shared(options.parties[-1]))
    console.print("exponents of the number of parties, from 20 on: ", exponents)
    console.print("for a million parties, on paper: ", paper)
    show_requirements(console, needed)
    values = {
        "cells": found, "exponents": exponents, "million": paper, "earlier": EARLIER,
        "requirements": [one.values() for one in needed],
    }  # fmt: skip
    kept.finish(begun, values, console)


if __name__ == "__main__":
    stoppable(main)
