"""Trees in code space: tables and walks lead every row to the leaf that plain rules name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.binning import Codes, base_grid, gather_codes
from hedgerow.data.schema import Categorical, Label, Numeric, Schema
from hedgerow.methods.maddock.growing_tree import Cut, GrowingTree
from hedgerow.model import code_trees, routing
from hedgerow.model.routing import routes_of
from hedgerow.model.tree import Structure, member_words, single_leaf
from tests.conftest import MIXED

GRID = base_grid(MIXED)


def random_tree(columns: Sequence[int], depth: int, rng: np.random.Generator) -> Structure:
    tree, open_nodes = GrowingTree(), [0]
    for _ in range(depth):
        fresh: list[int] = []
        for node in open_nodes:
            if rng.random() < 0.9:
                fresh += tree.split(node, random_cut(int(rng.choice(columns)), rng))
        open_nodes = fresh
    return tree.structure()


def random_cut(j: int, rng: np.random.Generator) -> Cut:
    column, missing_left = MIXED.columns[j], bool(rng.integers(2))
    if isinstance(column, Categorical):
        members = rng.integers(0, 2**62, member_words(column)).astype(np.uint64)
        return Cut(j, 0.0, members, missing_left)
    return Cut(j, float(rng.choice(GRID[j].edges)), np.zeros(0, np.uint64), missing_left)


def random_codes(n_rows: int, rng: np.random.Generator) -> Codes:
    columns = [rng.integers(0, g.n_codes, n_rows) for g in GRID]
    return gather_codes(columns, GRID, n_rows)


def leaf_by_rules(tree: Structure, codes: Codes, row: int) -> int:
    """One node at a time, as `Structure` describes a split."""
    node = 0
    while tree.feature[node] >= 0:
        j = int(tree.feature[node])
        code, grid = int(codes.column(j)[row]), GRID[j]
        if code == grid.missing_code:
            right = not tree.missing_left[node]
        elif isinstance(grid.column, Categorical):
            word = int(tree.members[tree.member_start[node] + code // 64])
            right = bool(word >> (code % 64) & 1)
        else:  # a code counts the edges at or below the value
            right = code > int(np.searchsorted(grid.edges, tree.threshold[node]))
        node = int(tree.right[node] if right else tree.left[node])
    return int(tree.leaf[node])


def leaves(trees: Sequence[Structure], codes: Codes) -> NDArray[np.float64]:
    """Scores that name the leaves: those of tree i count in powers of 1000."""
    scores = np.zeros((codes.n_rows, 1))
    values = [np.arange(t.n_leaves, dtype=np.float32) * 1000.0**i for i, t in enumerate(trees)]
    routes = routes_of(trees, GRID)
    routes.add_scores(codes, scores, np.concatenate(values)[:, None].astype(np.float32))
    return scores[:, 0]


CASES = [((0,), 4), ((3,), 3), ((4,), 2), ((0, 2), 4), ((1, 3, 4), 5), ((0, 1, 2, 3, 4), 5)]


@pytest.mark.parametrize("walked", [False, True])
@pytest.mark.parametrize(("columns", "depth"), CASES)
def test_every_row_reaches_its_leaf(
    columns: tuple[int, ...], depth: int, walked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(len(columns) + 10 * depth)
    monkeypatch.setattr(code_trees, "_KNOWN", type(code_trees._KNOWN)())
    if walked:
        monkeypatch.setattr(code_trees, "MAX_TABLE_COLUMNS", 0)
    trees = [random_tree(columns, depth, rng) for _ in range(3)]
    tables = routes_of(trees, GRID).trees[:, 1]
    assert tables.max() <= 0 if walked or len(columns) > 4 else tables.max() > 0
    codes = random_codes(300, rng)
    found = leaves(trees, codes)
    for row in range(codes.n_rows):
        expected = [leaf_by_rules(tree, codes, row) * 1000**i for i, tree in enumerate(trees)]
        assert found[row] == sum(expected)


@pytest.mark.parametrize("columns", [(0, 1, 2, 3), (0, 1, 2, 3, 4)])  # without and with a wide one
def test_trees_of_equal_depth_are_walked_without_looking(columns: tuple[int, ...]) -> None:
    rng, grid = np.random.default_rng(8), GRID[: len(columns)]
    tree, nodes = GrowingTree(), [0]
    for _ in range(5):
        nodes = [c for n in nodes for c in tree.split(n, random_cut(int(rng.choice(columns)), rng))]
    structure = tree.structure()
    codes = gather_codes([rng.integers(0, g.n_codes, 200) for g in grid], grid, 200)
    scores = np.zeros((200, 1))
    routes, values = routes_of([structure], grid), np.arange(32, dtype=np.float32)[:, None]
    assert routes.trees[0, 1] in (-5, 4)
    routes.add_scores(codes, scores, values)
    assert scores[:, 0].tolist() == [leaf_by_rules(structure, codes, row) for row in range(200)]


def test_single_leaves_walks_and_tables_can_be_mixed() -> None:
    rng = np.random.default_rng(5)
    leaf = single_leaf(np.zeros(1)).structure
    trees = [leaf, random_tree(range(5), 5, rng), leaf, random_tree((1,), 2, rng)]
    codes = random_codes(50, rng)
    found = leaves(trees, codes)
    for row in range(50):
        rules = [leaf_by_rules(tree, codes, row) for tree in trees]
        assert found[row] == rules[1] * 1000 + rules[3] * 1000**3


def test_a_kept_translation_is_not_taken_for_that_of_another_grid() -> None:
    from dataclasses import replace

    rng = np.random.default_rng(6)
    tree = random_tree((0,), 3, rng)
    first = routes_of([tree], GRID).after
    shorter = (replace(GRID[0], edges=GRID[0].edges[:-1], n_cells=GRID[0].n_cells - 1), *GRID[1:])
    try:
        second = routes_of([tree], shorter).after
    except code_trees.FormatError:
        return
    assert len(second) != len(first)


def newton(target: NDArray[np.float64]) -> kernels.Gradients:
    """Gradients and Hessians of the logistic loss at scores of 0."""
    scores = np.zeros((len(target), 1))
    return kernels.Gradients(
        scores, target, 20, kernels.LOGISTIC, kernels.NEWTON, kernels.NO_CLIP, 2
    )


def test_scores_by_kept_leaves_equal_those_by_walking() -> None:
    rng = np.random.default_rng(11)
    one, other = random_tree(range(5), 4, rng), random_tree(range(5), 4, rng)
    codes, target = random_codes(500, rng), rng.integers(0, 2, 500).astype(float)
    gradients = newton(target)
    for asked, added in ((one, one), (one, other), (other, other)):
        routes_of([asked], GRID).leaf_sums(codes, gradients)
        for times in (1, 2):  # what was kept is used once
            assert bool(routing._KEPT[codes][0]) == (times == 1)
            expected = [leaf_by_rules(added, codes, row) for row in range(500)]
            assert leaves([added], codes).tolist() == expected


NARROW = Schema(
    columns=(
        *(Numeric(f"x{j}", 0, 1) for j in range(5)),
        Numeric("n", 0, 20, integer=True),
        Categorical("two", (0, 1)),
        Categorical("five", tuple("abcde"), other="category"),
    ),
    label=Label("y", (0, 1)),
)


def test_small_trees_of_stretches_are_blended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a wide column; balanced and lopsided trees, sets that are no stretch among them."""
    import tests.model.test_routing as here

    grid = base_grid(NARROW)
    monkeypatch.setattr(here, "GRID", grid)
    monkeypatch.setattr(here, "MIXED", NARROW)
    rng, ways, more = np.random.default_rng(12), list[int](), list[int]()
    for depth in (2, 3, 4, 5) * 6:
        tree = random_tree(range(len(grid)), depth, rng)
        codes = random_codes(1500, rng)  # more than a block of rows
        ways.append(int(routes_of([tree], grid).trees[0, 2]))
        rules = [leaf_by_rules(tree, codes, row) for row in range(0, 1500, 7)]
        assert leaves([tree], codes)[::7].tolist() == rules
        more.append(ways[-1] - int(np.sum(tree.feature >= 0)))
    assert sum(n > 0 for n in ways) >= 6
    assert 0 in ways
    assert max(more) > 0  # a set of several stretches takes several nodes


