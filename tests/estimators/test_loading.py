"""Models come back: `save`, `hedgerow.load`, joblib and pickle give what was saved."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor

import hedgerow
from hedgerow import (
    Ensemble,
    Ledger,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateTreeClassifier,
    SimilarityBoostingClassifier,
    SimilarityBoostingRegressor,
    VerticalBoostingClassifier,
    VerticalBoostingRegressor,
)
from hedgerow.errors import FormatError
from hedgerow.estimators.base import Estimator
from hedgerow.model import files

N = 600
X = np.random.default_rng(3).uniform(-1, 1, (N, 3))
BINARY = np.where(X[:, 0] > 0, "yes", "no")
THREE = np.digitize(X[:, 1], [-0.3, 0.3])
PARTIES = np.array(["north", "river", "summit"])[np.arange(N) % 3]
CLASSES = {"bounds": (-1, 1), "classes": ["no", "yes"]}
NUMBER = {"bounds": (-1, 1), "label_bounds": (-1, 1)}
OWNERS = {"owners": {"x1": "shop"}, "active": "bank"}


def small(**parameters: Any) -> PrivateBoostingClassifier:
    return PrivateBoostingClassifier(**{**CLASSES, "method": "random-trees", **parameters})


MADE: dict[str, Callable[[], Estimator]] = {
    "binary": lambda: PrivateBoostingClassifier(**CLASSES).fit(X, BINARY),
    "multiclass": lambda: PrivateBoostingClassifier(
        bounds=(-1, 1), classes=[0, 1, 2], epsilon=2.0, delta=1e-5
    ).fit(X, THREE),
    "regression": lambda: PrivateBoostingRegressor(**NUMBER, epsilon=3.0).fit(X, X[:, 2]),
    "parties": lambda: PrivateBoostingClassifier(**CLASSES).fit(X, BINARY, parties=PARTIES),
    "two parties": lambda: PrivateBoostingClassifier(
        **CLASSES, settings={"minimum_parties": 2}
    ).fit(X, BINARY, parties=np.where(X[:, 2] > 0, "north", "river")),
    "coordinator": lambda: PrivateBoostingClassifier(**CLASSES, trust="coordinator").fit(
        X, BINARY, parties=PARTIES
    ),
    "monotone": lambda: PrivateBoostingClassifier(**CLASSES, monotone={"x0": 1}).fit(X, BINARY),
    "rows": lambda: PrivateBoostingClassifier(**CLASSES, settings={"rows_hint": N}).fit(X, BINARY),
    "random-trees": lambda: small(
        n_trees=6, max_depth=2, learning_rate=0.4, n_bins=8, settings={"batch_size": 3}
    ).fit(X, BINARY),
    "renyi": lambda: small(n_trees=4, settings={"accounting": "renyi"}).fit(X, BINARY),
    "dp-ebm": lambda: small(method="dp-ebm", settings={"cycles": 2}).fit(X, BINARY),
    "pure": lambda: small(
        method="dp-xgboost", delta=0.0, n_trees=2, settings={"accounting": "pure"}
    ).fit(X, BINARY),
    "private-tree": lambda: PrivateTreeClassifier(
        **CLASSES, epsilon=4.0, max_depth=2, leaf_share=0.4
    ).fit(X, BINARY),
    "simfl": lambda: SimilarityBoostingClassifier(
        **CLASSES, n_trees=6, max_depth=3, random_state=5, settings={"similar_weight": 1.0}
    ).fit(X, BINARY, parties=PARTIES),
    "tfl": lambda: SimilarityBoostingRegressor(
        **NUMBER, n_trees=6, settings={"similarity": False}
    ).fit(X, X[:, 2], parties=PARTIES),
    "vertical": lambda: VerticalBoostingClassifier(
        **CLASSES, protection="none", n_trees=4, settings={"min_rows": 20}
    ).fit(X, BINARY, **OWNERS),
    "vertical regression": lambda: VerticalBoostingRegressor(
        **NUMBER, protection="none", n_trees=4
    ).fit(X, X[:, 2], **OWNERS),
}


@pytest.fixture(scope="module")
def trained() -> Callable[[str], Any]:
    """Estimators by their key in MADE, each trained once."""
    fitted: dict[str, Any] = {}

    def one(name: str) -> Any:
        if name not in fitted:
            fitted[name] = MADE[name]()
        return fitted[name]

    return one


@pytest.mark.parametrize("name", MADE)
def test_a_saved_model_comes_back_as_the_estimator_that_it_was(
    name: str, trained: Callable[[str], Any], tmp_path: Path
) -> None:
    model = trained(name)
    model.save(tmp_path / "model.hedge")
    for source in (
        str(tmp_path / "model.hedge"),
        tmp_path / "model.hedge",
        model.model_.to_bytes(),
    ):
        again: Any = hedgerow.load(source)
        assert type(again) is type(model)
        assert np.array_equal(again.predict(X), model.predict(X))
    if is_classifier(model):
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
        assert again.classes_.tolist() == model.classes_.tolist()
    else:
        assert is_regressor(again)
    assert again.statement_ == model.statement_
    assert again.n_features_in_ == 3
    assert str(again.explain().importances) == str(model.explain().importances)  # with NaNs
    assert again.to_xgboost(tmp_path / "a.json").path == tmp_path / "a.json"
    assert again.model_.record == model.model_.record


@pytest.mark.parametrize("name", MADE)
def test_parameters_come_back_or_are_said_to_be_unknown(
    name: str, trained: Callable[[str], Any]
) -> None:
    model = trained(name)
    again: Any = hedgerow.load(model.model_.to_bytes())
    before, after = model.get_params(), again.get_params()
    assert after.pop("schema") == model.model_.schema
    stood_in = {"bounds", "classes", "label_bounds"}  # the schema has them
    unknown = {*again.not_in_file_, *stood_in}
    if name == "dp-ebm":  # cycles have become a number of trees
        assert (after.pop("n_trees"), after.pop("settings")) == (6, None)
    else:
        unknown -= {"settings"}
    different = {k for k, v in after.items() if v != before[k]}
    if name == "tfl":  # the seed that was drawn is public, and in the file
        different.remove("random_state")
    assert different <= unknown
    assert after["ledger"] is None
    assert "ledger" in again.not_in_file_


@pytest.mark.parametrize("name", [n for n in MADE if "vertical" not in n])
def test_a_clone_of_a_loaded_estimator_trains_by_the_same_plan(
    name: str, trained: Callable[[str], Any]
) -> None:
    model = trained(name)
    again = clone(hedgerow.load(model.model_.to_bytes()))
    assert not hasattr(again, "model_")
    assert not hasattr(again, "not_in_file_")
    names = np.array(model.statement_.parties)
    parties = names[np.arange(N) % len(names)] if len(names) > 1 else None
    label = model.model_.schema.label
    y = X[:, 2] if label.task == "regression" else THREE if len(label.classes) > 2 else BINARY
    again.fit(X, y, parties=parties)
    if hasattr(model, "plan_"):
        assert again.plan_.settings == model.plan_.settings
        assert again.plan_.privacy == model.plan_.privacy
        assert again.plan_.method == model.plan_.method
    else:
        assert again.model_ == model.model_  # nothing in it is random but its seed


def test_fitting_a_loaded_estimator_leaves_nothing_unknown(trained: Callable[[str], Any]) -> None:
    again: Any = hedgerow.load(trained("binary").model_.to_bytes())
    assert again.not_in_file_ == ("random_state", "spare", "ledger")
    again.fit(X, BINARY)
    assert not hasattr(again, "not_in_file_")


def test_a_model_that_builds_on_another_says_which_it_cannot_name() -> None:
    start = PrivateBoostingClassifier(**CLASSES).fit(X, BINARY)
    model = PrivateBoostingClassifier(
        **CLASSES, warm_start_from=start.model_, warm_start_is_public=True
    ).fit(X, BINARY)
    again: Any = hedgerow.load(model.model_.to_bytes())
    assert "warm_start_from" in again.not_in_file_
    assert again.warm_start_is_public
    assert np.array_equal(again.predict(X), model.predict(X))


def test_parts_of_a_vertical_model_stay_with_their_parties(trained: Callable[[str], Any]) -> None:
    again: Any = hedgerow.load(trained("vertical").model_.to_bytes())
    assert not hasattr(again, "parts_")
    assert again.model_.record["owners"]["x1"] == "shop"


@pytest.mark.parametrize("name", ["binary", "private-tree", "simfl", "vertical"])
def test_pickle_and_joblib_keep_everything(
    name: str, trained: Callable[[str], Any], tmp_path: Path
) -> None:
    model = trained(name)
    model.predict(X)  # compiled parts go along
    joblib.dump(model, tmp_path / "model.joblib")
    pickled = pickle.loads(pickle.dumps(model))  # noqa: S301
    for again in (pickled, joblib.load(tmp_path / "model.joblib")):
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
        assert again.get_params() == model.get_params()
        assert again.statement_ == model.statement_
    loaded: Any = hedgerow.load(model.model_.to_bytes())
    pickled = pickle.loads(pickle.dumps(loaded))  # noqa: S301
    assert pickled.not_in_file_ == loaded.not_in_file_


def test_a_model_without_a_record_still_predicts(trained: Callable[[str], Any]) -> None:
    model = trained("binary").model_
    bare = Ensemble(model.trees, model.schema, model.statement)
    again: Any = hedgerow.load(bare.to_bytes())
    assert type(again) is PrivateBoostingClassifier
    assert np.array_equal(again.predict_proba(X), model.predict(X))


@pytest.mark.parametrize(
    "record",
    [
        {"method": "private-tree", "settings": 7},
        {"method": "auto", "settings": {"monotone": "{"}},
        {"method": ["auto"]},
        {"method": "auto", "settings": {"monotone": "5"}},
    ],
    ids=str,
)
def test_a_record_that_makes_no_sense_is_refused(
    record: dict[str, Any], trained: Callable[[str], Any]
) -> None:
    model = trained("binary").model_
    hostile = Ensemble(model.trees, model.schema, model.statement, record=record)
    with pytest.raises(FormatError, match="record of its settings"):
        hedgerow.load(hostile.to_bytes())


def test_what_is_no_model_says_so(tmp_path: Path, trained: Callable[[str], Any]) -> None:
    data = trained("binary").model_.to_bytes()
    newer = data[:8] + (files.FORMAT + 1).to_bytes(4, "little") + data[12:]
    with pytest.raises(FormatError, match=rf"later than {hedgerow.__version__}"):
        hedgerow.load(newer)
    with pytest.raises(FormatError, match="no model at"):
        hedgerow.load(tmp_path / "nowhere.hedge")
    with pytest.raises(FormatError, match="not from a list"):
        hedgerow.load([1])  # type: ignore[arg-type]
    with pytest.raises(FormatError, match="is a folder"):
        hedgerow.load(tmp_path)
    buffer = io.BytesIO()
    joblib.dump(trained("binary"), buffer)
    (tmp_path / "model.joblib").write_bytes(buffer.getvalue())
    with pytest.raises(FormatError, match=r"model\.joblib is not a hedgerow model .*joblib\.load"):
        hedgerow.load(tmp_path / "model.joblib")
    Ledger.open(tmp_path / "ledger").close()
    with pytest.raises(FormatError, match="it looks like a ledger"):
        hedgerow.load(tmp_path / "ledger")
    with pytest.raises(FormatError, match=r"not a hedgerow model; name"):
        hedgerow.load(b"age,dose\n1,2\n")


def test_an_estimator_that_was_not_fitted_has_nothing_to_save(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="not fitted"):
        PrivateBoostingClassifier(**CLASSES).save(tmp_path / "model.hedge")
    assert not list(tmp_path.iterdir())
