"""Splits that the final counts do not bear out are taken back: fewer boxes, the same promise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hedgerow.methods.maddock.growing_tree import GrowingTree
from hedgerow.methods.private_tree.nodes import Settled
from hedgerow.model.splitting import GainRule


@dataclass(frozen=True, eq=False)
class Pruned:
    """A smaller tree, and which node of the grown one each of its nodes was."""

    tree: GrowingTree
    was: list[int]


def pruned(tree: GrowingTree, settled: Settled, rule: GainRule) -> Pruned:
    """From the leaves up, undo splits that gain no more than their noise, or part off no rows.

    The counts are those after the leaves were asked, far less noisy than those that chose the
    split. Everything here is a function of released values.
    """
    is_split = [cut is not None for cut in tree.cuts]
    for node in range(len(tree.cuts) - 1, -1, -1):  # children come after their parent
        left, right = tree.children[node]
        if is_split[node] and not is_split[left] and not is_split[right]:
            is_split[node] = _is_borne_out(settled, node, (left, right), rule)
    small, was = GrowingTree(), [0]
    order = [(0, 0)]  # of the grown tree, and of the small one
    while order:
        node, place = order.pop(0)
        cut = tree.cuts[node]
        if is_split[node] and cut is not None:
            pair = small.split(place, cut)
            was += [*tree.children[node]]
            order += [*zip(tree.children[node], pair, strict=True)]
    return Pruned(small, was)


def _is_borne_out(settled: Settled, node: int, pair: tuple[int, int], rule: GainRule) -> bool:
    counts = settled.counts[[node, *pair]].T  # (class, node)
    variances = settled.deviations[[node, *pair]] ** 2
    if not np.isfinite(variances).all():
        return True  # nothing more is known than when the split was chosen
    if not rule.holds_rows(counts[:, 1:], variances[1:]).all():
        return False
    scores = rule.score(np.maximum(counts, 0.0), variances)
    return bool(scores[1] + scores[2] - scores[0] > 0)
