"""Every format read back and run by its own library, as hedgerow's predictions look."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree._tree import NODE_DTYPE
from sklearn.tree._tree import Tree as SklearnTree

from hedgerow.export import to_onnx, to_sklearn, to_treelite, to_xgboost
from hedgerow.export.xgboost_json import feature_names, feature_types
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Tree
from tests.conftest import MIXED, mixed_table
from tests.export.ensembles import STATEMENT, random_tree

Matrix = NDArray[np.float32]
Floats = NDArray[np.float64]


def finished(model: Ensemble, raw: Any) -> Floats:
    """What the notes of an export ask for, where its format only adds up."""
    label, raw = model.schema.label, np.asarray(raw, np.float64)
    if label.lower is not None and label.upper is not None:
        return np.clip(raw.ravel(), label.lower, label.upper)
    if len(label.classes) == 2:
        second = np.clip(raw.ravel(), 0, 1)
        return np.column_stack([1 - second, second])
    shares = np.clip(raw.reshape(len(raw), -1), 0, None) + 1e-12
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def linked(model: Ensemble, sums: Floats, link: str) -> Floats:
    """Sums of leaf values (row, output) as the metadata's `link` says."""
    if link == "logit":
        sums = 1 / (1 + np.exp(-sums))
    elif link == "softmax":
        sums = np.exp(sums - sums.max(axis=1, keepdims=True))
    return finished(model, sums)


def matrix_for_xgboost(model: Ensemble, X: Matrix) -> Any:
    import xgboost

    return xgboost.DMatrix(
        X, feature_names=feature_names(model.schema), feature_types=feature_types(model.schema),
        enable_categorical=True, nthread=1,
    )  # fmt: skip


def with_xgboost(model: Ensemble, X: Matrix, folder: Path) -> Floats:
    import xgboost

    to_xgboost(model, folder / "model.json")
    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(folder / "model.json")
    return finished(model, booster.predict(matrix_for_xgboost(model, X)))


def with_onnxruntime(model: Ensemble, X: Matrix, folder: Path) -> Floats:
    """Nothing is left to be finished here: the graph clips and divides."""
    import onnxruntime

    to_onnx(model, folder / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(folder / "model.onnx", options)
    if model.schema.label.task == "regression":
        return np.asarray(session.run(["prediction"], {"X": X})[0])
    labels, shares = session.run(["label", "probabilities"], {"X": X})
    classes = np.array(model.schema.label.classes)
    assert list(labels) == list(classes[np.argmax(shares, axis=1)])
    return np.asarray(shares)


def with_treelite(model: Ensemble, X: Matrix, folder: Path) -> Floats:
    import treelite

    to_treelite(model, folder / "model.tl")
    read = treelite.Model.deserialize(folder / "model.tl")
    return finished(model, treelite.gtil.predict(read, X, nthread=1)[:, 0])


def sklearn_trees(arrays: Any, n_columns: int) -> list[SklearnTree]:
    """scikit-learn's own trees from the arrays of an export."""
    n_outputs, starts = arrays["value"].shape[1], arrays["tree_start"]
    trees = []
    for first, stop in pairwise(starts):
        nodes = np.zeros(stop - first, NODE_DTYPE)
        nodes["left_child"] = arrays["children_left"][first:stop]
        nodes["right_child"] = arrays["children_right"][first:stop]
        nodes["n_node_samples"] = 1
        for name in ("feature", "threshold", "missing_go_to_left", "weighted_n_node_samples"):
            nodes[name] = arrays[name][first:stop]
        tree = SklearnTree(n_columns, np.ones(n_outputs, np.intp), n_outputs)
        values = np.ascontiguousarray(arrays["value"][first:stop, :, None])
        tree.__setstate__(
            {"max_depth": 99, "node_count": len(nodes), "nodes": nodes, "values": values}
        )
        trees.append(tree)
    return trees


def with_sklearn(model: Ensemble, X: Matrix, folder: Path) -> Floats:
    to_sklearn(model, folder / "model.npz")
    with np.load(folder / "model.npz", allow_pickle=False) as arrays:
        sums = np.tile(arrays["base"], (len(X), 1))
        for tree in sklearn_trees(arrays, X.shape[1]):
            sums += tree.predict(X).reshape(len(X), -1)
        return linked(model, sums, json.loads(str(arrays["hedgerow_output"]))["link"])


RUNS = {
    "xgboost": with_xgboost,
    "onnx": with_onnxruntime,
    "sklearn": with_sklearn,
    "treelite": with_treelite,
}


def predictions(name: str, model: Ensemble, X: Matrix, folder: Path) -> Floats:
    return RUNS[name](model, X, folder)


TABLE = {name: values for name, values in mixed_table(150, seed=3).items() if name != "sick"}


def mixed_model(n_trees: int = 8, seed: int = 1, **changes: Any) -> Ensemble:
    """Random trees over every kind of column, one of them with 300 categories."""
    rng = np.random.default_rng(seed)
    trees = tuple(random_tree(rng, MIXED, 1, 10) for _ in range(n_trees))
    return replace(Ensemble(trees, MIXED, STATEMENT), **changes)


def numbers_of(tree: Tree) -> NDArray[np.float32]:
    return np.linspace(0.5, 9, tree.structure.n_leaves).astype(np.float32)


def metadata(name: str, path: Path) -> dict[str, str]:
    """What a file says of itself, read with its own library."""
    if name == "xgboost":
        found: dict[str, str] = json.loads(path.read_text())["learner"]["attributes"]
        return found
    if name == "sklearn":
        with np.load(path, allow_pickle=False) as arrays:
            return {k: str(arrays[k]) for k in arrays if k.startswith("hedgerow_")}
    if name == "onnx":
        import onnx

        return {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    import treelite

    attributes = treelite.Model.deserialize(path).attributes
    return dict(json.loads(attributes) if isinstance(attributes, str) else attributes)
