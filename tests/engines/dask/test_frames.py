"""Estimators on Dask frames: the models of the same frames in memory."""

from __future__ import annotations

from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client

from hedgerow import (
    Categorical,
    Label,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateTreeClassifier,
    Schema,
)
from hedgerow.errors import SettingsError, TableError
from hedgerow.testing import noise_off

rng = np.random.default_rng(2)
FRAME = pd.DataFrame({"a": rng.uniform(0, 1, 400), "b": rng.uniform(0, 1, 400)})
FRAME["y"] = (FRAME["a"] > 0.5).astype(int)
FRAME["cost"] = FRAME["a"] * 3
FEATURES = ["a", "b"]


@pytest.fixture(scope="module")
def frame(client: Client) -> Any:
    """Five partitions, one of them empty."""
    whole = dd.from_pandas(FRAME, npartitions=4, sort=False)
    return dd.concat([whole, dd.from_pandas(FRAME.head(0), npartitions=1)])


@pytest.fixture(autouse=True)
def current(client: Client) -> Any:
    with client.as_current():
        yield


@pytest.mark.parametrize(
    ("model", "label"),
    [
        (PrivateBoostingClassifier(bounds=(0, 1), classes=[0, 1], random_state=1), "y"),
        (PrivateBoostingClassifier(bounds=(0, 1), classes="public", random_state=1), "y"),
        (PrivateBoostingRegressor(bounds=(0, 1), label_bounds=(0, 3), random_state=1), "cost"),
        (PrivateTreeClassifier(bounds=(0, 1), classes=[0, 1], random_state=1), "y"),
    ],
)
def test_a_fit_on_frames_is_the_fit_in_memory(model: Any, label: str, frame: Any) -> None:
    with noise_off():
        there = model.fit(frame[FEATURES], frame[label]).model_
        names = list(model.feature_names_in_)
        here = model.fit(FRAME[FEATURES], FRAME[label]).model_
    assert frame.npartitions == 5
    assert there.trees == here.trees
    assert names == FEATURES
    assert there.statement.trust == "coordinator"
    assert there.statement.disclosures == here.statement.disclosures


def test_the_label_may_be_a_column_of_the_frame(frame: Any) -> None:
    model = PrivateBoostingClassifier(
        bounds={"a": (0, 1), "b": (0, 1)}, classes=[0, 1], random_state=1
    )
    with noise_off():
        named = frame.rename(columns={"y": "label"})
        there = model.fit(named).model_
        assert there.trees == model.fit(FRAME[FEATURES], FRAME["y"]).model_.trees


def test_partitions_match_values_as_tables_in_memory_do(frame: Any) -> None:
    flag = Categorical("flag", ("False", "True"), other="category")
    schema = Schema((flag,), Label("sick", ("no", "True")), name="flags")
    model = PrivateBoostingClassifier(schema, random_state=1)
    truth = frame["a"] > 0.5  # booleans, where the schema has text
    text = pd.DataFrame({"flag": (FRAME["a"] > 0.5).astype(str)})
    sick = np.where(FRAME["a"] > 0.5, "true", "no")
    with noise_off():
        there = model.fit(truth.to_frame(name="flag"), truth.astype(object).replace(False, "no"))
        trees = there.model_.trees
        assert trees == model.fit(text, sick).model_.trees
    assert model.score(text, sick) == 1.0


def test_what_does_not_fit_a_cluster_is_said(frame: Any) -> None:
    model = PrivateBoostingClassifier(bounds=(0, 1), classes=[0, 1])
    with pytest.raises(TableError, match="5 partitions and y 2"):
        model.fit(frame[FEATURES], dd.from_pandas(FRAME["y"], npartitions=2))
    with pytest.raises(TableError, match="y is a Series"):
        model.fit(frame[FEATURES], FRAME["y"])
    with pytest.raises(TableError, match="X is a"):
        model.fit(FRAME[FEATURES], frame["y"])
    with pytest.raises(SettingsError, match="parties has no place"):
        model.fit(frame[FEATURES], frame["y"], parties=["north"] * 400)
    with pytest.raises(SettingsError, match="one owner"):
        model.set_params(trust="nobody").fit(frame[FEATURES], frame["y"])
    with pytest.raises(TableError, match=r"partition \d of 5: label 'label' has \d+ rows of a"):
        model.set_params(trust=None, classes=[0, 7]).fit(frame[FEATURES], frame["y"])


def test_a_partition_that_cannot_be_computed_is_named(frame: Any) -> None:
    def fail(part: pd.DataFrame) -> pd.DataFrame:
        raise ValueError("row 17 holds 0.25")

    broken = frame[FEATURES].map_partitions(fail, meta=FRAME[FEATURES].head(0))
    model = PrivateBoostingClassifier(bounds=(0, 1), classes=[0, 1])
    with pytest.raises(
        TableError, match=r"partition \d of 5 could not be read.*ValueError"
    ) as told:
        model.fit(broken, frame["y"])
    assert "0.25" not in str(told.value)


def test_predictions_are_made_partition_by_partition(frame: Any) -> None:
    model = PrivateBoostingClassifier(bounds=(0, 1), classes=[0, 1], epsilon=3.0)
    model.fit(frame[FEATURES], frame["y"])
    with pytest.raises(TableError, match="map_partitions"):
        model.predict(frame[FEATURES])
    whole = frame[FEATURES].partitions[:4]
    found = whole.map_partitions(model.predict, meta=(None, "int64")).compute()
    assert np.array_equal(found, model.predict(FRAME[FEATURES]))
