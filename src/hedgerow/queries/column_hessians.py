"""Sums of Hessians in the candidate bins of several columns: where the uncertain rows lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.binning import base_grid
from hedgerow.errors import FormatError
from hedgerow.losses import loss_for, loss_named
from hedgerow.queries.base import Block, EnsembleRef, Sensitivity
from hedgerow.schema import Schema
from hedgerow.tables import Rows


@dataclass(frozen=True)
class ColumnHessians:
    """For each column a block of its bins: (len(cuts) + 1,), missing values left out.

    `cuts` are indices into the edges of the column's base grid, rising.
    """

    columns: tuple[int, ...]
    cuts: tuple[tuple[int, ...], ...]
    loss: str
    ensemble: EnsembleRef
    kind: ClassVar[str] = "column-hessians"

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
        distinct = len(set(self.columns)) == len(self.columns) == len(self.cuts)
        if not self.columns or not distinct:
            raise FormatError("column Hessians name a column twice, or none")
        for j, cuts in zip(self.columns, self.cuts, strict=True):
            rising = list(cuts) == sorted(set(cuts))
            if not 0 <= j < len(grid) or not grid[j].ordered or not rising:
                raise FormatError("column Hessians do not match the schema's base grid")
            if cuts and not (cuts[0] >= 0 and cuts[-1] < len(grid[j].edges)):
                raise FormatError("column Hessians cut where the base grid has no edge")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        grid, loss = base_grid(schema), loss_named(self.loss)
        hessians = kernels.row_hessians(scores, rows.target, bits, loss.code)
        parts = []
        for j, cuts in zip(self.columns, self.cuts, strict=True):
            # A code at or below a cut lies left of it; missing goes to a bin that is dropped.
            bins = np.searchsorted(np.array(cuts, np.int64), np.arange(grid[j].n_codes))
            bins[grid[j].missing_code] = len(cuts) + 1
            codes, n_bins = rows.codes.column(j), len(cuts) + 2
            parts.append(kernels.bin_sums(codes, bins, n_bins, hessians)[:-1])
        return np.concatenate(parts)

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {
            "columns": np.array(self.columns, np.int32),
            "n_cuts": np.array([len(cuts) for cuts in self.cuts], np.int32),
            "cuts": np.array([c for cuts in self.cuts for c in cuts], np.int32),
        }
        ensemble = [self.ensemble.length, self.ensemble.hash]
        return {"loss": self.loss, "ensemble": ensemble}, arrays

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ColumnHessians:
        ends = np.cumsum(arrays["n_cuts"])
        if bool((arrays["n_cuts"] < 0).any()) or (len(ends) and ends[-1] != len(arrays["cuts"])):
            raise FormatError("column Hessians do not have the lengths they state")
        parts = np.split(arrays["cuts"], ends[:-1]) if len(ends) else []
        length, hash_ = values["ensemble"]
        loss_named(values["loss"])
        return ColumnHessians(
            tuple(int(j) for j in arrays["columns"]),
            tuple(tuple(int(c) for c in part) for part in parts),
            values["loss"],
            EnsembleRef(int(length), str(hash_)),
        )
