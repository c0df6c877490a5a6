"""XGBoost's JSON: one tree a class, category sets as XGBoost has them, covers as Hessian sums."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any

import numpy as np

from hedgerow.data.schema import Categorical, Column, Schema
from hedgerow.data.values import text_of
from hedgerow.export.files import write_bytes
from hedgerow.export.forest import ExportTree, Forest, Link, forest_of, n_codes_of
from hedgerow.export.hazards import interval_forest
from hedgerow.export.metadata import Exported, covers_of, metadata_of, model_of, notes_of

VERSION = [3, 2, 0]  # of XGBoost whose layout this is
NO_PARENT = 2147483647
_REFUSED = str.maketrans("[]<", "()(")
INT64 = 15  # XGBoost's number for the type of a list of whole numbers
_OBJECTIVES: dict[Link, str] = {
    "logit": "binary:logistic",
    "softmax": "multi:softprob",
    "share": "reg:squarederror",
    "shares": "reg:squarederror",
    "number": "reg:squarederror",
    "hazards": "count:poisson",  # whose predictions are exponentials of sums
}


def to_xgboost(model: Any, path: str | PathLike[str]) -> Exported:
    """Write a model as XGBoost JSON, which `xgboost.Booster().load_model(path)` reads.

    `model` is an Ensemble, a fitted estimator or the path of a `.hedge` file. Nothing but hedgerow
    is needed to write it. A model of times to an event predicts the hazard of one interval, whose
    number is its last column: `interval_rows` makes such rows.
    """
    chosen = model_of(model)
    times = chosen.schema.label.task == "survival"
    forest = interval_forest(chosen) if times else forest_of(chosen)
    document = xgboost_document(forest, metadata_of(chosen, forest))
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    written = write_bytes(path, text.encode("utf-8"))
    n = len(forest.trees) * forest.n_outputs
    nodes = forest.n_nodes * forest.n_outputs
    notes = (*notes_of(chosen, forest), *_names_note(forest.schema))
    return Exported(written, "xgboost", n, nodes, covers_of(forest), notes)


def xgboost_document(forest: Forest, metadata: dict[str, str]) -> dict[str, Any]:
    """The whole document."""
    schema, k = forest.schema, forest.n_outputs
    # The same for every output. XGBoost before 3.1 takes a list for nothing, silently.
    base = 0.5 if forest.link == "logit" else float(forest.base[0])
    base = 1.0 if forest.link == "hazards" else base  # the exponential of a sum of nothing
    learner = {
        "attributes": metadata,
        "feature_names": feature_names(schema),
        "feature_types": feature_types(schema),
        "gradient_booster": {"model": _trees(forest), "name": "gbtree"},
        "learner_model_param": {
            "base_score": f"{base:.9g}",
            "boost_from_average": "0",
            "num_class": str(k if forest.link == "softmax" else 0),
            "num_feature": str(len(schema.columns)),
            "num_target": str(k if forest.link == "shares" else 1),
        },
        "objective": _objective(forest),
    }
    return {"learner": learner, "version": VERSION}


def feature_names(schema: Schema) -> list[str]:
    """Names of the columns as XGBoost takes them: without [, ] and <.

    >>> feature_names(Schema.from_bounds({"dose[mg]": (0, 5)}, classes=[0, 1]))
    ['dose(mg)']
    """
    names: list[str] = []
    for name in schema.names:
        plain = name.translate(_REFUSED)
        while plain in names or (plain != name and plain in schema.names):
            plain += "_"
        names.append(plain)
    return names


def feature_types(schema: Schema) -> list[str]:
    """XGBoost's words for the columns: "c" for categories, which are codes, else "float"."""
    return ["c" if isinstance(column, Categorical) else "float" for column in schema.columns]


def category_names(column: Categorical) -> list[str] | list[int]:
    """The names of a column's codes: whole numbers if its list has only those, else texts.

    >>> category_names(Categorical("site", ("north", "south"), other="category"))
    ['north', 'south', '(other)']
    """
    if all(isinstance(v, int) and not isinstance(v, bool) for v in column.categories):
        numbers = [int(v) for v in column.categories]
        return numbers + ([max(numbers) + 1] if column.other == "category" else [])
    names = [text_of(v) for v in column.categories]
    if column.other == "category":
        other = "(other)"
        while other in names:
            other = f"({other})"
        names.append(other)
    return names


def _names_note(schema: Schema) -> list[str]:
    notes, names = [], zip(schema.names, feature_names(schema), strict=True)
    if renamed := [f"{name!r} is {new!r}" for name, new in names if name != new]:
        notes.append(f"XGBoost refuses some characters in names: {', '.join(renamed)} there.")
    listed = [c for c in schema.columns if isinstance(c, Categorical)]
    beyond = [c.name for c in listed if not "".join(map(str, category_names(c))).isascii()]
    if beyond:
        notes.append(
            f"Give columns {', '.join(map(repr, beyond))} as codes: XGBoost up to 3.2 misreads "
            "names beyond ASCII in pandas frames."
        )
    return notes


