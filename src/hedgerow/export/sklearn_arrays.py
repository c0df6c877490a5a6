"""Arrays as scikit-learn's `Tree` has them, in an `.npz` file: no pickle, no category splits."""

from __future__ import annotations

import io
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.export.files import write_bytes
from hedgerow.export.forest import ExportTree, Forest, forest_of
from hedgerow.export.metadata import Exported, covers_of, metadata_of, model_of, notes_of
from hedgerow.export.ordering import ordered

LEAF, UNDEFINED = -1, -2  # scikit-learn's marks: children and feature of a leaf


def to_sklearn(model: Any, path: str | PathLike[str]) -> Exported:
    """Write a model as arrays that scikit-learn's trees are made of (`.npz`, no pickle).

    `x <= threshold` goes left there, so a threshold is the float32 number just below hedgerow's. A
    category split becomes several ordered ones. Nothing but hedgerow is needed to write it.
    """
    chosen = model_of(model)
    forest = forest_of(chosen)
    arrays = sklearn_arrays(forest)
    texts = {name: np.array(text) for name, text in metadata_of(chosen, forest).items()}
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays, **texts)
    written = write_bytes(path, file.getvalue())
    n, nodes = len(forest.trees), len(arrays["feature"])
    return Exported(written, "sklearn", n, nodes, covers_of(forest), notes_of(chosen, forest))


def sklearn_arrays(forest: Forest) -> dict[str, NDArray[Any]]:
    """All trees one after another; `tree_start` (tree + 1,) says where each begins."""
    trees = [_arrays(tree) for tree in ordered(forest)]
    starts = np.cumsum([0, *(len(tree["feature"]) for tree in trees)])
    shapes = _arrays_of_nothing(forest.n_outputs)
    return {
        "tree_start": starts.astype(np.int64),
        "base": forest.base,
        **{name: np.concatenate([empty, *(t[name] for t in trees)]) for name, empty in shapes},
    }


def _arrays(tree: ExportTree) -> dict[str, NDArray[Any]]:
    leaf = tree.feature < 0
    below = np.nextafter(tree.threshold, np.float32(-np.inf))
    return {
        "children_left": np.where(leaf, LEAF, tree.left).astype(np.int64),
        "children_right": np.where(leaf, LEAF, tree.right).astype(np.int64),
        "feature": np.where(leaf, UNDEFINED, tree.feature).astype(np.int64),
        "threshold": np.where(leaf, UNDEFINED, below).astype(np.float64),
        "missing_go_to_left": (tree.missing_left & ~leaf).astype(np.uint8),
        "weighted_n_node_samples": tree.cover,
        "value": tree.values,
    }


def _arrays_of_nothing(n_outputs: int) -> list[tuple[str, NDArray[Any]]]:
    empty = ExportTree(
        np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0, np.bool_),
        np.zeros(0, np.int32), np.zeros(0, np.int32), {}, np.zeros((0, n_outputs)), np.zeros(0),
    )  # fmt: skip
    return list(_arrays(empty).items())
