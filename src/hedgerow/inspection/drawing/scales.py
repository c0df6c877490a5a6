"""Where values lie on an axis, and the round numbers that are written beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

LEAST = 1e-12  # a logarithmic axis has no zero
MOST_LOG_TICKS = 9


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` at places from `start` to `end` of a picture."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value; what lies beyond an end is drawn at that end.

        >>> Scale(0, 10, 100, 200)(5), Scale(1, 100, 0, 2, logarithmic=True)(10)
        (150.0, 1.0)
        """
        low, high, at = (self._linear(v) for v in (self.low, self.high, value))
        part = (min(max(at, low), high) - low) / ((high - low) or 1.0)
        return self.start + part * (self.end - self.start)

    def _linear(self, value: float) -> float:
        return math.log10(max(value, LEAST)) if self.logarithmic else value

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Round numbers on the axis, and how each is written."""
        if self.logarithmic:
            return [(value, f"{value:.4g}") for value in log_ticks(self.low, self.high)]
        values = ticks(self.low, self.high, most)
        step = values[1] - values[0] if len(values) > 1 else abs(values[0]) or 1.0
        return [(value, tick_text(value, step)) for value in values]


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two ends, at most so many.

    >>> ticks(0, 97), ticks(-0.31, 0.42, 4)
    ([0.0, 20.0, 40.0, 60.0, 80.0], [-0.2, 0.0, 0.2, 0.4])
    """
    span = high - low
    if not span > 0:
        return [low]
    rough = span / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * k for k in (1, 2, 2.5, 5, 10, 20) if unit * k >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    multiples = range(first, math.floor(high / step + 1e-9) + 1)
    return [round(k * step, 12) + 0.0 for k in multiples]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between two ends; powers of ten alone if that is too many.

    >>> log_ticks(0.08, 2.5), log_ticks(0.5, 2e4)
    ([0.1, 0.2, 0.5, 1.0, 2.0], [1.0, 10.0, 100.0, 1000.0, 10000.0])
    """
    values = _multiples_of_powers(low, high, (1, 2, 5))
    return values if len(values) <= MOST_LOG_TICKS else _multiples_of_powers(low, high, (1,))


def _multiples_of_powers(low: float, high: float, digits: Sequence[int]) -> list[float]:
    first, last = (math.log10(max(end, LEAST)) for end in (low, high))
    powers = range(math.floor(first), math.ceil(last) + 1)
    values = [digit * 10.0**power for power in powers for digit in digits]
    return [value for value in values if low <= value <= high]


def tick_text(value: float, step: float) -> str:
    """A tick with as many digits as its neighbours need.

    >>> tick_text(0.2, 0.1), tick_text(40000.0, 20000.0), tick_text(-1.0, 0.5), tick_text(2e6, 5e5)
    ('0.2', '40k', '−1.0', '2M')
    """
    sign, size = ("−" if value < 0 else ""), abs(value)
    if size >= 1e6 and step >= 1e4:
        return f"{sign}{size / 1e6:g}M"
    if size >= 10_000 and step >= 1000:
        return f"{sign}{size / 1000:g}k"
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 0
    if step > 0 and round(step * 10**digits, 9) % 1:
        digits += 1
    return f"{sign}{size:.{digits}f}"
