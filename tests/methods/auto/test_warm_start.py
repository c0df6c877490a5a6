"""Directions and warm starts of the estimators: what is promised, kept and refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from hedgerow import PrivateBoostingClassifier, PrivateBoostingRegressor, Schema
from hedgerow.coordinator.gate import Gate, start_trees
from hedgerow.data.tables import rows_of
from hedgerow.errors import HedgerowError, PlanError, SettingsError
from hedgerow.methods.registry import plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import noise_off, seeded
from tests.conftest import MIXED, federation_of, mixed_table

BOUNDS = {"a": (0, 1), "b": (0, 1), "c": (0, 1)}
SCHEMA = Schema.from_bounds(BOUNDS, classes=[0, 1])
Numbers = tuple[NDArray[np.float64], NDArray[np.int64]]


def some_rows(n_rows: int, seed: int) -> Numbers:
    """Two columns that matter, one upward and one downward, and one that does not."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n_rows, 3))
    share = 1 / (1 + np.exp(-6 * (X[:, 0] - 0.5) + 5 * (X[:, 1] - 0.5)))
    return X, (rng.uniform(0, 1, n_rows) < share).astype(np.int64)


def classifier(**parameters: Any) -> PrivateBoostingClassifier:
    return PrivateBoostingClassifier(**{"schema": SCHEMA, "epsilon": 1.0, **parameters})


@pytest.fixture(scope="module")
def first() -> Ensemble:
    """A model of public rows."""
    return classifier(epsilon=20.0).fit(*some_rows(4000, 1)).model_


# Warm starts


@pytest.mark.parametrize("given", ["model", "path", "text"])
def test_a_fit_builds_on_a_model(given: str, first: Ensemble, tmp_path: Path) -> None:
    first.save(tmp_path / "first.hedge")
    path = tmp_path / "first.hedge"
    start = {"model": first, "path": path, "text": str(path)}[given]
    model = classifier(warm_start_from=start).fit(*some_rows(1000, 2))
    assert model.plan_.settings.warm_start == first.hash
    assert model.statement_.builds_on == first.hash
    assert f"It builds on another model ({first.hash[:12]})" in model.statement_.words()
    assert model.statement_.guarantee == "epsilon-delta"
    # The trees of the first are part of the second, all scaled alike by the recalibration.
    kept = model.model_.trees[: len(first.trees)]
    for old, new in zip(first.trees, kept, strict=True):
        assert old.structure.arrays().keys() == new.structure.arrays().keys()
        for name, array in old.structure.arrays().items():
            assert np.array_equal(array, new.structure.arrays()[name])
    old, new = (np.concatenate([t.values.ravel() for t in trees]) for trees in (first.trees, kept))
    assert np.allclose(new, old * (new @ old) / (old @ old), rtol=1e-5, atol=1e-7)
    model.model_.save(tmp_path / "second.hedge")
    assert Ensemble.load(tmp_path / "second.hedge").statement.builds_on == first.hash


def test_a_fit_without_a_start_builds_on_nothing(first: Ensemble) -> None:
    statement = first.statement
    assert statement.builds_on == ""
    assert "builds on" not in statement.words()


def test_public_rows_are_worth_a_lot_where_the_budget_is_small(first: Ensemble) -> None:
    """400 rows at epsilon 0.05 teach next to nothing; a model of public rows stays what it was."""
    X, y = some_rows(400, 3)
    test, truth = some_rows(4000, 4)

    def auc(**parameters: Any) -> float:
        """Mean over ten fits: one alone may be lucky."""
        found = []
        for seed in range(10):
            with seeded(seed):
                model = classifier(epsilon=0.05, random_state=seed, **parameters).fit(X, y)
            found.append(roc_auc_score(truth, model.predict_proba(test)[:, 1]))
        return float(np.mean(found))

    # Measured over 60 fits: 0.876 (deviation 0.007) with the start, 0.53 (0.15) without.
    assert auc(warm_start_from=first) > 0.82
    assert auc() < 0.8


def test_a_warm_start_is_a_parameter_like_others(first: Ensemble) -> None:
    model = classifier(warm_start_from=first, monotone={"a": 1})
    again = clone(model)
    assert again.monotone == {"a": 1}
    assert again.fit(*some_rows(300, 2)).statement_.builds_on == first.hash


