"""Models of times to an event, as they are explained: by the hazards of all intervals together.

Where effects change at a public cut, by those of each of the two periods.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hedgerow.data.schema import Label
from hedgerow.errors import FormatError
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Tree


def periods_of(label: Label) -> tuple[int, ...]:
    """How many intervals have their effects in common, in order."""
    n, first = len(label.cuts), label.n_first
    return (first, n - first) if first else (n,)


def outputs_of(label: Label) -> tuple[str, ...]:
    """What each output of an explanation says something about: the event, in each period."""
    if label.change_at is None:
        return (str(label.event),)
    return f"{label.event} up to {label.change_at:g}", f"{label.event} after {label.change_at:g}"


def explained_trees(model: Ensemble) -> tuple[Tree, ...]:
    """The trees of a model; of times to an event with one output a period, adding up to the risk.

    Every tree but the base line moves the hazards of all intervals of a period alike, so one column
    of its values says all; the base line becomes the logarithm of the period's hazards together.
    """
    label = model.schema.label
    if label.task != "survival":
        return model.trees
    return tuple(_by_period(tree, periods_of(label)) for tree in model.trees)


def _by_period(tree: Tree, periods: tuple[int, ...]) -> Tree:
    values = tree.values.astype(np.float64)
    starts = np.cumsum([0, *periods])[:-1]
    if len(values) == 1:
        hazards = np.exp(np.clip(values, -700, 50))
        base = np.log(np.add.reduceat(hazards, starts, axis=1))
        return replace(tree, values=base.astype(np.float32), deviation=None)
    if not np.array_equal(tree.values, np.repeat(tree.values[:, starts], periods, axis=1)):
        raise FormatError("a tree of the model moves hazards of one period differently over time")
    noise = None if tree.deviation is None else np.ascontiguousarray(tree.deviation[:, starts])
    return replace(tree, values=np.ascontiguousarray(tree.values[:, starts]), deviation=noise)
