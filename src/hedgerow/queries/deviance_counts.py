"""How large deviances and errors of a model of counts are: counts that say how to ask for sums."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.queries.base import Block, EnsembleRef, QueryBase, RowWeights, Sensitivity
from hedgerow.queries.outcomes import (
    BLOCK,
    MAX_EDGES,
    check_edges,
    deviances,
    expected_counts,
    whole_steps,
)

LARGEST = 2.0**30


@dataclass(frozen=True)
class DevianceCounts(QueryBase):
    """Rows by size of the deviance, by size of the error, and by the expected count; exposures.

    Sizes are in counts; the expected count is divided by its cap. The last number is the sum of
    exposures, as parts of the largest.
    """

    sizes: tuple[float, ...]  # edges of both sizes
    edges: tuple[float, ...]  # of expected counts, between 0 and 1
    ensemble: EnsembleRef
    kind: ClassVar[str] = "deviance-counts"
    row_weights: ClassVar[RowWeights] = "ignore"  # a model is measured on rows, each once

    @property
    def blocks(self) -> tuple[Block, ...]:
        n = len(self.sizes) + 1
        return (Block(n), Block(n), Block(len(self.edges) + 1), Block(1))

    @property
    def sensitivity(self) -> Sensitivity:
        # A row has one deviance, one error and one expected count: it adds 1 to one number of each
        # of the first three blocks, and its exposure, at most 1 and truncated, to the last.
        return Sensitivity(l1=4.0, l2=2.0)

    def check(self, schema: Schema) -> None:
        if schema.label.task != "counts":
            raise FormatError("deviance counts are for counts")
        inside = all(0.0 < size <= LARGEST for size in self.sizes)
        rising = all(a < b for a, b in pairwise(self.sizes))
        if len(self.sizes) > MAX_EDGES or not inside or not rising:
            raise FormatError("deviance counts have sizes that do not rise")
        check_edges(self.edges, "deviance counts")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        n, cap = len(self.sizes) + 1, float(schema.label.upper or 1)
        sizes, edges = np.array(self.sizes), np.array(self.edges)
        total = np.zeros(2 * n + len(edges) + 2, np.int64)
        for first in range(0, rows.n_rows, BLOCK):
            here = slice(first, first + BLOCK)
            counts, exposure, expected = expected_counts(rows.target[here], scores[here], cap)
            of_size = deviances(cap * counts, cap * expected), cap * np.abs(counts - expected)
            for i, size in enumerate(of_size):
                place = np.searchsorted(sizes, size, side="left")
                total[i * n : (i + 1) * n] += np.bincount(place, minlength=n) << bits
            place = np.searchsorted(edges, expected, side="left")
            total[2 * n : -1] += np.bincount(place, minlength=len(edges) + 1) << bits
            total[-1] += whole_steps(exposure, bits).sum()
        return total

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays: dict[str, NDArray[Any]] = {
            "sizes": np.array(self.sizes, np.float64),
            "edges": np.array(self.edges, np.float64),
        }
        return {"ensemble": [self.ensemble.length, self.ensemble.hash]}, arrays

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> DevianceCounts:
        length, hash_ = values["ensemble"]
        sizes = tuple(float(size) for size in arrays["sizes"])
        edges = tuple(float(edge) for edge in arrays["edges"])
        return DevianceCounts(sizes, edges, EnsembleRef(int(length), str(hash_)))
