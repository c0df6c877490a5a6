"""SimFL, TFL, SOLO and ALL-IN from one role; what it sends; Theorem 2."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Label
from hedgerow.errors import FormatError, SettingsError
from hedgerow.methods.simfl.boosting import Grower
from hedgerow.methods.simfl.hashing import code_values, hash_family
from hedgerow.methods.simfl.neighbours import Pair, most_similar
from hedgerow.methods.simfl.run import (
    agreement_for,
    bound_of_theorem_2,
    model_of,
    published_bytes,
    similarity_role,
)
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.exact import BITS, gradients
from hedgerow.model.losses import loss_for
from hedgerow.model.routing import routes_of
from hedgerow.protocol.roles import Agreement, MemoryStore
from tests.methods.simfl.tables import dealt, mixed_rows, numbers, train
from tests.sessions import run_roles

SETTINGS = SimilaritySettings(n_trees=9, max_depth=4, learning_rate=0.3, seed=5)
PAPER = replace(SETTINGS, leaves="similar", similar_weight=1.0)


@pytest.mark.parametrize("settings", [SETTINGS, PAPER, replace(SETTINGS, similarity=False)])
@pytest.mark.parametrize("label", [None, Label("sick", ("a", "b", "c")), Label("sick", (), -5, 5)])
def test_every_party_ends_with_the_model(settings: SimilaritySettings, label: Label | None) -> None:
    schema, rows = mixed_rows(240, label=label)
    model, roles = train(dealt(rows, 3), schema, settings)
    for role in roles.values():
        assert tuple(role.trees) == model.trees
        scores = np.zeros_like(role._scores)
        for tree in model.trees:
            routes = routes_of([tree.structure], base_grid(schema))
            routes.add_scores(role._rows.codes, scores, tree.values)
        assert np.array_equal(scores, role._scores)
    assert model.statement.guarantee == "none"
    assert "NOT PRIVATE" in model.statement.words()
    hashes = ["hashes" in d.what for d in model.statement.disclosures]
    assert any(hashes) == settings.similarity


def plain_boosting(rows: Any, schema: Any, settings: SimilaritySettings) -> Ensemble:
    """Boosting on one table, with nothing between the grower and the model."""
    loss, grower, trees = loss_for(schema.label), Grower(rows, schema), []
    scores = np.zeros((rows.n_rows, loss.n_outputs))
    for _ in range(settings.n_trees):
        tree, leaf = grower.tree(gradients(loss, scores, rows.target), settings.rule)
        scores += tree.values[leaf]
        trees.append(tree)
    return Ensemble(tuple(trees), schema, train({"x": rows}, schema, settings)[0].statement)


@pytest.mark.parametrize("settings", [SETTINGS, PAPER, replace(SETTINGS, similarity=False)])
def test_one_party_is_solo_and_all_rows_are_all_in(settings: SimilaritySettings) -> None:
    schema, rows = mixed_rows(200)
    model, roles = train({"alone": rows}, schema, settings)
    assert model == plain_boosting(rows, schema, settings)
    assert sum(roles["alone"].sent.values()) == 0


def test_tfl_grows_on_own_rows_alone() -> None:
    """Its trees are those of a plain loop in which parties take turns."""
    schema, rows = mixed_rows(200)
    tables = dealt(rows, 2)
    for turns in ("round-robin", "blocks"):
        settings = replace(SETTINGS, similarity=False, turns=turns)
        loss, trees = loss_for(schema.label), []
        scores = {name: np.zeros((t.n_rows, 1)) for name, t in tables.items()}
        for number in range(settings.n_trees):
            name = list(tables)[number % 2 if turns == "round-robin" else number * 2 // 9]
            g = gradients(loss, scores[name], tables[name].target)
            trees.append(Grower(tables[name], schema).tree(g, settings.rule)[0])
            routes = routes_of([trees[-1].structure], base_grid(schema))
            for other, table in tables.items():
                routes.add_scores(table.codes, scores[other], trees[-1].values)
        assert train(tables, schema, settings)[0].trees == tuple(trees)


def test_the_weighted_gradients_are_those_of_the_paper() -> None:
    """Equation 4 for the first tree: own gradient plus those of all rows most similar to it."""
    schema, rows = mixed_rows(160)
    tables = dealt(rows, 2)
    model, roles = train(tables, schema, replace(PAPER, n_trees=1))
    first, second = roles["p0"], roles["p1"]
    own = gradients(loss_for(schema.label), np.zeros((80, 1)), tables["p0"].target)
    other = gradients(loss_for(schema.label), np.zeros((80, 1)), tables["p1"].target)
    for row, similar in enumerate(second.neighbours["p0"].row):
        own[similar] += other[row]
    tree, _ = Grower(tables["p0"], schema).tree(own, PAPER.rule)
    assert model.trees == (tree,)
    assert first.width == second.width


def test_leaf_values_follow_from_the_rows_of_all_parties() -> None:
    schema, rows = mixed_rows(210)
    loss, grid = loss_for(schema.label), base_grid(schema)
    model, _ = train(dealt(rows, 3), schema, SETTINGS)
    scores = np.zeros((210, 1))
    for tree in model.trees:
        g = gradients(loss, scores, rows.target) * 2.0**-BITS
        leaf, routes = np.zeros((210, 1)), routes_of([tree.structure], grid)
        routes.add_scores(rows.codes, leaf, np.arange(len(tree.values), dtype=np.float32)[:, None])
        sums = [np.bincount(leaf[:, 0].astype(int), w, len(tree.values)) for w in g.T]
        assert np.allclose(tree.values[:, 0], -0.3 * sums[0] / (sums[1] + 1.0), atol=1e-5)
        routes.add_scores(rows.codes, scores, tree.values)


def test_identical_parties_are_one_party() -> None:
    """Where each row's most similar row is its copy, two parties of the same rows are ALL-IN."""
    schema, rows = numbers(150, 18)
    settings = replace(PAPER, window=0.4)
    twice = rows.take(np.tile(np.arange(150), 2))
    model, roles = train({"a": rows, "b": rows}, schema, settings)
    assert np.array_equal(roles["a"].neighbours["b"].row, np.arange(150))
    assert model == train({"all": twice}, schema, settings)[0]


