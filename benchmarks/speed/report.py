"""Tables of seconds beside an anchor, and one line for each requirement."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from speed.repeating import Found, best


@dataclass(frozen=True)
class Requirement:
    """What a figure may be at most, by the wall clock and by CPU seconds; memory has one figure."""

    what: str
    goal: float
    wall: float | None = None
    cpu: float | None = None
    memory: float | None = None

    @property
    def found(self) -> dict[str, float]:
        figures = {"wall": self.wall, "cpu": self.cpu, "memory": self.memory}
        return {name: value for name, value in figures.items() if value is not None}

    def line(self) -> str:
        if not self.found:
            return f"not measured: {self.what}"
        said = (f"{self._verdict(v)} by {name} ({v:.3f})" for name, v in self.found.items())
        return f"{', '.join(said)}: {self.what}, goal {self.goal:g}"

    def _verdict(self, value: float) -> str:
        return "yes" if value <= self.goal else "no "

    def values(self) -> dict[str, Any]:
        met = {f"{name}_met": value <= self.goal for name, value in self.found.items()}
        return {"what": self.what, "goal": self.goal, **self.found, **met}


def of_ratio(
    what: str, goal: float, found: Found, ours: str, anchors: tuple[str, ...]
) -> Requirement:
    """The best time of ours over the best of the anchor, in one run."""
    if not found.get(ours) or not all(found.get(anchor) for anchor in anchors):
        return Requirement(what, goal)
    return Requirement(what, goal, *(ratio(found, ours, anchors, w) for w in ("wall", "cpu")))


def ratio(found: Found, ours: str, anchors: tuple[str, ...], what: str) -> float:
    """Over the quickest form of the anchor, be it on one thread or on all."""
    return best(found[ours], what) / min(best(found[anchor], what) for anchor in anchors)


def show_seconds(console: Console, title: str, found: Found, anchors: tuple[str, ...]) -> None:
    """Best seconds of every cell, and their ratio to the anchor's."""
    table = Table(title=title, caption=f"ratios are to the best of: {'; '.join(anchors)}")
    table.add_column("model", no_wrap=True)
    for column in ("wall s", "CPU s", "ratio", "CPU ratio", "AUC"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, repetitions in found.items():
        if not repetitions:
            continue
        ratios = (ratio(found, name, anchors, what) for what in ("wall", "cpu"))
        table.add_row(
            name,
            f"{best(repetitions, 'wall'):.2f}",
            f"{best(repetitions, 'cpu'):.2f}",
            *(f"{value:.3f}" for value in ratios),
            f"{repetitions[0]['auc']:.4f}" if "auc" in repetitions[0] else "",
        )
    console.print(table)


def screen() -> Console:
    """Wide enough for the tables, also where output goes to a file."""
    return Console() if sys.stdout.isatty() else Console(width=110)


def show_requirements(console: Console, requirements: list[Requirement]) -> None:
    for requirement in requirements:
        console.print(requirement.line(), highlight=False, soft_wrap=True)
