"""A picture in the making: lines, bands, boxes and texts, escaped by the XML writer."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from hedgerow.data.cards import printable, short
from hedgerow.errors import SettingsError
from hedgerow.inspection.drawing.style import series_class, series_style, sheet

NAMESPACE = "http://www.w3.org/2000/svg"
LETTER = 6.3  # mean width of a letter of 12 pixels


@dataclass(frozen=True)
class Format:
    """The size of a chart, and the room above and below its axes."""

    width: float
    height: float
    above: float
    below: float = 0.0
    headed: bool = False  # whether the picture says itself what it shows


CARD = Format(296.0, 196.0, 8.0)  # in a page whose caption says what it shows
SMALL = Format(310.0, 250.0, 62.0, 8.0, headed=True)  # beside others
ALONE = Format(640.0, 404.0, 80.0, 26.0, headed=True)


@dataclass(frozen=True, repr=False)
class Picture:
    """A finished picture: notebooks show it, `save` writes it, `svg` is its text.

    Where a program has loaded pyplot, a picture that it asked for is also `figure`, which
    `plt.show()` shows, until the picture is taken as SVG: so a notebook shows it once.
    """

    title: str
    width: float
    height: float
    marks: str  # everything drawn, as SVG elements
    figure: Any = field(default=None, compare=False)

    @property
    def svg(self) -> str:
        """The whole picture, on a background of its own, so that it suits any page."""
        if self.figure is not None:  # taken as SVG, it need not be shown a second time
            sys.modules["matplotlib.pyplot"].close(self.figure)
        fitted = "max-width: 100%; height: auto"  # a notebook may be narrower than a wide tree
        root = self._root(xmlns=NAMESPACE, style=fitted)
        SubElement(root, "style").text = sheet()
        SubElement(root, "rect", {"class": "ground", "width": "100%", "height": "100%"})
        return self._filled(root) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the picture as an SVG file."""
        if Path(path).suffix.lower() != ".svg":
            raise SettingsError(f"{path} is no name of a picture; name a file that ends in .svg")
        Path(path).write_text(self.svg, "utf-8")

    def __repr__(self) -> str:
        title = short(printable(self.title), 60)
        return f"<Picture: {title}, {self.width:.0f} x {self.height:.0f}>"

    def _repr_svg_(self) -> str:
        return self.svg

    def __html__(self) -> str:
        """For a template whose page has the style sheet already."""
        return self._filled(self._root())

    def _root(self, **more: str) -> Element:
        size = {"width": f"{self.width:.0f}", "height": f"{self.height:.0f}"}
        view = f"0 0 {self.width:.0f} {self.height:.0f}"
        root = Element("svg", {**more, "class": "hedgerow", **size, "viewBox": view, "role": "img"})
        SubElement(root, "title").text = printable(self.title)
        return root

    def _filled(self, root: Element) -> str:
        start, _, end = tostring(root, "unicode").rpartition("</svg>")
        return f"{start}{self.marks}</svg>{end}"


class Canvas:
    """Where marks are drawn; `kind` names rules of the style sheet, `series` one of its colours."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self._parent = Element("g")

    def picture(self) -> Picture:
        marks = "".join(tostring(mark, "unicode") for mark in self._parent)
        return Picture(self.title, self.width, self.height, marks)

    def group(self, title: str) -> Canvas:
        """A canvas for marks that belong together; a browser shows the title above them."""
        inner = Canvas(self.width, self.height, self.title)
        inner._parent = self._mark("g", "", None, title)
        return inner

    def line(
        self, x0: float, y0: float, x1: float, y1: float, kind: str, series: int | None = None
    ) -> None:
        self._mark("line", kind, series, x1=x0, y1=y0, x2=x1, y2=y1)

    def path(
        self, points: Iterable[tuple[float, float]], kind: str, series: int | None = None,
        closed: bool = False,
    ) -> None:  # fmt: skip
        corners = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self._mark("path", kind, series).set("d", f"M{corners}{'Z' if closed else ''}")

    def link(self, start: tuple[float, float], end: tuple[float, float], width: float) -> None:
        """A line that leaves and arrives level."""
        (x0, y0), (x1, y1), middle = start, end, (start[0] + end[0]) / 2
        curve = f"M{x0:.1f} {y0:.1f}C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
        mark = self._mark("path", "link", None)
        mark.set("d", curve)
        mark.set("stroke-width", f"{width:.1f}")

    def rect(
        self, x: float, y: float, width: float, height: float, kind: str,
        series: int | None = None, title: str = "", radius: float = 0.0, opacity: float = 1.0,
    ) -> None:  # fmt: skip
        mark = self._mark("rect", kind, series, title, x=x, y=y, width=width, height=height)
        if radius:
            mark.set("rx", f"{radius:g}")
        if opacity < 1:
            mark.set("fill-opacity", f"{opacity:.2f}")

    def circle(
        self, x: float, y: float, radius: float, kind: str = "dot", series: int | None = None,
        title: str = "",
    ) -> None:  # fmt: skip
        self._mark("circle", kind, series, title, cx=x, cy=y, r=radius)

    def text(self, x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> None:
        mark = self._mark("text", kind, None, x=x, y=y)
        if anchor != "start":
            mark.set("text-anchor", anchor)
        mark.text = printable(words)

    def lines(
        self, x: float, y: float, words: str, letters: int, kind: str = "small", most: int = 9
    ) -> None:
        """A text over several lines of so many letters."""
        for i, line in enumerate(wrap(words, letters)[:most]):
            self.text(x, y + 15 * i, line, kind=kind)

    def heading(self, title: str, subtitle: str, series: Sequence[str] = ()) -> None:
        """What the picture shows, and the names of its series if there are several."""
        room = (self.width - 32) / LETTER
        self.text(16, 28, short(title, int(0.7 * room)), kind="heading")  # in larger letters
        self.text(16, 47, short(subtitle, int(room)))
        if len(series) > 1:
            self.legend(16, 67, [short(name, 24) for name in series])

    def legend(self, x: float, y: float, names: Sequence[str]) -> None:
        """The colours of series by name, in one line, as far as there is room."""
        for number, name in enumerate(names):
            if x + 14 + LETTER * len(name) > self.width:
                self.text(x, y, "…")
                return
            self.rect(x, y - 9, 10, 10, "fill", number)
            self.text(x + 14, y, name)
            x += 14 + LETTER * len(name) + 20

    def _mark(
        self, name: str, kind: str, series: int | None, title: str = "", **numbers: float
    ) -> Element:
        mark = SubElement(self._parent, name, {k: f"{v:.1f}" for k, v in numbers.items()})
        several = "" if series is None else series_class(series)
        if classes := f"{kind} {several}".strip():
            mark.set("class", classes)
        if series is not None and (style := series_style(series)):
            mark.set("style", style)
        if title:
            SubElement(mark, "title").text = printable(title)
        return mark
