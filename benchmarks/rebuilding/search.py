"""A table that fits the sums of all leaves: cells swapped between rows as long as sums come nearer.

It starts from the marginals of the columns, which swaps keep. Sums are of gradients and Hessians of
the logistic loss, or of clamped gradients of the squared one and of rows. A row's gradients in a
tree follow from its leaves in the earlier ones, so a swap moves two rows through all trees at once.
Simulated annealing; the distance is that of sums as known and as made, in units of their noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hedgerow.data.rng import stream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees in code space with what is known of their leaves, in the order of boosting."""

    feature: Ints  # (tree, node)
    right: NDArray[np.bool_]  # (tree, node, code)
    child: Ints  # (tree, node, 2): a node, or -1 - leaf
    value: Floats  # (tree, leaf): what it adds to scores
    sums: Floats  # (tree, leaf, 2): gradients and Hessians, or rows
    weight: Floats  # (tree, 2): one over the noise
    bend: float = 0.0  # of gradients of the squared loss; 0: the loss is logistic


def trees_from(parts: list[dict[str, Any]], bend: float = 0.0) -> Trees:
    """Trees of one list of nodes each: feature, right (code,), children; leaves with their sums."""
    n_nodes = max(1, *(len(p["feature"]) for p in parts))
    n_leaves = max(len(p["value"]) for p in parts)
    n_codes = max((len(r) for p in parts for r in p["right"]), default=1)
    feature = np.zeros((len(parts), n_nodes), np.int64)
    right = np.zeros((len(parts), n_nodes, n_codes), np.bool_)
    child = np.full((len(parts), n_nodes, 2), -1, np.int64)
    value, sums = np.zeros((len(parts), n_leaves)), np.zeros((len(parts), n_leaves, 2))
    weight = np.ones((len(parts), 2))
    for t, p in enumerate(parts):
        k, m = len(p["feature"]), len(p["value"])
        feature[t, :k], child[t, :k] = p["feature"], np.reshape(p["child"], (k, 2))
        for i, codes in enumerate(p["right"]):
            right[t, i, : len(codes)] = codes
        value[t, :m], sums[t, :m], weight[t] = p["value"], p["sums"], p["weight"]
    return Trees(feature, right, child, value, sums, weight, bend)


@numba.njit(cache=True)
def _walk(codes, y, feature, right, child, value, bend, leaf, g, h):  # type: ignore[no-untyped-def]
    """The leaves of one row, and its gradient and Hessian in every tree."""
    score = 0.0
    for t in range(len(feature)):
        if bend > 0.0:
            g[t], h[t] = min(max(min(max(score, 0.0), 1.0) - y, -bend), bend), 1.0
        else:
            p = 1.0 / (1.0 + np.exp(-score))
            g[t], h[t] = p - y, p * (1.0 - p)
        node = 0
        while node >= 0:
            side = 1 if right[t, node, codes[feature[t, node]]] else 0
            node = child[t, node, side]
        leaf[t] = -1 - node
        score += value[t, leaf[t]]


@numba.njit(cache=True)
def _anneal(codes, y, feature, right, child, value, sums, weight, bend, fixed, pool, n_steps, rng):  # type: ignore[no-untyped-def]
    n, d = codes.shape
    n_trees = len(feature)
    leaf = np.zeros((n, n_trees), np.int64)
    g, h = np.zeros((n, n_trees)), np.zeros((n, n_trees))
    rest = sums.copy()  # what is known less what is made
    for i in range(n):
        _walk(codes[i], y[i], feature, right, child, value, bend, leaf[i], g[i], h[i])
        for t in range(n_trees):
            rest[t, leaf[i, t], 0] -= g[i, t]
            rest[t, leaf[i, t], 1] -= h[i, t]
    new_leaf = np.zeros((2, n_trees), np.int64)
    new_g, new_h = np.zeros((2, n_trees)), np.zeros((2, n_trees))
    for step in range(n_steps):
        hot = 3.0 * (1.0 - step / n_steps) ** 3 * n_trees / 20.0
        a, b, j = rng.integers(0, n), rng.integers(0, n), rng.integers(0, d + 1)
        pair, before, is_new = (a, b), np.int64(0), False
        if len(pool) and j < d and step % 2 == 0:  # another value of this cell
            before, is_new = codes[a, j], True
            codes[a, j] = pool[rng.integers(0, len(pool)), j]
            if a == b or codes[a, j] == before:
                codes[a, j] = before
                continue
        elif j < d:
            if codes[a, j] == codes[b, j] or (fixed and y[a] != y[b]):
                continue
            codes[a, j], codes[b, j] = codes[b, j], codes[a, j]
        else:
            if y[a] == y[b] or fixed:
                continue
            y[a], y[b] = y[b], y[a]
        moved = 0.0
        for k in range(2):
            _walk(
                codes[pair[k]],
                y[pair[k]],
                feature,
                right,
                child,
                value,
                bend,
                new_leaf[k],
                new_g[k],
                new_h[k],
            )
        for t in range(n_trees):
            for k in range(2):
                i, old, new = pair[k], leaf[pair[k], t], new_leaf[k, t]
                for s in range(2):
                    was, now = (g[i, t], new_g[k, t]) if s == 0 else (h[i, t], new_h[k, t])
                    w = weight[t, s]
                    r = rest[t, old, s] * w
                    rest[t, old, s] += was
                    r2 = rest[t, old, s] * w
                    moved += r2 * r2 - r * r
                    r = rest[t, new, s] * w
                    rest[t, new, s] -= now
                    r2 = rest[t, new, s] * w
                    moved += r2 * r2 - r * r
        if moved <= 0 or rng.random() < np.exp(-moved / max(hot, 1e-9)):
            for k in range(2):
                leaf[pair[k]], g[pair[k]], h[pair[k]] = new_leaf[k], new_g[k], new_h[k]
            continue
        for t in range(n_trees):
            for k in range(2):
                i, old, new = pair[k], leaf[pair[k], t], new_leaf[k, t]
                rest[t, old, 0] -= g[i, t]
                rest[t, old, 1] -= h[i, t]
                rest[t, new, 0] += new_g[k, t]
                rest[t, new, 1] += new_h[k, t]
        if is_new:
            codes[a, j] = before
        elif j < d:
            codes[a, j], codes[b, j] = codes[b, j], codes[a, j]
        else:
            y[a], y[b] = y[b], y[a]
    total = 0.0
    for t in range(n_trees):
        for s in range(2):
            total += ((rest[t, :, s] * weight[t, s]) ** 2).sum()
    return total


def searched(
    trees: Trees,
    codes: Ints,
    labels: Floats,
    n_steps: int,
    seed: int,
    by_label: bool = False,
    pool: Ints | None = None,
) -> tuple[Ints, float]:
    """Rows (row, column) after so many swaps, and how far their sums are from those known.

    With `by_label` the marginals of either label are known: cells stay among rows of one label.
    With a `pool` (of rows drawn from the marginals) cells are drawn anew besides: where rows are
    few, their own marginals are not those of the whole table.
    """
    codes, labels = codes.copy(), labels.copy()
    drawn = np.zeros((0, codes.shape[1]), np.int64) if pool is None else pool
    left = _anneal(
        codes, labels, trees.feature, trees.right, trees.child, trees.value, trees.sums,
        trees.weight, trees.bend, by_label, drawn, n_steps, stream(seed, "swaps"),
    )  # fmt: skip
    return codes, float(left)
