"""Sums of clipped errors of a regression: by bin of the prediction, their sizes, their squares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.queries.base import Block, EnsembleRef, QueryBase, RowWeights, Sensitivity
from hedgerow.queries.outcomes import BLOCK, check_edges, check_weights, predictions_of, whole_steps

N_BLOCKS = 4


@dataclass(frozen=True)
class ErrorSums(QueryBase):
    """Four blocks at the predictions of `ensemble`, labels scaled to 0 .. 1 by public bounds.

    Rows by bin of the prediction; their errors (label less prediction) by bin, clipped to +-clip;
    size and square of the clipped error; distance of the label from `centre`, clipped to +-spread,
    and its square. All but the counts are in units of the clip, the spread, or its square.
    """

    edges: tuple[float, ...]  # of predictions
    clip: float
    centre: float
    spread: float
    weights: tuple[float, ...]
    ensemble: EnsembleRef
    averaged: bool = False
    kind: ClassVar[str] = "error-sums"
    row_weights: ClassVar[RowWeights] = "ignore"  # a model is measured on rows, each once

    @property
    def n_bins(self) -> int:
        return len(self.edges) + 1

    @property
    def blocks(self) -> tuple[Block, ...]:
        sizes = (self.n_bins, self.n_bins, 2, 2)
        return tuple(Block(n, w) for n, w in zip(sizes, self.weights, strict=True))

    @property
    def sensitivity(self) -> Sensitivity:
        # A row adds 1 to one number of the first block and, with |e| <= 1 after clipping, e to one
        # of the second. It adds |e| and e^2 to the third, which is (1, 1) at most, and likewise
        # (d, d^2) with |d| <= 1 to the fourth. Truncation toward zero makes none of them longer.
        counts, errors, sizes, labels = (1.0 / weight for weight in self.weights)
        squares = counts**2 + errors**2 + 2 * sizes**2 + 2 * labels**2
        return Sensitivity(l1=counts + errors + 2 * sizes + 2 * labels, l2=math.sqrt(squares))

    def check(self, schema: Schema) -> None:
        if schema.label.task != "regression":
            raise FormatError("error sums are for regression")
        sizes = (self.clip, self.spread)
        if not all(2.0**-20 <= size <= 1.0 for size in sizes) or not 0.0 <= self.centre <= 1.0:
            raise FormatError("error sums clip to nothing, or to more than errors can be")
        check_edges(self.edges, "error sums")
        check_weights(self.weights, N_BLOCKS, "error sums")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        n_bins = self.n_bins
        total = np.zeros(2 * n_bins + 4, np.int64)
        for first in range(0, rows.n_rows, BLOCK):
            here = slice(first, first + BLOCK)
            label = np.clip(rows.target[here], 0.0, 1.0)
            predicted = predictions_of(scores[here], schema, self.averaged)[:, 0]
            place = np.searchsorted(np.array(self.edges), predicted, side="left")
            error = np.clip((label - predicted) / self.clip, -1.0, 1.0)
            far = np.clip((label - self.centre) / self.spread, -1.0, 1.0)
            total[:n_bins] += np.bincount(place, minlength=n_bins) << bits
            np.add.at(total[n_bins : 2 * n_bins], place, whole_steps(error, bits))
            for i, parts in enumerate((np.abs(error), error**2, far, far**2)):
                total[2 * n_bins + i] += whole_steps(parts, bits).sum()
        return total

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values = {
            "clip": self.clip,
            "centre": self.centre,
            "spread": self.spread,
            "ensemble": [self.ensemble.length, self.ensemble.hash],
            "averaged": self.averaged,
        }
        arrays: dict[str, NDArray[Any]] = {
            "edges": np.array(self.edges, np.float64),
            "weights": np.array(self.weights, np.float64),
        }
        return values, arrays

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ErrorSums:
        length, hash_ = values["ensemble"]
        return ErrorSums(
            tuple(float(edge) for edge in arrays["edges"]),
            float(values["clip"]), float(values["centre"]), float(values["spread"]),
            tuple(float(weight) for weight in arrays["weights"]),
            EnsembleRef(int(length), str(hash_)), bool(values["averaged"]),
        )  # fmt: skip
