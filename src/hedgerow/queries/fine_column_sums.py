"""Column sums whose cuts may lie between the cells of the base grid: on fine levels of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import ColumnGrid, base_grid, fine_columns, fine_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.queries.base import Sensitivity
from hedgerow.queries.column_sums import ColumnSums


@dataclass(frozen=True, eq=False)
class FineColumnSums(ColumnSums):
    """The same sums; `cuts` are indices into the edges of a column's finest level.

    A column may be asked about twice, such as by a few cells and by all of its fine ones.
    """

    kind: ClassVar[str] = "fine-column-sums"
    most_asked: ClassVar[int] = 2

    @staticmethod
    def grid_of(schema: Schema) -> tuple[ColumnGrid, ...]:
        return fine_grid(schema)

    @property
    def sensitivity(self) -> Sensitivity:
        # That of column sums. There a row adds its values, at most |b| long, to one bin of every
        # entry of `columns`, and entries are separate coordinates: the squares w^2 b^2 add up
        # whether two entries are of two columns or of one. A fine level is a partition of a
        # column's values by public edges like any other: a row lies in exactly one of its cells.
        return super().sensitivity

    def check(self, schema: Schema) -> None:
        if not fine_columns(base_grid(schema)):
            raise FormatError("column sums ask for fine cells of a schema whose columns have none")
        super().check(schema)

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        return super().answer(rows, scores, schema, bits)  # by `grid_of`
