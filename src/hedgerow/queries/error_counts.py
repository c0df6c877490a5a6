"""How large errors are and where labels lie: counts that say how to ask for their sums."""

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
from hedgerow.queries.outcomes import BLOCK, MAX_EDGES, check_edges, predictions_of


@dataclass(frozen=True)
class ErrorCounts(QueryBase):
    """Rows by size of the error, then rows by even cell of the label; for regression.

    Labels and predictions are scaled to 0 .. 1 by the label's public bounds, so an error is at most
    1. A bin of sizes holds what is above its lower edge, up to and with its upper one.
    """

    edges: tuple[float, ...]  # of sizes
    n_cells: int  # of labels
    ensemble: EnsembleRef
    averaged: bool = False
    kind: ClassVar[str] = "error-counts"
    row_weights: ClassVar[RowWeights] = "ignore"  # a model is measured on rows, each once

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (Block(len(self.edges) + 1), Block(self.n_cells))

    @property
    def sensitivity(self) -> Sensitivity:
        # A row has one error and one label: it adds 1 to one number of each block.
        return Sensitivity(l1=2.0, l2=math.sqrt(2.0))

    def check(self, schema: Schema) -> None:
        if schema.label.task != "regression":
            raise FormatError("error counts are for regression")
        if not 1 <= self.n_cells <= MAX_EDGES:
            raise FormatError(f"error counts need 1 to {MAX_EDGES} cells of the label")
        check_edges(self.edges, "error counts")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        n_sizes = len(self.edges) + 1
        counts = np.zeros(n_sizes + self.n_cells, np.int64)
        for first in range(0, rows.n_rows, BLOCK):
            here = slice(first, first + BLOCK)
            label = np.clip(rows.target[here], 0.0, 1.0)
            predicted = predictions_of(scores[here], schema, self.averaged)[:, 0]
            size = np.searchsorted(np.array(self.edges), np.abs(label - predicted), side="left")
            cell = np.minimum(label * self.n_cells, self.n_cells - 1).astype(np.int64)
            counts[:n_sizes] += np.bincount(size, minlength=n_sizes)
            counts[n_sizes:] += np.bincount(cell, minlength=self.n_cells)
        return counts << bits

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        ensemble = [self.ensemble.length, self.ensemble.hash]
        arrays: dict[str, NDArray[Any]] = {"edges": np.array(self.edges, np.float64)}
        values = {"n_cells": self.n_cells, "ensemble": ensemble, "averaged": self.averaged}
        return values, arrays

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ErrorCounts:
        length, hash_ = values["ensemble"]
        edges = tuple(float(edge) for edge in arrays["edges"])
        ensemble = EnsembleRef(int(length), str(hash_))
        return ErrorCounts(edges, int(values["n_cells"]), ensemble, bool(values["averaged"]))
