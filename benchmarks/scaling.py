"""How do time, memory and bytes of the default method grow with rows, columns and parties?

Reads a made-up table from a Parquet file of row groups, so that a party streams it. Every fit runs
in a process of its own, which makes its peak memory exact. Prints seconds, memory above the imports
beside the bound, and bytes; the exponents of time by least squares; and writes
benchmarks/results/scaling.json. A run that was stopped goes on where it was.
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
from rich.console import Console
from rich.table import Table

from speed.clock import FOLDER
from speed.repeating import Figures, Found, Kept, best, repeated, stoppable
from speed.report import Requirement, screen, show_requirements
from speed.tables import write_parquet

COLUMNS, SHARED = 28, 1_000_000  # rows that parties share
BYTES_A_CELL, BYTES_A_ROW, FIXED_MB = 1.5, 24, 150.0


@dataclass(frozen=True)
class Cell:
    """One table and one federation; `axis` is what it varies."""

    axis: str
    n_rows: int
    n_columns: int = COLUMNS
    parties: int = 1
    trust: str = "coordinator"

    @property
    def name(self) -> str:
        if self.axis == "parties":
            many = "" if self.n_rows == SHARED else f", {self.n_rows:,} rows"
            return f"{self.parties} parties, trust {self.trust}{many}"
        return f"{self.n_rows:,} x {self.n_columns:,}"

    @property
    def times(self) -> int:
        """Parties are compared with one another closely, so those that take seconds come often."""
        return 3 if self.axis == "parties" and self.n_rows <= SHARED else 1

    @property
    def bound_mb(self) -> float:
        """The most memory above the imports, with one output."""
        cells = BYTES_A_CELL * self.n_rows * self.n_columns
        return (cells + BYTES_A_ROW * self.n_rows) / 1e6 + FIXED_MB

    @property
    def file_bytes(self) -> int:
        return self.n_rows * (4 * self.n_columns + 8)


def cells_of(options: argparse.Namespace) -> list[Cell]:
    rows = [10**k for k in range(4, 9) if 10**k <= options.most_rows]
    columns, at_rows, shared = (10, 30, 100, 300, 1000), 100_000, SHARED
    parties = {"coordinator": (1, 3, 20, 200), "parties": (3, 20)}
    if options.quick:
        rows, columns, at_rows, shared = [10_000, 100_000, 200_000], (10, 30, 100), 20_000, 50_000
        parties = {"coordinator": (1, 20), "parties": (3,)}
    found = [Cell("rows", n) for n in rows]
    found += [Cell("columns", at_rows, n) for n in columns]
    found += [Cell("parties", shared, COLUMNS, n, t) for t, ns in parties.items() for n in ns]
    if rows[-1] > SHARED:
        found += [Cell("parties", rows[-1], COLUMNS, n) for n in (1, 200)]
    return [cell for cell in found if cell.axis in options.axes]


def that_fit(cells: list[Cell], folder: Path, console: Console) -> list[Cell]:
    """The cells whose files fit on the disk, with as much space again left over."""
    room, kept, sizes = shutil.disk_usage(folder).free, [], dict[tuple[int, int], int]()
    for cell in cells:
        sizes[cell.n_rows, cell.n_columns] = cell.file_bytes
        if 2 * sum(sizes.values()) > room:
            del sizes[cell.n_rows, cell.n_columns]
            need, free = 2 * cell.file_bytes / 1e9, room / 1e9
            console.print(f"{cell.name} is left out: it needs {need:.1f} GB of {free:.1f} GB free")
            continue
        kept.append(cell)
    return kept


def measure(cell: Cell, folder: Path) -> Figures:
    """The cell in a fresh process; its table is written if it is not there yet."""
    table = folder / f"{cell.n_rows}-{cell.n_columns}.parquet"
    if not table.exists():
        write_parquet(folder / "part.parquet", cell.n_rows, cell.n_columns)
        (folder / "part.parquet").rename(table)
    given = {
        "table": str(table), "n_rows": cell.n_rows, "n_columns": cell.n_columns,
        "parties": cell.parties, "trust": cell.trust,
    }  # fmt: skip
    command = [sys.executable, "-m", "speed.cell", json.dumps(given)]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{cell.name} failed:\n{done.stderr}")
    figures: Figures = json.loads(done.stdout)
    figures["above_mb"] = figures["peak_mb"] - figures["base_mb"]
    return {**figures, "bound_mb": cell.bound_mb}


def exponent(cells: list[Cell], found: Found, axis: str, what: str) -> float | None:
    """Of time in rows (from 100,000 on) or in columns: the slope of a line through logarithms."""
    points = [
        (cell.n_rows if axis == "rows" else cell.n_columns, best(found[cell.name], what))
        for cell in cells
        if cell.axis == axis and (axis == "columns" or cell.n_rows >= 100_000)
    ]
    if len(points) < 2:
        return None
    size, seconds = np.log(np.array(points, dtype=float)).T
    return float(np.polyfit(size, seconds, 1)[0])


def requirements(cells: list[Cell], found: Found) -> list[Requirement]:
    lines = []
    for axis, goal in (("rows", 1.1), ("columns", 1.15)):
        values = (exponent(cells, found, axis, what) for what in ("wall", "cpu"))
        lines.append(Requirement(f"exponent of time in {axis}", goal, *values))
    for n_rows in sorted({SHARED, *(c.n_rows for c in cells if c.axis == "parties")}):
        alone, many = (Cell("parties", n_rows, parties=n).name for n in (1, 200))
        ratios: list[float | None] = [None, None]
        if found.get(alone) and found.get(many):
            ratios = [best(found[many], w) / best(found[alone], w) for w in ("wall", "cpu")]
        what = f"200 parties over one party on the same {n_rows:,} rows, trust coordinator"
        lines.append(Requirement(what, 1.5, *ratios))
    worst = max(f["above_mb"] / f["bound_mb"] for figures in found.values() for f in figures)
    what = "memory above the imports over its bound, worst cell"
    lines.append(Requirement(what, 1.0, memory=worst))
    return lines


def show(console: Console, cells: list[Cell], found: Found) -> None:
    shown = Table(title="The default method from Parquet, one process a fit, best seconds")
    shown.add_column("cell", no_wrap=True)
    names = ("wall s", "CPU s", "reading", "MB", "bound MB", "within", "MB to", "MB from")
    for column in names:
        shown.add_column(column, justify="right")
    for axis in dict.fromkeys(cell.axis for cell in cells):
        for cell in (cell for cell in cells if cell.axis == axis):
            figures = found[cell.name]
            above, last = max(f["above_mb"] for f in figures), figures[-1]
            shown.add_row(
                cell.name,
                *(f"{best(figures, what):.2f}" for what in ("wall", "cpu", "read_cpu")),
                f"{above:.0f}",
                f"{cell.bound_mb:.0f}",
                "yes" if above <= cell.bound_mb else "no",
                *(f"{last[f'bytes_{way}_parties'] / 1e6:,.1f}" for way in ("to", "from")),
            )
        shown.add_section()
    console.print(shown)


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most-rows", type=int, default=10_000_000, help="up to 100000000")
    axes = ("rows", "columns", "parties")
    parser.add_argument("--axes", nargs="+", choices=axes, default=list(axes))
    parser.add_argument("--folder", type=Path, help="where tables are written for a while")
    parser.add_argument("--quick", action="store_true", help="small tables, one repetition")
    parser.add_argument("--fresh", action="store_true", help="forget what a stopped run measured")
    options = parser.parse_args()
    if options.quick:
        options.repeats = 1
    return options


def main() -> None:
    options, console, begun = options_of(), screen(), time.time()
    kept = Kept("scaling", options.quick, options.fresh)
    with tempfile.TemporaryDirectory(prefix="hedgerow-", dir=options.folder) as name:
        cells = that_fit(cells_of(options), Path(name), console)
        work: dict[str, Callable[[], Figures]] = {
            cell.name: (lambda cell=cell: measure(cell, Path(name))) for cell in cells
        }
        repeats = {cell.name: options.repeats * cell.times for cell in cells}
        found = repeated("scaling", work, repeats, kept, console)
    show(console, cells, found)
    lines = requirements(cells, found)
    show_requirements(console, lines)
    values = {"cells": found, "requirements": [line.values() for line in lines]}
    kept.finish(begun, values, console, whole=len(options.axes) == 3)


if __name__ == "__main__":
    stoppable(main)
