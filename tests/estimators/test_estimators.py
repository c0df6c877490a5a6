"""The scikit-learn face: its errors come before anything is asked, its parameters behave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from hedgerow import PrivateBoostingClassifier, PrivateBoostingRegressor, Schema
from hedgerow.data.tables import read_table
from hedgerow.errors import SchemaError, SettingsError, TableError
from hedgerow.model.losses import TREE_UPDATES
from hedgerow.privacy.ledger.ledger import Ledger
from tests.conftest import MIXED, mixed_table

Numbers = tuple[NDArray[np.float64], NDArray[np.int64]]


def small(**parameters: Any) -> PrivateBoostingClassifier:
    return PrivateBoostingClassifier(
        **{
            "method": "random-trees",
            "bounds": (0, 1),
            "classes": [0, 1],
            "n_trees": 3,
            "max_depth": 2,
            **parameters,
        }
    )


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"bounds": None}, SchemaError, "never read from the rows"),
        ({"classes": None}, SchemaError, "never read from the rows"),
        ({"settings": {"trees": 5}}, SettingsError, "unknown setting 'trees'"),
        ({"settings": {"n_trees": 5}}, SettingsError, "given twice"),
        ({"method": "magic"}, SettingsError, "no method called 'magic'"),
        ({"trust": "everybody"}, SettingsError, "choose one of"),
        ({"trust": "parties"}, SettingsError, "at least 3 parties and there are 1"),
        ({"epsilon": 0}, SettingsError, "epsilon is 0"),
        ({"epsilon": float("nan")}, SettingsError, "epsilon is nan"),
        ({"delta": 0}, SettingsError, "delta is 0"),
        ({"n_trees": 0}, SettingsError, "n_trees is 0"),
        ({"n_trees": 2.5}, SettingsError, "whole number"),
        ({"bounds": (1, 0)}, SchemaError, "swap or widen"),
        ({"classes": [0]}, SchemaError, "at least two"),
        ({"classes": "secret"}, SchemaError, 'a list, or "public"'),
        ({"schema": "absent.toml"}, SchemaError, "no schema file"),
    ],
)
def test_wrong_parameters_are_named(
    two_numbers: Numbers, parameters: dict[str, Any], error: type[Exception], words: str
) -> None:
    ledger = Ledger.in_memory()
    with pytest.raises(error, match=words):
        small(**{"ledger": ledger, **parameters}).fit(*two_numbers)
    assert ledger.lines(kind="charge") == []


def test_labels_outside_the_schema_are_refused(two_numbers: Numbers) -> None:
    X, y = two_numbers
    with pytest.raises(TableError, match="not in the schema's list"):
        small().fit(X, y + 1)
    with pytest.raises(TableError, match="labels"):
        small().fit(X, y[:-1])


def test_two_parties_need_an_openly_lowered_minimum(two_numbers: Numbers) -> None:
    X, y = two_numbers
    parties = np.where(np.arange(len(y)) % 2, "a", "b")
    with pytest.raises(SettingsError, match="Nothing was asked"):
        small().fit(X, y, parties=parties)
    model = small(settings={"minimum_parties": 2}).fit(X, y, parties=parties)
    assert "subtract its own part" in model.statement_.words()
    assert small(trust="coordinator").fit(X, y, parties=parties).statement_.parties == ("a", "b")


@pytest.mark.parametrize("shape", [(3,), (600, 2), ()])
def test_parties_of_another_shape_are_refused(two_numbers: Numbers, shape: tuple[int, ...]) -> None:
    with pytest.raises(TableError, match="one party name for each of 600 rows"):
        small().fit(*two_numbers, parties=np.full(shape, "a"))


def test_names_of_parties_are_checked(two_numbers: Numbers) -> None:
    X, y = two_numbers
    with pytest.raises(SettingsError, match="not a party name"):
        small().fit(X, y, parties=np.resize(["North", "b", "c"], len(y)))


def test_one_table_trusts_the_coordinator_and_several_trust_the_parties(
    two_numbers: Numbers,
) -> None:
    X, y = two_numbers
    alone = small().fit(X, y).statement_
    several = small().fit(X, y, parties=np.resize(["a", "b", "c"], len(y))).statement_
    assert (alone.trust, alone.parties) == ("coordinator", ("all",))
    assert (several.trust, several.parties, several.colluding) == ("parties", ("a", "b", "c"), 1)
    assert alone.scope == several.scope == "this fit alone"
    assert alone.simulated
    assert several.simulated


def test_trust_in_nobody_works_for_one_table(two_numbers: Numbers) -> None:
    statement = small(trust="nobody").fit(*two_numbers).statement_
    assert statement.neighbours == "replace one row"


def test_parameters_and_clones(two_numbers: Numbers) -> None:
    model = small(epsilon=0.7, settings={"batch_size": 2}, schema=None)
    assert model.get_params()["epsilon"] == 0.7
    again = clone(model.fit(*two_numbers))
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "model_")
    with pytest.raises(NotFittedError):
        again.predict(two_numbers[0])
    assert clone(PrivateBoostingClassifier(MIXED)).schema == MIXED
    assert model.set_params(n_trees=4).n_trees == 4


def test_a_clone_spends_from_the_same_ledger(two_numbers: Numbers) -> None:
    ledger = Ledger.in_memory()
    assert clone(small(ledger=ledger)).ledger is ledger


def test_a_ledger_file_is_free_again_after_a_fit(two_numbers: Numbers, tmp_path: Path) -> None:
    model = small(ledger=str(tmp_path / "ledger.db"))
    model.fit(*two_numbers)
    model.fit(*two_numbers)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert len(ledger.lines("coordinator", "reserve")) == 2
        ledger.verify()


@pytest.mark.parametrize("classes", [[0, 1], ["no", "yes"], [False, True], [1.0, 2.0]])
def test_predictions_have_the_type_of_the_classes(two_numbers: Numbers, classes: list[Any]) -> None:
    X, y = two_numbers
    labels = np.array(classes)[y]
    model = small(classes=classes, epsilon=100.0, n_trees=20, random_state=1).fit(X, labels)
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    assert set(predicted.tolist()) <= set(classes)
    assert model.score(X, labels) > 0.8
    assert model.classes_.tolist() == classes
    assert model.predict_proba(X).shape == (len(y), 2)
    assert np.array_equal(model.predict_proba(X)[:, 1] > 0.5, model.decision_function(X) > 0)


def test_the_random_state_repeats_the_questions_and_not_the_noise(two_numbers: Numbers) -> None:
    one, two, other = (
        small(random_state=seed, settings={"shrinkage": "none"}).fit(*two_numbers).model_.trees
        for seed in (1, 1, 2)
    )

    def questions(trees: Any) -> list[bytes]:
        return [a.tobytes() for tree in trees for a in tree.structure.arrays().values()]

    assert questions(one) == questions(two) != questions(other)
    assert all(not np.array_equal(a.values, b.values) for a, b in zip(one, two, strict=True))
    free = [questions(small().fit(*two_numbers).model_.trees) for _ in range(2)]
    assert free[0] != free[1]


def test_tables_with_their_own_label_column() -> None:
    table = mixed_table(100, seed=1)
    model = PrivateBoostingClassifier(MIXED, method="random-trees", n_trees=2, max_depth=2).fit(
        table
    )
    assert model.feature_names_in_.tolist() == list(MIXED.names)
    assert model.n_features_in_ == 5
    assert set(model.predict(table).tolist()) <= {"no", "yes"}


def regressor(**parameters: Any) -> PrivateBoostingRegressor:
    return PrivateBoostingRegressor(
        **{
            "method": "random-trees",
            "bounds": (0, 1),
            "label_bounds": (-5, 5),
            "n_trees": 3,
            "max_depth": 2,
            **parameters,
        }
    )


def test_regression_needs_the_regressor_and_classes_the_classifier(two_numbers: Numbers) -> None:
    X, y = two_numbers
    numbers = Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, label_bounds=(0, 1))
    classes = Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, classes=[0, 1])
    with pytest.raises(SchemaError, match="use PrivateBoostingRegressor"):
        small(schema=numbers).fit(X, y)
    with pytest.raises(SchemaError, match="use PrivateBoostingClassifier"):
        regressor(schema=classes).fit(X, y)
    with pytest.raises(SchemaError, match="never read from the rows"):
        regressor(label_bounds=None).fit(X, y)
    with pytest.raises(TableError, match="missing in 1 rows"):
        regressor().fit(X, np.append(np.nan, X[1:, 0]))


@pytest.mark.parametrize("update", TREE_UPDATES)
def test_regression_predicts_within_the_bounds_and_follows_the_label(
    two_numbers: Numbers, update: str
) -> None:
    X, _ = two_numbers
    y = 8 * X[:, 0] - 4
    strong = {"epsilon": 500.0, "n_trees": 60, "random_state": 1, "settings": {"update": update}}
    model = regressor(**strong).fit(X, y)
    predicted = model.predict(X)
    assert predicted.shape == y.shape
    assert predicted.min() >= -5
    assert predicted.max() <= 5
    assert np.corrcoef(predicted, y)[0, 1] > 0.8
    clipped = regressor(**strong).fit(X, 1e6 * y)
    assert np.abs(clipped.predict(X)).max() <= 5


@pytest.mark.parametrize("update", TREE_UPDATES)
def test_multiclass_models_have_one_probability_each(two_numbers: Numbers, update: str) -> None:
    X, _ = two_numbers
    labels = np.array(["low", "mid", "high"])[(3 * X[:, 0]).astype(int)]
    strong = {"epsilon": 500.0, "n_trees": 60, "random_state": 1, "settings": {"update": update}}
    model = small(classes=["low", "mid", "high"], **strong).fit(X, labels)
    shares = model.predict_proba(X)
    assert shares.shape == (600, 3)
    assert np.allclose(shares.sum(axis=1), 1)
    assert model.decision_function(X).shape == (600, 3)
    assert model.score(X, labels) > 0.7
    assert model.classes_.tolist() == ["low", "mid", "high"]


def test_bounds_for_all_columns_take_the_names_of_any_table(two_numbers: Numbers) -> None:
    X, y = two_numbers
    columns = {"a": X[:, 0], "b": X[:, 1]}
    for table in (columns, pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        model = small().fit(table, y)
        assert model.model_.schema.names == ("a", "b")
        assert model.feature_names_in_.tolist() == ["a", "b"]
    own = small().fit({**columns, "label": y})
    assert own.model_.schema.names == ("a", "b")


def test_a_schema_file_is_enough(two_numbers: Numbers, tmp_path: Path) -> None:
    X, y = two_numbers
    Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, classes=[0, 1]).write(tmp_path / "s.toml")
    model = PrivateBoostingClassifier(str(tmp_path / "s.toml")).fit(X, y)
    assert model.model_.schema.names == ("a", "b")


def test_adult_at_epsilon_one_reaches_its_line(
    data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five splits 70-30, delta = 1 / rows, 100 trees of depth 4."""
    schema = Schema.read(data_folder / "adult.toml")
    table = read_table(data_folder / "adult.parquet")
    label = np.asarray(table.column(schema.label.name))
    scores = []
    for split in range(5):
        learn, test = train_test_split(np.arange(table.num_rows), test_size=0.3, random_state=split)
        model = PrivateBoostingClassifier(
            schema, epsilon=1.0, delta=1 / len(learn), random_state=split
        ).fit(table.take(learn))
        assert model.statement_.guarantee == "epsilon-delta"
        predicted = model.decision_function(table.take(test))
        scores.append(roc_auc_score(label[test], predicted))
    mean = float(np.mean(scores))
    with capsys.disabled():
        print(f"\nadult, epsilon 1: mean AUC {mean:.4f} over {len(scores)} splits")
    assert mean >= 0.880


def test_classes_declared_public_are_disclosed(two_numbers: Numbers) -> None:
    model = small(classes="public").fit(*two_numbers)
    (disclosure,) = model.statement_.disclosures
    assert "classes" in disclosure.what
    assert "Shown without an epsilon" in model.model_.statement.words()
    assert small().fit(*two_numbers).statement_.disclosures == ()
