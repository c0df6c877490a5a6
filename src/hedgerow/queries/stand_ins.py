"""Questions about a growing tree at their largest, for whoever measures messages beforehand."""

from __future__ import annotations

import sys

import numpy as np

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.model.tree import Structure
from hedgerow.queries.base import EnsembleRef, SumQuery
from hedgerow.queries.class_histograms import ClassHistograms
from hedgerow.queries.class_outcomes import ClassOutcomes
from hedgerow.queries.error_counts import ErrorCounts
from hedgerow.queries.error_sums import N_BLOCKS, ErrorSums
from hedgerow.queries.gradients import Gradients
from hedgerow.queries.impurity_bounds import ImpurityBounds
from hedgerow.queries.leaf_averages import LEAF_RULES, LeafAverages
from hedgerow.queries.split_choices import UTILITIES, SplitChoices
from hedgerow.queries.tree_nodes import Asked

KINDS = (ClassHistograms.kind, ImpurityBounds.kind)
CHOICES = (SplitChoices.kind, LeafAverages.kind)
OUTCOMES = (ClassOutcomes.kind, ErrorCounts.kind, ErrorSums.kind)
LONGEST_NUMBER = sys.float_info.max  # 23 letters as JSON, as long as a positive number gets
LONGEST_MECHANISM = "permute-and-flip"
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


def choice_stand_in(
    kind: str, schema: Schema, n_bins: int, n_leaves: int, root: Structure, gradients: Gradients
) -> tuple[SumQuery, Shapes]:
    """The same of questions about cuts that are drawn, and about their leaves."""
    if kind == LeafAverages.kind:
        rule = max(LEAF_RULES, key=len)
        price = reg_lambda = LONGEST_NUMBER
        return LeafAverages(root, gradients, price, rule, 10**9, reg_lambda), {}
    grid, n_columns = base_grid(schema), len(schema.columns)
    cuts = [min(n_bins - 1, len(one.edges)) if one.ordered else 0 for one in grid]
    bins = [(c + 1 if one.ordered else one.n_cells) + 1 for c, one in zip(cuts, grid, strict=True)]
    shapes: Shapes = {
        "columns": (n_columns,), "n_cuts": (n_columns,), "cuts": (sum(cuts),),
        "n_bins": (n_columns,), "leaves": (n_leaves,), "possible": (n_leaves, sum(bins)),
    }  # fmt: skip
    columns = ((0,), ((),), (1,))
    possible, utility = np.ones((1, 1), np.bool_), max(UTILITIES, key=len)
    numbers = (LONGEST_NUMBER, LONGEST_NUMBER)
    query = SplitChoices(
        root, (0,), possible, *columns, gradients, *numbers, LONGEST_MECHANISM, utility
    )
    return query, shapes


def gradients_stand_in(loss: str, ensemble: EnsembleRef) -> Gradients:
    """With the longest numbers that can be written."""
    return Gradients(loss, ensemble, LONGEST_NUMBER)


def outcomes_stand_in(kind: str, n_classes: int, ensemble: EnsembleRef) -> tuple[SumQuery, Shapes]:
    """Questions about finished predictions, with more edges than any evaluation has."""
    edges: Shapes = {"edges": (64,)}
    if kind == ErrorCounts.kind:
        return ErrorCounts((), 999, ensemble), edges
    if kind == ErrorSums.kind:
        numbers = (LONGEST_NUMBER,) * 3
        return ErrorSums((), *numbers, (1.0,) * N_BLOCKS, ensemble), edges
    return ClassOutcomes(n_classes, (), LONGEST_NUMBER, (1.0, 1.0, 1.0), ensemble), edges
