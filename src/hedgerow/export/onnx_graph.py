"""ONNX: one `TreeEnsemble` (ai.onnx.ml 5) and the few steps from its sums to predictions."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Label
from hedgerow.data.values import text_of
from hedgerow.errors import ExportError
from hedgerow.export.files import write_bytes
from hedgerow.export.forest import ExportTree, Forest, forest_of
from hedgerow.export.hazards import base_line, hazard_forest
from hedgerow.export.metadata import NONE, Exported, metadata_of, model_of, notes_of

LESS, MEMBER = 1, 6  # BRANCH_LT, BRANCH_MEMBER
SUM, NO_TRANSFORM = 1, 0
OPSETS = {"": 17, "ai.onnx.ml": 5}
IR_VERSION = 10
RUNTIME = (
    "Run it with onnxruntime 1.24 or later: earlier versions lack this operator, or predict "
    "something else with it."
)


def to_onnx(model: Any, path: str | PathLike[str]) -> Exported:
    """Write a model as ONNX, which onnxruntime 1.24 and later run. Needs the extra `export`.

    Input `X` is a float matrix as `to_matrix` makes it. Classes come out as `label` and
    `probabilities` (row, class), regression gives `prediction` (row,), times to an event give
    `survival` (row, cut).
    """
    try:
        import onnx
    except ImportError as error:
        raise ExportError("onnx is not installed; pip install 'hedgerow[export]'") from error
    chosen = model_of(model)
    times = chosen.schema.label.task == "survival"
    forest = hazard_forest(chosen) if times else forest_of(chosen)
    graph = _graph(onnx, forest, base_line(chosen) if times else np.zeros(0))
    opsets = [onnx.helper.make_opsetid(domain, number) for domain, number in OPSETS.items()]
    exported = onnx.helper.make_model(
        graph, opset_imports=opsets, producer_name="hedgerow", ir_version=IR_VERSION
    )
    onnx.helper.set_model_props(exported, metadata_of(chosen, forest, NONE))
    onnx.checker.check_model(exported)
    written = write_bytes(path, exported.SerializeToString(deterministic=True))
    nodes = forest.n_nodes * forest.n_outputs
    n = len(forest.trees) * forest.n_outputs
    notes = (*notes_of(chosen, forest, finished=True, covers=False), RUNTIME)
    return Exported(written, "onnx", n, nodes, NONE, notes)


def _graph(onnx: Any, forest: Forest, hazards: NDArray[np.float64]) -> Any:
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    constants: dict[str, NDArray[Any]] = {}
    nodes = [
        helper.make_node(
            "TreeEnsemble", ["X"], ["sums"], domain="ai.onnx.ml", **_attributes(onnx, forest)
        ),
        helper.make_node("Add", ["sums", "base"], ["scores"]),
    ]
    constants["base"] = _constant_part(forest).astype(np.float32)
    label = forest.schema.label
    if forest.link == "number":
        outputs = [helper.make_tensor_value_info("prediction", floats, [None])]
        steps = _number_steps(label, constants)
    elif forest.link == "hazards":
        outputs = [helper.make_tensor_value_info("survival", floats, [None, len(label.cuts)])]
        steps = _survival_steps(label, hazards, constants)
    else:
        kind = onnx.TensorProto.INT64 if _whole(label) else onnx.TensorProto.STRING
        outputs = [
            helper.make_tensor_value_info("label", kind, [None]),
            helper.make_tensor_value_info("probabilities", floats, [None, len(label.classes)]),
        ]
        steps = [*_share_steps(forest, constants), *_label_steps(label, constants)]
    nodes += [helper.make_node(op, inputs, [out], **how) for op, inputs, out, how in steps]
    columns = helper.make_tensor_value_info("X", floats, [None, len(forest.schema.columns)])
    stored = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
    return helper.make_graph(nodes, "hedgerow", [columns], outputs, stored)


_Step = tuple[str, list[str], str, dict[str, Any]]


def _number_steps(label: Label, constants: dict[str, NDArray[Any]]) -> list[_Step]:
    assert label.lower is not None
    assert label.upper is not None
    constants["lower"] = np.array(label.lower, np.float32)
    constants["upper"] = np.array(label.upper, np.float32)
    constants["last"] = np.array([1], np.int64)
    return [
        ("Clip", ["scores", "lower", "upper"], "column", {}),
        ("Squeeze", ["column", "last"], "prediction", {}),
    ]


def _survival_steps(
    label: Label, hazards: NDArray[np.float64], constants: dict[str, NDArray[Any]]
) -> list[_Step]:
    """From the scores of each period (row, period) and the base line to survival (row, cut)."""
    n, first = len(label.cuts), label.n_first
    constants["period"] = np.array([0] * first + [int(first > 0)] * (n - first), np.int64)
    constants["hazards"] = hazards.reshape(1, -1).astype(np.float32)
    constants["over"] = np.array(1, np.int64)
    return [
        ("Gather", ["scores", "period"], "of_intervals", {"axis": 1}),
        ("Add", ["of_intervals", "hazards"], "logs", {}),
        ("Exp", ["logs"], "each", {}),
        ("CumSum", ["each", "over"], "together", {}),
        ("Neg", ["together"], "below", {}),
        ("Exp", ["below"], "survival", {}),
    ]


def _share_steps(forest: Forest, constants: dict[str, NDArray[Any]]) -> list[_Step]:
    """From scores (row, output) to probabilities (row, class), as the losses do it."""
    if forest.link == "softmax":
        return [("Softmax", ["scores"], "probabilities", {"axis": 1})]
    zero = {"zero": np.array(0, np.float32)}
    if forest.link == "shares":
        constants |= {**zero, "tiny": np.array(1e-12, np.float32), "classes": np.array([1])}
        return [
            ("Max", ["scores", "zero"], "positive", {}),
            ("Add", ["positive", "tiny"], "shares", {}),
            ("ReduceSum", ["shares", "classes"], "total", {"keepdims": 1}),
            ("Div", ["shares", "total"], "probabilities", {}),
        ]
    constants["one"] = np.array(1, np.float32)
    second: _Step = ("Sigmoid", ["scores"], "second", {})
    if forest.link == "share":
        constants |= zero
        second = ("Clip", ["scores", "zero", "one"], "second", {})
    return [
        second,
        ("Sub", ["one", "second"], "first", {}),
        ("Concat", ["first", "second"], "probabilities", {"axis": 1}),
    ]


def _label_steps(label: Label, constants: dict[str, NDArray[Any]]) -> list[_Step]:
    values = label.classes if _whole(label) else [text_of(value) for value in label.classes]
    constants["names"] = np.array(values, np.int64 if _whole(label) else object)
    return [
        ("ArgMax", ["probabilities"], "best", {"axis": 1, "keepdims": 0}),
        ("Gather", ["names", "best"], "label", {"axis": 0}),
    ]


def _whole(label: Label) -> bool:
    return all(isinstance(v, int) and not isinstance(v, bool) for v in label.classes)


def _constant_part(forest: Forest) -> NDArray[np.float64]:
    """The base and the trees of one leaf, which have no node: (1, output)."""
    single = [tree.values[0] for tree in forest.trees if tree.n_nodes == 1]
    return np.asarray(np.sum([forest.base, *single], axis=0).reshape(1, -1))


def _attributes(onnx: Any, forest: Forest) -> dict[str, Any]:
    """The trees, once for each output: a leaf of this operator has one number."""
    parts = _Parts()
    trees = [tree for tree in forest.trees if tree.n_nodes > 1] or [_nothing(forest.n_outputs)]
    for output in range(forest.n_outputs):
        for tree in trees:
            parts.add(tree, output)
    tensor = onnx.numpy_helper.from_array
    members = np.array(parts.members, np.float32)
    given: dict[str, Any] = {
        "aggregate_function": SUM,
        "post_transform": NO_TRANSFORM,
        "n_targets": forest.n_outputs,
        "tree_roots": parts.roots,
        "nodes_splits": tensor(np.array(parts.splits, np.float32), "splits"),
        "nodes_modes": tensor(np.array(parts.modes, np.uint8), "modes"),
        "nodes_featureids": parts.features,
        "nodes_truenodeids": parts.true_ids,
        "nodes_trueleafs": parts.true_leaves,
        "nodes_falsenodeids": parts.false_ids,
        "nodes_falseleafs": parts.false_leaves,
        "nodes_missing_value_tracks_true": parts.missing_true,
        "leaf_targetids": parts.targets,
        "leaf_weights": tensor(np.array(parts.weights, np.float32), "weights"),
    }
    if len(members):
        given["membership_values"] = tensor(members, "members")
    return given


class _Parts:
    """The operator's lists, filled tree by tree; nodes and leaves are numbered over all trees."""

    def __init__(self) -> None:
        self.roots: list[int] = []
        self.splits: list[float] = []
        self.modes: list[int] = []
        self.features: list[int] = []
        self.true_ids: list[int] = []
        self.true_leaves: list[int] = []
        self.false_ids: list[int] = []
        self.false_leaves: list[int] = []
        self.missing_true: list[int] = []
        self.targets: list[int] = []
        self.weights: list[float] = []
        self.members: list[float] = []  # sets of category splits in order, NaN behind each

    def add(self, tree: ExportTree, output: int) -> None:
        leaf = tree.feature < 0
        # (node,): number among all inner nodes, or among all leaves
        number = np.where(
            leaf,
            len(self.weights) + np.cumsum(leaf) - 1,
            len(self.splits) + np.cumsum(~leaf) - 1,
        )
        self.roots.append(int(number[0]))
        for node in np.flatnonzero(~leaf).tolist():
            yes, no = int(tree.left[node]), int(tree.right[node])
            codes = tree.members.get(node)
            if codes is not None:  # members go right, so here the answer yes is right
                yes, no = no, yes
                self.members += [*codes.tolist(), float("nan")]
            self.splits.append(float(tree.threshold[node]))
            self.modes.append(LESS if codes is None else MEMBER)
            self.features.append(int(tree.feature[node]))
            self.true_ids.append(int(number[yes]))
            self.true_leaves.append(int(leaf[yes]))
            self.false_ids.append(int(number[no]))
            self.false_leaves.append(int(leaf[no]))
            self.missing_true.append(int(tree.missing_left[node]) ^ int(codes is not None))
        self.weights += tree.values[leaf, output].tolist()
        self.targets += [output] * int(leaf.sum())


def _nothing(n_outputs: int) -> ExportTree:
    """A tree that adds 0: the operator needs one. Its leaves are two, because older runtimes take
    a node with the same leaf on both sides for something else."""
    return ExportTree(
        np.array([0, -1, -1], np.int32), np.zeros(3, np.float32), np.ones(3, np.bool_),
        np.array([1, -1, -1], np.int32), np.array([2, -1, -1], np.int32), {},
        np.zeros((3, n_outputs)), np.ones(3),
    )  # fmt: skip
