"""Histograms by subtraction: the same integers as adding up every row again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hedgerow import kernels
from hedgerow.data.binning import base_grid
from hedgerow.data.tables import Rows
from hedgerow.methods.maddock.growing_tree import Cut, GrowingTree
from hedgerow.queries import NO_TREES, NodeHistograms, node_histograms
from hedgerow.queries.cuts import n_bins_of
from tests.conftest import MIXED, mixed_rows, mixed_table
from tests.model.test_routing import random_cut

GRID = base_grid(MIXED)
CUTS = tuple(tuple(range(0, len(g.edges), 3)) for g in GRID)
BINS = tuple(n_bins_of(g, c) for g, c in zip(GRID, CUTS, strict=True))
BITS = 20


def question(tree: GrowingTree) -> NodeHistograms:
    columns = tuple(range(len(GRID)))
    return NodeHistograms(tree.structure(), columns, CUTS, BINS, "logistic", NO_TREES)


def grown(seed: int) -> list[GrowingTree]:
    """A tree before and after each of four levels; one in four leaves stays as it is."""
    rng = np.random.default_rng(seed)
    tree, trees, leaves = GrowingTree(), [GrowingTree()], [0]
    for _ in range(4):
        fresh: list[int] = []
        for leaf in leaves:
            if rng.random() < 0.75:
                fresh += tree.split(leaf, random_cut(int(rng.integers(len(GRID))), rng))
            else:
                fresh.append(leaf)
        leaves = fresh
        trees.append(tree.copy())
    return trees


@pytest.mark.parametrize("seed", range(4))
def test_every_level_equals_sums_over_all_rows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = mixed_rows(mixed_table(700, seed))
    scores = np.random.default_rng(seed).normal(size=(700, 1))
    counted = []
    right = kernels.leaf_counts
    monkeypatch.setattr(kernels, "leaf_counts", lambda *a: counted.append(1) or right(*a))
    for tree in grown(seed):
        found = question(tree).answer(rows, scores, MIXED, BITS)
        again = Rows(rows.codes, rows.target, None)  # a table that was never asked before
        assert np.array_equal(found, question(tree).answer(again, scores, MIXED, BITS))
    assert counted  # some levels were halves


def test_other_scores_cuts_grids_and_trees_are_added_up_anew() -> None:
    rows, rng = mixed_rows(mixed_table(300, 1)), np.random.default_rng(9)
    scores = rng.normal(size=(300, 1))
    first, second = GrowingTree(), GrowingTree()
    first.split(0, random_cut(0, rng))
    second.split(0, Cut(1, float(GRID[1].edges[5]), np.zeros(0, np.uint64), True))
    deeper = second.copy()
    deeper.split(1, random_cut(2, rng))
    fewer = question(deeper)
    fewer = replace(fewer, columns=(0, 1), cuts=CUTS[:2], n_bins=BINS[:2])
    steps = [
        (question(first), scores, BITS),
        (question(second), scores, BITS),  # another split at the root
        (question(deeper), scores + 1, BITS),  # the same tree, other scores
        (question(second), scores, BITS),
        (question(deeper), scores, BITS + 1),  # another grid
        (question(second), scores, BITS),
        (fewer, scores, BITS),  # other columns
        (replace(question(second), update="gradient", clip=0.5), scores, BITS),
        (replace(question(deeper), update="gradient", clip=0.25), scores, BITS),  # another clip
    ]
    for query, at, bits in steps:
        found = query.answer(rows, at, MIXED, bits)
        again = Rows(rows.codes, rows.target, None)
        assert np.array_equal(found, query.answer(again, at, MIXED, bits))


def test_what_is_kept_goes_with_the_rows() -> None:
    rows = mixed_rows(mixed_table(50, 2))
    before = len(node_histograms._LAST)
    question(GrowingTree()).answer(rows, np.zeros((50, 1)), MIXED, BITS)
    assert len(node_histograms._LAST) == before + 1
    del rows
    assert len(node_histograms._LAST) == before
