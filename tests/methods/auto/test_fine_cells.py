"""Heavy fine cells: found by noisy counts, bins of their own, the same model however rows lie."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow import PrivateBoostingClassifier, PrivateBoostingRegressor, Schema, local_federation
from hedgerow.data.binning import base_grid, fine_grid
from hedgerow.data.schema import Categorical, Label, Numeric, Unit
from hedgerow.data.tables import rows_of
from hedgerow.data.weights import Weight
from hedgerow.export import to_matrix
from hedgerow.inspection.explain import explain
from hedgerow.inspection.explain.editing import edit
from hedgerow.methods.auto.fine_cells import (
    FALSE_ONES,
    LabelLaw,
    Seen,
    differing,
    heavy_cells,
    with_heavy_cells,
)
from hedgerow.methods.auto.rule import rule_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.testing.noise import noise_off
from tests.export.runs import with_xgboost

SPIKE = 15_024
SCHEMA = Schema(
    (
        Numeric("gain", 0, 99_999, integer=True),
        Numeric("age", 0, 100, integer=True),
        Categorical("site", ("a", "b", "c")),
    ),
    Label("sick", ("no", "yes")),
)


def table(n: int = 6_000, seed: int = 3) -> dict[str, Any]:
    """Most gains are nothing, some are anything, and a few are one value that decides the label."""
    rng = np.random.default_rng(seed)
    gain = np.where(rng.random(n) < 0.8, 0, rng.integers(0, 100_000, n))
    gain[: n // 30] = SPIKE
    age = rng.integers(18, 90, n)
    chance = np.where(gain == SPIKE, 0.98, 0.1 + age / 200)
    order = rng.permutation(n)
    sick = np.where(rng.random(n) < chance, "yes", "no")
    return {
        "gain": gain[order], "age": age[order], "site": rng.choice(list("abc"), n),
        "sick": sick[order], "id": rng.integers(0, n, n), "w": rng.choice([0.5, 1.0], n),
    }  # fmt: skip


def fitted(federation: Any, epsilon: float = 4.0, **more: Any) -> Any:
    kind = (
        PrivateBoostingClassifier if federation.schema.label.classes else PrivateBoostingRegressor
    )
    model = kind(epsilon=epsilon, delta=1e-5, random_state=5, **more)
    return model.fit_federation(federation)


def thresholds(model: Any) -> set[float]:
    trees = [tree.structure for tree in model.model_.trees]
    return {float(t) for s in trees for t in s.threshold[s.feature == 0]}


def edges_around(value: int) -> tuple[float, float]:
    """The edges of the fine cell that a value lies in."""
    edges = fine_grid(SCHEMA)[0].edges
    k = int(np.sum(edges <= value))
    return float(edges[k - 1]), float(edges[k])


def test_a_value_that_many_rows_share_becomes_a_bin_between_the_cells_of_the_base_grid() -> None:
    data = table()
    with noise_off():
        model = fitted(local_federation({"all": rows_of(data, SCHEMA)}, SCHEMA))
    low, high = edges_around(SPIKE)
    assert {low, high} <= thresholds(model)
    assert not {low, high} <= set(base_grid(SCHEMA)[0].edges.tolist())
    others = {**data, "gain": np.full(len(data["age"]), SPIKE - 300)}
    raised = model.decision_function({**data, "gain": np.full(len(data["age"]), SPIKE)})
    assert np.median(raised - model.decision_function(others)) > 1.0


def test_without_fine_cells_the_value_is_lost_among_its_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hedgerow.methods.auto.rule.FINE_SHARE", 0.0)
    with noise_off():
        model = fitted(local_federation({"all": rows_of(table(), SCHEMA)}, SCHEMA))
    assert thresholds(model) <= set(base_grid(SCHEMA)[0].edges.tolist())


@pytest.mark.parametrize("changes", [{}, {"label": Label("age2", lower=0, upper=100)}], ids=str)
def test_one_party_three_and_three_masked_ones_learn_the_same_model(
    changes: dict[str, Any],
) -> None:
    schema = replace(SCHEMA, **changes)
    data = table(3_000)
    data["age2"] = np.clip(data["age"] + 20 * (data["gain"] == SPIKE), 0, 100)
    rows = rows_of(data, schema)
    parts = {f"p{k}": rows.take(np.arange(k, rows.n_rows, 3)) for k in range(3)}
    models = []
    for tables, trust in (
        ({"all": rows}, "coordinator"),
        (parts, "coordinator"),
        (parts, "parties"),
    ):
        with noise_off():
            models.append(fitted(local_federation(tables, schema, trust=trust), epsilon=30.0))
    assert set(edges_around(SPIKE)) <= thresholds(models[0])
    for other in models[1:]:
        assert len(other.model_.trees) == len(models[0].model_.trees)
        for a, b in zip(models[0].model_.trees, other.model_.trees, strict=True):
            assert a.structure.key == b.structure.key
            assert np.array_equal(a.values, b.values)


def test_files_and_exports_keep_cuts_between_the_cells_of_the_base_grid(tmp_path: Path) -> None:
    data = table(2_000)
    with noise_off():
        model = fitted(local_federation({"all": rows_of(data, SCHEMA)}, SCHEMA), 30.0).model_
    low, high = edges_around(SPIKE)
    gain = [low - 1, low, low + 1, high - 1, high, high + 1, 0, 99_999]
    asked = {"gain": gain, "age": [40] * len(gain), "site": ["a"] * len(gain)}
    expected = model.predict(asked)
    assert len(set(expected[:, -1][1:4].tolist())) == 1
    assert expected[0, -1] != expected[1, -1]
    model.save(tmp_path / "model.hedge")
    assert np.array_equal(Ensemble.load(tmp_path / "model.hedge").predict(asked), expected)
    matrix = to_matrix(model, asked)
    assert np.allclose(with_xgboost(model, matrix, tmp_path), expected, atol=1e-6)
    assert {low, high} <= set(explain(model).shape("gain").cells.grid.edges.tolist())
    edited = edit(model, "gain", {(low, high): 0.0}, reason="a test")
    assert edited.predict(asked)[2, -1] != expected[2, -1]


def test_persons_and_weights_find_it_too() -> None:
    for schema in (
        replace(SCHEMA, unit=Unit("person", "id", 2)),
        replace(SCHEMA, weight=Weight("w", 1.0)),
    ):
        with noise_off():
            model = fitted(local_federation({"all": rows_of(table(), schema)}, schema), 30.0)
        assert set(edges_around(SPIKE)) <= thresholds(model)


def test_so_many_empty_cells_are_taken_for_heavy_ones_as_the_threshold_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hedgerow.methods.auto.fine_cells.MOST_HEAVY", 1024)
    rng = np.random.default_rng(1)
    of, found = np.repeat(np.arange(64), 16), []
    for _ in range(400):
        seen = Seen(rng.normal(size=64), rng.normal(size=1024), 1.0)
        found.append(len(heavy_cells([seen], of, 1.0)))
    assert np.mean(found) == pytest.approx(FALSE_ONES, rel=0.1)


def test_a_heavy_value_whose_labels_are_those_of_its_neighbours_stays_with_them() -> None:
    of = np.repeat(np.arange(2), 8)
    fine = np.full((2, 16), 10.0)
    fine[:, 3], fine[:, 12] = (300, 300), (20, 580)
    cells = np.stack([np.bincount(of, row) for row in fine])
    law = LabelLaw(np.array([0.5, 0.5]), 5.0)
    assert differing(np.array([3, 12]), of, cells, fine, law, 1.0).tolist() == [12]
    gradients = np.stack([np.where(np.arange(16) == 12, 40.0, 0.0), fine.sum(axis=0)])
    cells = np.stack([np.bincount(of, row) for row in gradients])
    law = LabelLaw(np.zeros(1), 5.0, 0.1)
    assert differing(np.array([3, 12]), of, cells, gradients, law, 1.0).tolist() == [12]


def test_what_is_left_of_a_cell_is_spread_over_what_is_left_of_its_fine_cells() -> None:
    cells = np.array([[100.0, 30.0, 7.0]])  # two cells of four fine ones, and missing
    fine = np.array([[0.0, 85.0, 3.0, 0.0, 8.0, 8.0, 7.0, 7.0, 7.0]])
    found = with_heavy_cells((3,), cells, fine, np.array([1]), 2.0)
    assert found.cuts == (0, 1, 3)
    assert found.heavy.tolist() == [False, True, False, False, False]
    assert found.counts.tolist() == [[5.0, 85.0, 10.0, 30.0, 7.0]]
    assert found.variance.tolist() == pytest.approx([1 + 4 / 9, 4.0, 1 + 16 / 9, 1.0, 1.0])


def test_the_rule_asks_for_fine_cells_only_where_they_pay() -> None:
    shares = [
        rule_for(30_000, 14, mu, "binary", (0.76, 0.24), n_fine=3).fine_share
        for mu in (0.01, 0.05, 0.3, 2.0)
    ]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] > 0.0
    assert rule_for(30_000, 14, 2.0, "binary", (0.76, 0.24)).fine_share == 0.0
