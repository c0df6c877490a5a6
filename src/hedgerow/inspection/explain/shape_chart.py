"""The picture of a shape: a step function of a numeric column, or dots of listed values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.cards import short
from hedgerow.inspection.drawing import Axes, Canvas, Picture, Region, Scale
from hedgerow.inspection.drawing.canvas import CARD, LETTER, Format
from hedgerow.inspection.drawing.words import compact
from hedgerow.inspection.explain.shapes import Shape

Floats = NDArray[np.float64]
MOST_LISTED = 18  # values of a list in a picture; tables have all
UNEVEN = 12.0  # a widest cell of so many median ones: cells are drawn equally wide
LIGHT = 0.005  # weight below which a cell's band may leave the picture
STRIP = 13.0  # height of the strip that shows how many rows there are
MISSING_ROOM = 0.14  # of the axis, for the effect of a missing value


def shape_picture(
    shape: Shape, outputs: Sequence[str], unit: str, least: float = 0.0, form: Format = CARD
) -> Picture:
    """One shape over all outputs; its scale is no finer than `least` either side of 0."""
    if is_curve(shape):
        return _curve(shape, outputs, unit, least, form)
    return _list(shape, outputs, unit, least, form)


def is_curve(shape: Shape) -> bool:
    """Whether a shape is drawn as a step function over a numeric axis."""
    return shape.cells.kind == "numeric" and len(shape.cells.grid.edges) > 0


def reach_of(shape: Shape) -> float:
    """How far from 0 a shape and its band go, over the cells that hold rows."""
    heavy = _heavy(shape)
    parts = [part[:, heavy] for part in (shape.values, shape.low, shape.high)]
    return max(float(np.abs(part[np.isfinite(part)]).max(initial=0.0)) for part in parts)


def caveat_of(shape: Shape) -> str:
    """What the picture does not show, or shows out of proportion; "" if there is nothing."""
    if is_curve(shape):
        return "Cells are drawn equally wide." if _edges(shape)[1] else ""
    if (drawn := len(_listed(shape))) < (n_shown := len(shape.shown)):
        return f"The {drawn} most common of {n_shown} values; the table has all."
    return ""


def _heavy(shape: Shape) -> NDArray[np.int64]:
    return shape.shown[shape.weights[shape.shown] >= LIGHT]


def _effect_ends(shape: Shape, least: float) -> tuple[float, float]:
    """Where the axis of effects ends: all values, and the bands of cells that hold some rows."""
    heavy = _heavy(shape)
    parts = (shape.values[:, shape.shown], shape.low[:, heavy], shape.high[:, heavy])
    known = np.concatenate([part[np.isfinite(part)] for part in parts])
    low, high = float(min(known.min(), 0.0)), float(max(known.max(), 0.0))
    wide = max(high - low, 2 * least) or 1.0
    middle, margin = (low + high) / 2, 0.06 * wide
    return min(low, middle - wide / 2) - margin, max(high, middle + wide / 2) + margin


def _canvas(shape: Shape, height: float, outputs: Sequence[str], unit: str, form: Format) -> Canvas:
    canvas = Canvas(form.width, height, f"Effect of {shape.column}")
    if form.headed:
        direction = {1: ", only rises", -1: ", only falls", 0: ""}[shape.direction]
        canvas.heading(f"Effect of {shape.column}{direction}", f"on the {unit}", outputs)
        canvas.text(16, height - 10, caveat_of(shape), kind="small")
    return canvas


def _curve(shape: Shape, outputs: Sequence[str], unit: str, least: float, form: Format) -> Picture:
    canvas = _canvas(shape, form.height, outputs, unit, form)
    ends, has_missing = _effect_ends(shape, least), bool(shape.cells.possible[-1])
    left = 14 + LETTER * max(len(words) for _, words in Scale(*ends, 0, 1).ticks())
    floor = form.height - form.below - 24 - STRIP - 3
    edges, even = _edges(shape)
    first, last = float(edges[0]), float(edges[-1])
    room = MISSING_ROOM * (last - first) if has_missing else 0.0
    region = Region(left, form.above, form.width - 10, floor)
    axes = Axes.within(canvas, region, (first, last + room), ends)
    axes.grid_across()
    axes.zero()
    _strip(shape, axes, edges)
    n_outputs = len(shape.values)
    for k in range(n_outputs):
        series = None if n_outputs == 1 else k
        low, high, values = (
            part[k, :-1].tolist() for part in (shape.low, shape.high, shape.values)
        )
        if np.isfinite(low).all():
            axes.step_band(edges.tolist(), low, high, series)
        axes.steps(edges.tolist(), values, series)
        if has_missing:
            aside = 0.75 if n_outputs == 1 else 0.45 + 0.5 * k / (n_outputs - 1)
            band = (float(shape.low[k, -1]), float(shape.high[k, -1]))
            axes.dot_upward(last + aside * room, float(shape.values[k, -1]), band, series)
    until = form.width - 66 if has_missing else math.inf  # no tick may lie below the word
    if even:
        _even_ticks(shape, axes, until)
    else:
        axes.ticks_below(6, STRIP + 21, until)
    if has_missing:
        canvas.text(form.width - 4, floor + STRIP + 21, "missing", "end")
    return canvas.picture()


def _edges(shape: Shape) -> tuple[Floats, bool]:
    """Where cells begin and end: as they are, or equally wide if most would be too narrow."""
    edges = _true_edges(shape)
    widths = np.diff(edges)
    if len(widths) > 1 and widths[-1] <= 0:  # whole numbers at their bound, and what lies beyond
        edges[-1] += float(np.median(widths[:-1]))
        widths = np.diff(edges)
    if len(widths) > 4 and widths.max() > UNEVEN * max(float(np.median(widths)), 1e-300):
        return np.arange(len(edges), dtype=np.float64), True
    return edges, False


def _true_edges(shape: Shape) -> Floats:
    return np.append(shape.cells.lower[:-1], shape.cells.upper[-2])


def _even_ticks(shape: Shape, axes: Axes, until: float) -> None:
    """Edges by name, as many as there is room for."""
    edges = _true_edges(shape)
    last = len(edges) - 1
    most = max(5, int((axes.region.right - axes.region.left) / 70))
    every = max(1, math.ceil(last / most))
    for i in [*range(0, last - every // 2, every), last]:
        if axes.x(i) <= until:
            words = compact(float(edges[i]))
            axes.canvas.text(axes.x(i), axes.region.bottom + STRIP + 21, words, "middle")


def _strip(shape: Shape, axes: Axes, edges: Floats) -> None:
    """How many rows cells hold, as far as releases say: a strip below the axis."""
    if not shape.released:
        return
    density = shape.weights[:-1] / np.maximum(np.diff(edges), 1e-300)
    heights = STRIP * density / (float(density.max()) or 1.0)
    foot = axes.region.bottom + 2 + STRIP
    for c, height in enumerate(heights.tolist()):
        x0, x1 = axes.x(float(edges[c])), axes.x(float(edges[c + 1]))
        axes.canvas.rect(x0, foot - height, max(x1 - x0 - 0.4, 0.4), height, "rows")


def _list(shape: Shape, outputs: Sequence[str], unit: str, least: float, form: Format) -> Picture:
    """Values of a list one below the other, the heaviest if there are many, in their order."""
    shown, n_outputs = _listed(shape), len(shape.values)
    high = 20.0 if n_outputs == 1 else 10.0 + 7.0 * n_outputs  # of a value, with a line each
    names = [short(shape.cells.labels[c], 36 if form.width > 400 else 17) for c in shown]
    left = 18 + LETTER * max(len(name) for name in names)
    floor = form.above + 4 + high * len(shown)
    canvas = _canvas(shape, floor + 24 + form.below, outputs, unit, form)
    region = Region(left, form.above - 2, form.width - 10, floor)
    axes = Axes.within(canvas, region, _effect_ends(shape, least), (0.0, 1.0))
    axes.grid_down(4)
    axes.ticks_below(4)
    for i, c in enumerate(shown.tolist()):
        y = form.above + high * (i + 0.5)
        canvas.text(left - 10, y + 3.5, names[i], "end", "strong")
        for k in range(n_outputs):
            _dot(shape, axes, y + 7.0 * (k - (n_outputs - 1) / 2), c, k)
    return canvas.picture()


def _listed(shape: Shape) -> NDArray[np.int64]:
    """The cells of a list that are drawn; of several outputs fewer, as each has a line."""
    shown = shape.shown
    most = MOST_LISTED if len(shape.values) == 1 else max(6, MOST_LISTED // len(shape.values))
    if len(shown) <= most:
        return shown
    heavy = np.argsort(-shape.weights[shown], kind="stable")[:most]
    return shown[np.sort(heavy)]


def _dot(shape: Shape, axes: Axes, y: float, c: int, k: int) -> None:
    band = (float(shape.low[k, c]), float(shape.high[k, c]))
    by_hand = shape.edited is not None and bool(shape.edited[k, c])
    series = None if len(shape.values) == 1 else k
    axes.dot_across(float(shape.values[k, c]), y, band, series, "dot warm" if by_hand else "dot")
