"""Shapes changed by hand: one more tree, made of public numbers, and a record of it.

The promise stays what it was, because nothing is asked of any row (post-processing); provided that
whoever chose the numbers did not look at the rows for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import fine_grid
from hedgerow.data.counts import refuse_unusual
from hedgerow.errors import SettingsError
from hedgerow.inspection.explain.explanation import Explanation, explain
from hedgerow.inspection.explain.shapes import Shape
from hedgerow.methods.auto.parts import Parts, structure_of
from hedgerow.methods.auto.smoothing import directed
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Tree

Floats = NDArray[np.float64]
Where = str | tuple[float, float]


def edit(
    model: Ensemble,
    column: str,
    values: Mapping[Where, float] | None = None,
    *,
    direction: int = 0,
    output: int | str = 0,
    reason: str,
) -> Ensemble:
    """A model whose shape of one column is as said; everything else stays as it was.

    Parameters
    ----------
    values : new values of some cells, by their label or, in numeric columns, by (low, high): every
        cell that lies between; in the units of `Explanation.unit`
    direction : 1 or -1: the nearest shape that only rises or falls, instead of `values`
    output : which output, by its number or, of a multiclass model, by the class
    reason : why; it is kept in the model

    Notes
    -----
    The statement counts the changes, the record lists them with what was there before.
    """
    if not reason.strip():
        raise SettingsError("a shape is changed for a reason, which the model keeps; give one")
    if bool(values) == bool(direction) or direction not in (-1, 0, 1):
        raise SettingsError("give either new values or a direction, 1 or -1")
    refuse_unusual(model.schema.label, "changing shapes by hand")
    explanation = explain(model)
    shape, k = explanation.shape(column), _output(explanation, output)
    after = shape.values[k].copy()
    if values:
        for where, value in values.items():
            if not np.isfinite(value):
                raise SettingsError(f"the value for {where!r} of {column!r} is not a number")
            after[_chosen(shape, where)] = value
    else:
        after = _directed(shape, k, direction)
    changed = np.flatnonzero(after != shape.values[k])
    if not changed.size:
        raise SettingsError(f"the shape of {column!r} is like that already; nothing was changed")
    delta = np.zeros((len(after), len(explanation.outputs)))
    delta[:, k] = (after - shape.values[k]) / explanation.scale
    tree = _step(model, explanation.shapes.index(shape), shape, delta)
    entry = {
        "column": column, "output": k, "direction": direction, "reason": reason.strip(),
        "cells": [shape.cells.labels[c] for c in changed],
        "before": shape.values[k][changed].tolist(), "after": after[changed].tolist(),
        "tree": len(model.trees), "from": model.hash,
    }  # fmt: skip
    record: dict[str, Any] = {**model.record, "edits": [*model.record.get("edits", []), entry]}
    statement = replace(model.statement, edits=model.statement.edits + 1)
    return replace(model, trees=(*model.trees, tree), statement=statement, record=record)


def _output(found: Explanation, output: int | str) -> int:
    if isinstance(output, str) and output in found.outputs:
        return found.outputs.index(output)
    if isinstance(output, int) and 0 <= output < len(found.outputs):
        return output
    raise SettingsError(f"the model has no output {output!r}; it has {', '.join(found.outputs)}")


def _chosen(shape: Shape, where: Where) -> NDArray[np.int64]:
    """Cells of a label or of a range."""
    cells = shape.cells
    if isinstance(where, str):
        if where in cells.labels:
            return np.array([cells.labels.index(where)])
        known = ", ".join(cells.labels[:12]) + (", ..." if len(cells.labels) > 12 else "")
        raise SettingsError(f"{shape.column!r} has no cell {where!r}; its cells are {known}")
    low, high = where
    with np.errstate(invalid="ignore"):
        inside = np.flatnonzero((cells.lower >= low) & (cells.upper <= high))
    if cells.kind != "numeric" or not inside.size:
        raise SettingsError(
            f"no cell of {shape.column!r} lies between {low:g} and {high:g}; name cells by their "
            "labels, or give a range that holds at least one"
        )
    return inside


def _directed(shape: Shape, k: int, direction: int) -> Floats:
    if shape.cells.kind == "categorical":
        raise SettingsError(f"{shape.column!r} has no order, so its shape has no direction")
    return directed(shape.values[k], np.maximum(shape.weights, 1e-9), direction)


def _step(model: Ensemble, column: int, shape: Shape, delta: Floats) -> Tree:
    """A tree that adds delta (cell, output): public numbers, without any noise."""
    grid = fine_grid(model.schema)
    edges = shape.cells.grid.edges
    if shape.cells.kind != "categorical" and not len(edges):
        raise SettingsError(
            f"no tree of the model uses {shape.column!r}, so it has one cell; a constant says "
            "nothing"
        )
    cuts = tuple(int(k) for k in np.searchsorted(grid[column].edges, edges))
    if shape.cells.kind == "categorical":
        cuts = ()
    parts = Parts(column, cuts, np.arange(len(delta)))
    structure, cells = structure_of(model.schema, grid, [parts])
    values = delta[cells].astype(np.float32)
    return Tree(structure, values, np.zeros_like(values))
