"""A value against epsilon as SVG text; nothing to install. Its own background suits any page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

WIDTH, HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 24, 56, 78
_STYLE = (
    "text{font-family:Helvetica,Arial,sans-serif;fill:#111;font-size:12px}"
    ".t{font-size:16px;font-weight:bold}.s{font-size:11px;fill:#444}.a{fill:#0b5a8a}.r{fill:#a4371b}"
    ".h{paint-order:stroke;stroke:white;stroke-width:3px;stroke-linejoin:round}"
)
_LINE, _TARGET, _WITHOUT = "#1273b0", "#b5472a", "#555"


@dataclass(frozen=True)
class Dot:
    """A value at an epsilon, and a band around it."""

    epsilon: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Picture:
    """A curve with what it is compared with; None leaves a line out."""

    title: str
    label: str  # of the values
    dots: tuple[Dot, ...]
    note: str
    without: float | None = None  # the value without noise
    target: float | None = None
    mark: float | None = None  # an epsilon
    mark_words: str = ""
    logarithmic: bool = False  # values, too

    def svg(self) -> str:
        """The picture; needs at least one dot."""
        axes = _Axes.of(self)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            f"<title>{escape(self.title)}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            f'<text x="{_LEFT}" y="28" class="t">{escape(self.title)}</text>',
            *_grid(axes, self.label),
            *self._band(axes),
            *self._curve(axes),
            *self._lines(axes),
        ]
        return "\n".join([*parts, *_note(self.note), "</svg>", ""])

    def _band(self, axes: _Axes) -> list[str]:
        if len(self.dots) < 2:
            return []
        upper = [f"{axes.x(d.epsilon):.1f},{axes.y(d.high):.1f}" for d in self.dots]
        lower = [f"{axes.x(d.epsilon):.1f},{axes.y(d.low):.1f}" for d in reversed(self.dots)]
        return [f'<polygon points="{" ".join([*upper, *lower])}" fill="{_LINE}" opacity="0.18"/>']

    def _curve(self, axes: _Axes) -> list[str]:
        places = [(axes.x(d.epsilon), axes.y(d.value), d) for d in self.dots]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
        parts = [f'<polyline points="{line}" fill="none" stroke="{_LINE}" stroke-width="2.2"/>']
        for x, y, dot in places:
            told = escape(f"epsilon {dot.epsilon:g}: {_number(dot.value)}")
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{_LINE}">'
                f"<title>{told}</title></circle>"
            )
        return parts

    def _lines(self, axes: _Axes) -> list[str]:
        parts: list[str] = []
        taken: list[float] = []
        levels = (
            (self.without, _WITHOUT, "s", "without noise"),
            (self.target, _TARGET, "r", "target"),
        )
        for value, colour, style, words in levels:
            if value is None:
                continue
            y = axes.y(value)
            parts.append(
                f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
                f'stroke="{colour}" stroke-dasharray="6 4"/>'
            )
            lowest = value == min(v for v in (self.without, self.target) if v is not None)
            around = (y + 14, y - 5) if lowest else (y - 5, y + 14)
            x, place, anchor = self._free_place(axes, around, taken)
            taken.append(place)
            parts.append(
                f'<text x="{x}" y="{place:.1f}" text-anchor="{anchor}" class="h {style}">'
                f"{escape(words)} {_number(value)}</text>"
            )
        if self.mark is not None:
            at = axes.x(self.mark)
            side, anchor = (-6, "end") if at > WIDTH / 2 else (6, "start")
            parts.append(
                f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}" '
                f'stroke="{_TARGET}" stroke-width="1.4"/>'
            )
            words = escape(self.mark_words or f"epsilon {self.mark:.3g}")
            free = (HEIGHT - _BOTTOM - 8, HEIGHT - _BOTTOM - 60, _TOP + 60)  # where no word lies
            y = next((p for p in free if all(abs(p - t) > 16 for t in taken)), free[0])
            parts.append(
                f'<text x="{at + side:.1f}" y="{y}" text-anchor="{anchor}" class="h r">'
                f"{words}</text>"
            )
        return parts

    def _free_place(
        self, axes: _Axes, around: Sequence[float], taken: Sequence[float]
    ) -> tuple[float, float, str]:
        """Where the words of a level lie on no dot and no other words: x, y and anchor."""
        ends = (
            (_LEFT + 6, "start", axes.y(self.dots[0].value)),
            (WIDTH - _RIGHT - 6, "end", axes.y(self.dots[-1].value)),
        )
        free = [
            (x, place, anchor)
            for x, anchor, dot in ends
            for place in around
            if abs(place - 4 - dot) > 12
            and all(abs(place - other) > 15 for other in taken)
            and _TOP + 10 < place < HEIGHT - _BOTTOM - 6
        ]
        return free[0] if free else (_LEFT + 6, around[0], "start")


@dataclass(frozen=True)
class _Axes:
    """Logarithms of epsilon across, values upward."""

    left: float
    right: float
    bottom: float
    top: float
    logarithmic: bool

    @staticmethod
    def of(picture: Picture) -> _Axes:
        logs = [math.log10(dot.epsilon) for dot in picture.dots]
        if picture.mark is not None:
            logs.append(math.log10(picture.mark))
        values = [v for dot in picture.dots for v in (dot.low, dot.value, dot.high)]
        values += [v for v in (picture.without, picture.target) if v is not None]
        if picture.logarithmic:
            values = [math.log10(max(v, 1e-12)) for v in values]
        room = 0.06 * (max(values) - min(values)) or 0.05 * (abs(values[0]) or 1.0)
        side = 0.03 * (max(logs) - min(logs)) or 0.3
        ends = (min(logs) - side, max(logs) + side, min(values) - room, max(values) + room)
        return _Axes(*ends, picture.logarithmic)

    def x(self, epsilon: float) -> float:
        part = (math.log10(epsilon) - self.left) / (self.right - self.left)
        return _LEFT + part * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        at = math.log10(max(value, 1e-12)) if self.logarithmic else value
        part = (at - self.bottom) / (self.top - self.bottom)
        return HEIGHT - _BOTTOM - part * (HEIGHT - _TOP - _BOTTOM)

    def epsilons(self) -> list[float]:
        """Marks at 1, 2 and 5 times powers of ten, or fewer where there would be many."""
        found = _round_numbers(self.left, self.right, (1, 2, 5))
        return found if len(found) <= 9 else _round_numbers(self.left, self.right, (1,))

    def values(self) -> list[float]:
        if self.logarithmic:
            found = _round_numbers(self.bottom, self.top, (1, 2, 5))
            return found if len(found) <= 9 else _round_numbers(self.bottom, self.top, (1,))
        rough = (self.top - self.bottom) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough)
        first = math.ceil(self.bottom / step)
        return [i * step for i in range(first, math.floor(self.top / step) + 1)]


def _round_numbers(low: float, high: float, digits: Sequence[int]) -> list[float]:
    powers = range(math.floor(low), math.ceil(high) + 1)
    found = [digit * 10.0**power for power in powers for digit in digits]
    return [n for n in found if low <= math.log10(n) <= high]


def _grid(axes: _Axes, label: str) -> list[str]:
    foot = HEIGHT - _BOTTOM
    parts = []
    for epsilon in axes.epsilons():
        x = axes.x(epsilon)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{foot}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{x:.1f}" y="{foot + 16}" text-anchor="middle">{epsilon:g}</text>')
    marks = axes.values()
    for value in marks:
        y = axes.y(value)
        ends = f'x1="{_LEFT}" x2="{WIDTH - _RIGHT}"'
        parts.append(f'<line {ends} y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>')
        text = _number(value) if axes.logarithmic else _even(value, marks)
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    parts.append(f'<path d="M{_LEFT} {_TOP}V{foot}H{WIDTH - _RIGHT}" fill="none" stroke="#888"/>')
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{foot + 34}" text-anchor="middle">epsilon</text>')
    parts.append(f'<text x="{_LEFT}" y="{_TOP - 10}" class="s">{escape(label)}</text>')
    return parts


def _note(text: str) -> list[str]:
    first = HEIGHT - 26
    return [
        f'<text x="{_LEFT}" y="{first + 14 * i}" class="s">{escape(line)}</text>'
        for i, line in enumerate(wrap(text, 98)[:2])
    ]


def _even(value: float, marks: Sequence[float]) -> str:
    """With as many decimals as the marks of an axis need."""
    step = marks[1] - marks[0] if len(marks) > 1 else 0.01
    return f"{value:.{max(0, math.ceil(-math.log10(step) - 1e-9))}f}"


def _number(value: float) -> str:
    return f"{value:.4g}"
