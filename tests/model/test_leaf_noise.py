"""What trees keep of their own noise: how large it is, and that it changes nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hedgerow.errors import FormatError
from hedgerow.methods.auto.interaction_tables import TAUS, weigh
from hedgerow.methods.maddock.leaves import (
    average_deviations,
    average_values,
    covers,
    shrunk,
    shrunk_deviations,
    step_deviations,
    step_values,
)
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.losses import Logistic, Loss, Softmax, Squared
from hedgerow.model.stacking import stack_trees
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import noise_off
from tests.conftest import MIXED, mixed_rows, mixed_table, train
from tests.model.test_files import HEAD, pack, resealed, unpack

ROWS = {"all": mixed_rows(mixed_table(400, seed=3))}


def model_of(method: str, **settings: Any) -> Any:
    pure = method in ("private-tree", "dp-xgboost")
    privacy = Privacy(1.0, 0.0, accounting="pure") if pure else Privacy(1.0, 1e-5)
    with noise_off():
        return train(ROWS, MIXED, privacy, settings, method=method)[0]


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("auto", {}),
        ("random-trees", {"n_trees": 2, "max_depth": 2}),
        ("dp-rf", {"n_trees": 2, "max_depth": 2}),
        ("feverless", {"n_trees": 1, "max_depth": 2}),
        ("private-tree", {"max_depth": 2}),
        ("dp-xgboost", {"n_trees": 2, "max_depth": 2}),
    ],
)
def test_every_grower_says_what_it_knows_of_its_leaves(
    method: str, settings: dict[str, Any]
) -> None:
    model = model_of(method, **settings)
    cut = [tree for tree in model.trees if tree.structure.n_leaves > 1]
    assert cut
    for tree in cut:
        assert tree.deviation is not None
        assert tree.deviation.shape == tree.values.shape
        assert tree.cover is not None
        assert tree.cover.shape == (tree.structure.n_leaves,)
        assert tree.independent == (method != "auto")
    again = Ensemble.from_bytes(model.to_bytes())
    for before, after in zip(model.trees, again.trees, strict=True):
        np.testing.assert_array_equal(before.deviation, after.deviation)
        np.testing.assert_array_equal(before.cover, after.cover)
        assert before.independent == after.independent


def test_what_is_known_of_noise_neither_names_a_tree_nor_travels() -> None:
    tree = model_of("random-trees", n_trees=1, max_depth=2).trees[-1]
    bare = replace(tree, deviation=None, cover=None)
    assert tree == bare
    assert tree.to_bytes() == bare.to_bytes()
    assert not {"deviation", "cover"} & set(stack_trees([tree]))


BREAKS = {
    "short": lambda array: array[:-1],
    "type": lambda array: array.astype("float64"),
    "below 0": lambda array: np.full_like(array, -1),
    "infinite": lambda array: np.full_like(array, np.inf),
}


@pytest.mark.parametrize(
    ("name", "break_it"),
    [*((n, b) for n in ("deviation", "cover") for b in BREAKS), ("independent", "short")],
)
def test_damaged_knowledge_is_a_format_error(name: str, break_it: str) -> None:
    model = model_of("random-trees", n_trees=1, max_depth=2)
    values, arrays = unpack(model.to_bytes()[HEAD:-32])
    broken = {**arrays, name: BREAKS[break_it](arrays[name])}
    absent = {key: array for key, array in arrays.items() if key != name}
    for found in (broken, absent):
        with pytest.raises(FormatError):
            Ensemble.from_bytes(resealed(pack(values, found)))


def test_a_scaled_tree_has_scaled_noise() -> None:
    tree = model_of("random-trees", n_trees=1, max_depth=2).trees[-1]
    half = tree.scaled(-0.5)
    np.testing.assert_allclose(half.values, -0.5 * tree.values)
    np.testing.assert_allclose(half.deviation, 0.5 * tree.deviation)
    np.testing.assert_array_equal(half.cover, tree.cover)


@pytest.mark.parametrize("update", ["newton", "gradient"])
@pytest.mark.parametrize("loss", [Logistic(), Softmax(3), Squared()], ids=lambda x: x.name)
def test_deviations_of_steps_are_those_of_simulated_noise(loss: Loss, update: str) -> None:
    rng, bound = np.random.default_rng(0), loss.bound(update)
    first = np.array([[-60.0, 20.0, 0.0]] * bound.first)
    sums = np.concatenate([first, np.array([[90.0, 150.0, 80.0]] * bound.second)])
    deviations = np.array([2.0, 3.0, 4.0])
    size = np.concatenate([np.ones(bound.first), np.full(bound.second, 1 / bound.second_scale)])
    draws = rng.normal(size=(20_000, *sums.shape)) * size[:, None] * deviations
    seen = np.std([step_values(sums + d, bound, 1.0, 5.0) for d in draws], axis=0)
    said = step_deviations(sums, bound, 1.0, 5.0, 0.0, deviations)
    np.testing.assert_allclose(said, seen, rtol=0.05)
    np.testing.assert_array_equal(covers(sums, bound, deviations), sums[bound.first :].sum(axis=0))


@pytest.mark.parametrize("loss", [Logistic(), Softmax(3), Squared()], ids=lambda x: x.name)
def test_deviations_of_shares_are_those_of_simulated_noise(loss: Loss) -> None:
    rng, bound = np.random.default_rng(1), loss.bound("averaging")
    sums = np.array([[40.0, 90.0], [120.0, 130.0], [50.0, 60.0]])[: bound.width]
    deviations = np.array([2.0, 3.0])
    size = np.concatenate([np.ones(bound.first), np.full(bound.second, 1 / bound.second_scale)])
    draws = rng.normal(size=(20_000, *sums.shape)) * size[:, None] * deviations
    seen = np.std([average_values(sums + d, bound, 1.0) for d in draws], axis=0)
    np.testing.assert_allclose(average_deviations(sums, bound, 1.0, deviations), seen, rtol=0.05)


@pytest.mark.parametrize("size", [30.0, 12.0])
def test_shrunk_gradients_have_the_noise_of_simulated_ones(size: float) -> None:
    rng = np.random.default_rng(6)
    true = size * np.array([[1.0, -0.5, 0.3, 0.8], [0.4, 0.9, -0.7, 0.1]])
    deviations = np.array([4.0, 4.0, 5.0, 5.0])
    draws = true + rng.normal(size=(20_000, *true.shape)) * deviations
    seen = np.std([shrunk(one, deviations) for one in draws], axis=0)
    np.testing.assert_allclose(shrunk_deviations(true, deviations), seen, rtol=0.3)


def test_a_leaf_of_noise_alone_says_that_it_could_be_anything() -> None:
    bound = Logistic().bound("newton")
    said = step_deviations(np.array([[0.5], [-1.0]]), bound, 1.0, 0.5, 0.0, np.array([30.0]))
    assert said[0, 0] == 0.5  # the clip: two deviations reach from one end to the other
    assert covers(np.array([[0.5], [-1.0]]), bound, np.array([30.0]))[0] == 30.0 / 3.33


@pytest.mark.parametrize("loss", [Logistic(), Softmax(3), Squared()], ids=lambda x: x.name)
def test_the_start_has_the_noise_of_its_counts(loss: Loss) -> None:
    rng = np.random.default_rng(2)
    counts = np.array([900.0, 300.0, 200.0])[: loss.n_outputs if loss.n_outputs > 1 else 2]
    draws = [loss.start(counts + rng.normal(0, 5, counts.shape), 1.0) for _ in range(20_000)]
    seen = np.std(draws, axis=0)
    said = loss.start_deviation(counts, 1.0, 5.0)
    if loss.n_outputs > 1:  # scores are told beside the largest one
        seen, said = seen[1:], np.hypot(said[1:], said[0])
    np.testing.assert_allclose(said, seen, rtol=0.05)


def test_cells_of_tables_move_with_their_sums_as_stated() -> None:
    g, h = np.array([3.0, -8.0, 0.5]), np.array([40.0, 25.0, 0.1])
    one = np.full(TAUS.size, -np.inf)
    one[3] = 0.0  # one tau alone, so that weights do not move
    ends = np.array([3])
    found, said, _ = weigh(g[None], h[None], ends, 4.0, 0.3, one[None], 2.0)
    moved = weigh(g[None] + 1e-6, h[None], ends, 4.0, 0.3, one[None], 2.0)[0]
    np.testing.assert_allclose(said, 4.0 * (moved - found) / 1e-6, rtol=1e-5)
