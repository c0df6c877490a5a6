"""Treelite: one tree structure for all classes, with a vector at each leaf."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from hedgerow.errors import ExportError
from hedgerow.export.files import write_bytes
from hedgerow.export.forest import ExportTree, Forest, Link, forest_of
from hedgerow.export.metadata import Exported, covers_of, metadata_of, model_of, notes_of

_AFTER: dict[Link, tuple[str, str]] = {  # task, and what is done to the sums
    "logit": ("kBinaryClf", "sigmoid"),
    "softmax": ("kMultiClf", "softmax"),
    "share": ("kBinaryClf", "identity"),
    "shares": ("kMultiClf", "identity_multiclass"),
    "number": ("kRegressor", "identity"),
}


def to_treelite(model: Any, path: str | PathLike[str]) -> Exported:
    """Write a Treelite checkpoint, which `treelite.Model.deserialize(path)` reads.

    Needs the extra `export`. Input is a float matrix as `to_matrix` makes it.
    """
    chosen = model_of(model)
    forest = forest_of(chosen)
    exported = treelite_model(forest, metadata_of(chosen, forest))
    written = write_bytes(path, exported.serialize_bytes())
    n, covers = len(forest.trees), covers_of(forest)
    return Exported(written, "treelite", n, forest.n_nodes, covers, notes_of(chosen, forest))


def treelite_model(forest: Forest, metadata: dict[str, str]) -> Any:
    """The model as Treelite holds it."""
    try:
        from treelite import model_builder
    except ImportError as error:
        raise ExportError("treelite is not installed; pip install 'hedgerow[export]'") from error
    task, after = _AFTER[forest.link]
    k, n = forest.n_outputs, max(1, len(forest.trees))
    builder: Any = model_builder.ModelBuilder(
        threshold_type="float32",
        leaf_output_type="float32",
        metadata=model_builder.Metadata(
            num_feature=len(forest.schema.columns),
            task_type=task,
            average_tree_output=False,
            num_target=1,
            num_class=[k],
            leaf_vector_shape=(1, k),
        ),
        tree_annotation=model_builder.TreeAnnotation(
            num_tree=n, target_id=[0] * n, class_id=[-1 if k > 1 else 0] * n
        ),
        postprocessor=model_builder.PostProcessorFunc(name=after),
        base_scores=forest.base.tolist(),
        attributes=metadata,
    )
    for tree in forest.trees:
        _add(builder, tree)
    if not forest.trees:  # it needs one; this one adds 0
        builder.start_tree()
        _leaf(builder, 0, np.zeros(k))
        builder.end_tree()
    return builder.commit()


def _add(builder: Any, tree: ExportTree) -> None:
    builder.start_tree()
    for node in range(tree.n_nodes):
        if tree.feature[node] < 0:
            _leaf(builder, node, tree.values[node], float(tree.cover[node]))
            continue
        builder.start_node(node)
        how = {
            "default_left": bool(tree.missing_left[node]),
            "left_child_key": int(tree.left[node]),
            "right_child_key": int(tree.right[node]),
        }
        if (codes := tree.members.get(node)) is None:
            threshold = float(tree.threshold[node])
            builder.numerical_test(int(tree.feature[node]), threshold, opname="<", **how)
        else:
            builder.categorical_test(
                int(tree.feature[node]),
                category_list=codes.tolist(),
                category_list_right_child=True,
                **how,
            )
        builder.sum_hess(float(tree.cover[node]))
        builder.end_node()
    builder.end_tree()


def _leaf(builder: Any, node: int, values: Any, cover: float = 1.0) -> None:
    builder.start_node(node)
    builder.leaf([float(v) for v in values] if len(values) > 1 else float(values[0]))
    builder.sum_hess(cover)
    builder.end_node()
