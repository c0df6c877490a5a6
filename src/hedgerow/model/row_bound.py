"""The most that one row can add to a sum: what every loss states and proves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RowBound:
    """Numbers that one row adds to its leaf, and the most they can be, second part scaled."""

    first: int
    second: int
    second_scale: float
    l1: float
    l2: float

    @property
    def width(self) -> int:
        return self.first + self.second
