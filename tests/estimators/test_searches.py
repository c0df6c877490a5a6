"""Searches: their cost is known before they start, and a choice by exact scores is stated."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_score,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from hedgerow import (
    Ensemble,
    Ledger,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateScorer,
    PrivateTreeClassifier,
    Schema,
    search_cost,
)
from hedgerow.errors import BudgetExceeded, SettingsError
from hedgerow.privacy.ledger.spending import spending
from tests.estimators.test_overlapping import SMALL, X, Y

EXACT = "selected by exact scores on private rows, which is not covered"
GRID = {"n_trees": [2, 3]}
PAID = PrivateScorer("auc", epsilon=0.3)


def estimator(**more: Any) -> PrivateBoostingClassifier:
    given = {"bounds": (-1, 1), "classes": [0, 1], "epsilon": 1.0, **SMALL, **more}
    return PrivateBoostingClassifier(**given)


def shown(model: Any) -> list[str]:
    return [disclosure.what for disclosure in model.statement_.disclosures]


# What a search shows


@pytest.mark.parametrize("scoring", [None, "roc_auc", {"a": "accuracy", "b": PAID}])
@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_a_model_that_exact_scores_selected_says_so(
    scoring: Any, backend: str, tmp_path: Path
) -> None:
    refit = "a" if isinstance(scoring, dict) else True
    search = GridSearchCV(estimator(), GRID, cv=2, scoring=scoring, refit=refit)
    with joblib.parallel_backend(backend, n_jobs=2):
        search.fit(X, Y)
    best = search.best_estimator_
    assert shown(best) == [f"the choice of its parameters by GridSearchCV: {EXACT}"]
    assert EXACT in best.statement_.words()
    best.save(tmp_path / "m.hedge")
    assert EXACT in Ensemble.load(tmp_path / "m.hedge").statement.words()


def test_the_search_is_seen_through_a_pipeline_and_from_other_selectors() -> None:
    pipeline = make_pipeline(FunctionTransformer(), estimator())
    search = RandomizedSearchCV(pipeline, {"privateboostingclassifier__n_trees": [2, 3]}, n_iter=2)
    assert "by RandomizedSearchCV: " in shown(search.fit(X, Y).best_estimator_[-1])[0]
    tuned = TunedThresholdClassifierCV(estimator(), cv=2, random_state=0).fit(X, Y)
    assert "by TunedThresholdClassifierCV: " in shown(tuned.estimator_)[0]


def test_private_scores_on_one_ledger_show_nothing_more(tmp_path: Path) -> None:
    search = GridSearchCV(estimator(), GRID, cv=2, scoring=PAID)
    with Ledger.open(tmp_path / "rows.ledger") as ledger:
        best = search.fit(X, Y).best_estimator_
        assert shown(best) == []
        assert best.statement_.ledger_runs == len(ledger.history()) == 9
        assert [run.method for run in ledger.history()].count("evaluation") == 4


def test_private_scores_that_nobody_adds_up_are_stated() -> None:
    search = GridSearchCV(estimator(), GRID, cv=2, scoring=PAID).fit(X, Y)
    assert shown(search.best_estimator_) == [
        "the choice of its parameters by GridSearchCV among private fits and scores, which no "
        "ledger has added up with this one"
    ]


def test_a_fit_outside_of_a_search_shows_no_choice() -> None:
    assert shown(estimator().fit(X, Y)) == []
    assert shown(Pipeline([("model", estimator())]).fit(X, Y)[-1]) == []


# Private scores


def test_a_private_score_is_an_evaluation_that_is_charged(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    big = rng.uniform(-1, 1, (6000, 2))
    label = (big[:, 0] > 0).astype(int)
    path = tmp_path / "rows.ledger"
    model = estimator(epsilon=4.0, ledger=str(path), n_trees=20).fit(big, label)
    score = PrivateScorer("auc", epsilon=2.0)(model, big, label)
    assert 0.8 < score <= 1.0
    with Ledger.open(path) as ledger:
        assert [run.method for run in ledger.history()] == ["random-trees", "evaluation"]
        assert ledger.history()[1].epsilon == pytest.approx(2.0)


def test_errors_are_negative_and_pipelines_are_followed() -> None:
    rng = np.random.default_rng(2)
    rows = rng.uniform(-1, 1, (4000, 2))
    model = PrivateBoostingRegressor(bounds=(-1, 1), label_bounds=(0, 1), epsilon=4.0)
    pipeline = make_pipeline(FunctionTransformer(), model).fit(rows, rows[:, 0] ** 2)
    assert -0.5 < PrivateScorer("rmse", epsilon=2.0)(pipeline, rows, rows[:, 0] ** 2) < 0
    with pytest.raises(SettingsError, match="'auc' is no measure of a regression task"):
        PAID(pipeline, rows, rows[:, 0] ** 2)


def test_a_score_lost_in_noise_is_a_guess_or_an_error() -> None:
    model, lost = estimator().fit(X, Y), list[Any]()
    for _ in range(10):  # a few rows and much noise: now and then something comes out
        lost.append(PrivateScorer("auc", epsilon=1e-3)(model, X[:4], Y[:4]))
        try:
            PrivateScorer("log_loss", epsilon=1e-3)(model, X[:4], Y[:4])
        except SettingsError as error:
            lost.append(str(error))
    assert 0.5 in lost
    assert any("log_loss was lost in noise" in str(one) for one in lost)


def test_scorers_travel_and_refuse_what_they_cannot_measure() -> None:
    assert pickle.loads(pickle.dumps(PAID)) == PAID  # noqa: S301
    with pytest.raises(SettingsError, match="'f1' cannot be scored; known: auc"):
        PrivateScorer("f1", epsilon=1.0)


# What a search costs


@pytest.mark.parametrize("scoring", [None, PAID])
def test_the_cost_that_is_named_is_the_cost_that_is_paid(tmp_path: Path, scoring: Any) -> None:
    search = GridSearchCV(estimator(), {"n_trees": [2, 3], "epsilon": [0.4, 0.8]}, cv=3)
    search.set_params(scoring=scoring)
    with Ledger.open(tmp_path / "rows.ledger", epsilon=20, delta=1e-6) as ledger:
        estimator().fit(X, Y)
        cost = search_cost(search, X, Y)
        assert cost.before == pytest.approx(ledger.spent)
        assert len(ledger.history()) == 1  # nobody was asked
        search.fit(X, Y)
        runs = len(ledger.history()) - 1
        assert runs == cost.fits + cost.scores == 13 + (12 if scoring else 0)
        # At most: whichever candidate is chosen, the dearest is counted for the last fit.
        assert ledger.spent <= cost.after * (1 + 1e-6)
        assert ledger.spent > 0.95 * cost.after
    assert ("scores are exact figures" in str(cost)) == (scoring is None)


def test_a_cross_validation_is_priced_too() -> None:
    groups = np.arange(len(X)) % 4
    cost = search_cost(estimator(), X, Y, groups=groups, cv=GroupKFold())
    assert (cost.fits, cost.scores) == (5, 0)
    with Ledger.in_memory() as ledger:
        cross_val_score(estimator(), X, Y, cv=5)
        assert cost.epsilon == pytest.approx(spending(ledger).epsilon(cost.delta), rel=1e-6)
    nested = search_cost(PrivateTreeClassifier(1.0, bounds=(-1, 1), classes=[0, 1]), X, Y, cv=3)
    assert (nested.epsilon, nested.delta) == (pytest.approx(3.0), 0.0)


def test_a_search_over_the_budget_can_be_stopped_before_it_starts(tmp_path: Path) -> None:
    path = tmp_path / "rows.ledger"
    search = GridSearchCV(estimator(ledger=str(path)), GRID, cv=5)
    assert search_cost(search, X, Y).affordable
    assert not path.exists()  # a calculation
    with Ledger.open(path, epsilon=2):
        pass
    cost = search_cost(search, X, Y)
    assert not cost.affordable
    with pytest.raises(BudgetExceeded, match=r"11 fits cost .* budget of 2.*nothing was spent"):
        cost.check()


def test_what_cannot_be_priced_is_said() -> None:
    schema = Schema.from_bounds({"x0": (-1, 1), "x1": (-1, 1)}, classes=[0, 1])
    drawn = RandomizedSearchCV(estimator(schema=schema, bounds=None), {"epsilon": [1, 2]}, n_iter=2)
    with pytest.raises(SettingsError, match="not known before it draws"):
        search_cost(drawn, X, Y)
    drawn.set_params(random_state=1)
    assert search_cost(drawn, X, Y).fits == 11
    with pytest.raises(SettingsError, match="what a TunedThresholdClassifierCV will cost"):
        search_cost(TunedThresholdClassifierCV(estimator()), X, Y)
    with pytest.raises(SettingsError, match="no private estimator"):
        search_cost(SelectKBest(), X, Y, cv=2)
    assert math.isfinite(search_cost(make_pipeline(estimator()), X, Y, cv=2).epsilon)
    parties = estimator(trust="parties", settings={"minimum_parties": 3})
    assert search_cost(parties, X, Y, cv=2).fits == 2