def forest() -> Ensemble:
    return classifier(method="dp-rf", n_trees=2).fit(*some_rows(200, 5)).model_


def of_another_schema() -> Ensemble:
    X, y = some_rows(200, 5)
    return classifier(schema=Schema.from_bounds({**BOUNDS, "c": (0, 2)}, classes=[0, 1])).fit(
        X, y
    ).model_  # fmt: skip


@pytest.mark.parametrize("make", [forest, of_another_schema])
def test_a_forest_or_another_schema_is_refused(make: Any) -> None:
    ledger = Ledger.in_memory()
    with pytest.raises(PlanError, match=r"boosted model of the same schema only.*Nothing was"):
        classifier(warm_start_from=make(), ledger=ledger).fit(*some_rows(200, 6))
    assert ledger.lines(kind="charge") == ledger.lines(kind="reserve") == []


def test_another_model_than_the_planned_one_is_refused(first: Ensemble) -> None:
    rows = rows_of(some_rows(200, 6)[0], SCHEMA, some_rows(200, 6)[1])
    privacy, ledger = Privacy(1.0, 1e-6), Ledger.in_memory()
    says = {"warm_start": first.hash, "warm_start_says": first.statement.promise()}
    warm = plan_for(SCHEMA, privacy, settings=says)
    cold = plan_for(SCHEMA, privacy)
    other = classifier().fit(*some_rows(200, 7)).model_
    federation = federation_of({"all": rows}, SCHEMA, privacy, ledger)
    for plan, start, words in (
        (warm, other, f"builds on the model {first.hash[:12]} and was given {other.hash[:12]}"),
        (warm, None, f"builds on the model {first.hash[:12]} and was given none"),
        (cold, first, rf"builds on the model \(none\) and was given {first.hash[:12]}"),
    ):
        with pytest.raises(PlanError, match=f"{words}. Nothing was asked"):
            Gate(federation, plan, ledger, start=start)
    assert ledger.lines(kind="charge") == ledger.lines(kind="reserve") == []
    assert Gate(federation, warm, ledger, start=first).start == first.trees


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"settings": {"warm_start": "0" * 64}}, "give the model itself: warm_start_from"),
        ({"warm_start_from": "missing.hedge"}, "no model at missing.hedge"),
        ({"monotone": {"a": 1}, "settings": {"monotone": {"b": 1}}}, "'monotone' is given twice"),
        ({"monotone": {"a": 2}}, "1 or -1 for each column"),
        ({"monotone": {"a": True}}, "1 or -1 for each column"),
        ({"monotone": [1, 0, -1]}, "1 or -1 for each column"),
        ({"monotone": {"d": 1}}, "names the column 'd', which the schema does not have"),
        ({"method": "random-trees", "monotone": {"a": 1}}, "does not use 'monotone'"),
        ({"n_trees": 5}, "method 'auto' does not use 'n_trees'; leave it out"),
        ({"max_depth": 5}, "method 'auto' does not use 'max_depth'; leave it out"),
        ({"learning_rate": 0.1}, "method 'auto' does not use 'learning_rate'; leave it out"),
        ({"n_bins": 5}, "method 'auto' does not use 'n_bins'; leave it out"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_said_before_anything_is_asked(
    parameters: dict[str, Any], words: str
) -> None:
    ledger = Ledger.in_memory()
    with pytest.raises(HedgerowError, match=words):
        classifier(ledger=ledger, **parameters).fit(*some_rows(100, 8))
    assert ledger.lines(kind="charge") == ledger.lines(kind="reserve") == []


# Directions


def along(column: int) -> NDArray[np.float64]:
    """Rows in which one column goes up and the others stay, at several places."""
    rng = np.random.default_rng(3)
    others = rng.uniform(0, 1, (20, 1, 3))
    grid = np.repeat(others, 200, axis=1)
    grid[:, :, column] = np.linspace(0, 1, 200)
    return grid.reshape(-1, 3)


@pytest.mark.parametrize("epsilon", [0.5, 30.0])  # without tables, and with them
@pytest.mark.parametrize("directions", [{"a": 1, "b": -1}, {"a": -1, "b": 1, "c": 1}])
def test_no_step_goes_against_a_direction(directions: dict[str, int], epsilon: float) -> None:
    """Also against what the rows say: the second pair is the wrong way round."""
    X, y = some_rows(3000, 9)
    free = classifier(epsilon=epsilon).fit(X, y)
    bound = classifier(epsilon=epsilon, monotone=directions).fit(X, y)
    assert bound.plan_.epsilon == pytest.approx(free.plan_.epsilon)  # it costs nothing
    numbers = PrivateBoostingRegressor(
        bounds=BOUNDS, label_bounds=(0, 1), epsilon=epsilon, monotone=directions
    ).fit(X, y.astype(float))
    for name, sign in directions.items():
        column = list(BOUNDS).index(name)
        rows = along(column)
        for scores in (bound.decision_function(rows), numbers.predict(rows)):
            assert np.all(sign * np.diff(scores.reshape(20, 200), axis=1) >= -1e-9)
    for column, sign in enumerate((1, -1)):  # left to themselves they go where the rows do
        scores = free.decision_function(along(column)).reshape(20, 200)
        assert sign * np.mean(scores[:, -1] - scores[:, 0]) > 0


def test_a_direction_needs_an_order_and_no_multiclass_label() -> None:
    with pytest.raises(SettingsError, match="a column without order"):
        PrivateBoostingClassifier(MIXED, monotone={"site": 1}).fit(mixed_table(50))
    X, y = some_rows(60, 1)
    with pytest.raises(SettingsError, match="no meaning for multiclass labels"):
        classifier(
            schema=None, bounds=BOUNDS, classes=[0, 1, 2], monotone={"a": 1}
        ).fit(X, y)  # fmt: skip
    PrivateBoostingClassifier(MIXED, monotone={"stage": -1}).fit(mixed_table(50))


def test_a_model_that_is_not_private_passes_that_on() -> None:
    with noise_off():
        exact = classifier().fit(*some_rows(400, 8)).model_
    assert exact.statement.guarantee == "not private"
    model = classifier(warm_start_from=exact).fit(*some_rows(400, 8))
    assert model.statement_.guarantee == "not private"
    assert "builds on a model that is not private" in model.statement_.words()
    again = classifier(warm_start_from=model.model_).fit(*some_rows(400, 8))
    assert again.statement_.guarantee == "not private"
    declared = classifier(warm_start_from=exact, warm_start_is_public=True)
    statement = declared.fit(*some_rows(400, 8)).statement_
    assert statement.guarantee == "epsilon-delta"
    assert "declared to be made from public rows" in statement.words()


def test_promises_of_models_that_build_on_each_other_are_all_told() -> None:
    first = classifier(epsilon=8.0).fit(*some_rows(400, 8)).model_
    model = classifier(epsilon=0.5, warm_start_from=first).fit(*some_rows(400, 8))
    assert "promises epsilon = 8" in model.statement_.words()
    third = classifier(epsilon=0.25, warm_start_from=model.model_).fit(*some_rows(400, 8))
    assert "epsilon = 0.5, delta = 1e-06 beyond epsilon = 8" in third.statement_.words()
    changed = replace(first, statement=replace(first.statement, epsilon=0.1))
    with pytest.raises(PlanError, match="the plan says of the model it builds on"):
        start_trees(changed, model.plan_, first.schema)


def test_a_declared_row_count_is_told() -> None:
    model = classifier(settings={"rows_hint": 400}).fit(*some_rows(400, 8))
    assert "the number of rows, 400, declared public" in model.statement_.words()


def test_what_a_model_has_shown_stays_shown_in_those_that_build_on_it() -> None:
    hinted = classifier(settings={"rows_hint": 300}).fit(*some_rows(300, 3))
    shown = [found.what for found in hinted.statement_.disclosures]
    assert shown == ["the number of rows, 300, declared public"]
    second = classifier(warm_start_from=hinted.model_).fit(*some_rows(300, 4))
    third = classifier(warm_start_from=second.model_).fit(*some_rows(300, 5))
    for model in (second, third):
        assert [found.what for found in model.statement_.disclosures] == shown
        assert "the number of rows, 300" in model.statement_.words()
