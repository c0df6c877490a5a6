"""scikit-learn's own checks, and the ways its users hold an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder
from sklearn.utils.estimator_checks import check_estimator

from hedgerow import PrivateBoostingClassifier, PrivateBoostingRegressor, PrivateTreeClassifier
from hedgerow.errors import BudgetExceeded, TableError
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import Budget, set_budget, spending
from tests.slow import ALL

Numbers = tuple[NDArray[np.float64], NDArray[np.int64]]
NOISE = "two fits never have the same noise, whatever the random_state"
WEIGHTS = {
    "check_all_zero_sample_weights_error": "that all weights are 0 is a fact about private rows",
    "check_sample_weight_equivalence_on_dense_data": NOISE,
    "check_sample_weight_equivalence_on_sparse_data": NOISE,
}
EXPECTED: dict[str, dict[str, str]] = {
    "PrivateBoostingClassifier": {"check_fit_idempotent": NOISE, **WEIGHTS},
    "PrivateTreeClassifier": {},
    "PrivateBoostingRegressor": {
        **WEIGHTS,
        "check_fit_idempotent": NOISE,
        "check_regressor_data_not_an_array": NOISE,
        "check_regressors_int": NOISE,
        "check_supervised_y_2d": NOISE,
        "check_supervised_y_no_nan": "infinite labels are clipped to their public bounds",
    },
}
# Compares two noisy fits of one classifier: rows between two classes may fall either way.
CHANCE = {"PrivateBoostingClassifier": {"check_supervised_y_2d": NOISE}}
STRONG: dict[str, Any] = {
    "method": "random-trees", "bounds": (-10, 10), "epsilon": 1e7, "n_trees": 15,
    "max_depth": 4, "learning_rate": 1.0, "random_state": 0, "settings": {"candidates": "log"},
}  # fmt: skip
ESTIMATORS = [
    PrivateBoostingClassifier(classes="public", max_weight=10.0, **STRONG),
    PrivateBoostingRegressor(label_bounds=(-10, 10), max_weight=10.0, **STRONG),
    PrivateTreeClassifier(
        1e6, bounds=(-10, 10), classes="public", min_samples_leaf=1, random_state=0
    ),
]


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    "estimator", ESTIMATORS if ALL else ESTIMATORS[:1], ids=lambda e: type(e).__name__
)
def test_the_checks_of_scikit_learn_pass_but_for_those_with_a_reason(estimator: Any) -> None:
    name = type(estimator).__name__
    expected, chance = EXPECTED[name], CHANCE.get(name, {})
    results = check_estimator(
        estimator, on_skip=None, on_fail=None, expected_failed_checks={**expected, **chance}
    )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    # A reason that no longer holds is taken off the list.
    found = {r["check_name"] for r in results if r["status"] == "xfail"}
    assert found - set(chance) == set(expected)
    assert sum(r["status"] == "passed" for r in results) > 35


def small(**parameters: Any) -> PrivateBoostingClassifier:
    return PrivateBoostingClassifier(
        **{
            "method": "random-trees",
            "bounds": (0, 1),
            "classes": [0, 1],
            "n_trees": 4,
            "max_depth": 2,
            **parameters,
        }
    )


def test_each_fold_is_a_fit_and_a_shared_ledger_shows_them_all(two_numbers: Numbers) -> None:
    ledger = Ledger.in_memory()
    model = small(ledger=ledger, epsilon=1.0)
    scores = cross_val_score(model, *two_numbers, cv=4)
    assert scores.shape == (4,)
    spent = spending(ledger)
    alone = model.fit(*two_numbers).plan_.mu
    assert spent.runs == 4
    assert spent.mu == pytest.approx(2 * alone)  # four equal fits: sqrt(4) times the mu of one
    assert spent.epsilon(model.delta) > 2 * model.epsilon


def test_folds_beyond_the_budget_are_refused(two_numbers: Numbers) -> None:
    ledger = Ledger.in_memory()
    set_budget(ledger, Budget(2.0, 1e-6))
    with pytest.raises(BudgetExceeded, match="No party was asked"):
        cross_val_score(small(ledger=ledger, epsilon=1.0), *two_numbers, cv=5, error_score="raise")
    assert 1 <= spending(ledger).runs < 5


def test_pipelines_with_arrays_frames_and_sparse_columns(two_numbers: Numbers) -> None:
    X, y = two_numbers
    plain = make_pipeline(MinMaxScaler(), small(epsilon=50.0)).fit(X, y)
    assert not hasattr(plain[-1], "feature_names_in_")
    framed = make_pipeline(MinMaxScaler(), small(epsilon=50.0)).set_output(transform="pandas")
    table = pd.DataFrame(X, columns=["a", "b"])
    framed.fit(table, y)
    assert framed[-1].feature_names_in_.tolist() == ["a", "b"]
    assert framed[-1].model_.schema.names == ("a", "b")
    assert framed.predict(table[["a", "b"]]).shape == y.shape
    table["site"] = np.where(y == 1, "north", "south")
    sites = make_column_transformer((OneHotEncoder(sparse_output=True), ["site"]))
    sparse = make_pipeline(sites, small(epsilon=50.0, n_trees=20)).fit(table, y)
    assert sparse.score(table, y) == 1.0
    assert sparse[-1].n_features_in_ == 2


def test_clones_keep_parameters_and_no_model(two_numbers: Numbers) -> None:
    pipeline = make_pipeline(MinMaxScaler(), small(n_trees=5)).fit(*two_numbers)
    again = clone(pipeline)
    assert again[-1].get_params() == pipeline[-1].get_params()
    assert not hasattr(again[-1], "model_")


def test_widths_names_and_shapes_are_checked(two_numbers: Numbers) -> None:
    X, y = two_numbers
    model = small().fit(X, y)
    with pytest.raises(TableError, match="X has 1 features, but PrivateBoostingClassifier is exp"):
        model.predict(X[:, :1])
    with pytest.raises(TableError, match="Reshape your data"):
        model.predict(X[0])
    with pytest.raises(TableError, match="requires y to be passed"):
        small().fit(X)
    with pytest.raises(TableError, match="Complex data not supported"):
        small().fit(X + 1j, y)
    with pytest.raises(TableError, match=r"0 feature\(s\) \(shape=\(600, 0\)\)"):
        small().fit(X[:, :0], y)
    with pytest.warns(DataConversionWarning):
        small().fit(X, y[:, None])
    with pytest.raises(ValueError, match="Unknown label type"):
        small(classes="public").fit(X, X[:, 0])


def test_names_follow_the_last_fit(two_numbers: Numbers) -> None:
    X, y = two_numbers
    model = small().fit(pd.DataFrame(X, columns=["a", "b"]), y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert not hasattr(model.fit(X, y), "feature_names_in_")
    assert not hasattr(small().fit(pd.DataFrame(X), y), "feature_names_in_")  # names 0 and 1
    assert small().fit({"b": X[:, 0], "a": X[:, 1]}, y).feature_names_in_.tolist() == ["b", "a"]
