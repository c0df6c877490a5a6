"""Importances as bars; maps of pairs and curves of an evaluation as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.evaluation.result import CalibrationPoint, RocPoint
from hedgerow.inspection.explain import Pair
from hedgerow.inspection.explain.cells import Cells
from hedgerow.inspection.report.frame import Frame, label, line, path, short
from hedgerow.inspection.report.marks import breakable, compact, number, tag, text

MOST_MAP = 28  # cells of a side of a map


def importance_bars(found: Sequence[tuple[str, float, float, bool]]) -> str:
    """Bars of (name, importance, noise, whether it is a pair); a mark where noise alone may be."""
    most = max(max(i, n if math.isfinite(n) else 0.0) for _, i, n, _ in found) or 1.0
    rows = []
    for name, importance, noise, is_pair in found:
        kind = "bar pair" if is_pair else "bar"
        bar = tag("i", class_=kind, style=f"width:{max(100 * importance / most, 0.2):.2f}%")
        if math.isfinite(noise) and noise > 0:
            bar += tag("i", class_="noise", style=f"left:{100 * noise / most:.2f}%")
        value = tag("span", number(importance), class_="value")
        rows.append(tag("span", breakable(name)) + tag("span", bar, class_="bars") + value)
    return tag("div", "".join(rows), class_="importances")


@dataclass(frozen=True, eq=False)
class _Side:
    """One side of a map: names of its stretches, and how they are averages of cells."""

    names: list[str]
    full: list[str]
    share: NDArray[np.float64]  # (stretch, cell)


def _side(cells: Cells, weights: NDArray[np.float64]) -> _Side:
    """Every cell that rows can be in; of many, neighbours together, or the heaviest of a list."""
    shown, last = np.flatnonzero(cells.possible), len(cells.labels) - 1
    if cells.kind == "categorical" and len(shown) > MOST_MAP:
        heavy = np.argsort(-weights[shown], kind="stable")[:MOST_MAP]
        shown = shown[np.sort(heavy)]
    inner = shown[shown != last]
    groups = np.array_split(inner, min(len(inner), MOST_MAP))
    groups += [np.array([last])] if last in shown else []
    share = np.zeros((len(groups), last + 1))
    for row, group in zip(share, groups, strict=True):
        own = weights[group] + 1e-12
        row[group] = own / own.sum()
    numeric = cells.kind == "numeric"
    full = [cells.labels[g[0]] if len(g) == 1 else f"from {cells.labels[g[0]]}" for g in groups]
    names = [
        compact(float(cells.lower[g[0]])) if numeric and g[0] != last else cells.labels[g[0]]
        for g in groups
    ]
    return _Side(names, full, share)


def pair_svg(pair: Pair, output: int = 0) -> str:
    """A map of what two columns do beyond their shapes: one colour above 0, another below."""
    down, across = (
        _side(cells, weights)
        for cells, weights in zip((pair.first, pair.second), pair.weights, strict=True)
    )
    values = down.share @ pair.values[output] @ across.share.T
    most = float(np.abs(values).max()) or 1.0
    names = [short(name, 12) for name in down.names]
    left = 10 + 6.3 * max(len(name) for name in names)
    width, height = 296.0, 236.0
    n_down, n_across = values.shape
    frame = Frame((0.0, n_across), (0.0, n_down), width, height, left, 6.0, 6.0, 44.0)
    sizes = (width - left - 6) / n_across, (height - 50) / n_down
    wide, high = (
        size - 0.6 if size > 12 else size + 0.3 for size in sizes
    )  # gaps, if there is room
    parts = []
    for r, row in enumerate(values):
        for c, value in enumerate(row):
            told = f"{down.full[r]}, {across.full[c]}: {value:+.3f}"
            colour = "var(--accent)" if value > 0 else "var(--warm)"
            parts.append(
                tag(
                    "rect", tag("title", text(told)), x=f"{frame.across(c):.1f}",
                    y=f"{frame.down(r + 1):.1f}", width=f"{wide:.1f}", height=f"{high:.1f}",
                    style=f"fill:{colour};fill-opacity:{0.06 + 0.94 * abs(value) / most:.2f}",
                )
            )  # fmt: skip
    every = max(1, math.ceil(n_down / 9))
    for r in range(0, n_down, every):
        parts.append(label(left - 6, frame.down(r + 0.5) + 3.5, names[r], "end"))
    parts += _names_below(frame, across.names)
    parts.append(label(left, height - 4, f"across: {short(pair.second.name, 30)}", "start"))
    return frame.picture(parts, f"{pair.columns[0]} and {pair.columns[1]} together")


def _names_below(frame: Frame, names: Sequence[str]) -> list[str]:
    longest = max(len(short(name, 12)) for name in names)
    room = (frame.width - frame.left) / (6.2 * longest + 10)
    every = max(1, math.ceil(len(names) / max(room, 1)))
    return [
        label(frame.across(c + 0.5), frame.floor + 15, short(names[c], 12), "middle")
        for c in range(0, len(names), every)
    ]


def roc_svg(points: Sequence[RocPoint]) -> str:
    """The curve of true over false positives with its band."""
    frame = Frame((0.0, 1.0), (0.0, 1.0), 296.0, 270.0, bottom=42.0)
    found = sorted(points, key=lambda p: (p.false_positive_rate, p.true_positive_rate))
    x = [frame.across(p.false_positive_rate) for p in found]
    up = [(a, frame.down(p.high)) for a, p in zip(x, found, strict=True)]
    low = [(a, frame.down(p.low)) for a, p in zip(x, found, strict=True)]
    curve = [(a, frame.down(p.true_positive_rate)) for a, p in zip(x, found, strict=True)]
    parts = [
        frame.y_axis(),
        _diagonal(frame),
        path([*up, *reversed(low)], "band", closed=True),
        path(curve, "line"),
        _below(frame, "false positive rate"),
    ]
    return frame.picture(parts, "ROC curve")


def calibration_svg(points: Sequence[CalibrationPoint], is_share: bool) -> str:
    """What was predicted and what was seen, with bands; on the diagonal both agree."""
    values = [v for p in points for v in (p.predicted, p.observed, p.low, p.high)]
    ends = (0.0, 1.0) if is_share else (min(values), max(values))
    room = 0.0 if is_share else 0.05 * (ends[1] - ends[0])
    ends = (ends[0] - room, ends[1] + room)
    frame = Frame(ends, ends, 296.0, 270.0, left=44.0, bottom=42.0)
    parts = [frame.y_axis(), _diagonal(frame)]
    for p in points:
        x, y = frame.across(p.predicted), frame.down(min(max(p.observed, ends[0]), ends[1]))
        low, high = (frame.down(min(max(v, ends[0]), ends[1])) for v in (p.low, p.high))
        parts.append(line(x, low, x, high, "whisker"))
        told = f"predicted {number(p.predicted)}, seen {number(p.observed)}"
        parts.append(
            tag("circle", tag("title", text(told)), cx=f"{x:.1f}", cy=f"{y:.1f}", r=4, class_="dot")
        )
    return frame.picture([*parts, _below(frame, "predicted")], "Calibration")


def _diagonal(frame: Frame) -> str:
    ends = [frame.across(v) for v in frame.x], [frame.down(v) for v in frame.y]
    return line(ends[0][0], ends[1][0], ends[0][1], ends[1][1], "zero")


def _below(frame: Frame, name: str) -> str:
    """Ticks and the name of the axis below them."""
    from hedgerow.inspection.report.marks import tick_text, ticks

    found = ticks(*frame.x, 5)
    step = found[1] - found[0] if len(found) > 1 else 1.0
    parts = [label(frame.across(v), frame.floor + 16, tick_text(v, step), "middle") for v in found]
    middle = (frame.left + frame.width - frame.right) / 2
    return "".join([*parts, label(middle, frame.height - 4, name, "middle")])
