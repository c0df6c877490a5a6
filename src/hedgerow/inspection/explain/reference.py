"""What effects are measured against: weights of every column's cells, from releases if there are.

Columns are weighed one by one, as if they were independent; a model holds no more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.inspection.explain.cells import Boxes, Cells
from hedgerow.model.tree import Tree

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reference:
    """Weights (cell,) of one column, adding up to 1, and whether releases made them."""

    weights: Floats
    released: bool


def references(
    trees: Sequence[Tree], boxes: Sequence[Boxes], cells: Sequence[Cells]
) -> tuple[Reference, ...]:
    """Released covers of leaves, added up by cell; the schema's own weights where none are known.

    Trees of one column count alone where there are some, because their leaves are the column's
    own. A leaf of several cells spreads over them as the schema's weights do.
    """
    single: list[Floats] = [np.zeros(len(c.public)) for c in cells]
    several: list[Floats] = [np.zeros(len(c.public)) for c in cells]
    for tree, box in zip(trees, boxes, strict=True):
        if tree.cover is None:
            continue
        cover = np.nan_to_num(tree.cover.astype(np.float64), nan=0.0)
        for j, inside in zip(box.columns, box.inside, strict=True):
            part = inside * cells[j].public
            total = part.sum(axis=1)
            scale = np.divide(cover, total, out=np.zeros_like(cover), where=total > 0)
            (single if len(box.columns) == 1 else several)[j] += scale @ part
    result = []
    for alone, shared, column in zip(single, several, cells, strict=True):
        weights = alone if alone.sum() > 0 else shared
        known = bool(weights.sum() > 0)
        weights = weights if known else column.public
        result.append(Reference(weights / weights.sum(), known))
    return tuple(result)
