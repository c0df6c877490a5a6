"""Rows by class (or cell of time and event, or side of a quantile) and score between edges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.data.weights import UNWEIGHTED
from hedgerow.errors import FormatError
from hedgerow.queries.base import (
    Block,
    EnsembleRef,
    QueryBase,
    RowWeights,
    Sensitivity,
    weighted_counts,
)

MAX_EDGES = 1024
_BLOCK = 1 << 16  # rows that are looked at together; memory does not grow with the table


@dataclass(frozen=True)
class ScoreCounts(QueryBase):
    """(class, score bin) of a model with one output, at the scores of `ensemble`.

    Of times to an event: cells instead of classes, and as the score the logarithm of the hazards of
    all intervals together. Of quantiles: rows whose label is above the predicted one, and rows
    whose label is not. Where effects on hazards change at a cut, `ratio_edges` divide each score
    bin by how both periods compare: the logarithm of the first one's hazards over the second one's.
    """

    n_classes: int
    edges: tuple[float, ...]
    ensemble: EnsembleRef
    once: bool = False  # whether every row counts once, whatever its weight: to measure a model
    ratio_edges: tuple[float, ...] = ()  # of both periods' hazards, where effects on them change
    kind: ClassVar[str] = "score-counts"

    @property
    def row_weights(self) -> RowWeights:
        return "ignore" if self.once else "scale"

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (Block(self.n_classes * self._n_bins),)

    @property
    def _n_bins(self) -> int:
        return (len(self.edges) + 1) * (len(self.ratio_edges) + 1)

    @property
    def sensitivity(self) -> Sensitivity:
        # A row has one class (one cell of time and event, one side of its predicted quantile), one
        # score, and one ratio of its hazards in both periods: it adds 1 to one number.
        return Sensitivity(l1=1.0, l2=1.0)

    def check(self, schema: Schema) -> None:
        label = schema.label
        known = label.task in ("binary", "survival") or label.loss == "quantile"
        if not known or self.n_classes != (label.n_outcomes or 2):
            raise FormatError("score counts are for binary labels, times to an event and quantiles")
        for edges in (self.edges, self.ratio_edges):
            rising = all(a < b for a, b in pairwise(edges))
            if len(edges) > MAX_EDGES or not rising or not all(map(math.isfinite, edges)):
                raise FormatError("score counts have edges that do not rise")
        if self.ratio_edges and not label.n_first:
            raise FormatError("score counts compare two periods, and the label has one")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        n_bins, edges = self._n_bins, np.array(self.edges)
        weights = UNWEIGHTED if self.once else rows.weights
        counts = np.zeros(self.n_classes * n_bins, np.int64)
        for first in range(0, rows.n_rows, _BLOCK):
            here = slice(first, first + _BLOCK)
            # numpy sorts NaN last: a score that is no number lies in the last bin.
            place = np.searchsorted(edges, _score(scores[here], schema), side="right")
            if self.ratio_edges:
                place = place * (len(self.ratio_edges) + 1) + np.searchsorted(
                    np.array(self.ratio_edges), _ratio(scores[here], schema), side="right"
                )
            group = _class(rows.target[here], scores[here], schema) * n_bins + place
            counts += weighted_counts(group, weights[here], schema, bits, len(counts))
        return counts

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        ensemble = [self.ensemble.length, self.ensemble.hash]
        arrays: dict[str, NDArray[Any]] = {"edges": np.array(self.edges, np.float64)}
        once = {"once": True} if self.once else {}
        if self.ratio_edges:
            arrays["ratio_edges"] = np.array(self.ratio_edges, np.float64)
        return {"n_classes": self.n_classes, "ensemble": ensemble, **once}, arrays

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ScoreCounts:
        length, hash_ = values["ensemble"]
        edges = tuple(float(edge) for edge in arrays["edges"])
        ratios = tuple(float(edge) for edge in arrays.get("ratio_edges", ()))
        ensemble, once = EnsembleRef(int(length), str(hash_)), bool(values.get("once"))
        return ScoreCounts(int(values["n_classes"]), edges, ensemble, once, ratios)


def _class(
    target: NDArray[np.float64], scores: NDArray[np.float64], schema: Schema
) -> NDArray[np.int64]:
    """Which of the classes each row counts in: (row,)."""
    if schema.label.loss == "quantile":  # what is no number covers nothing
        return np.asarray(target <= np.clip(scores[:, 0], 0.0, 1.0), np.int64)
    return np.asarray(target.astype(np.int64))


def _score(scores: NDArray[np.float64], schema: Schema) -> NDArray[np.float64]:
    """The one number by which rows are ordered: (row,)."""
    if schema.label.task != "survival":
        return scores[:, 0]
    risks = np.empty(len(scores))
    kernels.log_risks(np.ascontiguousarray(scores), risks)
    return risks


def _ratio(scores: NDArray[np.float64], schema: Schema) -> NDArray[np.float64]:
    """How the hazards of both periods compare: (row,)."""
    first, n = schema.label.n_first, len(scores)
    both = np.empty(n), np.empty(n)
    kernels.log_risks(np.ascontiguousarray(scores[:, :first]), both[0])
    kernels.log_risks(np.ascontiguousarray(scores[:, first:]), both[1])
    with np.errstate(invalid="ignore"):  # what is no number lies in the last bin
        return np.asarray(both[0] - both[1])
