"""The scikit-learn estimators of boosting by similarity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from hedgerow import Ensemble, Schema, SimilarityBoostingClassifier, SimilarityBoostingRegressor
from hedgerow.data.schema import Categorical, Label
from hedgerow.errors import SchemaError, SettingsError

SMALL: dict[str, Any] = {"n_trees": 15, "max_depth": 4, "learning_rate": 0.3, "random_state": 0}


def three_blobs(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    return rng.normal(0, 0.4, (n, 4)) + np.eye(3, 4)[y], y


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        SimilarityBoostingClassifier(bounds=(-10, 10), classes="public", **SMALL),
        SimilarityBoostingRegressor(bounds=(-10, 10), label_bounds=(-10, 10), **SMALL),
    ],
    ids=lambda e: type(e).__name__,
)
def test_the_checks_of_scikit_learn_pass(estimator: Any) -> None:
    clipped = "infinite labels are clipped to their public bounds"
    expected = {"check_supervised_y_no_nan": clipped}
    if isinstance(estimator, SimilarityBoostingClassifier):
        expected = {}
    results = check_estimator(
        estimator, on_skip=None, on_fail=None, expected_failed_checks=expected
    )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed


def test_parties_train_together_and_the_model_says_so(tmp_path: Any) -> None:
    X, y = three_blobs()
    model = SimilarityBoostingClassifier(bounds=(-3, 4), classes=[0, 1, 2], **SMALL)
    model.fit(X, y, parties=np.arange(300) % 3)
    assert model.score(X, y) > 0.9
    assert model.predict_proba(X).shape == (300, 3)
    assert model.decision_function(X).shape == (300, 3)
    statement = model.statement_
    assert statement.guarantee == "none"
    assert statement.parties == ("0", "1", "2")
    assert "hashes" in statement.words()
    assert {d.measured_by for d in statement.disclosures} >= {"hedgerow.similarity.audit"}
    assert set(model.sent_["0"]) == {"facts", "tables", "places", "sums", "leaves", "trees"}
    model.model_.save(tmp_path / "m.hedge")
    again = Ensemble.load(tmp_path / "m.hedge")
    assert again == model.model_
    assert np.array_equal(again.predict(X), model.predict_proba(X))
    assert clone(model).fit(X, y, parties=np.arange(300) % 3).model_ == model.model_


def test_sparse_tables_and_missing_values() -> None:
    rng = np.random.default_rng(1)
    X = (rng.random((400, 6)) < 0.3).astype(float)
    y = X[:, 0].astype(int) ^ X[:, 1].astype(int)
    columns = tuple(Categorical(f"w{j}", (0, 1)) for j in range(6))
    schema = Schema(columns, Label("label", (0, 1)))
    parties = np.where(rng.random(400) < 0.5, "a", "b")
    dense = SimilarityBoostingClassifier(schema, **SMALL).fit(X, y, parties=parties)
    thin = SimilarityBoostingClassifier(schema, **SMALL)
    thin.fit(sparse.csr_array(X), y, parties=parties)
    assert dense.model_ == thin.model_
    assert thin.score(sparse.csr_array(X), y) == 1.0
    with_gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    frame = pd.DataFrame(with_gaps, columns=schema.names)
    held = SimilarityBoostingClassifier(schema, **SMALL).fit(frame, y, parties=parties)
    assert held.score(frame, y) > 0.85
    assert list(held.feature_names_in_) == list(schema.names)


def test_what_is_wrong_is_said() -> None:
    X, y = three_blobs(60)
    with pytest.raises(SchemaError, match="public facts are missing"):
        SimilarityBoostingClassifier().fit(X, y)
    schema = Schema.from_bounds({"a": (0, 1)}, label_bounds=(0, 1))
    with pytest.raises(SchemaError, match="use SimilarityBoostingRegressor"):
        SimilarityBoostingClassifier(schema).fit(X, y)
    with pytest.raises(SchemaError, match="use SimilarityBoostingClassifier"):
        SimilarityBoostingRegressor(Schema.from_bounds({"a": (0, 1)}, classes=[0, 1])).fit(X, y)
    known = {"bounds": (-3, 4), "classes": [0, 1, 2], "n_trees": 2}
    with pytest.raises(SettingsError, match="'seed' is a parameter of its own"):
        SimilarityBoostingClassifier(settings={"seed": 3}, **known).fit(X, y)
    with pytest.raises(SettingsError, match="unknown setting 'hashes'"):
        SimilarityBoostingClassifier(settings={"hashes": 3}, **known).fit(X, y)
    model = SimilarityBoostingClassifier(settings={"n_hashes": 4}, **known)
    with pytest.raises(SettingsError, match="4 dimensions: L < d"):
        model.fit(X, y, parties=np.arange(60) % 2)
