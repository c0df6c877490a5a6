"""Column sums whose cuts may lie between the cells of the base grid: on fine levels of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hedgerow.data.binning import ColumnGrid, base_grid, fine_columns, fine_grid
from hedgerow.data.schema import Schema
from hedgerow.errors import FormatError
from hedgerow.queries.column_sums import ColumnSums


@dataclass(frozen=True, eq=False)
class FineColumnSums(ColumnSums):
    """The same sums; `cuts` are indices into the edges of a column's finest level.

    A column may be asked about twice, such as by a few cells and by all of its fine ones.

    Its sensitivity is that of column sums. There a row adds its values, at most |b| long, to one
    bin of every entry of `columns`, and entries are separate coordinates: the squares w^2 b^2 add
    up whether two entries are of two columns or of one. A fine level is a partition of a column's
    values by public edges like any other, so a row lies in exactly one of its cells.
    """

    kind: ClassVar[str] = "fine-column-sums"
    most_asked: ClassVar[int] = 2

    @staticmethod
    def grid_of(schema: Schema) -> tuple[ColumnGrid, ...]:
        return fine_grid(schema)

    def check(self, schema: Schema) -> None:
        if not fine_columns(base_grid(schema)):
            raise FormatError("column sums ask for fine cells of a schema whose columns have none")
        super().check(schema)
