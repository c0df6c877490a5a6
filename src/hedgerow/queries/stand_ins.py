"""Questions about a growing tree at their largest, for whoever measures messages beforehand."""

from __future__ import annotations

from hedgerow.binning import base_grid
from hedgerow.model.tree import Structure
from hedgerow.queries.base import SumQuery
from hedgerow.queries.class_histograms import ClassHistograms
from hedgerow.queries.impurity_bounds import ImpurityBounds
from hedgerow.queries.tree_nodes import Asked
from hedgerow.schema import Schema

KINDS = (ClassHistograms.kind, ImpurityBounds.kind)
Shapes = dict[str, tuple[int, ...]]


def tree_stand_in(
    kind: str, schema: Schema, n_bins: int, n_leaves: int, root: Structure
) -> tuple[SumQuery, Shapes]:
    """A small question of the kind, and the shapes that its arrays have for so many leaves.

    The shapes of the tree itself are for the caller to add.
    """
    k, n_columns = max(2, len(schema.label.classes)), len(schema.columns)
    cuts = sum(min(n_bins - 1, len(grid.edges)) for grid in base_grid(schema) if grid.ordered)
    shapes: Shapes = {
        "columns": (n_columns,), "n_cuts": (n_columns,), "cuts": (cuts,),
        "leaves": (n_leaves,), "leaf_columns": (n_leaves,), "prices": (n_leaves,),
        "asked_columns": (n_leaves * n_columns,),
    }  # fmt: skip
    asked = (Asked(0, (0,), 1.0),)
    if kind == ImpurityBounds.kind:
        return ImpurityBounds(root, asked, (0,), ((),), k, subsets=False), shapes
    shapes["widths"] = (n_columns,)
    return ClassHistograms(root, asked, (0,), ((),), (1,), k), shapes
