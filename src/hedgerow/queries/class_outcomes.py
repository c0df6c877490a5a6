"""How a model's classes turn out: confusion, counts by probability, and the log loss."""

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


@dataclass(frozen=True)
class ClassOutcomes(QueryBase):
    """Three blocks at the predictions of `ensemble`, each with a noise unit of its own.

    (true class, predicted class); (group, bin of a probability); the log loss in units of its
    largest value. For a binary label the group is the true class and the probability that of the
    second one; with more of them the group is wrong or right and the probability that of the
    predicted class. A bin holds what is above its lower edge, up to and with its upper one.
    """

    n_classes: int
    edges: tuple[float, ...]  # of probabilities
    least: float  # a probability below it counts as so much in the log loss
    weights: tuple[float, float, float]
    ensemble: EnsembleRef
    averaged: bool = False  # whether trees add up to probabilities themselves
    kind: ClassVar[str] = "class-outcomes"
    row_weights: ClassVar[RowWeights] = "ignore"  # a model is measured on rows, each once

    @property
    def n_bins(self) -> int:
        return len(self.edges) + 1

    @property
    def blocks(self) -> tuple[Block, ...]:
        sizes = (self.n_classes**2, 2 * self.n_bins, 1)
        return tuple(Block(n, w) for n, w in zip(sizes, self.weights, strict=True))

    @property
    def sensitivity(self) -> Sensitivity:
        # A row has one true and one predicted class and one probability: it adds 1 to one number of
        # the first block, 1 to one of the second, and to the third a loss that is divided by its
        # largest value -log(least) and truncated toward zero, so it lies between 0 and 1.
        parts = [1.0 / weight for weight in self.weights]
        return Sensitivity(l1=sum(parts), l2=math.sqrt(sum(part**2 for part in parts)))

    def check(self, schema: Schema) -> None:
        if self.n_classes < 2 or self.n_classes != len(schema.label.classes):
            raise FormatError("class outcomes do not match the number of classes")
        if not 1e-9 <= self.least <= 0.5:
            raise FormatError("class outcomes need a least probability from 1e-9 to 0.5")
        check_edges(self.edges, "class outcomes")
        check_weights(self.weights, 3, "class outcomes")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        total = np.zeros(sum(block.size for block in self.blocks), np.int64)
        for first in range(0, rows.n_rows, BLOCK):
            here = slice(first, first + BLOCK)
            likely = predictions_of(scores[here], schema, self.averaged)  # (row, class)
            total += self._sums(rows.target[here].astype(np.int64), likely, bits)
        return total

    def _sums(
        self, true: NDArray[np.int64], likely: NDArray[np.float64], bits: int
    ) -> NDArray[np.int64]:
        k, n_bins = self.n_classes, self.n_bins
        predicted = likely.argmax(axis=1)
        if k == 2:
            group, probability = true, likely[:, 1]
        else:
            group, probability = (true == predicted).astype(np.int64), likely.max(axis=1)
        place = np.searchsorted(np.array(self.edges), probability, side="left")
        confusion = np.bincount(true * k + predicted, minlength=k * k)
        by_bin = np.bincount(group * n_bins + place, minlength=2 * n_bins)
        of_true = np.maximum(likely[np.arange(len(true)), true], self.least)
        loss = whole_steps(np.log(of_true) / math.log(self.least), bits).sum()
        counts = np.concatenate([confusion, by_bin]).astype(np.int64) << bits
        return np.append(counts, loss)

    @property
    def most_loss(self) -> float:
        """The log loss of a row whose class was given the least probability."""
        return -math.log(self.least)

    def split(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Released values as (true, predicted), (group, bin) and the sum of log losses."""
        k = self.n_classes
        loss = float(values[-1]) * self.most_loss
        return values[: k * k].reshape(k, k), values[k * k : -1].reshape(2, -1), loss

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values = {
            "n_classes": self.n_classes,
            "least": self.least,
            "ensemble": [self.ensemble.length, self.ensemble.hash],
            "averaged": self.averaged,
        }
        arrays: dict[str, NDArray[Any]] = {
            "edges": np.array(self.edges, np.float64),
            "weights": np.array(self.weights, np.float64),
        }
        return values, arrays

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ClassOutcomes:
        length, hash_ = values["ensemble"]
        edges = tuple(float(edge) for edge in arrays["edges"])
        confusion, by_bin, loss = (float(weight) for weight in arrays["weights"])
        return ClassOutcomes(
            int(values["n_classes"]), edges, float(values["least"]), (confusion, by_bin, loss),
            EnsembleRef(int(length), str(hash_)), bool(values["averaged"]),
        )  # fmt: skip
