"""Drawn trees: every cut parts what the cuts above it leave, and nobody is asked about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hedgerow.data.binning import base_grid
from hedgerow.data.rng import stream
from hedgerow.data.schema import Categorical, Label, Numeric, Ordinal, Schema
from hedgerow.methods.maddock.candidates import CANDIDATES
from hedgerow.methods.maddock.splits.drawing import drawn_edge, drawn_sides
from hedgerow.methods.maddock.splits.totally_random import totally_random
from hedgerow.model.tree import Structure
from tests.conftest import MIXED

Place = tuple[Any, ...]  # of each column: (least, largest) number, or a set of categories


def drawn(schema: Schema, depth: int, seed: int, split: str = "equality", n_bins: int = 8) -> Any:
    cuts = CANDIDATES["uniform"](schema, n_bins)
    columns = list(range(len(schema.columns)))
    return totally_random(schema, cuts, columns, depth, split, stream(seed, "tree", 0))


def whole(schema: Schema) -> Place:
    return tuple(
        frozenset(range(grid.n_cells)) if isinstance(grid.column, Categorical) else (-9e9, 9e9)
        for grid in base_grid(schema)
    )


def sides(structure: Structure, node: int, place: Place) -> tuple[Place, Place]:
    """What is left of every column on both sides of a node's cut."""
    column = int(structure.feature[node])
    old = place[column]
    if isinstance(old, frozenset):
        start = int(structure.member_start[node])
        words = [int(w) for w in structure.members[start : int(structure.member_start[node + 1])]]
        right = frozenset(c for c in old if words[c // 64] >> (c % 64) & 1)
        parts: tuple[Any, Any] = (old - right, right)
    else:
        at = float(structure.threshold[node])
        parts = ((old[0], min(old[1], at)), (max(old[0], at), old[1]))
    changed = [(*place[:column], part, *place[column + 1 :]) for part in parts]
    return changed[0], changed[1]


def leaves_of(structure: Structure, place: Place, node: int = 0, depth: int = 0) -> list[Any]:
    """(depth, what is left) of every leaf."""
    if structure.feature[node] < 0:
        return [(depth, place)]
    left, right = sides(structure, node, place)
    below = leaves_of(structure, left, int(structure.left[node]), depth + 1)
    return below + leaves_of(structure, right, int(structure.right[node]), depth + 1)


def is_empty(left: Any) -> bool:
    return not left if isinstance(left, frozenset) else left[0] >= left[1]


@pytest.mark.parametrize("split", ["equality", "subset"])
@pytest.mark.parametrize("seed", range(20))
def test_no_leaf_is_empty_by_the_cuts_above_it(seed: int, split: str) -> None:
    structure = drawn(MIXED, 6, seed, split)
    for _, place in leaves_of(structure, whole(MIXED)):
        assert not any(is_empty(left) for left in place)


SMALL = Schema(
    (Categorical("c", ("a", "b")), Ordinal("o", ("low", "high")), Categorical("one", ("x",))),
    Label("y", (0, 1)),
)


@pytest.mark.parametrize("seed", range(10))
def test_a_branch_with_nothing_left_to_cut_ends_early(seed: int) -> None:
    """Two columns of two values have four places, whatever depth was asked for."""
    structure = drawn(SMALL, 5, seed)
    found = leaves_of(structure, whole(SMALL))
    assert [depth for depth, _ in found] == [2, 2, 2, 2]
    assert len({place[:2] for _, place in found}) == 4
    assert 2 not in structure.feature  # a list of one category has no two sides


def test_a_long_column_is_cut_to_the_full_depth_at_every_candidate() -> None:
    schema = Schema((Numeric("x", 0, 1),), Label("y", (0, 1)))
    cuts = CANDIDATES["uniform"](schema, 8)[0]
    edges = {float(edge) for edge in base_grid(schema)[0].edges[list(cuts)]}
    roots, all_cuts = set(), set()
    for seed in range(300):
        structure = drawn(schema, 3, seed)
        roots.add(float(structure.threshold[0]))
        own = structure.threshold[structure.feature >= 0].tolist()
        assert len(own) == len(set(own))  # no cut comes twice
        all_cuts |= set(own)
    # One of 7 misses 300 draws with probability (6/7)^300 < 1e-19.
    assert roots == all_cuts == edges
    assert drawn(schema, 3, 0, n_bins=128).n_leaves > 4


def test_the_same_seed_draws_the_same_tree() -> None:
    one, two, other = (drawn(MIXED, 4, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.threshold, two.threshold)
    assert np.array_equal(one.feature, two.feature)
    assert not (
        np.array_equal(one.feature, other.feature)
        and np.array_equal(one.threshold, other.threshold)
    )


@pytest.mark.parametrize(("first", "stop"), [(0, 2), (0, 9), (3, 5), (2, 7)])
def test_an_interval_is_cut_where_its_bins_would_be(first: int, stop: int) -> None:
    possible = np.zeros(10, np.bool_)
    possible[first:stop] = True
    for seed in range(20):
        right = drawn_sides(possible, True, "equality", stream(seed))
        at, missing_left = drawn_edge(first, stop, stream(seed))
        assert first < at < stop
        assert right[:-1].tolist() == [b >= at for b in range(9)]
        assert bool(right[-1]) is not missing_left
