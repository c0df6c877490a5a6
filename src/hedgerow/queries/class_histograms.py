"""How many rows of each class lie in each bin of some columns, in some leaves of a growing tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import ColumnGrid, base_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError
from hedgerow.model.stacking import stack, unstack
from hedgerow.model.tree import Structure
from hedgerow.privacy.accounting.paths import Priced
from hedgerow.queries.base import NO_TREES, Block, EnsembleRef, QueryBase, Sensitivity
from hedgerow.queries.cuts import Cuts, bin_of_codes, check_cuts, n_bins_of, pack_cuts, unpack_cuts
from hedgerow.queries.tree_nodes import (
    NO_COLUMN,
    Asked,
    check_asked,
    pack_asked,
    priced_tree,
    rows_of_leaves,
    sensitivity_of,
    unpack_asked,
)

_WHAT = "class histograms"


@dataclass(frozen=True, eq=False)
class ClassHistograms(QueryBase):
    """For each leaf that is asked about: (column, class, bin), the last bin of a column missing.

    Each column of a leaf costs the leaf's price. The column -1 stands for none: all rows of the
    leaf, by class. `cuts` are indices into the edges of the base grid, of every column of the
    schema that is asked about anywhere; `widths` says how many bins each of these columns has.
    """

    structure: Structure
    asked: tuple[Asked, ...]
    columns: tuple[int, ...]
    cuts: Cuts
    widths: tuple[int, ...]
    n_classes: int
    kind: ClassVar[str] = "class-histograms"
    counts: ClassVar[bool] = True  # whole numbers stay on the unit grid

    @staticmethod
    def of(
        schema: Schema, structure: Structure, asked: Sequence[Asked], cuts: Sequence[Sequence[int]]
    ) -> ClassHistograms:
        """The query, given the cuts of all columns, of which it takes those it asks about."""
        grid = base_grid(schema)
        used = sorted({j for node in asked for j in node.columns} - {NO_COLUMN})
        chosen = tuple(tuple(cuts[j]) for j in used)
        widths = tuple(n_bins_of(grid[j], cuts[j]) for j in used)
        n_classes = len(schema.label.classes)
        return ClassHistograms(structure, tuple(asked), tuple(used), chosen, widths, n_classes)

    @property
    def ensemble(self) -> EnsembleRef:
        return NO_TREES

    def width(self, column: int) -> int:
        """Bins of a column, that of missing values included; 1 for none."""
        return 1 if column == NO_COLUMN else self.widths[self.columns.index(column)]

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(
            Block(self.n_classes * sum(self.width(j) for j in node.columns), 1 / node.price)
            for node in self.asked
        )

    @property
    def sensitivity(self) -> Sensitivity:
        # A row lies in one leaf, has one class, and lies in one bin of each of its columns: it
        # adds 1 to one count of every column that its leaf is asked about.
        return sensitivity_of(self.asked)

    def priced(self) -> Priced:
        return priced_tree(self.structure, self.asked)

    def check(self, schema: Schema) -> None:
        check_asked(self.structure, self.asked, schema, NO_COLUMN, _WHAT)
        grid = base_grid(schema)
        if self.n_classes < 2 or self.n_classes != len(schema.label.classes):
            raise FormatError(f"{_WHAT} ask for classes that the label does not have")
        used = sorted({j for node in self.asked for j in node.columns} - {NO_COLUMN})
        if list(self.columns) != used:
            raise FormatError(f"{_WHAT} cut other columns than they ask about")
        if used:
            check_cuts(grid, self.columns, self.cuts, _WHAT)
        if self.widths != tuple(_widths(grid, self.columns, self.cuts)):
            raise FormatError(f"{_WHAT} do not have the lengths they state")

    def answer(
        self, rows: Rows, scores: NDArray[np.float64], schema: Schema, bits: int
    ) -> NDArray[np.int64]:
        grid, target = base_grid(schema), rows.target.astype(np.int64)
        inside = rows_of_leaves(self.structure, rows, schema)
        bins = {
            j: bin_of_codes(grid, (j,), (cuts,))[0][0]
            for j, cuts in zip(self.columns, self.cuts, strict=True)
        }
        parts = []
        for node in self.asked:
            here = inside[node.leaf]
            classes = target[here]
            for j in node.columns:
                width = self.width(j)
                cell = 0 if j == NO_COLUMN else bins[j][rows.codes.column(j)[here]]
                counted = np.bincount(classes * width + cell, minlength=self.n_classes * width)
                parts.append(counted)
        return np.concatenate(parts).astype(np.int64) << bits

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {
            **pack_cuts(self.columns, self.cuts),
            **pack_asked(self.asked),
            "widths": np.array(self.widths, np.int32),
            **stack([self.structure]),
        }
        return {"n_classes": self.n_classes}, arrays

    @staticmethod
    def from_parts(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ClassHistograms:
        columns, cuts = unpack_cuts(arrays, _WHAT)
        structures = unstack(arrays)
        widths = tuple(int(n) for n in arrays["widths"])
        if len(structures) != 1 or not len(columns) == len(cuts) == len(widths):
            raise FormatError(f"{_WHAT} are not readable")
        asked = unpack_asked(arrays, _WHAT)
        if {j for node in asked for j in node.columns} - {NO_COLUMN} != set(columns):
            raise FormatError(f"{_WHAT} cut other columns than they ask about")
        n_classes = int(values["n_classes"])
        return ClassHistograms(structures[0], asked, columns, cuts, widths, n_classes)


def _widths(grid: Sequence[ColumnGrid], columns: Sequence[int], cuts: Cuts) -> list[int]:
    return [n_bins_of(grid[j], c) for j, c in zip(columns, cuts, strict=True)]
