"""PrivateBoostingRegressor with losses of its own: counts with exposure, quantiles, Huber."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from hedgerow import (
    Label,
    Ledger,
    Numeric,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    Schema,
    SimilarityBoostingRegressor,
    evaluate_privately,
    load,
    local_federation,
    report_html,
    rows_of,
)
from hedgerow.errors import ExportError, HedgerowError, SchemaError, SettingsError, TableError
from hedgerow.testing import noise_off

COUNTS: dict[str, Any] = {
    "bounds": (-1, 1), "label_bounds": (0, 12), "loss": "poisson", "max_exposure": 2.0,
}  # fmt: skip
NUMBERS: dict[str, Any] = {"bounds": (-1, 1), "label_bounds": (0, 20)}
COLUMNS = (Numeric("a", -1, 1), Numeric("b", -1, 1))


def claims(n: int = 4000, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X, years = rng.uniform(-1, 1, (n, 2)), rng.uniform(0.1, 2.0, n)
    return X, rng.poisson(years * np.exp(X[:, 0])), years


def incomes(n: int = 4000, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.exp(X[:, 0] + 0.5 * rng.normal(size=n))


@pytest.fixture(scope="module")
def counted() -> tuple[PrivateBoostingRegressor, Any, Any, Any]:
    X, counts, years = claims()
    with noise_off():
        model = PrivateBoostingRegressor(**COUNTS, epsilon=8.0, random_state=0)
        return model.fit(X, (counts, years)), X, counts, years


def test_counts_with_exposure_are_learned_and_calibrated(counted: Any) -> None:
    model, X, counts, years = counted
    expected = model.predict(X, exposure=years)
    assert expected.sum() == pytest.approx(counts.sum(), rel=0.03)
    rate = np.exp(X[:, 0])
    assert np.mean(np.abs(model.predict(X) / rate - 1)) < 0.15  # by year, not by two
    assert model.score(X, (counts, years)) > 0.15


def test_counts_come_by_name_as_pairs_and_in_the_table(counted: Any) -> None:
    X, counts, years = counted[1:]
    schema = Schema(
        COLUMNS, Label("n", upper=12, loss="poisson", exposure="years", max_exposure=2.0)
    )
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "n": counts, "years": years})
    kept = rows_of(table, schema).target
    for y in ((counts, years), table[["n", "years"]], {"n": counts, "years": years}):
        assert rows_of(X, schema, y).target.tolist() == kept.tolist()
    with noise_off():
        one = PrivateBoostingRegressor(schema, random_state=0).fit(table)
        two = PrivateBoostingRegressor(schema, random_state=0).fit(X, (counts, years))
    assert one.model_ == two.model_
    assert one.score(table, table) == pytest.approx(two.score(X, (counts, years)))


def test_counts_without_exposure_are_one_column() -> None:
    X, counts, _ = claims(500)
    facts = {**COUNTS, "max_exposure": None}
    with noise_off():
        model = PrivateBoostingRegressor(**facts, epsilon=8.0).fit(X, counts)
    assert model.predict(X).mean() == pytest.approx(counts.mean(), rel=0.1)


@pytest.mark.parametrize("level", [0.2, 0.5, 0.9])
def test_quantiles_cover_what_they_say(level: float) -> None:
    X, y = incomes()
    with noise_off():
        model = PrivateBoostingRegressor(**NUMBERS, loss="quantile", quantile=level, epsilon=8.0)
        model.fit(X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(level, abs=0.05)
    assert model.score(X, y) > 0.1


def test_a_robust_regression_is_not_pulled_by_few_far_labels() -> None:
    X, y = incomes()
    truth, y = np.exp(X[:, 0]), y.copy()
    y[::20] = 20.0
    with noise_off():
        squared = PrivateBoostingRegressor(**NUMBERS, epsilon=8.0).fit(X, y)
        robust = PrivateBoostingRegressor(**NUMBERS, loss="huber", huber=0.5, epsilon=8.0).fit(X, y)
    far, near = (np.mean(np.abs(m.predict(X) - truth)) for m in (squared, robust))
    assert near < 0.7 * far


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"loss": "poisson", "label_bounds": (1, 12)}, "no lower but 0"),
        ({"loss": "poisson", "label_bounds": (0, 2.5)}, "whole number"),
        ({"loss": "poisson", "max_exposure": 0.0}, "above 0"),
        ({"loss": "quantile"}, "above 0 and below 1"),
        ({"loss": "quantile", "quantile": 0.0}, "above 0 and below 1"),
        ({"loss": "quantile", "quantile": 1.0}, "above 0 and below 1"),
        ({"loss": "quantile", "quantile": -0.1}, "above 0 and below 1"),
        ({"loss": "quantile", "quantile": 0.12345}, "four digits"),
        ({"loss": "huber"}, "beyond which rows pull no further"),
        ({"loss": "huber", "huber": 0.0}, "beyond which rows pull no further"),
        ({"loss": "huber", "huber": 13.0}, "beyond which rows pull no further"),
        ({"quantile": 0.5}, 'belongs to loss = "quantile"'),
        ({"loss": "squared", "huber": 1.0}, 'belongs to loss = "huber"'),
        ({"loss": "squared", "max_exposure": 1.0}, 'belongs to loss = "poisson"'),
        ({"loss": "absolute"}, "loss"),
    ],
)
def test_facts_that_make_no_loss_are_refused_in_words(facts: dict[str, Any], told: str) -> None:
    X, counts, _ = claims(50)
    ledger = Ledger.in_memory()
    given = {"bounds": (-1, 1), "label_bounds": (0, 12), **facts, "ledger": ledger}
    with pytest.raises(SchemaError, match=told):
        PrivateBoostingRegressor(**given).fit(X, counts)
    assert not ledger.history()


@pytest.mark.parametrize(
    ("counts", "years", "told"),
    [
        ([1, -1, 0], [1, 1, 1], "negative in 1 rows"),
        ([1, 0.5, 0], [1, 1, 1], "no whole number in 1 rows"),
        ([1, np.nan, 0], [1, 1, 1], "missing in 1 rows"),
        ([1, 2, 0], [1, 0, -1], "0 or negative in 2 rows"),
        ([1, 2, 0], [1, np.nan, 1], "missing in 1 rows"),
        ([1, 2, 0], [1, 1], "3 counts and 2 exposures"),
        ([1, 2, 0], None, "no pair of counts and exposures"),
    ],
)
def test_counts_and_exposures_that_cannot_be_are_refused(
    counts: Any, years: Any, told: str
) -> None:
    ledger = Ledger.in_memory()
    y = np.array(counts) if years is None else (counts, years)
    with pytest.raises(TableError, match=told) as refused:
        PrivateBoostingRegressor(**COUNTS, ledger=ledger).fit(np.zeros((3, 2)), y)
    assert "0.5" not in str(refused.value)
    assert not ledger.history()


def test_what_is_above_a_cap_counts_as_the_cap() -> None:
    schema = Schema(COLUMNS, Label("n", upper=5, loss="poisson", exposure="e", max_exposure=2))
    far, near = ({"a": [0], "b": [0], "n": [n], "e": [e]} for n, e in ((900, 7.5), (5, 2)))
    assert rows_of(far, schema).target.tolist() == rows_of(near, schema).target.tolist()


@pytest.mark.parametrize("loss", ["poisson", "quantile", "huber"])
@pytest.mark.parametrize("method", ["random-trees", "dp-tr-newton", "dp-xgboost", "dp-ebm"])
def test_methods_that_do_not_know_a_loss_refuse_before_anything_is_asked(
    loss: str, method: str
) -> None:
    X, counts, _ = claims(50)
    facts = {"quantile": {"quantile": 0.5}, "huber": {"huber": 1.0}}.get(loss, {})
    ledger = Ledger.in_memory()
    model = PrivateBoostingRegressor(
        bounds=(-1, 1), label_bounds=(0, 12), loss=loss, **facts, method=method, ledger=ledger,
        delta=0.0 if method == "dp-xgboost" else 1e-6,
        settings={"accounting": "pure"} if method == "dp-xgboost" else None,
    )  # fmt: skip
    with pytest.raises(SettingsError, match=f'knows nothing of loss = "{loss}"'):
        model.fit(X, counts)
    assert not ledger.history()


def test_other_estimators_refuse_counts() -> None:
    X, counts, _ = claims(50)
    schema = Schema(COLUMNS, Label("n", upper=12, loss="poisson"))
    with pytest.raises(SchemaError, match="is a count"):
        SimilarityBoostingRegressor(schema).fit(X, counts, parties=["a", "b"] * 25)
    with pytest.raises(SchemaError, match="the label is a number"):
        PrivateBoostingClassifier(schema).fit(X, counts)
    quantile = Schema(COLUMNS, Label("n", lower=0, upper=12, loss="quantile", quantile=0.5))
    with pytest.raises(HedgerowError, match="knows nothing of loss"):
        SimilarityBoostingRegressor(quantile).fit(X, counts, parties=["a", "b"] * 25)


def test_parameters_agree_with_the_schema_or_are_refused() -> None:
    X, y = incomes(60)
    schema = Schema(COLUMNS, Label("y", lower=0, upper=20, loss="quantile", quantile=0.5))
    PrivateBoostingRegressor(schema, loss="quantile", quantile=0.5, epsilon=1.0).fit(X, y)
    with pytest.raises(SchemaError, match="parameters say another one"):
        PrivateBoostingRegressor(schema, quantile=0.9).fit(X, y)
    ledger = Ledger.in_memory()
    federation = local_federation({"all": rows_of(X, schema, y)}, schema, ledger)
    with pytest.raises((SettingsError, SchemaError), match="Nothing was asked"):
        PrivateBoostingRegressor(loss="quantile", quantile=0.9).fit_federation(federation)
    assert not ledger.history()


def test_a_model_of_counts_cannot_build_on_another(counted: Any) -> None:
    model, X, counts, years = counted
    with pytest.raises(SettingsError, match="cannot build on another"):
        PrivateBoostingRegressor(
            **COUNTS, warm_start_from=model.model_, warm_start_is_public=True
        ).fit(X, (counts, years))


def test_exposure_at_prediction_is_checked(counted: Any) -> None:
    model, X, _, years = counted
    with pytest.raises(TableError, match="one of at least 0 for every row"):
        model.predict(X, exposure=years[:5])
    with pytest.raises(TableError, match="one of at least 0 for every row"):
        model.predict(X[:1], exposure=[-1.0])
    X, y = incomes(200)
    with pytest.raises(SettingsError, match="exposure is for counts"):
        PrivateBoostingRegressor(**NUMBERS).fit(X, y).predict(X, exposure=y)


def test_a_model_of_counts_is_saved_explained_reported_and_not_exported(
    counted: Any, tmp_path: Any
) -> None:
    model, X, counts, years = counted
    path = tmp_path / "claims.hedge"
    model.save(path)
    again = load(path)
    assert isinstance(again, PrivateBoostingRegressor)
    assert again.predict(X, exposure=years).tolist() == model.predict(X, exposure=years).tolist()
    assert again.score(X, (counts, years)) == model.score(X, (counts, years))
    explanation = model.explain()
    assert explanation.unit == "log rate of label"
    rates = np.exp(explanation.intercept[0])
    assert 0.5 < rates < 3.0  # a year's claims, not a share of the cap
    assert "a count of at most 12 for each unit of exposure" in report_html(model.model_)
    with pytest.raises(ExportError, match="Nothing was written"):
        model.to_xgboost(tmp_path / "claims.json")
    assert clone(model).get_params()["loss"] == "poisson"


@pytest.mark.parametrize(
    "facts", [{"loss": "quantile", "quantile": 0.8}, {"loss": "huber", "huber": 1.0}]
)
def test_models_of_quantiles_and_robust_ones_are_exported_as_numbers(
    facts: Any, tmp_path: Any
) -> None:
    X, y = incomes(500)
    model = PrivateBoostingRegressor(**NUMBERS, **facts, epsilon=2.0).fit(X, y)
    model.to_xgboost(tmp_path / "model.json")
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.Booster(model_file=tmp_path / "model.json")
    frame = pd.DataFrame(X, columns=list(model.model_.schema.names))
    found = np.clip(booster.predict(xgboost.DMatrix(frame)), 0, 20)
    assert np.allclose(found, model.predict(X), atol=1e-3)
    assert model.explain().shapes
    assert report_html(model.model_)


def test_private_evaluations_are_near_exact_measures(counted: Any) -> None:
    model, X, counts, years = counted
    with noise_off():
        found = evaluate_privately(model, X, (counts, years), epsilon=4.0)
    assert found.task == "counts"
    assert found["rows"].value == 4000
    assert found["d2"].value == pytest.approx(model.score(X, (counts, years)), abs=0.02)
    error = counts - model.predict(X, exposure=np.minimum(years, 2.0))
    assert found["mae"].value == pytest.approx(np.mean(np.abs(error)), abs=0.01)
    assert found["bias"].value == pytest.approx(np.mean(error), abs=0.01)
    for point in found.findings.calibration:
        assert point.observed == pytest.approx(point.predicted, rel=0.3, abs=0.1)


def test_coverage_and_pinball_loss_are_near_exact_measures() -> None:
    X, y = incomes()
    model = PrivateBoostingRegressor(**NUMBERS, loss="quantile", quantile=0.8, epsilon=4.0)
    model.fit(X, y)
    with noise_off():
        found = evaluate_privately(model, X, y, epsilon=4.0)
    error = y - model.predict(X)
    assert found["coverage"].value == pytest.approx(np.mean(error <= 0), abs=1e-9)
    exact = np.mean(np.maximum(0.8 * error, -0.2 * error))
    assert found["pinball"].value == pytest.approx(exact, rel=0.03)
    noisy = evaluate_privately(model, X, y, epsilon=4.0)
    low, high = noisy["coverage"].interval
    assert low - 0.02 < np.mean(error <= 0) < high + 0.02


def test_noise_that_hides_the_table_is_told() -> None:
    X, counts, years = claims(60)
    model = PrivateBoostingRegressor(**COUNTS, epsilon=0.01).fit(X, (counts, years))
    found = evaluate_privately(model, X, (counts, years), epsilon=0.001)
    assert found["deviance"].value is None
    assert "too few rows" in found.findings.notes[0]
