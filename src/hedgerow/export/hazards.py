"""Models of times to an event for other formats: rows by interval, or survival at every cut.

Whatever their trees move, they move alike in all intervals of a period; one tree of one leaf, the
base line, tells intervals apart. Formats of one number a row get one more column, the interval, and
their number is the logarithm of its hazard; survival at a cut is exp(-hazards up to it).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Numeric, Schema
from hedgerow.export.forest import ExportTree, Floats, Forest, export_tree, leaf_covers, up_the_tree
from hedgerow.model.ensemble import Ensemble

INTERVAL = "interval"


def base_line(model: Ensemble) -> Floats:
    """Logarithms of the hazards of a row that no split moves: (interval,)."""
    single = [t.values[0].astype(np.float64) for t in model.trees if len(t.values) == 1]
    return np.asarray(np.sum([np.zeros(model.loss.n_outputs), *single], axis=0))


def hazard_forest(model: Ensemble) -> Forest:
    """The trees that split, with one output a period; the base line stands beside them."""
    label = model.schema.label
    places = [0, -1] if label.n_first else [0]
    trees, known = [], []
    for tree in model.trees:
        if len(tree.values) > 1:
            cover, is_known = leaf_covers(tree)
            values = tree.values[:, places].astype(np.float64)
            trees.append(export_tree(tree.structure, model.schema, values, cover))
            known.append(is_known)
    base = np.zeros(len(places))
    return Forest(tuple(trees), model.schema, "hazards", base, True, len(known), sum(known))


def interval_forest(model: Ensemble) -> Forest:
    """One output, the logarithm of an interval's hazard; the interval is the last column."""
    schema = with_interval(model.schema)
    column, first = len(model.schema.columns), model.schema.label.n_first
    forest = hazard_forest(model)
    trees = [_steps(base_line(model)[:, None], column)]
    for tree in forest.trees:
        if not first or np.array_equal(tree.values[:, 0], tree.values[:, 1]):
            trees.append(replace(tree, values=tree.values[:, :1]))
        else:
            trees.append(_by_period(tree, first, column))
    return replace(forest, trees=tuple(trees), schema=schema, base=np.zeros(1))


def with_interval(schema: Schema) -> Schema:
    """The schema with one more column: the number of the interval, from 0."""
    name = INTERVAL
    while name in (*schema.names, *schema.label.columns):
        name += "_"
    last = Numeric(name, 0, len(schema.label.cuts) - 1, integer=True, missing=False)
    return replace(schema, columns=(*schema.columns, last))


def interval_rows(matrix: NDArray[np.float32], n_intervals: int) -> NDArray[np.float32]:
    """A matrix (row, column) with every row once for each interval, whose number stands last.

    >>> interval_rows(np.array([[7.0]], np.float32), 2).tolist()
    [[7.0, 0.0], [7.0, 1.0]]
    """
    number = np.tile(np.arange(n_intervals, dtype=np.float32), len(matrix))
    return np.column_stack([np.repeat(matrix, n_intervals, axis=0), number])


def _steps(values: Floats, column: int) -> ExportTree:
    """A tree with a leaf for every interval: values (interval, 1)."""
    feature, left, right = list[int](), list[int](), list[int]()
    threshold, leaves = list[float](), list[Floats]()

    def grow(begin: int, stop: int) -> int:
        node = len(feature)
        leaf = stop - begin == 1
        middle = (begin + stop) // 2
        feature.append(-1 if leaf else column)
        threshold.append(0.0 if leaf else middle - 0.5)
        left.append(-1)
        right.append(-1)
        if leaf:
            leaves.append(values[begin])
        else:
            left[node], right[node] = grow(begin, middle), grow(middle, stop)
        return node

    grow(0, len(values))
    shape = (np.array(feature, np.int32), np.array(left, np.int32), np.array(right, np.int32))
    summed = up_the_tree(*shape, np.array(leaves), np.ones(len(leaves)))
    return ExportTree(
        shape[0], np.array(threshold, np.float32), np.zeros(len(feature), np.bool_), *shape[1:], {},
        *summed,
    )  # fmt: skip


def _by_period(tree: ExportTree, first: int, column: int) -> ExportTree:
    """A cut at the change, and the whole tree on both sides of it, each with its own values."""
    n = tree.n_nodes

    def moved(side: NDArray[np.int32], by: int) -> NDArray[np.int32]:
        return np.where(tree.feature < 0, -1, side + by).astype(np.int32)

    values = np.concatenate([tree.values[:, 0], tree.values[:, 1]])
    both = np.tile(tree.cover, 2) / 2
    root = np.array([(values[0] + values[n]) / 2])
    return ExportTree(
        np.concatenate([[column], tree.feature, tree.feature]).astype(np.int32),
        np.concatenate([[first - 0.5], tree.threshold, tree.threshold]).astype(np.float32),
        np.concatenate([[True], tree.missing_left, tree.missing_left]),
        np.concatenate([[1], moved(tree.left, 1), moved(tree.left, 1 + n)]).astype(np.int32),
        np.concatenate([[1 + n], moved(tree.right, 1), moved(tree.right, 1 + n)]).astype(np.int32),
        {node + by: codes for by in (1, 1 + n) for node, codes in tree.members.items()},
        np.concatenate([root, values])[:, None],
        np.concatenate([[tree.cover[0]], both]),
    )
