"""Gradients as questions of pure plans name them: of which loss, and how they are kept bounded.

Shared by the questions that add them up; what they make of the sums, and its bound, stays there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.model.losses import RowBound, loss_for, loss_named
from hedgerow.queries.base import EnsembleRef, check_clip

FINE_BITS = 20  # gradients are added up in steps of 2^-20, whatever noise the sums get


@dataclass(frozen=True)
class Gradients:
    """Gradients of a loss at the scores of an ensemble, none larger than `bound`.

    Larger ones are clamped to it, or with `drop` their rows are left out.
    """

    loss: str
    ensemble: EnsembleRef
    clip: float = math.inf  # at most 1; infinite = the loss's own bound
    drop: bool = False

    @property
    def row(self) -> RowBound:
        """What a row adds: its gradients, and 1 to the count."""
        return loss_named(self.loss).bound("gradient", self.clip)

    @property
    def l1(self) -> float:
        return loss_named(self.loss).bound("slope", self.clip).l1

    @property
    def l2(self) -> float:
        return loss_named(self.loss).bound("slope", self.clip).l2

    def check(self, schema: Schema, what: str) -> None:
        """Raise FormatError unless the label has such gradients; binary ones may be regressed."""
        label = schema.label
        if label.task == "survival":
            raise FormatError(f"{what} know nothing of times to an event")
        if label.loss is not None:
            raise FormatError(f"{what} know nothing of a loss of the label's own")
        allowed = {loss_for(label).name} | ({"squared"} if label.task == "binary" else set())
        if self.loss not in allowed:
            raise FormatError(f"{what} ask for a loss that does not belong to the label")
        check_clip(self.clip)
        if self.drop and loss_named(self.loss).n_outputs > 1:
            raise FormatError(f"{what} leave out rows by one gradient, and the label has several")

    def kept(self, rows: Rows, scores: NDArray[np.float64]) -> tuple[Rows, NDArray[np.float64]]:
        """The rows that count. A row is left out by its own gradient, whatever the others are."""
        if not self.drop or math.isinf(self.clip):
            return rows, scores
        predictions = loss_named(self.loss).predictions(scores, averaged=False)[:, -1]
        over = ~(np.abs(predictions - rows.target) <= self.clip)  # what is no number is left out
        if not over.any():
            return rows, scores
        inside = np.flatnonzero(~over)
        return rows.take(inside), scores[inside]

    def values(self) -> dict[str, Any]:
        return {
            "loss": self.loss,
            "ensemble": [self.ensemble.length, self.ensemble.hash],
            "clip": None if math.isinf(self.clip) else self.clip,
            "drop": self.drop,
        }

    @staticmethod
    def from_values(values: dict[str, Any]) -> Gradients:
        loss_named(values["loss"])
        length, hash_ = values["ensemble"]
        clip = math.inf if values["clip"] is None else float(values["clip"])
        ensemble = EnsembleRef(int(length), str(hash_))
        return Gradients(str(values["loss"]), ensemble, clip, bool(values["drop"]))
