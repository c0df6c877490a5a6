"""How many rows each class has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError
from hedgerow.queries.base import NO_TREES, Block, EnsembleRef, Sensitivity
from hedgerow.schema import Schema
from hedgerow.tables import Rows


@dataclass(frozen=True)
class LabelSums:
    """Rows by class: (class,)."""

    n_classes: int
    kind: ClassVar[str] = "label-sums"

    @property
    def ensemble(self) -> EnsembleRef:
        return NO_TREES

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (Block(self.n_classes),)

    @property
    def sensitivity(self) -> Sensitivity:
        # A row has one class and adds exactly 1 to it.
        return Sensitivity(l1=1.0, l2=1.0)

    def check(self, schema: Schema) -> None:
        if self.n_classes != len(schema.label.classes):
            raise FormatError("label sums do not match the number of classes")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        counts = np.bincount(rows.target.astype(np.int64), minlength=self.n_classes)
        return counts.astype(np.int64) << bits

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"n_classes": self.n_classes}, {}

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> LabelSums:
        return LabelSums(int(values["n_classes"]))
