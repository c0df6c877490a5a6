"""What trees know of their own noise, as arrays beside them in a model file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError
from hedgerow.model.tree import Tree

_TYPES = {"deviation": np.float32, "cover": np.float32, "independent": np.uint8}


def stack_known(trees: Sequence[Tree]) -> dict[str, NDArray[Any]]:
    """Deviations (leaf of all trees, output), covers (leaf) and which trees are independent."""
    outputs = trees[0].values.shape[1] if trees else 1
    deviation, cover = [np.zeros((0, outputs), np.float32)], [np.zeros(0, np.float32)]
    for tree in trees:
        unknown = np.full(tree.values.shape, np.nan, np.float32)
        deviation.append(unknown if tree.deviation is None else tree.deviation)
        cover.append(unknown[:, 0] if tree.cover is None else tree.cover)
    return {
        "deviation": np.concatenate(deviation),
        "cover": np.concatenate(cover),
        "independent": np.array([tree.independent for tree in trees], np.uint8),
    }


def with_known(trees: Sequence[Tree], arrays: dict[str, NDArray[Any]]) -> tuple[Tree, ...]:
    """The inverse of `stack_known`; contents are checked by `Tree.check`."""
    try:
        known = {name: arrays[name] for name in _TYPES}
    except KeyError as error:
        raise FormatError(f"trees lack the array {error}") from error
    n_leaves = sum(len(tree.values) for tree in trees)
    outputs = trees[0].values.shape[1] if trees else known["deviation"].shape[-1]
    shapes = {"deviation": (n_leaves, outputs), "cover": (n_leaves,), "independent": (len(trees),)}
    if any(
        known[name].dtype != dtype or known[name].shape != shapes[name]
        for name, dtype in _TYPES.items()
    ):
        raise FormatError("what trees say of their noise does not match their leaves")
    out, first = [], 0
    for tree, independent in zip(trees, known["independent"], strict=True):
        stop = first + len(tree.values)
        deviation, cover = known["deviation"][first:stop], known["cover"][first:stop]
        out.append(
            replace(
                tree,
                deviation=None if np.isnan(deviation).all() else deviation,
                cover=None if np.isnan(cover).all() else cover,
                independent=bool(independent),
            )
        )
        first = stop
    return tuple(out)