def test_bytes_beat_the_formulas_of_the_paper() -> None:
    schema, rows = numbers(6000, 12)
    settings = SimilaritySettings(n_trees=6, max_depth=5)
    for n in (2, 5):
        _, roles = train(dealt(rows, n), schema, settings)
        sent: Counter[str] = Counter()
        for role in roles.values():
            sent.update(role.sent)
        most = published_bytes(6000, n, 11, 6, 5)
        assert sent["facts"] + sent["tables"] + sent["places"] < most["preprocessing"]
        assert sent["sums"] + sent["leaves"] + sent["trees"] < most["training"]
        assert min(sent.values()) > 0


def test_reports_become_a_model_and_too_few_do_not() -> None:
    schema, rows = mixed_rows(90)
    agreement = agreement_for(schema, ("b", "a"), SETTINGS, "local")
    tables = dict(zip("ab", dealt(rows, 2).values(), strict=True))
    reports = run_roles(agreement, similarity_role, tables, schema).reports
    model = model_of(reports, schema, Agreement.from_dict(agreement.to_dict()))
    assert len(model.trees) == 9
    with pytest.raises(FormatError, match="b has not reported tree 1 of 9"):
        model_of({"a": reports["a"]}, schema, agreement)
    store = MemoryStore()
    with pytest.raises(FormatError, match="does not name what this role shows"):
        similarity_role("a", tables["a"], schema, replace(agreement, disclosures=()), store)
    with pytest.raises(SettingsError, match="not a party"):
        similarity_role("c", tables["a"], schema, agreement, store)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_trees": 0}, {"max_depth": 17}, {"learning_rate": -1.0}, {"turns": "mine"},
        {"leaves": "none"}, {"similar_weight": 2.0}, {"window": 0.0}, {"trees": 5}, {"seed": -1},
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        SimilaritySettings.from_dict({**SETTINGS.to_dict(), **wrong})


def test_the_bound_of_theorem_2_holds() -> None:
    """Rows and cuts as the theorem assumes them; 200 random trees, delta = 1e-9 each."""
    schema, rows = numbers(2400, 5)
    tables, rng, depth = dealt(rows, 2), np.random.default_rng(2), 3
    own, other = tables["p0"], tables["p1"]
    words = [hash_family(schema, 1, 4, 0.3).hashes(t) for t in (own, other)]
    similar = most_similar(Pair(1, "p1", "p0"), 4, words[1], words[0]).row
    places = [
        np.stack([code_values(g)[t.codes.column(j), 0] for j, g in enumerate(base_grid(schema))], 1)
        for t in (own, other)
    ]
    nearest = np.abs(places[1] - places[0][similar]).sum(axis=1).max()
    g = gradients(loss_for(schema.label), rng.normal(0, 1, (1200, 1)), other.target) * 2.0**-BITS
    errors, unlike = [], []
    for _ in range(200):
        columns, cuts = rng.integers(0, 5, (depth, 4)), rng.uniform(size=(depth, 4))
        values = rng.normal(size=2**depth)
        steps = [_random_tree(p, columns, cuts, values) for p in places]
        bound = bound_of_theorem_2(
            1200, depth, nearest, 5.0, (np.abs(g[:, 0]).max(), g[:, 1].max()),
            np.abs(values).max(), 1e-9,
        )  # fmt: skip
        moved = steps[0][similar]
        errors.append(_difference(g, moved, steps[1]))
        unlike.append(_difference(g, rng.permutation(moved), steps[1]))
        assert errors[-1] <= bound
    assert np.mean(errors) < 0.8 * np.mean(unlike)  # similar rows do better than any


def _random_tree(x: np.ndarray, columns: Any, cuts: Any, values: np.ndarray) -> np.ndarray:
    """A tree of random cuts; a node's cut follows from its depth and place."""
    leaf = np.zeros(len(x), np.int64)
    for level in range(len(columns)):
        place = leaf % columns.shape[1]
        goes = x[np.arange(len(x)), columns[level][place]] >= cuts[level][place]
        leaf = 2 * leaf + goes
    return values[leaf]


def _difference(g: np.ndarray, moved: np.ndarray, true: np.ndarray) -> float:
    return abs(float(np.sum(g[:, 0] * (moved - true) + 0.5 * g[:, 1] * (moved**2 - true**2))))
