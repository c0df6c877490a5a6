"""The picture of a pair: a map of what two columns do together, beyond their shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.cards import short
from hedgerow.inspection.drawing import Canvas, Picture, Region, Scale
from hedgerow.inspection.drawing.canvas import CARD, LETTER, Format
from hedgerow.inspection.drawing.words import compact, number
from hedgerow.inspection.explain.cells import Cells
from hedgerow.inspection.explain.shapes import Pair

MOST_CELLS = 28  # of a side of a map
MAP_HEIGHT = 240.0  # of a map with its names, in a card
BAR_HEIGHT = 44.0  # of the colours below the maps, with their values
_BAR_STEPS = 48


@dataclass(frozen=True, eq=False)
class _Side:
    """One side of a map: names of its stretches, and how they are averages of cells."""

    column: str
    names: list[str]  # in few letters
    full_names: list[str]
    share: NDArray[np.float64]  # (stretch, cell)


def pair_picture(
    pair: Pair, outputs: Sequence[str], unit: str, which: Sequence[int], most: float,
    form: Format = CARD,
) -> Picture:  # fmt: skip
    """Maps of the outputs in `which`, one below the other: one colour above 0, another below.

    `most` has the full colour. Maps that are looked at together share it, so that what is pale in
    one of them is as small as what is pale in another.
    """
    height = MAP_HEIGHT if not form.headed else form.height - form.above - form.below
    title = f"{pair.columns[0]} and {pair.columns[1]} together"
    maps = form.above + len(which) * height
    canvas = Canvas(form.width, maps + BAR_HEIGHT + form.below, title)
    if form.headed:
        canvas.heading(title, f"on the {unit}, beyond the effects of each")
        told = "One scale of colours for all maps of the model."
        canvas.text(16, canvas.height - 10, told, kind="small")
    sides = _side(pair.first, pair.weights[0]), _side(pair.second, pair.weights[1])
    for i, k in enumerate(which):
        top = form.above + i * height
        name = outputs[k] if form.headed and len(outputs) > 1 else ""
        _map(canvas, sides, pair, k, most, (top, top + height), name)
    _bar(canvas, maps, most, pair.noise)
    return canvas.picture()


def reach_of_pairs(pairs: Sequence[Pair]) -> float:
    """The largest effect of any pair: the full colour of all their maps."""
    return max((float(np.abs(pair.values).max()) for pair in pairs), default=0.0) or 1.0


def strongest_output(pair: Pair) -> int:
    """The output on which a pair has the largest effect."""
    return int(np.abs(pair.values).max(axis=(1, 2)).argmax())


def _map(
    canvas: Canvas, sides: tuple[_Side, _Side], pair: Pair, k: int, most: float,
    ends: tuple[float, float], output: str,
) -> None:  # fmt: skip
    down, across = sides
    values = down.share @ pair.values[k] @ across.share.T
    names = [short(name, 12) for name in down.names]
    left = 14 + LETTER * max(len(name) for name in names)
    region = Region(left, ends[0] + 20, canvas.width - 8, ends[1] - 40)
    of_output = f", {output}" if output else ""
    canvas.text(left, ends[0] + 12, f"{short(down.column, 34)} upward{of_output}")
    n_down, n_across = values.shape
    width = (region.right - region.left) / n_across
    height = (region.bottom - region.top) / n_down
    wide, high = (size - 0.6 if size > 12 else size + 0.3 for size in (width, height))
    for r, row in enumerate(values):
        y = region.bottom - (r + 1) * height
        for c, value in enumerate(row.tolist()):
            told = f"{down.full_names[r]}, {across.full_names[c]}: {value:+.3f}"
            kind, opacity = _colour(value, most)
            canvas.rect(region.left + c * width, y, wide, high, kind, title=told, opacity=opacity)
    for r in range(0, n_down, max(1, math.ceil(n_down / 9))):
        canvas.text(left - 6, region.bottom - (r + 0.5) * height + 3.5, names[r], "end")
    _names_below(canvas, region, across, width)


def _colour(value: float, most: float) -> tuple[str, float]:
    """What a value is filled with, and how strongly."""
    return "fill" if value > 0 else "fill warm", 0.06 + 0.94 * min(abs(value) / most, 1.0)


def _bar(canvas: Canvas, top: float, most: float, noise: float) -> None:
    """The colours with their values, and how far one deviation of the noise reaches from 0."""
    scale = Scale(-most, most, 0.2 * canvas.width, 0.8 * canvas.width)
    y, step = top + 16, (scale.end - scale.start) / _BAR_STEPS
    for i in range(_BAR_STEPS):
        kind, opacity = _colour((2 * i + 1 - _BAR_STEPS) / _BAR_STEPS * most, most)
        canvas.rect(scale.start + i * step, y, step + 0.3, 9, kind, opacity=opacity)
    for value, words in ((-most, f"−{number(most)}"), (0.0, "0"), (most, f"+{number(most)}")):
        canvas.text(scale(value), y + 22, words, "middle", "small")
    told = "noise not known"
    if math.isfinite(noise):
        told = f"noise ±{number(noise)} (one deviation)"
        low, high = scale(-noise), scale(noise)
        canvas.line(low, y - 3, high, y - 3, "line soft")
        for x in (low, high):
            canvas.line(x, y - 5, x, y + 12, "line soft")
    canvas.text(scale(0.0), y - 9, told, "middle", "small")


def _names_below(canvas: Canvas, region: Region, side: _Side, width: float) -> None:
    names = [short(name, 12) for name in side.names]
    room = LETTER * max(len(name) for name in names) + 10
    for c in range(0, len(names), max(1, math.ceil(room / width))):
        x = min(region.left + (c + 0.5) * width, canvas.width - LETTER * len(names[c]) / 2)
        canvas.text(x, region.bottom + 15, names[c], "middle")
    middle = (region.left + region.right) / 2
    canvas.text(middle, region.bottom + 33, short(side.column, 34), "middle")


def _side(cells: Cells, weights: NDArray[np.float64]) -> _Side:
    """Every cell that rows can be in; of many, neighbours together, or the heaviest of a list."""
    shown, last = np.flatnonzero(cells.possible), len(cells.labels) - 1
    if cells.kind == "categorical" and len(shown) > MOST_CELLS:
        heavy = np.argsort(-weights[shown], kind="stable")[:MOST_CELLS]
        shown = shown[np.sort(heavy)]
    inner = shown[shown != last]
    stretches = np.array_split(inner, min(len(inner), MOST_CELLS))
    stretches += [np.array([last])] if last in shown else []
    share = np.zeros((len(stretches), last + 1))
    for row, stretch in zip(share, stretches, strict=True):
        mass = weights[stretch] + 1e-12
        row[stretch] = mass / mass.sum()
    numeric = cells.kind == "numeric"
    first = [int(stretch[0]) for stretch in stretches]
    full_names = [
        cells.labels[c] if len(stretch) == 1 else f"from {cells.labels[c]}"
        for c, stretch in zip(first, stretches, strict=True)
    ]
    names = [
        compact(float(cells.lower[c])) if numeric and c != last else cells.labels[c] for c in first
    ]
    return _Side(cells.name, names, full_names, share)
