"""Pictures as matplotlib figures, for whoever works with pyplot: the same marks in the same style.

Nothing here loads matplotlib. Where a program or notebook has loaded pyplot itself, pictures that
somebody asked for are its figures too, so that `plt.show()`, `plt.savefig()` and inline plots have
them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from colorsys import hls_to_rgb
from dataclasses import replace
from functools import cache
from typing import Any
from xml.etree.ElementTree import Element, fromstring

from hedgerow.inspection.drawing.canvas import Picture
from hedgerow.inspection.drawing.style import LIGHT, RULES

PIXELS = 100  # an inch
POINT = 72 / PIXELS  # of a pixel
Style = Mapping[str, str]
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def offered(picture: Picture) -> Picture:
    """The picture; where pyplot is loaded it is its newest figure, until it is shown otherwise."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return picture
    size = (picture.width / PIXELS, picture.height / PIXELS)
    figure = pyplot.figure(figsize=size, dpi=PIXELS, facecolor=LIGHT["card"])
    draw(picture, figure)
    return replace(picture, figure=figure)


def draw(picture: Picture, figure: Any) -> None:
    """Draw all marks of a picture onto a matplotlib figure of its size."""
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, picture.width), ylim=(picture.height, 0))  # as in SVG, y grows downward
    axes.axis("off")
    for order, mark in enumerate(_marks(fromstring(f"<g>{picture.marks}</g>"))):
        _draw_mark(axes, mark, _style_of(mark), order)


def _marks(parent: Element) -> Iterator[Element]:
    for mark in parent:
        if mark.tag == "g":
            yield from _marks(mark)
        else:
            yield mark


def _draw_mark(axes: Any, mark: Element, style: Style, order: int) -> None:
    if mark.tag == "text":
        _draw_text(axes, mark, style, order)
        return
    patch = _patch(mark)
    if patch is None:
        return
    stroke, dashes = _paint(style, "stroke", "none"), style.get("stroke-dasharray")
    width = POINT * float(style.get("stroke-width", 1))
    patch.set(
        facecolor=_paint(style, "fill", "#000000") if mark.tag != "line" else "none",
        edgecolor=stroke,
        linewidth=0 if stroke == "none" else width,
        capstyle="round" if style.get("stroke-linecap") == "round" else "butt",
        zorder=order,
    )
    if dashes:
        patch.set_linestyle(
            (0, [float(length) * POINT / max(width, 0.1) for length in dashes.split()])
        )
    axes.add_patch(patch)


def _draw_text(axes: Any, mark: Element, style: Style, order: int) -> None:
    anchor = {"middle": "center", "end": "right"}.get(mark.get("text-anchor", ""), "left")
    axes.text(
        float(mark.get("x", 0)), float(mark.get("y", 0)), mark.text or "", ha=anchor, va="baseline",
        fontsize=POINT * float(style["font-size"].removesuffix("px")),
        fontweight="bold" if int(style.get("font-weight", 400)) >= 600 else "normal",
        color=_paint(style, "fill", "#000000"), zorder=order, parse_math=False,
    )  # fmt: skip


def _patch(mark: Element) -> Any:
    from matplotlib.patches import Circle, FancyBboxPatch, PathPatch, Rectangle
    from matplotlib.path import Path

    def at(name: str) -> float:
        return float(mark.get(name, 0))

    if mark.tag == "line":
        return PathPatch(Path([(at("x1"), at("y1")), (at("x2"), at("y2"))]))
    if mark.tag == "circle":
        return Circle((at("cx"), at("cy")), at("r"))
    if mark.tag == "rect" and at("rx"):
        round_box = f"round,pad=0,rounding_size={at('rx')}"
        return FancyBboxPatch((at("x"), at("y")), at("width"), at("height"), boxstyle=round_box)
    if mark.tag == "rect":
        return Rectangle((at("x"), at("y")), at("width"), at("height"))
    if mark.tag == "path":
        return PathPatch(Path(*_corners(mark.get("d", ""))))
    return None


def _corners(text: str) -> tuple[list[tuple[float, float]], list[int]]:
    """Corners and codes of a path that moves, draws lines and curves, and may close."""
    from matplotlib.path import Path

    kinds = {"M": Path.MOVETO, "L": Path.LINETO, "C": Path.CURVE4}
    corners: list[tuple[float, float]] = []
    codes: list[int] = []
    for letter, numbers in re.findall(r"([MLC])([^MLCZ]*)", text):
        values = [float(number) for number in _NUMBER.findall(numbers)]
        places = list(zip(values[::2], values[1::2], strict=True))
        corners += places
        codes += [int(kinds[letter])] * len(places)
    if text.endswith("Z"):
        corners.append(corners[0])
        codes.append(int(Path.CLOSEPOLY))
    return corners, codes


@cache
def _rules() -> tuple[tuple[str, frozenset[str], dict[str, str]], ...]:
    """Rules of the style sheet, the weakest first: a tag or "", classes, declarations."""
    rules = []
    for selectors, body in re.findall(r"([^{}]+)\{([^}]*)\}", RULES):
        told = dict(re.findall(r"([\w-]+):\s*([^;]+);", body))
        for selector in selectors.split(","):
            tag, *classes = selector.strip().removeprefix(".hedgerow").strip().split(".")
            rules.append((tag, frozenset(classes), told))
    return tuple(sorted(rules, key=lambda rule: (len(rule[1]), rule[0] != "")))


def _style_of(mark: Element) -> Style:
    """What the style sheet, its attributes and its own declarations say of a mark."""
    style = {
        name: mark.get(name, "") for name in ("fill-opacity", "stroke-width") if mark.get(name)
    }
    classes = set(mark.get("class", "").split())
    for tag, needed, told in _rules():
        if needed <= classes and tag in ("", mark.tag):
            style.update(told)
    style.update(re.findall(r"([\w-]+):\s*([^;]+)", mark.get("style", "")))
    return style


def _paint(style: Style, name: str, default: str) -> Any:
    """A colour as matplotlib has it, with its opacity; "none" where nothing is painted."""
    value = style.get(name, default)
    if value == "currentColor":
        value = style["color"]
    if value == "none":
        return value
    if value.startswith("var("):
        value = LIGHT[value[6:-1]]
    if value.startswith("hsl("):
        hue, saturation, light = (float(number) for number in _NUMBER.findall(value))
        rgb = hls_to_rgb(hue / 360, light / 100, saturation / 100)
    else:
        rgb = tuple(int(value[place : place + 2], 16) / 255 for place in (1, 3, 5))  # type: ignore[assignment]
    return (*rgb, float(style.get(f"{name}-opacity", 1)))