def _objective(forest: Forest) -> dict[str, Any]:
    name = _OBJECTIVES[forest.link]
    if forest.link == "softmax":
        return {"name": name, "softmax_multiclass_param": {"num_class": str(forest.n_outputs)}}
    if forest.link == "hazards":
        return {"name": name, "poisson_regression_param": {"max_delta_step": "0.7"}}
    return {"name": name, "reg_loss_param": {"scale_pos_weight": "1"}}


def _trees(forest: Forest) -> dict[str, Any]:
    k = forest.n_outputs
    trees = [
        _tree(tree, output, forest.schema, number * k + output)
        for number, tree in enumerate(forest.trees)
        for output in range(k)
    ]
    return {
        "cats": _categories(forest.schema),
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
        "iteration_indptr": list(range(0, len(trees) + 1, k)),
        "tree_info": list(range(k)) * len(forest.trees),
        "trees": trees,
    }


def _tree(tree: ExportTree, output: int, schema: Schema, number: int) -> dict[str, Any]:
    leaf = tree.feature < 0
    values = tree.values[:, output].astype(np.float32)
    sets = _sets(tree, schema)
    nodes, sizes = list(sets), [len(codes) for codes in sets.values()]
    is_set = np.zeros(tree.n_nodes, np.int64)
    is_set[nodes] = 1
    parents = np.full(tree.n_nodes, NO_PARENT, np.int64)
    for side in (tree.left, tree.right):
        parents[side[~leaf]] = np.flatnonzero(~leaf)
    return {
        "base_weights": _numbers(values),
        "categories": [code for codes in sets.values() for code in codes],
        "categories_nodes": nodes,
        "categories_segments": np.cumsum([0, *sizes])[:-1].tolist(),
        "categories_sizes": sizes,
        "default_left": (tree.missing_left & ~leaf).astype(int).tolist(),
        "id": number,
        "left_children": tree.left.tolist(),
        "loss_changes": [0.0] * tree.n_nodes,
        "parents": parents.tolist(),
        "right_children": tree.right.tolist(),
        "split_conditions": _numbers(np.where(leaf, values, tree.threshold)),
        "split_indices": np.where(leaf, 0, tree.feature).tolist(),
        "split_type": is_set.tolist(),
        "sum_hessian": _numbers(tree.cover.astype(np.float32)),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(len(schema.columns)),
            "num_nodes": str(tree.n_nodes),
            "size_leaf_vector": "1",
        },
    }


def _sets(tree: ExportTree, schema: Schema) -> dict[int, list[int]]:
    """Codes that go right by node. A set may not be empty: then it holds a code of no category."""
    sets = {}
    for node in np.flatnonzero(tree.feature >= 0).tolist():
        column = schema.columns[int(tree.feature[node])]
        if isinstance(column, Categorical):
            n_codes = n_codes_of(column)
            trivial = [n_codes] if tree.threshold[node] > 0 else list(range(n_codes))
            codes = tree.members.get(node)
            sets[node] = trivial if codes is None else codes.tolist()
    return sets


def _numbers(values: Any) -> list[float]:
    """float32 numbers as short as they read back the same."""
    return [float(str(value)) for value in values.astype(np.float32)]


def _categories(schema: Schema) -> dict[str, Any]:
    """Names of categories by column, so that frames with category columns are coded alike."""
    if not any(isinstance(column, Categorical) for column in schema.columns):
        return {"enc": [], "feature_segments": [], "sorted_idx": []}
    names = [_names(column) for column in schema.columns]
    order = [sorted(range(len(codes)), key=codes.__getitem__) for codes in names]
    return {
        "enc": [_encoded(codes) for codes in names],
        "feature_segments": np.cumsum([0, *map(len, names)]).tolist(),
        "sorted_idx": [place for places in order for place in places],
    }


def _names(column: Column) -> list[Any]:
    """Names as XGBoost orders them: numbers, or texts by their bytes."""
    if not isinstance(column, Categorical):
        return []
    return [n.encode() if isinstance(n, str) else n for n in category_names(column)]


def _encoded(names: list[Any]) -> dict[str, Any]:
    if names and isinstance(names[0], int):
        return {"type": INT64, "values": names}
    offsets = np.cumsum([0, *map(len, names)]).tolist() if names else []
    return {"offsets": offsets, "values": np.frombuffer(b"".join(names), np.int8).tolist()}
