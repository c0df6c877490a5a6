"""The cells of every column that a model tells apart, and the boxes of cells that leaves are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import ColumnGrid
from hedgerow.data.cards import Card, Shown
from hedgerow.data.schema import Categorical, Numeric, Ordinal, Schema
from hedgerow.data.values import text_of
from hedgerow.errors import SettingsError
from hedgerow.inspection.tree_view.conditions import OTHER, number
from hedgerow.model.code_trees import right_codes
from hedgerow.model.routing import prediction_grid
from hedgerow.model.tree import Structure, Tree

MOST_VALUES = 1 << 27  # of all maps together, or of the boxes of a tree: about a gigabyte
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
MISSING = "missing"


@dataclass(frozen=True, eq=False, repr=False)
class Cells(Shown):
    """The cells of one column, the last one that of missing values."""

    name: str
    kind: str  # numeric, ordinal or categorical
    grid: ColumnGrid
    labels: tuple[str, ...]  # (cell,)
    lower: Floats  # (cell,) of numbers, NaN elsewhere
    upper: Floats
    public: Floats  # (cell,) weights that follow from the schema alone; 0 where no row can be

    def _card(self) -> Card:
        return Card("Cells", (("name", self.name), ("kind", self.kind), ("n", len(self.labels))))

    @property
    def possible(self) -> Bools:
        return self.public > 0


@dataclass(frozen=True, eq=False)
class Boxes:
    """What each leaf of a tree holds: some cells of every column that the tree uses."""

    columns: tuple[int, ...]
    inside: tuple[Bools, ...]  # of each of these columns, (leaf, cell)


def cells_of(trees: Sequence[Tree], schema: Schema) -> tuple[Cells, ...]:
    """The cells of every column of a schema, as far apart as the trees tell them."""
    return tuple(_cells(grid) for grid in prediction_grid(trees, schema))


def _cells(grid: ColumnGrid) -> Cells:
    column = grid.column
    unknown = np.full(grid.n_codes, np.nan)
    lower, upper = unknown.copy(), unknown.copy()
    if isinstance(column, Numeric):
        edges = grid.edges.astype(np.float64)
        lower[:-1] = np.concatenate([[column.lower], edges])
        upper[:-1] = np.concatenate([edges, [column.upper]])
        labels = [_interval(a, b, column.integer) for a, b in _inner(lower, upper)]
        # Whole numbers reach up to their bound; and a cell at a bound holds what lies beyond it.
        least = 1.0 if column.integer else 1e-9 * (column.upper - column.lower)
        public = np.maximum(upper[:-1] - lower[:-1], least)
        out_of_list = False
    else:
        labels = [text_of(value) for value in column.categories]
        if grid.other_code is not None:
            labels.append(OTHER)
        public = np.ones(grid.n_cells)
        out_of_list = isinstance(column, Ordinal) and column.other == "category"
    missing = 1 / grid.n_cells if column.missing or out_of_list else 0.0
    weights = np.append(public / public.sum(), missing)
    return Cells(
        column.name, column.kind, grid, (*labels, MISSING), lower, upper, weights / weights.sum()
    )


def _inner(lower: Floats, upper: Floats) -> list[tuple[float | None, float | None]]:
    """The bounds of every cell but that of missing values; None where a cell has no end."""
    ends = [(float(a), float(b)) for a, b in zip(lower[:-1], upper[:-1], strict=True)]
    last = len(ends) - 1
    return [(None if i == 0 else a, None if i == last else b) for i, (a, b) in enumerate(ends)]


def _interval(low: float | None, high: float | None, whole: bool = False) -> str:
    """A cell in words; one of whole numbers by its first and last.

    >>> _interval(1.5, 2.0), _interval(1.0, 2.0, whole=True), _interval(5.0, 8.0, whole=True)
    ('1.5 to 2', '1', '5 to 7')
    """
    if low is None and high is None:
        return "any value"
    if low is None:
        return f"< {number(high)}"
    if whole and high is not None and low.is_integer() and high.is_integer() and high > low:
        return number(low) if high == low + 1 else f"{number(low)} to {number(high - 1)}"
    return f">= {number(low)}" if high is None else f"{number(low)} to {number(high)}"


def check_size(trees: Sequence[Tree], cells: Sequence[Cells], n_outputs: int) -> None:
    """Refuse a model whose explanation takes memory out of all proportion to its file."""
    pairs: set[tuple[int, int]] = set()
    codes, maps = [one.grid.n_codes for one in cells], 0
    for tree in trees:
        used = np.unique(tree.structure.feature[tree.structure.feature >= 0]).tolist()
        sizes = [codes[j] for j in used]
        alone = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2  # the maps of this tree
        if n_outputs * alone <= MOST_VALUES:
            new = set(combinations(used, 2)) - pairs
            pairs |= new
            maps += sum(codes[i] * codes[j] for i, j in new)
        boxes = tree.structure.n_nodes * sum(sizes)
        largest = max(boxes, n_outputs * max(alone, maps))
        if largest > MOST_VALUES:
            raise SettingsError(
                f"explaining this model takes a table of {largest:,} values, more than "
                f"{MOST_VALUES:,}: its trees put columns with very many values together. Nothing "
                "was computed. Predictions and exports work as ever."
            )


def boxes_of(structure: Structure, cells: Sequence[Cells]) -> Boxes:
    """The boxes of a tree's leaves, in leaf order."""
    columns = tuple(np.unique(structure.feature[structure.feature >= 0]).tolist())
    shape = structure.n_nodes
    inside = {j: np.ones((shape, cells[j].grid.n_codes), np.bool_) for j in columns}
    for node in np.flatnonzero(structure.feature >= 0).tolist():  # parents come first
        j, pair = int(structure.feature[node]), (structure.left[node], structure.right[node])
        for in_node in inside.values():
            in_node[pair, :] = in_node[node]
        right = right_codes(structure, node, cells[j].grid)
        inside[j][pair[0]] &= ~right
        inside[j][pair[1]] &= right
    leaves = structure.feature < 0
    return Boxes(columns, tuple(inside[j][leaves] for j in columns))


def is_categorical(cells: Cells) -> bool:
    return isinstance(cells.grid.column, Categorical)
