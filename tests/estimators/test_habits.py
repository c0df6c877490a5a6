"""What people expect of an estimator who come from scikit-learn and its relatives."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import hedgerow
from hedgerow import (
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateSurvivalBoosting,
    PrivateTreeClassifier,
    SimilarityBoostingClassifier,
    SimilarityBoostingRegressor,
    VerticalBoostingClassifier,
    VerticalBoostingRegressor,
)
from hedgerow.data.habits import known_as, reason_against
from hedgerow.errors import SettingsError
from hedgerow.privacy.settings import DEFAULTS

ESTIMATORS: list[Any] = [
    PrivateBoostingClassifier, PrivateBoostingRegressor, PrivateSurvivalBoosting,
    PrivateTreeClassifier, SimilarityBoostingClassifier, SimilarityBoostingRegressor,
    VerticalBoostingClassifier, VerticalBoostingRegressor,
]  # fmt: skip
Numbers = tuple[NDArray[np.float64], NDArray[np.int64]]


@pytest.fixture
def routing() -> Iterator[None]:
    with config_context(enable_metadata_routing=True):
        yield


def small(**parameters: Any) -> PrivateBoostingClassifier:
    given = {"method": "random-trees", "bounds": (0, 1), "classes": [0, 1], "epsilon": 50.0}
    return PrivateBoostingClassifier(**{**given, "n_trees": 8, "max_depth": 2, **parameters})


def test_every_estimator_is_here() -> None:
    public = [getattr(hedgerow, name) for name in hedgerow.__all__]
    assert {e for e in public if hasattr(e, "fit")} == set(ESTIMATORS)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_unknown_keywords_are_explained_and_the_signature_stays(estimator: Any) -> None:
    names = list(inspect.signature(estimator).parameters)
    assert sorted(names) == sorted(estimator().get_params())
    assert clone(estimator(schema="s.toml")).schema == "s.toml"
    with pytest.raises(
        SettingsError, match=rf"{estimator.__name__} has no parameter 'schemaa' \(did"
    ):
        estimator(schemaa="s.toml")
    with pytest.raises(SettingsError, match="has no parameter 'colour'; it has "):
        estimator().set_params(colour=1)
    with pytest.raises(SettingsError, match=r"no parameter 'eval_metric'\. Scores on rows that"):
        estimator(eval_metric="auc")
    with pytest.raises(SettingsError, match=r"fit takes no 'eval_set'\. .* Nothing was asked"):
        estimator().fit([[0.0]], [0], eval_set=[])


def test_trees_are_counted_only_where_there_are_several() -> None:
    with pytest.raises(SettingsError, match="PrivateTreeClassifier has no parameter 'n_trees'"):
        PrivateTreeClassifier(n_trees=3)  # type: ignore[call-arg]


def test_names_that_mean_something_here_are_no_habits() -> None:
    parameters = {name for estimator in ESTIMATORS for name in estimator().get_params()}
    for name in parameters | set(DEFAULTS):
        assert not reason_against(name)
    assert known_as("n_estimators", parameters) == "n_trees"
    assert known_as("min_hessian", {"min_child_weight"}) == "min_child_weight"
    assert known_as("colour", parameters) is None


def test_importances_share_out_what_explain_lists(two_numbers: Numbers) -> None:
    X, y = two_numbers
    model = small(n_trees=20).fit(X, y)
    importances = model.feature_importances_
    explanation = model.explain()
    (pair,) = explanation.pairs
    sizes = np.array([shape.importance + pair.importance / 2 for shape in explanation.shapes])
    assert importances == pytest.approx(sizes / sizes.sum())
    assert importances.sum() == pytest.approx(1.0)
    selected = SelectFromModel(model, threshold=0.0, prefit=True).transform(X)
    assert selected.shape == X.shape
    assert not hasattr(small(), "feature_importances_")


def test_logarithms_of_probabilities(two_numbers: Numbers) -> None:
    X, y = two_numbers
    model = small().fit(X, y)
    assert np.array_equal(model.predict_log_proba(X), np.log(model.predict_proba(X)))


@pytest.mark.usefixtures("routing")
def test_party_names_reach_the_estimator_through_pipelines_and_searches(
    two_numbers: Numbers,
) -> None:
    X, y = two_numbers
    parties = np.array(list("abc"))[np.arange(len(y)) % 3]
    model = small().set_fit_request(parties=True)
    pipeline = make_pipeline(MinMaxScaler(), model).fit(X, y, parties=parties)
    assert pipeline[-1].plan_.privacy.trust == "parties"
    search = GridSearchCV(pipeline, {"privateboostingclassifier__max_depth": [1, 2]}, cv=2)
    best = search.fit(X, y, parties=parties).best_estimator_[-1]
    assert best.plan_.privacy.trust == "parties"
    assert small().fit(X, y).plan_.privacy.trust == "coordinator"


def test_a_search_over_a_name_of_another_library_says_which_is_meant(two_numbers: Numbers) -> None:
    search = GridSearchCV(small(), {"n_estimators": [2, 4]}, cv=2)
    with pytest.raises(SettingsError, match=r"'n_estimators' \(did you mean 'n_trees'\?\)"):
        search.fit(*two_numbers)
