"""Shapes and maps drawn with matplotlib (extra `plots`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.errors import SettingsError
from hedgerow.inspection.explain.shapes import Pair, Shape

LINE, BAND_COLOUR, HAND = "#0b6e4f", "#9fc9b8", "#b3541e"
MOST_NAMES = 24  # of categories on an axis


def plot_shape(shape: Shape, unit: str, output: int = 0, ax: Any = None) -> Any:
    """Draw one output's shape with its band; a step function of numbers, points of a list."""
    ax = ax or panels(1)[0]
    shown = shape.shown
    values, low, high = (part[output] for part in (shape.values, shape.low, shape.high))
    ax.axhline(0.0, color="#888888", linewidth=0.8)
    if shape.cells.kind == "numeric":
        inner = shown[:-1] if shown[-1] == len(values) - 1 else shown
        edges = np.append(shape.cells.lower[inner], shape.cells.upper[inner[-1]])
        ax.stairs(high[inner], edges, baseline=low[inner], fill=True, color=BAND_COLOUR, alpha=0.6)
        ax.stairs(values[inner], edges, baseline=None, color=LINE, linewidth=1.8)
        _missing(ax, shape, values, low, high)
    else:
        chosen = shown[:MOST_NAMES]
        places = np.arange(len(chosen))
        known = np.isfinite(low[chosen])
        ax.vlines(places[known], low[chosen][known], high[chosen][known], color=BAND_COLOUR, lw=6)
        ax.plot(places, values[chosen], "o", color=LINE)
        names = [shape.cells.labels[c] for c in chosen]
        turned = {"rotation": 45, "ha": "right"} if len(names) > 5 else {}
        ax.set_xticks(places, names, **turned)
    arrow = {1: " (only rises)", -1: " (only falls)", 0: ""}[shape.direction]
    ax.set_xlabel(shape.column + arrow)
    ax.set_ylabel(unit)
    return ax


def _missing(ax: Any, shape: Shape, values: Any, low: Any, high: Any) -> None:
    """The effect of a missing value as a point beside the curve."""
    last = len(values) - 1
    if last not in shape.shown:
        return
    lower, upper = (float(np.nanmin(shape.cells.lower)), float(np.nanmax(shape.cells.upper)))
    place = upper + 0.06 * (upper - lower)
    if np.isfinite(low[last]):
        ax.vlines([place], low[last], high[last], color=BAND_COLOUR, lw=6)
    ax.plot([place], [values[last]], "s", color=LINE)
    ax.annotate("missing", (place, values[last]), xytext=(6, 0), textcoords="offset points")


def plot_pair(pair: Pair, unit: str, output: int = 0, ax: Any = None) -> Any:
    """Draw the map of a pair: what its two columns do beyond their shapes."""
    ax = ax or panels(1)[0]
    down, across = (np.flatnonzero(c.possible) for c in (pair.first, pair.second))
    part = pair.values[output][np.ix_(down, across)]
    most = float(np.abs(part).max()) or 1.0
    image = ax.imshow(part, cmap="BrBG", vmin=-most, vmax=most, aspect="auto", origin="lower")
    for cells, chosen, names in (
        (pair.first, down, ax.set_yticks), (pair.second, across, ax.set_xticks),
    ):  # fmt: skip
        every = max(1, len(chosen) // 10)
        places = np.arange(0, len(chosen), every)
        names(places, [cells.labels[chosen[p]] for p in places])
    ax.tick_params(axis="x", rotation=45)
    ax.set_ylabel(pair.first.name)
    ax.set_xlabel(pair.second.name)
    ax.figure.colorbar(image, ax=ax, label=unit)
    return ax


def panels(n: int) -> list[Any]:
    """Axes one below the other in one figure, as for each class."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SettingsError(
            "matplotlib is not installed; pip install 'hedgerow[plots]', or use `hedgerow report`"
        ) from error
    figure = Figure(figsize=(7, 4.2 if n == 1 else 3.2 * n), layout="constrained")
    figure.subplots(n)
    return list(figure.axes)
