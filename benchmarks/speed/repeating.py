"""Cells that are measured again and again, one after another, so that all see the same machine.

A finished repetition is a line of a file in `benchmarks/.cache`. A run that was stopped goes on
from there; the file goes away when the run is complete, and lines of other source are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from speed.clock import FOLDER, facts, source

Figures = dict[str, Any]
Found = dict[str, list[Figures]]  # the repetitions of every cell


class Kept:
    """Finished repetitions of one script, in a file until the run is complete."""

    def __init__(self, script: str, quick: bool, fresh: bool = False) -> None:
        self.script, self.quick = script, quick
        folder = FOLDER / ".cache"
        self.path = folder / f"{script}{'-quick' if quick else ''}.jsonl"
        folder.mkdir(exist_ok=True)
        if fresh:
            self.path.unlink(missing_ok=True)
        self.source = source()
        self._lines: dict[str, Figures] = {}
        for line in self.path.read_text().splitlines() if self.path.is_file() else []:
            self._read(line)
        self.reused = len(self._lines)

    def _read(self, line: str) -> None:
        try:
            found = json.loads(line)
            if found["source"] == self.source:
                self._lines[found["cell"]] = found["figures"]
        except (ValueError, KeyError, TypeError):
            return  # the line that was being written when a run was stopped

    def get(self, cell: str) -> Figures | None:
        return self._lines.get(cell)

    def add(self, cell: str, figures: Figures) -> Figures:
        if source() != self.source:
            raise SystemExit("hedgerow's source changed during the run; run it again")
        line = {"cell": cell, "source": self.source, "figures": figures}
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" + json.dumps(line))
        self._lines[cell] = figures
        return figures

    def finish(self, begun: float, values: Figures, console: Console, whole: bool = True) -> None:
        """Write the result and forget the repetitions; parts never replace a whole result."""
        at = FOLDER / "results" if whole and not self.quick else FOLDER / ".cache"
        path: Path = at / f"{self.script}.json"
        given = {**facts(self.script, begun), "reused_repetitions": self.reused, **values}
        path.write_text(json.dumps(given, indent=1) + "\n", encoding="utf-8")
        self.path.unlink(missing_ok=True)
        console.print(f"written to {path.relative_to(FOLDER.parent)}", style="dim")


def repeated(
    title: str,
    cells: Mapping[str, Callable[[], Figures]],
    repeats: int | Mapping[str, int],
    kept: Kept,
    console: Console,
) -> Found:
    """Every cell once, then every cell again: the repetitions of each, by name."""
    count = dict.fromkeys(cells, repeats) if isinstance(repeats, int) else dict(repeats)
    found: Found = {name: [] for name in cells}
    order = [(r, name) for r in range(max(count.values())) for name in cells if r < count[name]]
    with _progress(console) as progress:
        task = progress.add_task(title, total=len(order), cell="")
        for r, name in order:
            progress.update(task, cell=f"{name}, {r + 1} of {count[name]}")
            key = f"{title} | {name} | {r}"
            figures = kept.get(key)
            if figures is None:
                figures = kept.add(key, cells[name]())
                said = ", ".join(f"{k} {figures[k]:.3f}" for k in ("wall", "cpu") if k in figures)
                told = f"{title}: {name}: {said} s"
                progress.console.print(told, style="dim", highlight=False, soft_wrap=True)
            found[name].append(figures)
            progress.advance(task)
    return found


def stoppable(main: Callable[[], None]) -> None:
    """Run a script; Ctrl-C ends it without a traceback."""
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit("stopped; the same command goes on where it was") from None


def best(repetitions: list[Figures], what: str) -> float:
    return min(float(figures[what]) for figures in repetitions)


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[cell]}", style="dim"),
        console=console,
        transient=True,
    )
