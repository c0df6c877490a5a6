"""Sides of splits in words, and several of them, on a path, as few conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.data.schema import Categorical, Ordinal, Schema
from hedgerow.data.values import text_of
from hedgerow.model.tree import Structure

OTHER = "any other"


@dataclass(frozen=True)
class Side:
    """One side of a split: a number from `low` up and below `high`, or one of some values."""

    column: str
    low: float | None = None
    high: float | None = None
    inside: tuple[str, ...] | None = None  # of a list, in its order
    among: tuple[str, ...] = ()  # the whole list
    missing: bool | None = None  # whether missing values come along; None if there can be none
    ordered: bool = False

    def words(self, longest: int = 0) -> str:
        """In words; with `longest`, lists of values are cut to about so many letters."""
        nothing = self.low is not None and self.high is not None and self.low >= self.high
        if self.missing and (nothing or self.inside == ()):
            return f"{self.column} is missing"
        return f"{self.column} {self._what(longest)}{self._missing()}".strip()

    def _what(self, longest: int) -> str:
        if self.inside is not None:
            return self._list(longest)
        if self.low is not None and self.high is not None:
            return f">= {number(self.low)} and < {number(self.high)}"
        if self.low is not None:
            return f">= {number(self.low)}"
        return f"< {number(self.high)}" if self.high is not None else "has any value"

    def _list(self, longest: int) -> str:
        assert self.inside is not None
        inside, outside = self.inside, tuple(v for v in self.among if v not in self.inside)
        if self.ordered and inside and outside:
            low, high = inside[0] != self.among[0], inside[-1] != self.among[-1]
            if len(inside) == 1:
                return f"is {inside[0]}"
            if low and high:
                return f"is from {inside[0]} to {inside[-1]}"
            return f"is {inside[0]} or above" if low else f"is {inside[-1]} or below"
        if len(inside) == 1:
            return f"is {inside[0]}"
        if len(outside) == 1:
            return f"is not {outside[0]}"
        if len(outside) < len(inside):
            return f"is none of {_listed(outside, longest)}"
        return f"is one of {_listed(inside, longest)}" if inside else "has no listed value"

    def _missing(self) -> str:
        return " (or missing)" if self.missing else ""

    def meets(self, other: Side) -> Side:
        """Both conditions on the same column as one."""
        missing = None if self.missing is None else self.missing and bool(other.missing)
        if self.inside is not None and other.inside is not None:
            both = tuple(value for value in self.inside if value in other.inside)
            return Side(self.column, None, None, both, self.among, missing, self.ordered)
        lows = [x for x in (self.low, other.low) if x is not None]
        highs = [x for x in (self.high, other.high) if x is not None]
        low, high = max(lows, default=None), min(highs, default=None)
        return Side(self.column, low, high, missing=missing)


def side_of(structure: Structure, node: int, schema: Schema, right: bool) -> Side:
    """One side of a split of a tree."""
    column = schema.columns[int(structure.feature[node])]
    goes = bool(structure.missing_left[node]) != right
    out_of_order = isinstance(column, Ordinal) and column.other == "category"
    missing = goes if column.missing or out_of_order else None
    threshold = float(structure.threshold[node])
    if isinstance(column, Ordinal):
        among = tuple(text_of(value) for value in column.categories)
        cut = int(threshold)
        inside = among[cut:] if right else among[:cut]
        return Side(column.name, None, None, inside, among, missing, ordered=True)
    if isinstance(column, Categorical):
        among = tuple(text_of(value) for value in column.categories)
        among += (OTHER,) if column.other == "category" else ()
        first, last = structure.member_start[node : node + 2]
        words = structure.members[first:last].astype("<u8").view(np.uint8)
        bits = np.unpackbits(words, bitorder="little")[: len(among)].astype(bool)
        inside = tuple(v for v, bit in zip(among, bits, strict=True) if bool(bit) == right)
        return Side(column.name, None, None, inside, among, missing)
    low, high = (threshold, None) if right else (None, threshold)
    return Side(column.name, low, high, missing=missing)


def merged(sides: Sequence[Side]) -> list[Side]:
    """The conditions of a path, one a column, in the order in which columns come first."""
    by_column: dict[str, Side] = {}
    for side in sides:
        above = by_column.get(side.column)
        by_column[side.column] = side if above is None else above.meets(side)
    return list(by_column.values())


def number(value: float | None) -> str:
    """A threshold without digits that nobody chose: as short as a float32 allows.

    >>> number(0.1), number(1500000.0), number(4.6875), number(11015.625)
    ('0.1', '1,500,000', '4.688', '11,016')
    """
    if value is None:
        return ""
    if (float(value).is_integer() or abs(value) >= 1000) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _listed(values: Sequence[str], longest: int) -> str:
    shown = list(values)
    if longest:
        while len(shown) > 1 and sum(len(v) + 2 for v in shown) > longest:
            shown.pop()
    rest = len(values) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")