def test_the_same_bytes_cut_elsewhere_are_another_tree() -> None:
    """Whoever sends trees must not be able to make the translation of one stand for another's."""

    def filled(n_nodes: int, n_words: int) -> Structure:
        shapes = {"member_start": n_nodes + 1, "members": n_words}
        arrays = single_leaf(np.zeros(1)).structure.arrays()
        return Structure(
            **{
                name: np.frombuffer(
                    b"|" * (array.itemsize * shapes.get(name, n_nodes)), array.dtype
                )
                for name, array in arrays.items()
            }
        )

    one, other = filled(1, 21), filled(9, 0)
    joined = [b"|".join(a.tobytes() for a in s.arrays().values()) for s in (one, other)]
    assert joined[0] == joined[1]
    assert one.key != other.key


@pytest.mark.parametrize("n_columns", [1, 2, 3, 4])
def test_small_tables_lead_where_rules_do_also_by_kept_leaves(
    n_columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a wide column; leaves of several trees are kept while these are asked about."""
    import tests.model.test_routing as here

    grid = base_grid(NARROW)
    monkeypatch.setattr(here, "GRID", grid)
    monkeypatch.setattr(here, "MIXED", NARROW)
    rng = np.random.default_rng(n_columns)
    columns = rng.permutation(len(grid))[:n_columns]
    trees = [random_tree(columns, 4, rng) for _ in range(3)]
    codes = random_codes(1500, rng)  # more than a block of rows
    routes = routes_of(trees, grid)
    assert set(routes.trees[:, 1].tolist()) <= set(range(1, n_columns + 1))
    expected = [
        sum(leaf_by_rules(tree, codes, row) * 1000**i for i, tree in enumerate(trees))
        for row in range(1500)
    ]
    assert leaves(trees, codes).tolist() == expected
    routes.leaf_sums(codes, newton(np.ones(1500)))
    assert routing._KEPT[codes][0] == routes.key
    assert leaves(trees, codes).tolist() == expected
    assert routing._KEPT[codes][0] == b""


def test_memory_for_leaves_is_used_again_and_never_by_two_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two federations may be made from the same rows: nobody writes where another still reads."""
    rng = np.random.default_rng(4)
    one, other = (routes_of([random_tree(range(5), 4, rng)], GRID) for _ in range(2))
    codes, gradients = random_codes(500, rng), newton(np.ones(500))
    scores = gradients.scores
    values = np.zeros((one.n_leaves, 1), np.float32)
    right, seen = kernels.add_kept, list[int]()

    def meanwhile(scores: NDArray[np.float64], kept: NDArray[np.uint16], *rest: Any) -> None:
        before = kept.copy()
        other.leaf_sums(codes, gradients._replace(scores=scores))
        assert np.array_equal(kept, before)
        seen.append(kept.ctypes.data)
        right(scores, kept, *rest)

    monkeypatch.setattr(kernels, "add_kept", meanwhile)
    for _ in range(2):
        one.leaf_sums(codes, gradients)
        kept = routing._KEPT[codes][1].ctypes.data
        one.add_scores(codes, scores, values)
        assert seen.pop() == kept == routing._KEPT[codes][1].ctypes.data


@pytest.mark.parametrize("n_rows", [100, 1500])  # too few for values by code, and several blocks
def test_trees_of_one_column_are_added_in_their_order_among_others(n_rows: int) -> None:
    """Narrow and wide columns, single leaves and walks between them, four at a time or fewer."""
    rng = np.random.default_rng(n_rows)
    leaf = single_leaf(np.zeros(1)).structure
    several = [[0], [1], [2], [3], [0], [], [1], [4], [2], [3], [0], [1], [0, 1, 2], [3]]
    trees = [random_tree(columns, 4, rng) if columns else leaf for columns in several]
    values = [rng.normal(0, 1, (tree.n_leaves, 1)).astype(np.float32) for tree in trees]
    codes, scores = random_codes(n_rows, rng), rng.normal(0, 1, (n_rows, 1))
    expected = scores[:, 0].copy()
    for tree, of_leaf in zip(trees, values, strict=True):
        expected += [float(of_leaf[leaf_by_rules(tree, codes, row), 0]) for row in range(n_rows)]
    routes_of(trees, GRID).add_scores(codes, scores, np.concatenate(values))
    assert scores[:, 0].tolist() == expected.tolist()


@pytest.mark.parametrize("n_rows", [1, 1023, 1024, 2049])
@pytest.mark.parametrize("update", [kernels.SLOPE, kernels.NEWTON, kernels.AVERAGING])
def test_sums_by_bin_are_those_of_one_row_after_another(n_rows: int, update: int) -> None:
    rng, width = np.random.default_rng(n_rows), 1 if update == kernels.SLOPE else 2
    codes, target = random_codes(n_rows, rng), rng.integers(0, 2, n_rows).astype(float)
    scores, columns = rng.normal(0, 1, (n_rows, 1)), np.array([0, 3, 4])
    bins = np.empty((3, max(grid.n_codes for grid in GRID)), np.int32)
    for j in range(3):
        bins[j] = 7 * j + rng.integers(0, 7, bins.shape[1])
    gradients = kernels.Gradients(
        scores, target, 20, kernels.LOGISTIC, update, kernels.NO_CLIP, width
    )
    found = kernels.column_sums(
        codes.arrays, gradients, kernels.ColumnBins(codes.place[columns], bins, 21)
    )
    numbers = kernels.row_statistics(kernels.LOGISTIC, scores, target, 20)
    if update == kernels.AVERAGING:
        numbers = np.eye(2, dtype=np.int64)[target.astype(int)] << 20
    expected = np.zeros((21, width), np.int64)
    for j, column in enumerate(columns):
        np.add.at(expected, bins[j][codes.column(column)], numbers[:, :width])
    assert found.tolist() == expected.T.tolist()


def test_sums_of_one_question_are_not_touched_by_the_next() -> None:
    """Both are added up in the same memory, and neither is left there."""
    rng = np.random.default_rng(9)
    codes, target = random_codes(300, rng), rng.integers(0, 2, 300).astype(float)
    gradients = newton(target)
    routes = [routes_of([random_tree((0, 1, 2), depth, rng)], GRID) for depth in (5, 2, 5)]
    found = [one.leaf_sums(codes, gradients, spare=1) for one in routes]
    kept = [one.copy() for one in found]
    again = [one.leaf_sums(codes, gradients, spare=1) for one in routes]
    for one, before, other in zip(found, kept, again, strict=True):
        assert np.array_equal(one[:-1], before[:-1])
        assert np.array_equal(one[:-1], other[:-1])
        # g is -1/2 or 1/2 at scores of 0, h is 1/4
        assert one[:-1].reshape(2, -1).sum(axis=1).tolist() == [
            int(np.sum(0.5 - target) * 2**20),
            300 * 2**18,
        ]


def test_many_tables_together_keep_no_more_than_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(10)
    monkeypatch.setattr(routing, "_KEPT", type(routing._KEPT)())
    monkeypatch.setattr(routing, "MAX_KEPT_IN_ALL", 2_500)
    trees = [random_tree((0, 1), 3, rng) for _ in range(2)]
    routes, alone = routes_of(trees, GRID), routes_of(trees[:1], GRID)
    tables, gradients = [random_codes(500, rng) for _ in range(4)], newton(np.ones(500))
    for _ in range(2):  # those who keep theirs go on with it
        for codes in tables:
            routes.leaf_sums(codes, gradients)
            expected = [
                leaf_by_rules(trees[0], codes, row) + 1000 * leaf_by_rules(trees[1], codes, row)
                for row in range(500)
            ]
            assert leaves(trees, codes).tolist() == expected
        assert [codes in routing._KEPT for codes in tables] == [True, True, False, False]
    alone.leaf_sums(tables[3], gradients)  # of one tree it is little
    assert tables[3] in routing._KEPT
