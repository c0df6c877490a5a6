"""Models of times to an event, as they are explained: by the hazards of all intervals together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hedgerow.errors import FormatError
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Tree


def explained_trees(model: Ensemble) -> tuple[Tree, ...]:
    """The trees of a model; of times to an event with one output, which adds up to the risk.

    Every tree but the base line moves the hazards of all intervals alike, so one column of its
    values says all; the base line becomes the logarithm of its hazards together.
    """
    if model.schema.label.task != "survival":
        return model.trees
    return tuple(_of_one_output(tree) for tree in model.trees)


def _of_one_output(tree: Tree) -> Tree:
    values = tree.values.astype(np.float64)
    if len(values) == 1:
        base = np.log(np.exp(np.clip(values, -700, 50)).sum(axis=1, keepdims=True))
        return replace(tree, values=base.astype(np.float32), deviation=None)
    if not np.array_equal(tree.values, np.repeat(tree.values[:, :1], values.shape[1], axis=1)):
        raise FormatError("a tree of the model moves hazards differently over time")
    noise = None if tree.deviation is None else np.ascontiguousarray(tree.deviation[:, :1])
    return replace(tree, values=np.ascontiguousarray(tree.values[:, :1]), deviation=noise)
