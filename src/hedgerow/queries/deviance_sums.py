"""Sums of clipped errors and deviances of a model of counts, by bin of what it expects."""

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
from hedgerow.queries.deviance_counts import LARGEST
from hedgerow.queries.outcomes import (
    BLOCK,
    check_edges,
    check_weights,
    deviances,
    expected_counts,
    whole_steps,
)

N_BLOCKS = 4
LEAST = 2.0**-30


@dataclass(frozen=True)
class DevianceSums(QueryBase):
    """Four blocks at what `ensemble` expects of every row, counts divided by their cap.

    Rows by bin of the expected count; their errors (count less expected one) by bin, clipped; the
    size of the clipped error; the deviance of the model and that of one rate for all rows, clipped.
    Errors and deviances are in counts, and counted in units of what they are clipped to.
    """

    edges: tuple[float, ...]  # of expected counts, between 0 and 1
    most_error: float
    most_deviance: float
    rate: float  # of all rows: the expected count at the largest exposure, divided by the cap
    weights: tuple[float, ...]
    ensemble: EnsembleRef
    kind: ClassVar[str] = "deviance-sums"
    row_weights: ClassVar[RowWeights] = "ignore"  # a model is measured on rows, each once

    @property
    def n_bins(self) -> int:
        return len(self.edges) + 1

    @property
    def blocks(self) -> tuple[Block, ...]:
        sizes = (self.n_bins, self.n_bins, 1, 2)
        return tuple(Block(n, w) for n, w in zip(sizes, self.weights, strict=True))

    @property
    def sensitivity(self) -> Sensitivity:
        # A row adds 1 to one number of the first block and, with |e| <= 1 after clipping, e to one
        # of the second and |e| to the third. Deviances are at least 0 and at most 1 after clipping:
        # it adds (1, 1) at most to the fourth. Truncation toward zero makes none of them longer.
        counts, errors, size, both = (1.0 / weight for weight in self.weights)
        squares = counts**2 + errors**2 + size**2 + 2 * both**2
        return Sensitivity(l1=counts + errors + size + 2 * both, l2=math.sqrt(squares))

    def check(self, schema: Schema) -> None:
        if schema.label.task != "counts":
            raise FormatError("deviance sums are for counts")
        sizes = (self.most_error, self.most_deviance)
        if not all(LEAST <= size <= LARGEST for size in sizes) or not LEAST <= self.rate <= 1.0:
            raise FormatError("deviance sums clip to nothing, or to more than counts can be")
        check_edges(self.edges, "deviance sums")
        check_weights(self.weights, N_BLOCKS, "deviance sums")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        n, cap = self.n_bins, float(schema.label.upper or 1)
        total = np.zeros(2 * n + 3, np.int64)
        for first in range(0, rows.n_rows, BLOCK):
            here = slice(first, first + BLOCK)
            counts, exposure, expected = expected_counts(rows.target[here], scores[here], cap)
            place = np.searchsorted(np.array(self.edges), expected, side="left")
            error = np.clip(cap * (counts - expected) / self.most_error, -1.0, 1.0)
            total[:n] += np.bincount(place, minlength=n) << bits
            np.add.at(total[n : 2 * n], place, whole_steps(error, bits))
            total[2 * n] += whole_steps(np.abs(error), bits).sum()
            for i, of in enumerate((expected, self.rate * exposure)):
                size = deviances(cap * counts, cap * of) / self.most_deviance
                total[2 * n + 1 + i] += whole_steps(size, bits).sum()
        return total

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values = {
            "most_error": self.most_error,
            "most_deviance": self.most_deviance,
            "rate": self.rate,
            "ensemble": [self.ensemble.length, self.ensemble.hash],
        }
        arrays: dict[str, NDArray[Any]] = {
            "edges": np.array(self.edges, np.float64),
            "weights": np.array(self.weights, np.float64),
        }
        return values, arrays

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> DevianceSums:
        length, hash_ = values["ensemble"]
        return DevianceSums(
            tuple(float(edge) for edge in arrays["edges"]),
            float(values["most_error"]), float(values["most_deviance"]), float(values["rate"]),
            tuple(float(weight) for weight in arrays["weights"]),
            EnsembleRef(int(length), str(hash_)),
        )  # fmt: skip
