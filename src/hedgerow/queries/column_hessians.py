"""Sums of Hessians in the candidate bins of several columns: where the uncertain rows lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.binning import base_grid, code_places
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.model.losses import loss_for, loss_named
from hedgerow.queries.base import Block, EnsembleRef, QueryBase, RowWeights, Sensitivity
from hedgerow.queries.cuts import bin_of_codes, check_cuts, pack_cuts, unpack_cuts


@dataclass(frozen=True)
class ColumnHessians(QueryBase):
    """For each column a block of its bins: (len(cuts) + 1,), missing values left out.

    `cuts` are indices into the edges of the column's base grid, rising.
    """

    columns: tuple[int, ...]
    cuts: tuple[tuple[int, ...], ...]
    loss: str
    ensemble: EnsembleRef
    kind: ClassVar[str] = "column-hessians"
    row_weights: ClassVar[RowWeights] = "scale"

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(Block(len(cuts) + 1) for cuts in self.cuts)

    @property
    def sensitivity(self) -> Sensitivity:
        # A row adds its Hessian (summed over outputs, at most the loss's bound) to at most one bin
        # of every column. On the grid each Hessian is floored, so the bound holds there too.
        most, m = loss_named(self.loss).hessian_bound(), len(self.columns)
        return Sensitivity(l1=m * most, l2=math.sqrt(m) * most)

    def check(self, schema: Schema) -> None:
        grid = base_grid(schema)
        if self.loss != loss_for(schema.label).name:
            raise FormatError("column Hessians ask for a loss that does not belong to the label")
        loss_named(self.loss).hessian_bound()  # raises where Hessians have none
        check_cuts(grid, self.columns, self.cuts, "column Hessians")
        if not all(grid[j].ordered for j in self.columns):
            raise FormatError("column Hessians name a column without order")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        grid, loss = base_grid(schema), loss_named(self.loss)
        bins, ends = bin_of_codes(grid, self.columns, self.cuts)
        gradients = kernels.Gradients(
            scores, rows.target, bits, loss.code, kernels.NEWTON, kernels.NO_CLIP,
            2 * scores.shape[1], rows.weights, schema.weight_bits, loss.parameter,
        )  # fmt: skip
        columns = kernels.ColumnBins(code_places(grid)[list(self.columns)], bins, int(ends[-1]))
        total = kernels.column_hessians(rows.codes.arrays, gradients, columns)
        return np.delete(total, ends - 1)  # without the bins of missing values

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        ensemble = [self.ensemble.length, self.ensemble.hash]
        return {"loss": self.loss, "ensemble": ensemble}, pack_cuts(self.columns, self.cuts)

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ColumnHessians:
        columns, cuts = unpack_cuts(arrays, "column Hessians")
        length, hash_ = values["ensemble"]
        loss_named(values["loss"])
        ensemble = EnsembleRef(int(length), str(hash_))
        return ColumnHessians(columns, cuts, values["loss"], ensemble)
