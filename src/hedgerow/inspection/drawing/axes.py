"""Two scales on a canvas: grid, ticks, curves, steps, bands and dots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.inspection.drawing.canvas import Canvas
from hedgerow.inspection.drawing.scales import Scale

Ends = tuple[float, float]


@dataclass(frozen=True)
class Region:
    """The part of a canvas in which data lies."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class Axes:
    """Marks in units of the data; what lies beyond an axis is drawn at its end."""

    canvas: Canvas
    region: Region
    x: Scale
    y: Scale

    @staticmethod
    def within(
        canvas: Canvas, region: Region, x: Ends, y: Ends, log_x: bool = False, log_y: bool = False
    ) -> Axes:
        """Axes that fill a region; values of `y` grow upward."""
        across = Scale(*x, region.left, region.right, log_x)
        return Axes(canvas, region, across, Scale(*y, region.bottom, region.top, log_y))

    def grid_across(self, most: int = 5) -> None:
        """Lines at the ticks of the values upward, which stand at the left."""
        for value, words in self.y.ticks(most):
            y = self.y(value)
            self.canvas.line(self.region.left, y, self.region.right, y, "axis")
            self.canvas.text(self.region.left - 6, y + 3.5, words, "end")

    def grid_down(self, most: int = 5) -> None:
        """Lines at the ticks of the values across; the zero is dashed."""
        for value, _ in self.x.ticks(most):
            x, kind = self.x(value), "zero" if value == 0 else "axis"
            self.canvas.line(x, self.region.top, x, self.region.bottom, kind)

    def ticks_below(self, most: int = 6, down: float = 18.0, until: float = math.inf) -> None:
        """Ticks of the values across, as far as `until` (a place on the canvas)."""
        for value, words in self.x.ticks(most):
            if self.x(value) <= until:
                self.canvas.text(self.x(value), self.region.bottom + down, words, "middle")

    def names(self, across: str, upward: str = "") -> None:
        """The names of the axes: one below the ticks, the other above the values upward."""
        middle = (self.region.left + self.region.right) / 2
        self.canvas.text(middle, self.region.bottom + 36, across, "middle")
        if upward:
            self.canvas.text(self.region.left, self.region.top - 10, upward, kind="small")

    def zero(self) -> None:
        if self.y.low <= 0.0 <= self.y.high:
            y = self.y(0.0)
            self.canvas.line(self.region.left, y, self.region.right, y, "zero")

    def diagonal(self) -> None:
        """From the lower ends of both axes to their upper ends."""
        self.canvas.line(self.x.start, self.y.start, self.x.end, self.y.end, "zero")

    def curve(self, x: Sequence[float], y: Sequence[float], series: int | None = None) -> None:
        self.canvas.path(self._places(x, y), "line", series)

    def band(
        self, x: Sequence[float], low: Sequence[float], high: Sequence[float],
        series: int | None = None,
    ) -> None:  # fmt: skip
        """The area between two curves."""
        around = [*self._places(x, high), *reversed(self._places(x, low))]
        kind = "band" if series is None else "band series"
        self.canvas.path(around, kind, series, closed=True)

    def steps(
        self, edges: Sequence[float], values: Sequence[float], series: int | None = None
    ) -> None:
        """A constant between any two edges."""
        self.curve(*_stairs(edges, values), series)

    def step_band(
        self, edges: Sequence[float], low: Sequence[float], high: Sequence[float],
        series: int | None = None,
    ) -> None:  # fmt: skip
        x, upper = _stairs(edges, high)
        self.band(x, _stairs(edges, low)[1], upper, series)

    def dot_upward(
        self, x: float, y: float, band: Ends, series: int | None = None, title: str = ""
    ) -> None:
        """A value over `x`, and its band if that is known."""
        if all(math.isfinite(end) for end in band):
            places = (self.x(x), self.y(band[0]), self.x(x), self.y(band[1]))
            self.canvas.line(*places, _thin("whisker", series), series)
        radius = 3.5 if series is None else 2.5
        self.canvas.circle(self.x(x), self.y(y), radius, "dot", series, title)

    def dot_across(
        self, x: float, y: float, band: Ends, series: int | None = None, kind: str = "dot"
    ) -> None:
        """A value at the height `y` of the canvas, and its band if that is known."""
        if all(math.isfinite(end) for end in band):
            places = (self.x(band[0]), y, self.x(band[1]), y)
            self.canvas.line(*places, _thin("whisker", series), series)
        self.canvas.circle(self.x(x), y, 4 if series is None else 3, kind, series)

    def _places(self, x: Sequence[float], y: Sequence[float]) -> list[Ends]:
        return [(self.x(float(a)), self.y(float(b))) for a, b in zip(x, y, strict=True)]


def _thin(kind: str, series: int | None) -> str:
    """Marks of several series are drawn thinner."""
    return kind if series is None else f"{kind} series"


def _stairs(edges: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """The corners of a step function: both ends of every step."""
    x = [float(edge) for i in range(len(values)) for edge in (edges[i], edges[i + 1])]
    return x, [float(value) for value in values for _ in (0, 1)]
