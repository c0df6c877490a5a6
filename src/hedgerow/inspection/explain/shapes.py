"""Effects as people see them: one shape a column, one map a pair, with bands from known noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.cards import Card, Shown
from hedgerow.inspection.explain.cells import Cells

Floats = NDArray[np.float64]
BAND = 1.959964  # deviations that hold 95 % of normal noise; `coverage` has what was measured


@dataclass(frozen=True, eq=False, repr=False)
class Shape(Shown):
    """The effect of one column, around its weighted mean, and the noise in it.

    Values outside of a band of `BAND` deviations are not what training without noise would have
    given, as far as the noise is known; NaN deviations: it is not known.
    """

    cells: Cells
    values: Floats  # (output, cell), the last cell missing values
    deviation: Floats  # (output, cell)
    weights: Floats  # (cell,) adding up to 1
    released: bool  # whether the weights come from releases, or from the schema alone
    direction: int = 0  # 1 and -1: trained to rise or to fall only
    edited: NDArray[np.bool_] | None = None  # (output, cell) set by hand

    @property
    def column(self) -> str:
        return self.cells.name

    @property
    def low(self) -> Floats:
        return np.asarray(self.values - BAND * self.deviation)

    @property
    def high(self) -> Floats:
        return np.asarray(self.values + BAND * self.deviation)

    @property
    def importance(self) -> float:
        """Mean size of the effect over the weights, and over the outputs."""
        return float(np.mean(np.abs(self.values) @ self.weights))

    @property
    def noise(self) -> float:
        """Mean deviation over the weights: an importance no larger than it may be noise alone."""
        known = self.weights > 0
        return float(np.mean(self.deviation[:, known] @ self.weights[known]))

    @property
    def shown(self) -> NDArray[np.int64]:
        """Cells that rows can be in."""
        return np.flatnonzero(self.cells.possible)

    def _card(self) -> Card:
        facts = (
            ("column", self.column),
            ("kind", self.cells.kind),
            ("cells", len(self.shown)),
            ("importance", self.importance),
            ("noise", _known(self.noise)),
        )
        rows: tuple[tuple[object, ...], ...] = ()
        if len(self.values) == 1:  # of several outputs the picture shows more
            parts = (self.values, self.low, self.high)
            rows = tuple(
                (self.cells.labels[c], *(_known(float(part[0, c])) for part in parts))
                for c in self.shown
            )
        return Card("Shape", facts, ("cell", "effect", "low", "high"), rows)

    def to_dict(self) -> dict[str, Any]:
        return {
            "column": self.column,
            "kind": self.cells.kind,
            "importance": self.importance,
            "noise": _number(self.noise),
            "direction": self.direction,
            "weights": "released" if self.released else "public",
            "cells": [self._cell(int(c)) for c in self.shown],
        }

    def _cell(self, c: int) -> dict[str, Any]:
        cells = self.cells
        edited = self.edited is not None and bool(self.edited[:, c].any())
        return {
            "cell": cells.labels[c],
            "lower": _number(cells.lower[c]),
            "upper": _number(cells.upper[c]),
            "weight": float(self.weights[c]),
            "value": [float(v) for v in self.values[:, c]],
            "low": [_number(v) for v in self.low[:, c]],
            "high": [_number(v) for v in self.high[:, c]],
            **({"edited": True} if edited else {}),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Pair(Shown):
    """What two columns do beyond their single effects."""

    first: Cells
    second: Cells
    values: Floats  # (output, cell of the first, cell of the second)
    deviation: Floats
    weights: tuple[Floats, Floats]

    @property
    def columns(self) -> tuple[str, str]:
        return self.first.name, self.second.name

    @property
    def importance(self) -> float:
        down, across = self.weights
        return float(np.mean(np.abs(self.values) @ across @ down))

    @property
    def noise(self) -> float:
        rows, columns = (np.flatnonzero(w > 0) for w in self.weights)
        part = self.deviation[:, rows][:, :, columns]
        return float(np.mean(part @ self.weights[1][columns] @ self.weights[0][rows]))

    def _card(self) -> Card:
        sizes = " x ".join(str(int(cells.possible.sum())) for cells in (self.first, self.second))
        facts = (
            ("columns", " x ".join(self.columns)),
            ("cells", sizes),
            ("importance", self.importance),
            ("noise", _known(self.noise)),
        )
        return Card("Pair", facts)

    def to_dict(self) -> dict[str, Any]:
        down, across = (np.flatnonzero(c.possible) for c in (self.first, self.second))
        return {
            "columns": list(self.columns),
            "importance": self.importance,
            "noise": _number(self.noise),
            "cells": [
                [self.first.labels[c] for c in down],
                [self.second.labels[c] for c in across],
            ],
            "values": self.values[:, down][:, :, across].tolist(),
            "deviation": [
                [[_number(v) for v in row] for row in of_output]
                for of_output in self.deviation[:, down][:, :, across]
            ],
        }


def _known(value: float) -> float | str:
    """A number for people; "" where noise is not known."""
    return value if np.isfinite(value) else ""


def _number(value: float) -> float | None:
    """A number for JSON, which has no NaN."""
    return float(value) if np.isfinite(value) else None
