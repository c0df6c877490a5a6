"""Running scores: whatever a party has lost, it answers as one that has lost nothing."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.rng import stream
from hedgerow.methods.maddock.candidates import uniform
from hedgerow.methods.maddock.splits.totally_random import totally_random
from hedgerow.model.routing import Routes
from hedgerow.model.tree import Tree
from hedgerow.party.running_scores import RunningScores
from hedgerow.queries import NO_TREES, EnsembleRef, LeafSums
from tests.attacks.rig import SCHEMA, some_rows

ROWS = some_rows(300, 1)


def some_tree(number: int) -> Tree:
    rng = stream(7, "tree", number)
    structure = totally_random(SCHEMA, uniform(SCHEMA, 16), [0, 1], 2, "equality", rng)
    return Tree(structure, rng.normal(0, 0.7, (structure.n_leaves, 1)).astype(np.float32))


TREES = [some_tree(number) for number in range(8)]


def ref(length: int) -> EnsembleRef:
    found = NO_TREES
    for tree in TREES[:length]:
        found = found.then(tree.to_bytes())
    return found


def kept(*lengths: int) -> RunningScores:
    """Scores that have seen every tree as it came."""
    scores, before = RunningScores(ROWS, SCHEMA), 0
    for length in lengths:
        assert scores.sync(ref(length), before, TREES[before:length])
        before = length
    return scores


def question(length: int, step_trees: int) -> LeafSums:
    return LeafSums(
        (TREES[-1].structure,), "logistic", ref(length), clip=0.5, step_trees=step_trees,
        step_scale=4.0,
    )  # fmt: skip


def answer(scores: RunningScores, query: LeafSums) -> NDArray[np.int64]:
    at = scores.at(query.ensemble, query.step_trees)
    return query.answer(ROWS, at, SCHEMA, 26)


@pytest.mark.parametrize(("length", "step_trees"), [(5, 2), (5, 5), (7, 1), (3, 3)])
def test_a_step_is_the_same_for_a_party_that_lost_its_scores(length: int, step_trees: int) -> None:
    query, begin = question(length, step_trees), length - step_trees
    there = kept(*([begin] if begin else []))
    assert there.sync(query.ensemble, begin, TREES[begin:length], step_trees)
    expected = answer(there, query)
    assert np.any(expected[-2:])
    lost = RunningScores(ROWS, SCHEMA)
    if begin:
        assert not lost.sync(query.ensemble, begin, TREES[begin:length], step_trees)
        assert lost.ref == NO_TREES
    assert lost.sync(query.ensemble, 0, TREES[:length], step_trees)
    assert np.array_equal(answer(lost, query), expected)
    # Another attempt at the same question finds both ready.
    for scores in (there, lost):
        assert scores.sync(query.ensemble, length, [], step_trees)
        assert np.array_equal(answer(scores, query), expected)


def test_a_step_is_what_its_trees_add() -> None:
    scores = kept(3)
    assert scores.sync(ref(5), 3, TREES[3:5], 2)
    at = scores.at(ref(5), 2)
    assert np.array_equal(at[:, 0], kept(5).at(ref(5))[:, 0])
    assert np.array_equal(at[:, 1], kept(3).at(ref(3))[:, 0])  # where the step began
    assert not np.array_equal(at[:, 0], at[:, 1])
    query = question(5, 2)
    sums, wider = answer(scores, query), answer(scores, replace(query, step_scale=8.0))
    assert np.array_equal(wider[:-2], sums[:-2])
    assert wider[-2:] / sums[-2:] == pytest.approx([1 / 2, 1 / 4], rel=1e-3)


@pytest.mark.parametrize("step_trees", [1, 3])
def test_a_step_that_was_not_kept_apart_asks_for_the_trees_again(step_trees: int) -> None:
    """The scores are there, and what they were before the step is not."""
    query, scores = question(5, step_trees), kept(2, 5)
    assert not scores.sync(query.ensemble, 5, [], step_trees)
    assert scores.sync(query.ensemble, 0, TREES[:5], step_trees)
    fresh = RunningScores(ROWS, SCHEMA)
    assert fresh.sync(query.ensemble, 0, TREES[:5], step_trees)
    assert np.array_equal(answer(scores, query), answer(fresh, query))


def test_a_step_of_another_length_is_not_taken_for_the_one_kept() -> None:
    scores = kept(2)
    assert scores.sync(ref(5), 2, TREES[2:5], 3)
    assert not scores.sync(ref(5), 5, [], 2)
    assert scores.sync(ref(5), 0, TREES[:5], 2)
    assert np.array_equal(answer(scores, question(5, 2)), answer(_fresh(5, 2), question(5, 2)))


def _fresh(length: int, step_trees: int) -> RunningScores:
    scores = RunningScores(ROWS, SCHEMA)
    assert scores.sync(ref(length), 0, TREES[:length], step_trees)
    return scores


def test_scores_beyond_the_beginning_of_a_step_are_rebuilt_at_once() -> None:
    scores = kept(2, 4)
    assert scores.sync(ref(5), 0, TREES[:5], 3)
    assert np.array_equal(answer(scores, question(5, 3)), answer(_fresh(5, 3), question(5, 3)))


def test_trees_that_are_not_the_ones_named_are_not_kept() -> None:
    scores = kept(2)
    assert not scores.sync(ref(4), 2, [TREES[3], TREES[2]], 1)
    assert scores.ref == NO_TREES


@pytest.mark.parametrize("step_trees", [0, 2])
def test_scores_of_another_run_do_not_refuse_all_trees_of_this_one(step_trees: int) -> None:
    """A process outlives its runs: one may begin with more trees than the run before had."""
    scores = RunningScores(ROWS, SCHEMA)
    others = [some_tree(number) for number in (20, 21, 22)]
    end = NO_TREES
    for tree in others:
        end = end.then(tree.to_bytes())
    assert scores.sync(end, 0, others)
    assert scores.sync(ref(7), 0, TREES[:7], step_trees)
    fresh = RunningScores(ROWS, SCHEMA)
    assert fresh.sync(ref(7), 0, TREES[:7], step_trees)
    assert np.array_equal(scores.at(ref(7), step_trees), fresh.at(ref(7), step_trees))


def test_scores_that_were_added_in_part_are_not_added_to_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scores, whole = kept(3), kernels.add_scores

    def fails(codes: object, running: NDArray[np.float64], *further: object) -> None:
        whole(codes, running, *further)
        raise MemoryError

    monkeypatch.setattr(kernels, "add_scores", fails)
    with pytest.raises(MemoryError):
        scores.sync(ref(5), 3, TREES[3:5])
    monkeypatch.setattr(kernels, "add_scores", whole)
    if not scores.sync(ref(5), 3, TREES[3:5]):
        assert scores.sync(ref(5), 0, TREES[:5])
    assert np.array_equal(scores.at(ref(5)), kept(5).at(ref(5)))


def test_a_thread_that_an_interrupted_question_left_behind_adds_no_tree_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second question waits until the first one's trees are in."""
    began, go_on = threading.Event(), threading.Event()
    scores, right = RunningScores(ROWS, SCHEMA), Routes.add_scores

    def slow(self: Routes, *arguments: Any) -> None:
        began.set()
        assert go_on.wait(300)
        right(self, *arguments)

    monkeypatch.setattr(Routes, "add_scores", slow)
    left = threading.Thread(target=scores.sync, args=(ref(3), 0, TREES[:3]))
    left.start()
    assert began.wait(300)
    again = threading.Thread(target=scores.sync, args=(ref(3), 0, TREES[:3]))
    again.start()
    again.join(0.1)  # if it did not wait, it would stand beside the first one now
    go_on.set()
    left.join(300)
    again.join(300)
    assert scores.ref == ref(3)
    np.testing.assert_array_equal(scores.at(ref(3)), kept(3).at(ref(3)))
