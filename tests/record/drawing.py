"""Small line drawings as SVG text: the same numbers give the same bytes, so a test can compare."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

Points = Sequence[tuple[float, float]]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 660, 330, 56, 240, 28, 42
COLOURS = (
    "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#e377c2", "#17becf",
    "#bcbd22", "#7f7f7f",
)  # fmt: skip


def lines(
    title: str,
    x_label: str,
    y_label: str,
    series: Mapping[str, Points],
    dashed: Sequence[str] = (),
    marks: Mapping[str, Points] | None = None,
) -> str:
    """Lines by name with a legend; `marks` are further points in the colour of a line."""
    every = [p for points in [*series.values(), *(marks or {}).values()] for p in points]
    x, y = ([float(p[i]) for p in every] for i in (0, 1))
    x_ticks, y_ticks = ticks(min(x), max(x)), ticks(min(y), max(y))
    spans = [(t[0], t[-1]) for t in (x_ticks, y_ticks)]

    def at(point: tuple[float, float]) -> str:
        (x0, x1), (y0, y1) = spans
        across = LEFT + (point[0] - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT)
        down = HEIGHT - BOTTOM - (point[1] - y0) / (y1 - y0) * (HEIGHT - TOP - BOTTOM)
        return f"{across:.1f},{down:.1f}"

    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="16" font-size="13">{escape(title)}</text>',
        *_axes(x_ticks, y_ticks, at, x_label, y_label),
    ]
    for i, (name, points) in enumerate(series.items()):
        colour, style = COLOURS[i % len(COLOURS)], ' stroke-dasharray="5 3"' * (name in dashed)
        path = " ".join(at(point) for point in points)
        drawn.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{style}/>'
        )
        for point in (marks or {}).get(name, ()):
            across, down = at(point).split(",")
            drawn.append(f'<circle cx="{across}" cy="{down}" r="4" fill="none" stroke="{colour}"/>')
        down = TOP + 8 + 17 * i
        edge = WIDTH - RIGHT + 12
        drawn += [
            f'<line x1="{edge}" y1="{down}" x2="{edge + 18}" y2="{down}" stroke="{colour}" '
            f'stroke-width="2"{style}/>',
            f'<text x="{edge + 24}" y="{down + 4}">{escape(name)}</text>',
        ]
    return "\n".join([*drawn, "</svg>"]) + "\n"


def _axes(
    x_ticks: Sequence[float], y_ticks: Sequence[float], at: object, x_label: str, y_label: str
) -> list[str]:
    place = at  # a point of the drawing as "across,down"
    assert callable(place)
    drawn = []
    for tick in y_ticks:
        _, down = place((x_ticks[0], tick)).split(",")
        drawn += [
            f'<line x1="{LEFT}" y1="{down}" x2="{WIDTH - RIGHT}" y2="{down}" stroke="#dddddd"/>',
            f'<text x="{LEFT - 6}" y="{float(down) + 4:.1f}" text-anchor="end">{tick:g}</text>',
        ]
    for tick in x_ticks:
        across, _ = place((tick, y_ticks[0])).split(",")
        drawn.append(
            f'<text x="{across}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick:g}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [
        *drawn,
        f'<text x="{middle:g}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>',
        f'<text transform="translate(14,{(TOP + HEIGHT - BOTTOM) / 2:g}) rotate(-90)" '
        f'text-anchor="middle">{escape(y_label)}</text>',
    ]


def ticks(least: float, most: float) -> list[float]:
    """Four to eight round numbers that hold the range between the first and the last."""
    wide = max(most - least, 1e-9)
    step = 10.0 ** math.floor(math.log10(wide / 4))
    for factor in (1, 2, 2.5, 5, 10):
        first, last = math.floor(least / (step * factor)), math.ceil(most / (step * factor))
        if last - first <= 7:
            return [round(k * step * factor, 10) for k in range(first, max(last, first + 1) + 1)]
    raise ValueError("no step fits")
