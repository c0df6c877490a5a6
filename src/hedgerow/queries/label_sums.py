"""How many rows each class has, or each cell of time and event; rows and sums of regressions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.queries.base import (
    NO_TREES,
    Block,
    EnsembleRef,
    QueryBase,
    RowWeights,
    Sensitivity,
    weighted_counts,
    weighted_steps,
)

MAX_CELLS = 4096


@dataclass(frozen=True)
class LabelSums(QueryBase):
    """Rows by class, or by cell of time and event: (class,).

    With `n_classes` 0: rows and the sum of scaled labels, (2,).

    With `n_cells` above 0 instead, for regression: rows by even cell of the scaled label, (cell,).
    """

    n_classes: int
    n_cells: int = 0
    kind: ClassVar[str] = "label-sums"
    row_weights: ClassVar[RowWeights] = "scale"

    @property
    def ensemble(self) -> EnsembleRef:
        return NO_TREES

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (Block(self.n_classes or self.n_cells or 2),)

    @property
    def sensitivity(self) -> Sensitivity:
        # A row has one class, one cell of time and event, or one cell of the label's range, and
        # adds exactly 1 to it. For the sum of a regression it adds 1 and its label, which is
        # scaled to [0, 1].
        if self.n_classes == 0 and self.n_cells == 0:
            return Sensitivity(l1=2.0, l2=math.sqrt(2.0))
        return Sensitivity(l1=1.0, l2=1.0)

    def check(self, schema: Schema) -> None:
        if self.n_classes != schema.label.n_outcomes:
            raise FormatError("label sums do not match the number of classes")
        if not 0 <= self.n_cells <= MAX_CELLS or (self.n_cells and self.n_classes):
            raise FormatError("label sums ask for a histogram that a label does not have")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        if self.n_cells:
            place = np.minimum(np.clip(rows.target, 0.0, 1.0) * self.n_cells, self.n_cells - 1)
            return weighted_counts(place.astype(np.int64), rows.weights, schema, bits, self.n_cells)
        if self.n_classes == 0:
            labels = np.clip(rows.target, 0.0, 1.0) * 2.0**bits  # truncated row by row, then added
            total = weighted_steps(labels.astype(np.int64), rows.weights, schema).sum()
            everywhere = np.zeros(rows.n_rows, np.int64)
            return np.append(weighted_counts(everywhere, rows.weights, schema, bits, 1), total)
        place = rows.target.astype(np.int64)
        return weighted_counts(place, rows.weights, schema, bits, self.n_classes)

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"n_classes": self.n_classes, "n_cells": self.n_cells}, {}

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> LabelSums:
        return LabelSums(int(values["n_classes"]), int(values["n_cells"]))
