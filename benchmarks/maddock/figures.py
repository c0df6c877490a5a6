"""The published figures redrawn: ours as lines, values of the paper's tables as markers."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from maddock import cells, published
from maddock.compare import Chosen
from maddock.fits import Cache, Fit
from maddock.sweeps import NUMBERS, Panel, panels

__all__ = ["NUMBERS", "draw", "fits_of"]


def fits_of(number: int, datasets: Sequence[str]) -> Iterator[Fit]:
    """The cells behind a figure."""
    for panel in panels(number):
        for points in panel.lines.values():
            for _, one in points:
                if one.dataset in datasets:
                    yield one


def draw(cache: Cache, chosen: Chosen, numbers: Sequence[int], folder: Path) -> dict[str, Any]:
    """Draw what the cache holds of these figures; returns the drawn points."""
    known, drawn = _known(), {}
    for number in numbers:
        for panel in panels(number):
            lines = {
                name: points
                for name, of in panel.lines.items()
                if (points := _points(of, cache, chosen))
            }
            if lines:
                marks = {
                    name: [(x, known[one]) for x, one in panel.lines[name] if one in known]
                    for name in lines
                }
                folder.mkdir(parents=True, exist_ok=True)
                _plot(panel, lines, marks, folder / f"{panel.name}.png")
                drawn[panel.name] = lines
    return drawn


def _points(
    of: list[tuple[float, Fit]], cache: Cache, chosen: Chosen
) -> list[tuple[float, float, float, int]]:
    """(x, mean, sd, number of fits) of the points that were run."""
    found = []
    for x, one in of:
        scores = chosen.scores(cache, one) if one.dataset in chosen.datasets else []
        if scores:
            spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
            found.append((x, round(statistics.fmean(scores), 5), round(spread, 5), len(scores)))
    return found


def _known() -> dict[Fit, float]:
    """Published means by the fit that answers them."""
    document = published.read()
    return {
        cell.fit: figure[0]
        for number in cells.TABLES
        for cell in cells.table_cells(number)
        if (figure := published.value_of(document, cell)) is not None
    }


def _plot(
    panel: Panel,
    lines: dict[str, list[tuple[float, float, float, int]]],
    marks: dict[str, list[tuple[float, float]]],
    path: Path,
) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    colours = plt.get_cmap("tab10").colors
    for number, (name, points) in enumerate(lines.items()):
        x, mean, spread, _ = (list(part) for part in zip(*points, strict=True))
        colour = colours[number % len(colours)]
        axes.errorbar(x, mean, yerr=spread, label=name, color=colour, capsize=2, marker=".")
        if marks[name]:
            theirs_x, theirs = zip(*marks[name], strict=True)
            axes.plot(theirs_x, theirs, "D", color=colour, markerfacecolor="none", markersize=7)
    if any(marks.values()):
        axes.plot([], [], "kD", markerfacecolor="none", label="published")
    if panel.log_x:
        axes.set_xscale("log", base=2)
    axes.set_title(panel.name)
    axes.set_xlabel(panel.x)
    axes.set_ylabel("test AUC")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=90)
    plt.close(figure)
