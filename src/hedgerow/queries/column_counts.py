"""How many rows lie in each cell of each column of the base grid, by class."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.binning import base_grid, code_places
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.privacy.accounting.paths import Priced
from hedgerow.privacy.accounting.pure import LEAST_PRICE, MOST_PRICE
from hedgerow.queries.base import NO_TREES, Block, EnsembleRef, QueryBase, RowWeights, Sensitivity


@dataclass(frozen=True)
class ColumnCounts(QueryBase):
    """Rows by column, class and code: for each column a block (class, code).

    With `n_classes` 1 all classes are counted together.
    """

    columns: tuple[int, ...]
    n_codes: tuple[int, ...]  # of each column, missing included
    n_classes: int
    price: float = 0.0  # epsilon of each column, in a pure plan
    kind: ClassVar[str] = "column-counts"
    row_weights: ClassVar[RowWeights] = "scale"
    counts: ClassVar[bool] = True  # whole numbers stay on the unit grid

    @staticmethod
    def of(
        schema: Schema, columns: tuple[int, ...] | None = None, together: bool = False
    ) -> ColumnCounts:
        chosen = tuple(range(len(schema.columns))) if columns is None else columns
        codes = tuple(grid.n_codes for grid in base_grid(schema))
        n_classes = 1 if together else max(1, len(schema.label.classes))
        return ColumnCounts(chosen, tuple(codes[j] for j in chosen), n_classes)

    @staticmethod
    def for_cuts(schema: Schema, n_bins: int, price: float = 0.0) -> ColumnCounts:
        """Counts of all classes together, of ordered columns with more edges than cuts.

        The other columns take every edge unasked.
        """
        chosen = (
            j for j, grid in enumerate(base_grid(schema))
            if grid.ordered and len(grid.edges) >= n_bins
        )  # fmt: skip
        return replace(ColumnCounts.of(schema, tuple(chosen), together=True), price=price)

    @property
    def ensemble(self) -> EnsembleRef:
        return NO_TREES

    @property
    def blocks(self) -> tuple[Block, ...]:
        unit = 1 / self.price if self.price else 1.0
        return tuple(Block(n * self.n_classes, unit) for n in self.n_codes)

    @property
    def sensitivity(self) -> Sensitivity:
        # A row has one class and lies in exactly one cell of every column it is counted in:
        # it adds 1 to one number per column.
        m, unit = len(self.columns), self.price or 1.0
        return Sensitivity(l1=m * unit, l2=math.sqrt(m) * unit)

    def priced(self) -> Priced:
        # Every row lies in the root, and pays for one number of each column.
        return Priced({}, {1: len(self.columns) * self.price})

    def check(self, schema: Schema) -> None:
        distinct = sorted(set(self.columns)) == sorted(self.columns)
        fits = all(0 <= j < len(schema.columns) for j in self.columns)
        if not self.columns or not distinct or not fits:
            raise FormatError("column counts name a column twice, none, or one that does not exist")
        if self.price and not LEAST_PRICE <= self.price < MOST_PRICE:
            raise FormatError("column counts have a price that nobody can pay")
        plain = replace(self, price=0.0)
        if plain not in (self.of(schema, self.columns, together) for together in (False, True)):
            raise FormatError("column counts do not match the schema's base grid")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        # Every code is a bin of its own: (column, code), counted over all columns.
        ends = np.cumsum(self.n_codes)
        bins = np.arange(max(self.n_codes)) + (ends - self.n_codes)[:, None]
        update = kernels.AVERAGING if self.n_classes > 1 else kernels.COUNT
        gradients = kernels.Gradients(
            scores, rows.target, bits, kernels.LOGISTIC, update, kernels.NO_CLIP, self.n_classes,
            rows.weights, schema.weight_bits,
        )  # fmt: skip
        places = code_places(base_grid(schema))[list(self.columns)]
        columns = kernels.ColumnBins(places, bins.astype(np.int32), int(ends[-1]))
        total = kernels.column_sums(rows.codes.arrays, gradients, columns)
        return np.concatenate([part.ravel() for part in np.split(total, ends[:-1], axis=1)])

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {
            "columns": np.array(self.columns, np.int32),
            "n_codes": np.array(self.n_codes, np.int32),
        }
        return {"n_classes": self.n_classes, "price": self.price}, arrays

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ColumnCounts:
        columns = tuple(int(j) for j in arrays["columns"])
        n_codes = tuple(int(n) for n in arrays["n_codes"])
        if len(columns) != len(n_codes):
            raise FormatError("column counts do not match the schema's base grid")
        return ColumnCounts(columns, n_codes, int(values["n_classes"]), float(values["price"]))
