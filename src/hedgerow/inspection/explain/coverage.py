"""How often bands held the effects of training without noise, as measured for each method.

`coverage.json` is written by benchmarks/bands.py from its results, and by nothing else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

Range = tuple[float, float]  # the least and the most of all measurements


@dataclass(frozen=True)
class Coverage:
    """Shares inside of the bands, over the tables and epsilons that a method was measured at."""

    cells: Range  # of all cells
    rows: Range  # of all rows' weights
    worst_column: float  # of the rows' weights of the column that is covered least, at its least
    epsilon: Range
    tables: int

    @property
    def in_words(self) -> str:
        """The share of cells, for a caption.

        >>> Coverage((0.88, 0.98), (0.8, 0.97), 0.1, (0.5, 4.0), 2).in_words
        '88 to 98 % of cells'
        """
        return f"{_percents(self.cells)} of cells"

    @property
    def sentence(self) -> str:
        """All of it, for a reader who wants to know how far to trust a band."""
        low, high = self.epsilon
        return (
            f"Measured at epsilon {low:g} to {high:g} on {self.tables} tables with binary labels, "
            f"bands of this method held the effect of training without noise in {self.in_words} "
            f"({_percents(self.rows)} by rows; {100 * self.worst_column:.0f} % in the column that "
            "was covered worst)."
        )


def coverage_of(record: dict[str, Any]) -> Coverage | None:
    """What was measured for the method of a model's record; None if nothing was."""
    method, settings = str(record.get("method", "")), record.get("settings")
    at_once = isinstance(settings, dict) and settings.get("batch_fraction") == 1.0
    measured = _measured()
    # Methods that are asked in one round at will were measured both ways.
    return (measured.get(f"{method}, one round") if at_once else None) or measured.get(method)


@cache
def _measured() -> dict[str, Coverage]:
    text = files(__package__).joinpath("coverage.json").read_text("utf-8")
    return {
        method: Coverage(
            tuple(told["cells"]),
            tuple(told["rows"]),
            told["worst_column"],
            tuple(told["epsilon"]),
            told["tables"],
        )
        for method, told in json.loads(text).items()
    }


def _percents(shares: Range) -> str:
    low, high = (f"{100 * share:.0f}" for share in shares)
    return f"{low} %" if low == high else f"{low} to {high} %"
