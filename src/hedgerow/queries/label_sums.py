"""Rows by class, by cell of time and event or by cell of a number; rows and sums of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.counts import count_edges
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

    With `n_classes` 0: rows and the sum of scaled labels, (2,); of counts rows and the sum of
    exposures, as parts of the largest.

    With `n_cells` above 0 instead, for regression: rows by even cell of the scaled label, (cell,);
    of counts by the public cells of `data.counts.count_edges`, of which there are so many.
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
        # scaled to [0, 1]; for that of counts 1 and its exposure, a part of the largest.
        if self.n_classes == 0 and self.n_cells == 0:
            return Sensitivity(l1=2.0, l2=math.sqrt(2.0))
        return Sensitivity(l1=1.0, l2=1.0)

    def check(self, schema: Schema) -> None:
        if self.n_classes != schema.label.n_outcomes:
            raise FormatError("label sums do not match the number of classes")
        if not 0 <= self.n_cells <= MAX_CELLS or (self.n_cells and self.n_classes):
            raise FormatError("label sums ask for a histogram that a label does not have")
        of_counts = self.n_cells and schema.label.task == "counts"
        if of_counts and self.n_cells != len(count_edges(schema.label.upper or 0)):
            raise FormatError("label sums ask for other cells of counts than the public ones")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        if self.n_cells:
            place = self._cells(rows.target, schema)
            return weighted_counts(place, rows.weights, schema, bits, self.n_cells)
        if self.n_classes == 0:
            values = rows.target
            if schema.label.task == "counts":
                values = kernels.count_and_exposure(values)[1]
            labels = np.clip(values, 0.0, 1.0) * 2.0**bits  # truncated row by row, then added
            total = weighted_steps(labels.astype(np.int64), rows.weights, schema).sum()
            everywhere = np.zeros(rows.n_rows, np.int64)
            return np.append(weighted_counts(everywhere, rows.weights, schema, bits, 1), total)
        place = rows.target.astype(np.int64)
        return weighted_counts(place, rows.weights, schema, bits, self.n_classes)

    def _cells(self, target: NDArray[np.float64], schema: Schema) -> NDArray[np.int64]:
        """The cell of each row: (row,)."""
        if schema.label.task == "counts":
            edges = count_edges(schema.label.upper or 0)
            counts, _ = kernels.count_and_exposure(target)
            place = np.searchsorted(edges, counts, side="right") - 1
            return np.asarray(np.clip(place, 0, self.n_cells - 1), np.int64)
        even = np.minimum(np.clip(target, 0.0, 1.0) * self.n_cells, self.n_cells - 1)
        return np.asarray(even.astype(np.int64))

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"n_classes": self.n_classes, "n_cells": self.n_cells}, {}

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> LabelSums:
        return LabelSums(int(values["n_classes"]), int(values["n_cells"]))
