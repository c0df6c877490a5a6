"""The exact grower against a plain greedy search, split by split."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Label
from hedgerow.methods.simfl.boosting import Grower, TreeRule
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.exact import BITS, gradients
from hedgerow.model.losses import loss_for
from hedgerow.model.routing import routes_of
from hedgerow.model.statement import Statement
from hedgerow.model.tree import Tree
from tests.methods.simfl.tables import mixed_rows

THREE = Label("sick", ("a", "b", "c"))
NUMBER = Label("sick", (), -5.0, 5.0)


def score(sums: np.ndarray, lam: float) -> float:
    k = len(sums) // 2
    return float(np.sum(sums[:k] ** 2 / (sums[k:] + lam)))


def plain_best(codes: Any, grid: Any, numbers: np.ndarray, rule: TreeRule, all_sets: bool) -> float:
    """The best gain of any split of these rows: every cut, missing on both sides, every set."""
    total = numbers.sum(axis=0)
    best = 0.0
    for j, column in enumerate(grid):
        held = np.unique(codes[j])
        if column.ordered:
            known = held[held < column.n_cells]
            rights = [set(known[i:]) for i in range(1, len(known))]
            missing = {column.missing_code} & set(held)
            rights += [r | missing for r in rights] + ([missing] if missing else [])
        elif all_sets:
            rights = [set(c) for n in range(1, len(held)) for c in combinations(held, n)]
        else:
            continue
        for right in rights:
            goes = np.isin(codes[j], list(right))
            sides = numbers[goes].sum(axis=0), numbers[~goes].sum(axis=0)
            k = len(total) // 2
            if min(s[k:].sum() for s in sides) < rule.min_child_weight:
                continue
            gain = sum(score(s, rule.reg_lambda) for s in sides) - score(total, rule.reg_lambda)
            best = max(best, gain)
    return best


@pytest.mark.parametrize("label", [None, THREE, NUMBER], ids=["two", "three", "number"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_split_is_the_best_there_is(label: Label | None, weighted: bool) -> None:
    schema, rows = mixed_rows(260, seed=3, label=label)
    loss, grid, rng = loss_for(schema.label), base_grid(schema), np.random.default_rng(1)
    scores = rng.normal(0, 0.5, (rows.n_rows, loss.n_outputs))
    numbers = gradients(loss, scores, rows.target)
    if weighted:
        numbers = numbers * rng.integers(0, 4, rows.n_rows)[:, None]
    rule = TreeRule(4, 0.3, 1.0, 2.0)
    tree, leaf = Grower(rows, schema).tree(numbers, rule)
    tree.check(schema, loss.n_outputs)
    floats = numbers * 2.0**-BITS
    inside = {k: np.flatnonzero(leaf == k) for k in range(tree.structure.n_leaves)}
    all_sets = loss.n_outputs == 1
    _check(tree, 0, 0, rows, grid, floats, rule, inside, all_sets)
    for k, held in inside.items():
        sums, n = floats[held].sum(axis=0), loss.n_outputs
        assert np.allclose(tree.values[k], -0.3 * sums[:n] / (sums[n:] + 1.0), atol=1e-6)
    walked = np.zeros((rows.n_rows, loss.n_outputs))
    routes_of([tree.structure], grid).add_scores(rows.codes, walked, tree.values)
    assert np.array_equal(walked, tree.values[leaf].astype(float))
    assert tree.structure.n_leaves > 6


def _check(
    tree: Tree, node: int, depth: int, rows: Any, grid: Any, numbers: np.ndarray, rule: TreeRule,
    inside: dict[int, np.ndarray], all_sets: bool,
) -> np.ndarray:  # fmt: skip
    """Rows below a node; on the way, that its split gains as much as any."""
    s = tree.structure
    if s.feature[node] < 0:
        held = inside[int(s.leaf[node])]
        sides = None
    else:
        args = (rows, grid, numbers, rule, inside, all_sets)
        sides = [_check(tree, int(c), depth + 1, *args) for c in (s.left[node], s.right[node])]
        held = np.concatenate(sides)
    codes = [rows.codes.column(j)[held] for j in range(len(grid))]
    best = plain_best(codes, grid, numbers[held], rule, all_sets) if depth < rule.max_depth else 0.0
    gain = 0.0
    if sides is not None:
        parts = [numbers[rows_].sum(axis=0) for rows_ in sides]
        gain = sum(score(p, rule.reg_lambda) for p in parts)
        gain -= score(numbers[held].sum(axis=0), rule.reg_lambda)
    if all_sets:
        assert gain == pytest.approx(best, abs=1e-6)
    else:  # sets of categories are ordered by the first output alone: cuts must still be the best
        assert gain >= best - 1e-6
    return held


def test_a_tree_does_not_depend_on_the_order_of_rows() -> None:
    schema, rows = mixed_rows(500)
    order = np.random.default_rng(0).permutation(500)
    trees = []
    for table in (rows, rows.take(order)):
        numbers = gradients(loss_for(schema.label), np.zeros((500, 1)), table.target)
        trees.append(Grower(table, schema).tree(numbers, TreeRule(6, 0.1, 1.0, 1.0))[0])
    assert trees[0] == trees[1]


def test_weights_are_repeated_rows() -> None:
    schema, rows = mixed_rows(200)
    twice = rows.take(np.repeat(np.arange(200), 2))
    loss, rule = loss_for(schema.label), TreeRule(5, 0.1, 1.0, 1.0)
    one = gradients(loss, np.zeros((200, 1)), rows.target)
    two = gradients(loss, np.zeros((400, 1)), twice.target)
    assert Grower(rows, schema).tree(2 * one, rule)[0] == Grower(twice, schema).tree(two, rule)[0]


def test_boosting_lowers_the_loss_of_every_task() -> None:
    for label in (None, THREE, NUMBER):
        schema, rows = mixed_rows(400, label=label)
        loss = loss_for(schema.label)
        scores, trees = np.zeros((400, loss.n_outputs)), []
        for _ in range(40):
            tree, leaf = Grower(rows, schema).tree(
                gradients(loss, scores, rows.target), TreeRule(4, 0.2, 1.0, 1.0)
            )
            scores += tree.values[leaf]
            trees.append(tree)
        shown = loss.predictions(scores, False)
        if schema.label.classes:
            assert np.mean(shown.argmax(axis=1) == rows.target) > 0.9
        else:
            assert np.std(shown[:, 0] - rows.target) < 0.4 * np.std(rows.target)
        assert Ensemble(tuple(trees), schema, Statement("none", 0, 0, "coordinator")).trees
