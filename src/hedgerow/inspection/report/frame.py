"""A frame of a chart: two linear axes with ticks, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.inspection.report.marks import tag, text, tick_text, ticks


@dataclass(frozen=True)
class Frame:
    """Where data lies in a picture of `width` by `height`."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: float = 296.0
    height: float = 196.0
    left: float = 38.0
    right: float = 10.0
    top: float = 8.0
    bottom: float = 24.0

    def across(self, value: float) -> float:
        """The place of a value; what lies beyond the ends is drawn at them."""
        low, high = self.x
        value = min(max(value, low), high)
        inner = self.width - self.left - self.right
        return self.left + inner * (value - low) / ((high - low) or 1.0)

    def down(self, value: float) -> float:
        low, high = self.y
        value = min(max(value, low), high)
        inner = self.height - self.top - self.bottom
        return self.top + inner * (high - value) / ((high - low) or 1.0)

    @property
    def floor(self) -> float:
        return self.height - self.bottom

    def y_axis(self, most: int = 5, name: str = "") -> str:
        """Ticks at the left, with lines across."""
        found = ticks(*self.y, most)
        step = found[1] - found[0] if len(found) > 1 else abs(found[0]) or 1.0
        parts = []
        for value in found:
            y = self.down(value)
            parts.append(_line(self.left, y, self.width - self.right, y, "axis"))
            parts.append(label(self.left - 6, y + 3.5, tick_text(value, step), "end"))
        if name:
            parts.append(label(self.left, self.top - 12, name, "start"))
        return "".join(parts)

    def x_axis(self, most: int = 6, until: float = float("inf")) -> str:
        """Ticks below, as far as `until` (in units of the picture)."""
        found = ticks(*self.x, most)
        step = found[1] - found[0] if len(found) > 1 else abs(found[0]) or 1.0
        return "".join(
            label(self.across(value), self.height - 6, tick_text(value, step), "middle")
            for value in found
            if self.across(value) <= until
        )

    def zero(self) -> str:
        if not self.y[0] <= 0.0 <= self.y[1]:
            return ""
        y = self.down(0.0)
        return _line(self.left, y, self.width - self.right, y, "zero")

    def picture(self, parts: Sequence[str], name: str) -> str:
        """The SVG around everything drawn."""
        return tag(
            "svg", tag("title", text(name)), *parts,
            viewBox=f"0 0 {self.width:g} {self.height:g}", role="img",
        )  # fmt: skip


def _line(x0: float, y0: float, x1: float, y1: float, kind: str) -> str:
    return f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" class="{kind}"/>'


line = _line


def label(x: float, y: float, words: str, anchor: str, kind: str = "") -> str:
    """Words at a place."""
    more = {"class_": kind} if kind else {}
    return tag("text", text(words), x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, **more)


def path(points: Sequence[tuple[float, float]], kind: str, closed: bool = False) -> str:
    told = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path d="M{told}{"Z" if closed else ""}" class="{kind}"/>'


def short(words: str, longest: int) -> str:
    return words if len(words) <= longest else words[: longest - 1].rstrip() + "…"
