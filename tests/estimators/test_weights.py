"""Weights of classes: public numbers or released counts put onto scores, never read from rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

import hedgerow
from hedgerow import Ledger, PrivateBoostingClassifier
from hedgerow.testing import noise_off

Table = tuple[NDArray[np.float64], NDArray[np.int64]]
METHODS = ("auto", "random-trees", "dp-gbm", "dp-ebm")


def table(n_classes: int = 2) -> Table:
    """One row in ten is of a class other than the first."""
    rng = np.random.default_rng(3)
    X = rng.random((3000, 2))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(3000) > 1.05, 1, 0)
    return X, np.where((y == 1) & (X[:, 1] > 0.5), n_classes - 1, y)


def fitted(data: Table, **parameters: Any) -> PrivateBoostingClassifier:
    classes = list(range(int(data[1].max()) + 1))
    if parameters.get("method", "auto") != "auto":
        parameters = {"n_trees": 4, "max_depth": 2, **parameters}
    given = {"bounds": (0, 1), "classes": classes, "epsilon": 2.0, "random_state": 0, **parameters}
    return PrivateBoostingClassifier(**given).fit(*data)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", METHODS)
def test_a_weight_is_added_to_the_score_and_changes_no_question(
    method: str, n_classes: int
) -> None:
    data = table(n_classes)
    ledgers = [Ledger.in_memory(), Ledger.in_memory()]
    with noise_off():
        plain = fitted(data, method=method, ledger=ledgers[0])
        heavy = fitted(data, method=method, ledger=ledgers[1], class_weight={"1": 6.0})
    assert heavy.model_.trees[:-1] == plain.model_.trees
    shift = heavy.decision_function(data[0]) - plain.decision_function(data[0])
    expected = np.log([1.0, 6.0, 1.0]) if n_classes == 3 else np.log(6.0)
    assert shift == pytest.approx(np.broadcast_to(expected, shift.shape), abs=1e-6)
    assert heavy.plan_.mu == plain.plan_.mu
    charges = [[line.values for line in ledger.lines(kind="charge")] for ledger in ledgers]
    assert len(charges[0]) == len(charges[1]) > 0
    assert heavy.statement_.releases == plain.statement_.releases
    assert heavy.model_.record["class_weight"]["weights"][1] == 6.0
    assert "class_weight" not in plain.model_.record


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", METHODS)
def test_balanced_weights_are_those_of_scikit_learn_without_noise(
    method: str, n_classes: int
) -> None:
    X, y = table(n_classes)
    settings = None if method == "auto" else {"start_share": 0.02}
    with noise_off():
        model = fitted((X, y), method=method, class_weight="balanced", settings=settings)
    wanted = compute_class_weight("balanced", classes=np.unique(y), y=y)
    assert model.model_.record["class_weight"]["weights"] == pytest.approx(wanted)


def test_balanced_weights_follow_from_the_noisy_count_alone() -> None:
    X, y = table()
    model = fitted((X, y), epsilon=0.2, class_weight="balanced", settings={"spare": 0})
    weights = np.array(model.model_.record["class_weight"]["weights"])
    exact = compute_class_weight("balanced", classes=np.unique(y), y=y)
    assert not np.allclose(weights, exact, rtol=1e-4)
    assert np.allclose(weights, exact, rtol=0.5)


def test_balanced_weights_find_more_of_a_rare_class() -> None:
    X, y = table()
    recalls = [
        float(np.mean(fitted((X, y), class_weight=weight).predict(X)[y == 1]))
        for weight in (None, "balanced")
    ]
    assert recalls[0] < 0.5 < 0.7 < recalls[1]


def test_bands_and_importances_stay_what_they_are() -> None:
    data = table()
    with noise_off():
        plain = fitted(data, method="random-trees")
        heavy = fitted(data, method="random-trees", class_weight="balanced")
    assert heavy.feature_importances_ == pytest.approx(plain.feature_importances_)
    before, after = plain.explain(), heavy.explain()
    assert np.array_equal(before.shapes[0].deviation, after.shapes[0].deviation, equal_nan=True)
    assert after.intercept[0] > before.intercept[0]


@pytest.mark.parametrize("weight", [None, "balanced", {0: 1.0, 1: 4.0}])
def test_a_loaded_estimator_has_the_weights_of_the_fit(weight: Any) -> None:
    X, y = table()
    model = fitted((X, y), method="random-trees", class_weight=weight)
    again = hedgerow.load(model.model_.to_bytes())
    assert again.get_params()["class_weight"] == weight
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
