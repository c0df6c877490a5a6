"""The picture of a value against epsilon, with what it is compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.inspection.drawing import Axes, Canvas, Picture, Region

WIDTH, HEIGHT = 640.0, 400.0
REGION = Region(70.0, 56.0, WIDTH - 24, HEIGHT - 82)


@dataclass(frozen=True)
class Dot:
    """A value at an epsilon, and a band around it."""

    epsilon: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class EpsilonChart:
    """A curve over at least one epsilon with what it is compared with; None leaves a line out."""

    title: str
    label: str  # of the values
    dots: tuple[Dot, ...]
    note: str
    without: float | None = None  # the value without noise
    target: float | None = None
    mark: float | None = None  # an epsilon
    mark_words: str = ""
    logarithmic: bool = False  # values, too

    def picture(self) -> Picture:
        canvas = Canvas(WIDTH, HEIGHT, self.title)
        canvas.text(REGION.left, 28, self.title, kind="heading")
        axes = Axes.within(canvas, REGION, *self._ends(), log_x=True, log_y=self.logarithmic)
        axes.grid_down()
        axes.grid_across()
        axes.ticks_below(down=16)
        axes.names("epsilon", self.label)
        self._curve(axes)
        levels = self._levels(axes)
        self._mark(axes, levels)
        canvas.lines(REGION.left, HEIGHT - 24, self.note, 92, most=2)
        return canvas.picture()

    def _ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Where both axes end: everything that is drawn, and a little room."""
        epsilons = [dot.epsilon for dot in self.dots]
        epsilons += [] if self.mark is None else [self.mark]
        values = [v for dot in self.dots for v in (dot.low, dot.value, dot.high)]
        values += [v for v in (self.without, self.target) if v is not None]
        across = _widened(epsilons, logarithmic=True, part=0.03, least=0.3)
        return across, _widened(values, self.logarithmic, part=0.06, least=0.05)

    def _curve(self, axes: Axes) -> None:
        epsilons, values = [d.epsilon for d in self.dots], [d.value for d in self.dots]
        if len(self.dots) > 1:
            axes.band(epsilons, [d.low for d in self.dots], [d.high for d in self.dots])
        axes.curve(epsilons, values)
        for epsilon, value in zip(epsilons, values, strict=True):
            told = f"epsilon {epsilon:g}: {value:.4g}"
            axes.canvas.circle(axes.x(epsilon), axes.y(value), 4, title=told)

    def _levels(self, axes: Axes) -> list[float]:
        """Lines at the value without noise and at the target; the heights of their words."""
        heights: list[float] = []
        levels = ((self.without, "soft", "without noise"), (self.target, "warm", "target"))
        known = [value for value, _, _ in levels if value is not None]
        for value, colour, name in levels:
            if value is None:
                continue
            y = axes.y(value)
            axes.canvas.line(REGION.left, y, REGION.right, y, f"level {colour}")
            around = (y + 14, y - 5) if value == min(known) else (y - 5, y + 14)
            x, height, anchor = self._free_place(axes, around, heights)
            heights.append(height)
            axes.canvas.text(x, height, f"{name} {value:.4g}", anchor, f"halo {colour}")
        return heights

    def _mark(self, axes: Axes, heights: Sequence[float]) -> None:
        """A line at an epsilon, with its words where no other words lie."""
        if self.mark is None:
            return
        x = axes.x(self.mark)
        aside, anchor = (-6, "end") if x > WIDTH / 2 else (6, "start")
        axes.canvas.line(x, REGION.top, x, REGION.bottom, "line warm")
        free = (REGION.bottom - 8, REGION.bottom - 60, REGION.top + 60)
        y = next((p for p in free if all(abs(p - t) > 16 for t in heights)), free[0])
        words = self.mark_words or f"epsilon {self.mark:.3g}"
        axes.canvas.text(x + aside, y, words, anchor, "halo warm")

    def _free_place(
        self, axes: Axes, around: Sequence[float], taken: Sequence[float]
    ) -> tuple[float, float, str]:
        """Where the words of a level lie on no dot and no other words: x, y and anchor."""
        ends = (
            (REGION.left + 6, "start", axes.y(self.dots[0].value)),
            (REGION.right - 6, "end", axes.y(self.dots[-1].value)),
        )
        free = [
            (x, place, anchor)
            for x, anchor, dot in ends
            for place in around
            if abs(place - 4 - dot) > 12
            and all(abs(place - other) > 15 for other in taken)
            and REGION.top + 10 < place < REGION.bottom - 6
        ]
        return free[0] if free else (REGION.left + 6, around[0], "start")


def _widened(
    values: Sequence[float], logarithmic: bool, part: float, least: float
) -> tuple[float, float]:
    """The ends of values with room on both sides: a part of their range, or `least`."""
    if logarithmic:
        values = [math.log10(max(value, 1e-12)) for value in values]
    low, high = min(values), max(values)
    room = part * (high - low) or (least if logarithmic else least * (abs(low) or 1.0))
    ends = (low - room, high + room)
    return (10.0 ** ends[0], 10.0 ** ends[1]) if logarithmic else ends
