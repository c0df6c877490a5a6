"""How do time, memory and bytes of one owner's table on a Dask cluster grow with its rows?

Writes a made-up table as a folder of Parquet files, then trains the default method on a local
cluster of one and of two workers. Every run has processes of its own. Prints seconds, the memory of
all processes together and bytes, the exponent of time in rows by least squares, and writes
benchmarks/results/dask_scaling.json. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from speed.clock import FOLDER
from speed.repeating import Figures, Found, Kept, best, repeated, stoppable
from speed.report import Requirement, screen, show_requirements
from speed.tables import PIECE, names_of, pieces

COLUMNS = 28
MEMORY_MB = 24_000.0


@dataclass(frozen=True)
class Cell:
    """So many rows on so many workers."""

    n_rows: int
    workers: int

    @property
    def name(self) -> str:
        return f"{self.n_rows:,} rows, {self.workers} worker{'s' if self.workers > 1 else ''}"


def cells_of(options: argparse.Namespace) -> list[Cell]:
    two, one = (1, 2, 5, 10, 20), (1, 5)
    if options.quick:
        two, one = (1,), (1,)
    found = [Cell(n * 1_000_000, 2) for n in two] + [Cell(n * 1_000_000, 1) for n in one]
    return sorted(
        (cell for cell in found if cell.n_rows <= options.most_rows),
        key=lambda cell: (cell.n_rows, cell.workers),
    )


def write_folder(folder: Path, n_rows: int) -> None:
    """Files of one piece each, never whole in memory."""
    need, free = n_rows * (4 * COLUMNS + 8), shutil.disk_usage(folder).free
    if 2 * need > free:
        raise SystemExit(f"the table takes {need / 1e9:.1f} GB and {free / 1e9:.1f} GB are free")
    for number, (x, label) in enumerate(pieces(n_rows, COLUMNS)):
        columns = {name: x[:, j] for j, name in enumerate(names_of(COLUMNS))}
        pq.write_table(pa.table({**columns, "label": label}), folder / f"{number:04}.parquet")


def measure(cell: Cell, folder: Path) -> Figures:
    """The cell in a fresh process, on links to the first files."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        files = sorted(folder.glob("*.parquet"))[: cell.n_rows // PIECE]
        for file in files:
            (Path(name) / file.name).symlink_to(file)
        given = {"folder": name, "n_columns": COLUMNS, "workers": cell.workers}
        command = [sys.executable, "-m", "speed.cluster_cell", json.dumps(given)]
        done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{cell.name} failed:\n{done.stderr}")
    figures: Figures = json.loads(done.stdout)
    if figures["n_rows"] != cell.n_rows:
        raise SystemExit(f"{cell.name}: {figures['n_rows']} rows were read")
    return figures


def exponent(cells: list[Cell], found: Found, what: str) -> float | None:
    """Of time in rows on two workers: the slope of a line through logarithms."""
    points = [(cell.n_rows, best(found[cell.name], what)) for cell in cells if cell.workers == 2]
    if len(points) < 2:
        return None
    size, seconds = np.log(np.array(points, dtype=float)).T
    return float(np.polyfit(size, seconds, 1)[0])


def requirements(cells: list[Cell], found: Found) -> list[Requirement]:
    slopes = (exponent(cells, found, what) for what in ("wall", "cpu"))
    largest = max(cells, key=lambda cell: cell.n_rows)
    worst = max(f["peak_mb"] for f in found[largest.name])
    return [
        Requirement("exponent of time in rows", 1.1, *slopes),
        Requirement(f"MB of all processes, {largest.name}", MEMORY_MB, memory=worst),
    ]


def show(console: Console, cells: list[Cell], found: Found) -> None:
    shown = Table(title=f"The default method on a local Dask cluster, {COLUMNS} columns")
    shown.add_column("cell", no_wrap=True)
    for column in ("wall s", "CPU s", "reading", "MB", "rounds", "MB to", "MB from", "load"):
        shown.add_column(column, justify="right")
    for cell in cells:
        figures = found[cell.name]
        last = figures[-1]
        shown.add_row(
            cell.name,
            *(f"{best(figures, what):.1f}" for what in ("wall", "cpu", "read_wall")),
            f"{max(f['peak_mb'] for f in figures):,.0f}",
            str(last["rounds"]),
            *(f"{last[f'bytes_{way}_workers'] / 1e6:.1f}" for way in ("to", "from")),
            f"{last['load_average']:.1f}",
        )
    console.print(shown)


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--most-rows", type=int, default=20_000_000)
    parser.add_argument("--folder", type=Path, help="where the table is written for a while")
    parser.add_argument("--quick", action="store_true", help="a million rows, one repetition")
    parser.add_argument("--fresh", action="store_true", help="forget what a stopped run measured")
    options = parser.parse_args()
    if options.quick:
        options.repeats = 1
    return options


def main() -> None:
    options, console, begun = options_of(), screen(), time.time()
    kept = Kept("dask_scaling", options.quick, options.fresh)
    cells = cells_of(options)
    with tempfile.TemporaryDirectory(prefix="hedgerow-", dir=options.folder) as name:
        write_folder(Path(name), max(cell.n_rows for cell in cells))
        work: dict[str, Callable[[], Figures]] = {
            cell.name: (lambda cell=cell: measure(cell, Path(name))) for cell in cells
        }
        found = repeated("dask_scaling", work, options.repeats, kept, console)
    show(console, cells, found)
    lines = requirements(cells, found)
    show_requirements(console, lines)
    values = {"cells": found, "requirements": [line.values() for line in lines]}
    kept.finish(begun, values, console, whole=options.most_rows >= 20_000_000)


if __name__ == "__main__":
    stoppable(main)
