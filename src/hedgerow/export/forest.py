"""What all exports share: a model's splits, leaf values and covers, and what is done to their sum.

Everything here follows from the model alone, which holds released values only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Categorical, Column, Schema
from hedgerow.errors import ExportError
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Structure, Tree

Floats = NDArray[np.float64]
Link = Literal["logit", "softmax", "share", "shares", "number", "hazards"]
TOLERANCE = 1e-6  # sums that leave their range by no more need no clipping
LEAST_COVER = 1e-6  # of a leaf, as a part of the largest one of its tree
_NEARLY = 1e-9  # a share of 0 or 1 has no finite log-odds; this far from it nobody can tell


@dataclass(frozen=True, eq=False)
class ExportTree:
    """One tree with everything by node: an ordered split sends x < threshold left.

    A category split has the codes that go right in `members`. Sets that are empty or hold every
    code are written as ordered splits, because some formats cannot hold them.
    """

    feature: NDArray[np.int32]  # (node,), -1 at leaves
    threshold: NDArray[np.float32]  # (node,)
    missing_left: NDArray[np.bool_]  # (node,)
    left: NDArray[np.int32]  # (node,)
    right: NDArray[np.int32]  # (node,)
    members: dict[int, NDArray[np.int64]]  # of category splits, by node
    values: Floats  # (node, output); of inner nodes the mean of their leaves by cover
    cover: Floats  # (node,); of inner nodes the sum of their leaves

    @property
    def n_nodes(self) -> int:
        return len(self.feature)


@dataclass(frozen=True, eq=False)
class Forest:
    """A model as formats take it: scores are `base` plus the leaf values of all trees.

    `link` says what is done to them: `logit` (their sigmoid is the probability of the second
    class), `softmax`, `share` (it is that probability, after clipping to 0..1), `shares`
    (clipped at 0 and divided by their sum), `number` (clipped to the label's bounds), or `hazards`
    (their exponentials are hazards, see `hazards`).
    """

    trees: tuple[ExportTree, ...]
    schema: Schema
    link: Link
    base: Floats  # (output,)
    exact: bool  # whether sums stay in their range, so that clipping and dividing change nothing
    n_split: int  # trees that have a split, so that covers mean something
    n_released: int  # of those, the trees whose covers are released; others have equal shares

    @property
    def n_outputs(self) -> int:
        return len(self.base)

    @property
    def n_nodes(self) -> int:
        return sum(tree.n_nodes for tree in self.trees)


def forest_of(model: Ensemble) -> Forest:
    """A model's trees with the values that add up to what `link` takes."""
    if model.schema.label.task == "survival":
        raise ExportError(
            f"the model predicts the time to {model.schema.label.event!r}, and the format holds "
            "classes or numbers. Nothing was written. XGBoost's JSON holds it as rows by interval, "
            "and ONNX; or keep the .hedge file: `hedgerow predict` and hedgerow.load use it."
        )
    if model.schema.label.task == "counts":
        raise ExportError(
            f"the model predicts the rate of {model.schema.label.name!r}, a count, and the format "
            "holds classes or numbers. Nothing was written. Keep the .hedge file: `hedgerow "
            "predict` and hedgerow.load use it."
        )
    label, values = model.schema.label, [tree.values.astype(np.float64) for tree in model.trees]
    base = np.zeros(model.loss.n_outputs)
    link: Link = "logit" if label.task == "binary" else "softmax"
    if label.lower is not None and label.upper is not None:
        link, base = "number", np.array([float(label.lower)])
        values = [v * (label.upper - label.lower) for v in values]
    elif model.averaged and len(values) == 1:
        values = [_as_scores(values[0])]  # the shares of one tree are a function of its leaf
    elif model.averaged:
        link = "share" if label.task == "binary" else "shares"
    covers = [leaf_covers(tree) for tree in model.trees]
    trees = tuple(
        export_tree(tree.structure, model.schema, leaves, cover)
        for tree, leaves, (cover, _) in zip(model.trees, values, covers, strict=True)
    )
    exact = _stays_inside(values, base, link, model)
    known = [known for tree, (_, known) in zip(trees, covers, strict=True) if tree.n_nodes > 1]
    return Forest(trees, model.schema, link, base, exact, len(known), sum(known))


def leaf_covers(tree: Tree) -> tuple[Floats, bool]:
    """How much of the rows each leaf holds (leaf,), and whether that comes from releases.

    Released covers are Hessians or rows of a leaf, no less than one deviation of their noise. Where
    those of a leaf are not known, all leaves of its tree have equal shares. None is ever 0, which
    would make what is computed from covers divide by 0.
    """
    cover = None if tree.cover is None else tree.cover.astype(np.float64)
    if cover is None or not np.isfinite(cover).all() or cover.max(initial=0.0) <= 0:
        return np.ones(tree.structure.n_leaves), False
    return np.maximum(cover, LEAST_COVER * cover.max()), True


def n_codes_of(column: Column) -> int:
    """Codes of a listed column: one per category, and one for others where the schema has it."""
    if not isinstance(column, Categorical):
        raise TypeError("only category columns have codes")
    return len(column.categories) + (column.other == "category")


def _as_scores(shares: Floats) -> Floats:
    """Class shares (leaf, output) as scores whose sigmoid or softmax they are."""
    if shares.shape[1] > 1:
        return np.asarray(np.log(np.clip(shares, 0.0, None) + 1e-12))
    inside = np.clip(shares, _NEARLY, 1 - _NEARLY)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def _stays_inside(values: list[Floats], base: Floats, link: Link, model: Ensemble) -> bool:
    """Whether no row's sum can leave the range that predictions are held in."""
    low = base + sum(v.min(axis=0) for v in values)  # (output,)
    high = base + sum(v.max(axis=0) for v in values)
    label = model.schema.label
    if link == "number" and label.lower is not None and label.upper is not None:
        slack = TOLERANCE * (label.upper - label.lower)
        return bool(low[0] >= label.lower - slack and high[0] <= label.upper + slack)
    if link == "share":
        return bool(low[0] >= -TOLERANCE and high[0] <= 1 + TOLERANCE)
    if link == "shares":
        totals = [v.sum(axis=1) for v in values]  # (leaf,) of each tree
        least, most = sum(t.min() for t in totals), sum(t.max() for t in totals)
        return bool((low >= -TOLERANCE).all() and abs(least - 1) + abs(most - 1) <= TOLERANCE)
    return True


def export_tree(structure: Structure, schema: Schema, leaves: Floats, cover: Floats) -> ExportTree:
    """A tree with values (leaf, output) and covers (leaf,) by node."""
    threshold, members = structure.threshold.copy(), {}
    for node in np.flatnonzero(structure.feature >= 0).tolist():
        column = schema.columns[int(structure.feature[node])]
        if isinstance(column, Categorical):
            codes, n_codes = _member_codes(structure, node), n_codes_of(column)
            codes = codes[codes < n_codes]
            if 0 < len(codes) < n_codes:
                members[node] = codes
            else:
                threshold[node] = 0 if len(codes) else n_codes
    return ExportTree(
        structure.feature,
        threshold,
        structure.missing_left.astype(np.bool_),
        structure.left,
        structure.right,
        members,
        *up_the_tree(structure.feature, structure.left, structure.right, leaves, cover),
    )


def _member_codes(structure: Structure, node: int) -> NDArray[np.int64]:
    words = structure.members[structure.member_start[node] : structure.member_start[node + 1]]
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits)


def up_the_tree(
    feature: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    leaves: Floats,
    cover: Floats,
) -> tuple[Floats, Floats]:
    """Values (node, output) and covers (node,) of all nodes from those of the leaves, in order."""
    is_leaf = feature < 0
    covers, weighed = np.zeros(len(feature)), np.zeros((len(feature), leaves.shape[1]))
    covers[is_leaf], weighed[is_leaf] = cover, leaves * cover[:, None]
    for node in np.flatnonzero(~is_leaf)[::-1].tolist():  # children come after their parent
        covers[node] = covers[left[node]] + covers[right[node]]
        weighed[node] = weighed[left[node]] + weighed[right[node]]
    values = weighed / covers[:, None]
    values[is_leaf] = leaves
    return values, covers
