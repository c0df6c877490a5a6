"""Shapes as SVG: step functions of numbers with their bands, points of lists."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hedgerow.inspection.explain import Shape
from hedgerow.inspection.report.frame import Frame, label, line, path, short
from hedgerow.inspection.report.marks import colour_of, compact, ticks

Floats = NDArray[np.float64]
MOST_LISTED = 18  # values of a list in a picture; the numbers below it have all
UNEVEN = 12.0  # a widest cell of so many middle ones: cells are drawn equally wide
LIGHT = 0.005  # weight below which a cell's band may leave the picture
ROWS = 13.0  # height of the strip of weights


def reach_of(shape: Shape) -> float:
    """How far from 0 a shape and its band go, over the cells that hold rows."""
    shown = shape.shown
    heavy = shown[shape.weights[shown] >= LIGHT]
    ends = [np.abs(shape.values[:, heavy]).max(initial=0.0)]
    for part in (shape.low, shape.high):
        known = part[:, heavy][np.isfinite(part[:, heavy])]
        ends.append(float(np.abs(known).max(initial=0.0)))
    return float(max(ends))


def shape_svg(shape: Shape, least: float) -> str:
    """A picture of one shape; its scale is no finer than `least` either side of 0."""
    if shape.cells.kind == "numeric" and len(shape.cells.grid.edges):
        return _steps(shape, least)
    return _list(shape, least)


def _range(shape: Shape, least: float) -> tuple[float, float]:
    """Where the axis of effects ends: all values, and the bands of cells that hold some rows."""
    shown = shape.shown
    heavy = shown[shape.weights[shown] >= LIGHT]
    parts = (shape.values[:, shown], shape.low[:, heavy], shape.high[:, heavy])
    known = np.concatenate([part[np.isfinite(part)] for part in parts])
    low, high = float(min(known.min(), 0.0)), float(max(known.max(), 0.0))
    wide = max(high - low, 2 * least)
    middle = (low + high) / 2
    room = 0.06 * wide
    return min(low, middle - wide / 2) - room, max(high, middle + wide / 2) + room


def _steps(shape: Shape, least: float) -> str:
    inner = np.arange(len(shape.values[0]) - 1)
    has_missing = bool(shape.cells.possible[-1])
    places, even = _places(shape)
    first, last = float(places[0]), float(places[-1])
    room = 0.14 * (last - first) if has_missing else 0.0
    frame = Frame((first, last + room), _range(shape, least), bottom=24.0 + ROWS + 3)
    parts = [frame.y_axis(), frame.zero(), _rows(shape, frame, places)]
    for k in range(len(shape.values)):
        colour = "" if len(shape.values) == 1 else colour_of(k)
        parts.append(_band(shape, frame, places, k, colour))
        points = [
            (frame.across(float(places[c + side])), frame.down(float(shape.values[k, c])))
            for c in inner
            for side in (0, 1)
        ]
        parts.append(_coloured(path(points, "line"), colour, "stroke"))
        if has_missing:
            beside = 0.75 if len(shape.values) == 1 else 0.45 + 0.5 * k / (len(shape.values) - 1)
            parts.append(_missing(shape, frame, last + beside * room, k, colour))
    until = frame.width - 66 if has_missing else math.inf  # no tick may lie below the word
    parts.append(_even_ticks(shape, frame, places, until) if even else frame.x_axis(6, until))
    if has_missing:
        parts.append(label(frame.width - 1, frame.height - 6, "missing", "end"))
    return frame.picture(parts, f"Effect of {shape.column}")


def _places(shape: Shape) -> tuple[Floats, bool]:
    """Where cells begin and end: as they are, or equally wide if most would be too narrow."""
    cells = shape.cells
    edges = np.append(cells.lower[:-1], cells.upper[-2])
    widths = np.diff(edges)
    if len(widths) > 1 and widths[-1] <= 0:  # whole numbers at their bound, and what lies beyond
        edges[-1] += float(np.median(widths[:-1]))
        widths = np.diff(edges)
    if len(widths) > 4 and widths.max() > UNEVEN * max(float(np.median(widths)), 1e-300):
        return np.arange(len(edges), dtype=np.float64), True
    return edges, False


def _even_ticks(shape: Shape, frame: Frame, places: Floats, until: float) -> str:
    """Edges by name, as many as there is room for."""
    edges = np.append(shape.cells.lower[:-1], shape.cells.upper[-2])
    n = len(places) - 1
    every = max(1, math.ceil(n / 5))
    chosen = [*range(0, n - every // 2, every), n]
    return "".join(
        label(frame.across(float(places[i])), frame.height - 6, compact(float(edges[i])), "middle")
        for i in chosen
        if frame.across(float(places[i])) <= until
    )


def _rows(shape: Shape, frame: Frame, places: Floats) -> str:
    """How many rows cells hold, as far as releases say: a strip below the axis."""
    if not shape.released:
        return ""
    inner, most = shape.weights[:-1], 0.0
    density = inner / np.maximum(np.diff(places), 1e-300)
    most = float(density.max()) or 1.0
    parts = []
    for c, height in enumerate(ROWS * density / most):
        x0, x1 = frame.across(float(places[c])), frame.across(float(places[c + 1]))
        parts.append(
            f'<rect x="{x0:.1f}" y="{frame.floor + 2 + ROWS - height:.1f}" '
            f'width="{max(x1 - x0 - 0.4, 0.4):.1f}" height="{height:.1f}" class="rows"/>'
        )
    return "".join(parts)


def _band(shape: Shape, frame: Frame, places: Floats, k: int, colour: str) -> str:
    low, high = shape.low[k, :-1], shape.high[k, :-1]
    if not np.isfinite(low).all():
        return ""
    across = [frame.across(float(p)) for p in places]
    up = [(across[c + s], frame.down(float(high[c]))) for c in range(len(high)) for s in (0, 1)]
    back = [
        (across[c + 1 - s], frame.down(float(low[c])))
        for c in reversed(range(len(low)))
        for s in (0, 1)
    ]
    drawn = path([*up, *back], "band", closed=True)
    return _coloured(drawn, colour, "fill", "fill-opacity:.14")


def _missing(shape: Shape, frame: Frame, place: float, k: int, colour: str) -> str:
    x, y = frame.across(place), frame.down(float(shape.values[k, -1]))
    drawn = ""
    if np.isfinite(shape.low[k, -1]):
        ends = frame.down(float(shape.low[k, -1])), frame.down(float(shape.high[k, -1]))
        kind = "whisker thin" if colour else "whisker"
        drawn = _coloured(line(x, ends[0], x, ends[1], kind), colour, "stroke", "opacity:.3")
    dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{2.5 if colour else 3.5}" class="dot"/>'
    return drawn + _coloured(dot, colour, "fill")


def _coloured(drawn: str, colour: str, what: str, more: str = "") -> str:
    """The same with a colour of its own, for one of several outputs."""
    return drawn.replace("/>", f' style="{what}:{colour};{more}"/>', 1) if colour else drawn


def _list(shape: Shape, least: float) -> str:
    """Values of a list one below the other, the heaviest if there are many, in their order."""
    shown, n_outputs = _listed(shape), len(shape.values)
    high = 20.0 if n_outputs == 1 else 10.0 + 7.0 * n_outputs  # of a value, with a line each
    names = [short(shape.cells.labels[c], 17) for c in shown]
    left = 14 + 6.6 * max(len(name) for name in names)
    height = 36 + high * len(shown)
    frame = Frame(_range(shape, least), (0.0, 1.0), height=height, left=left)
    parts = [_down_lines(frame), frame.x_axis(4)]
    for i, c in enumerate(shown):
        y = 8 + high * (i + 0.5)
        parts.append(label(left - 10, y + 3.5, names[i], "end", "strong"))
        for k in range(n_outputs):
            parts.append(_point(shape, frame, y + 7.0 * (k - (n_outputs - 1) / 2), int(c), k))
    return frame.picture(parts, f"Effect of {shape.column}")


def _listed(shape: Shape) -> NDArray[np.intp]:
    """The cells of a list that are drawn; of several outputs fewer, as each has a line."""
    shown = shape.shown
    most = MOST_LISTED if len(shape.values) == 1 else max(6, MOST_LISTED // len(shape.values))
    if len(shown) <= most:
        return shown
    heavy = np.argsort(-shape.weights[shown], kind="stable")[:most]
    return shown[np.sort(heavy)]


def told_below(shape: Shape) -> str:
    """What a reader has to know beside the picture: cells left out, or an axis that is uneven."""
    if shape.cells.kind == "numeric" and len(shape.cells.grid.edges):
        return "Cells are drawn equally wide." if _places(shape)[1] else ""
    if (drawn := len(_listed(shape))) < (n_shown := len(shape.shown)):
        return f"The {drawn} most common of {n_shown}; all are among the numbers."
    return ""


def _down_lines(frame: Frame) -> str:
    return "".join(
        line(frame.across(x), 6, frame.across(x), frame.floor, "zero" if x == 0 else "axis")
        for x in ticks(*frame.x, 4)
    )


def _point(shape: Shape, frame: Frame, y: float, c: int, k: int) -> str:
    colour = "" if len(shape.values) == 1 else colour_of(k)
    drawn, x = "", frame.across(float(shape.values[k, c]))
    if np.isfinite(shape.low[k, c]):
        ends = frame.across(float(shape.low[k, c])), frame.across(float(shape.high[k, c]))
        kind = "whisker thin" if colour else "whisker"
        drawn = _coloured(line(ends[0], y, ends[1], y, kind), colour, "stroke", "opacity:.3")
    hand = shape.edited is not None and bool(shape.edited[k, c])
    radius, kind = 3 if colour else 4, "dot hand" if hand else "dot"
    dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="{kind}"/>'
    return drawn + _coloured(dot, colour, "fill")
