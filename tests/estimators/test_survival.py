"""PrivateSurvivalBoosting: labels in every form, predictions, one curve for all, mistakes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import hedgerow
from hedgerow import (
    Label,
    Ledger,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateSurvivalBoosting,
    Schema,
    Unit,
)
from hedgerow.errors import (
    ExportError,
    HedgerowError,
    PlanWarning,
    SchemaError,
    SettingsError,
    TableError,
)
from hedgerow.evaluation.survival import concordance
from hedgerow.testing import noise_off
from tests.randomness import cached

CUTS = (0.25, 0.5, 1.0, 1.5, 2.0)
LABEL = Label("years", event="died", event_codes=("no", "yes"), cuts=CUTS)
SCHEMA = Schema.from_bounds({"a": (-1, 1), "b": (-1, 1)}, time_to_event=LABEL)


def data(n: int = 5000, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1, 1, (n, 2)), columns=["a", "b"])
    time = rng.exponential(np.exp(-2 * X["a"].to_numpy()))
    return X, np.minimum(time, 2.5), time < 2.5


def in_words(events: Any) -> Any:
    return np.where(events, "yes", "no").astype(object)


@cached
def fitted() -> PrivateSurvivalBoosting:
    X, times, events = data()
    return PrivateSurvivalBoosting(SCHEMA, epsilon=4.0).fit(X, (times, in_words(events)))


def test_every_form_of_the_label_gives_the_same_model(tmp_path: Path) -> None:
    X, times, events = data(800)
    words = in_words(events)
    structured = np.array(list(zip(events, times, strict=True)), [("e", bool), ("t", float)])
    whole = X.assign(years=times, died=words)
    whole.to_csv(tmp_path / "table.csv", index=False)
    forms: list[tuple[Any, Any]] = [
        (X, (times, words)),
        (X, structured),
        (X, pd.DataFrame({"died": words, "years": times})),
        (X, {"died": words, "years": times}),
        (X, whole[["years", "died"]].to_records(index=False)),
        (whole, None),
        (str(tmp_path / "table.csv"), None),
    ]
    with noise_off():
        models = [
            PrivateSurvivalBoosting(SCHEMA, epsilon=50.0, random_state=1).fit(x, y).model_
            for x, y in forms
        ]
    assert len(models[0].trees) > 3  # interactions of the two columns as well
    assert all(model == models[0] for model in models)


def test_survival_falls_with_time_and_with_risk() -> None:
    model = fitted()
    X = {"a": [-0.9, 0.0, 0.9], "b": [0.0, 0.0, 0.0]}
    survival, risk = model.predict_survival_function(X), model.predict(X)
    assert survival.shape == (3, len(CUTS))
    assert np.array_equal(model.cuts_, CUTS)
    assert np.all(np.diff(survival, axis=1) < 0)
    assert np.all(np.diff(survival, axis=0) < 0)
    assert np.all(np.diff(risk) > 0)
    assert np.allclose(np.exp(-np.exp(risk)), survival[:, -1])
    assert np.allclose(-np.log(survival), model.predict_cumulative_hazard_function(X))
    # Hazards of exp(2 a): half of the rows are gone after log 2 / exp(2 a).
    assert abs(model.predict_median(X)[1] - np.log(2)) < 0.2
    between = model.predict_survival_function(X, [0.0, 0.125, 2.0])
    assert np.allclose(between[:, 0], 1.0)
    assert np.allclose(between[:, 1] ** 2, survival[:, 0])
    assert np.allclose(between[:, 2], survival[:, -1])


def test_a_median_lies_where_half_survive_or_nowhere() -> None:
    model = fitted()
    X, _, _ = data(200, seed=9)
    medians = model.predict_median(X)
    survival = model.predict_survival_function(X)
    assert np.array_equal(np.isinf(medians), survival[:, -1] > 0.5)
    for row, median in zip(range(len(X)), medians, strict=True):
        if np.isfinite(median):
            half = model.predict_survival_function(X.iloc[[row]], [median])
            assert half[0, 0] == pytest.approx(0.5)


def test_the_score_is_the_concordance_of_all_pairs() -> None:
    model = fitted()
    X, times, events = data(700, seed=4)
    times = np.round(times, 2)  # ties
    score = model.score(X, (times, in_words(events)))
    assert score == pytest.approx(by_pairs(model.predict(X), times, events))
    assert score > 0.65
    assert model.score(X.assign(years=times, died=in_words(events))) == score


def by_pairs(risk: Any, times: Any, events: Any) -> float:
    agreed, pairs = 0.0, 0
    for i in np.flatnonzero(events):
        comparable = (times > times[i]) | ((times == times[i]) & ~events)
        pairs += int(comparable.sum())
        agreed += float(np.sum(risk[i] > risk[comparable]))
        agreed += 0.5 * float(np.sum(risk[i] == risk[comparable]))
    return agreed / pairs


def test_concordance_of_tied_risks_and_times_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(2)
    for n in (5, 300, 1500):
        risk, times = rng.integers(0, 9, n).astype(float), rng.integers(0, 7, n).astype(float)
        events = rng.random(n) < 0.6
        assert concordance(risk, times, events) == pytest.approx(by_pairs(risk, times, events))
    assert np.isnan(concordance(np.ones(3), np.ones(3), np.zeros(3, bool)))


def test_few_events_are_one_curve_for_all_and_a_warning() -> None:
    X, times, events = data(60)
    model = PrivateSurvivalBoosting(SCHEMA, epsilon=0.5)
    with pytest.warns(PlanWarning, match="one Kaplan-Meier curve for all rows"):
        model.fit(X, (times, in_words(events)))
    assert model.curve_for_all_
    survival = model.predict_survival_function(X)
    assert np.all(survival == survival[0])
    assert model.score(X, (times, in_words(events))) == 0.5
    assert [one["name"] for one in model.model_.record["asked"]] == [
        "times and events", "curve for all",
    ]  # fmt: skip


def test_the_fit_spends_its_epsilon_and_no_more() -> None:
    ledger = Ledger.in_memory()
    X, times, events = data(1000)
    model = PrivateSurvivalBoosting(SCHEMA, epsilon=3.0, ledger=ledger)
    model.fit(X, (times, in_words(events)))
    assert model.statement_.epsilon == 3.0
    assert ledger.lines(kind="charge")
    assert hedgerow.spending(ledger).epsilon(1e-6) <= 3.0 + 1e-9


def test_parties_persons_weights_and_directions() -> None:
    X, times, events = data(3000)
    y = (times, in_words(events))
    parties = np.array(["north", "south", "west"])[np.arange(3000) % 3]
    schema = Schema(SCHEMA.columns, LABEL, Unit("person", "who", at_most=2))
    who = X.assign(who=np.arange(3000) // 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PrivateSurvivalBoosting(schema, epsilon=10.0, monotone={"a": 1})
        model.fit(who, y, parties=parties)
        weighted = PrivateSurvivalBoosting(SCHEMA, epsilon=8.0, max_weight=2.0)
        weighted.fit(X, y, sample_weight=np.full(3000, 2.0))
    assert model.statement_.unit == "person"
    assert model.statement_.trust == "parties"
    rising = model.predict({"a": np.linspace(-1, 1, 50), "b": np.zeros(50)})
    assert np.all(np.diff(rising) >= 0)
    assert weighted.score(X, y) > 0.65


def test_a_saved_model_is_loaded_as_what_it_was(tmp_path: Path) -> None:
    model, (X, _, _) = fitted(), data(50)
    model.save(tmp_path / "m.hedge")
    again = hedgerow.load(tmp_path / "m.hedge")
    assert isinstance(again, PrivateSurvivalBoosting)
    assert again.epsilon == 4.0
    assert np.array_equal(again.predict(X), model.predict(X))
    assert clone(model).get_params()["epsilon"] == 4.0


def test_effects_add_up_to_the_risk() -> None:
    model, (X, _, _) = fitted(), data(50)
    explanation = model.explain()
    assert explanation.unit == "log hazard of died"
    assert explanation.coverage is None  # nobody has measured it for hazards
    parts = explanation.contributions(X)
    assert np.allclose(parts.scores[:, 0], model.predict(X), atol=1e-5)
    assert model.feature_importances_[0] > 0.8


def test_columns_that_work_together_are_found() -> None:
    """The hazard follows from the product of two columns: alone, neither says anything."""
    rng = np.random.default_rng(6)
    X = pd.DataFrame(rng.uniform(-1, 1, (12_000, 2)), columns=["a", "b"])
    time = rng.exponential(np.exp(-3 * X["a"] * X["b"]))
    y = (np.minimum(time, 2.5), in_words(time < 2.5))
    model = PrivateSurvivalBoosting(SCHEMA, epsilon=8.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.6
    corners = model.predict({"a": [0.9, 0.9], "b": [0.9, -0.9]})
    assert corners[0] > corners[1] + 1.0
    assert [pair.columns for pair in model.explain().pairs] == [("a", "b")]


CHANGING = Label("years", event="died", event_codes=("no", "yes"), cuts=LABEL.cuts, change_at=1)


def changing_data(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """`a` raises the hazard by 1.4 up to a year and lowers it by 1.0 afterwards; `b` raises it by
    0.8 all the time, `c` never. In logarithms, over the whole range of each."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1, 1, (n, 3)), columns=["a", "b", "c"])
    early, late = (np.exp(s * X["a"] + 0.8 * X["b"]) for s in (1.4, -1.0))
    first = rng.exponential(4 / early)
    time = np.where(first < 1, first, 1 + rng.exponential(4 / late))
    seen = rng.uniform(0.5, 4.0, n)
    return X, np.minimum(time, seen), time <= seen


@cached
def changing() -> PrivateSurvivalBoosting:
    X, times, events = changing_data(30_000)
    schema = Schema.from_bounds(dict.fromkeys("abc", (-1, 1)), time_to_event=CHANGING)
    model = PrivateSurvivalBoosting(schema, epsilon=4.0, random_state=0)
    return model.fit(X, (times, in_words(events)))


def test_effects_that_change_over_time_are_recovered() -> None:
    """At epsilon 4, slopes of both periods by least squares over the range of each column."""
    model, grid = changing(), np.linspace(-0.95, 0.95, 41)
    for column, expected, slack in (("a", (1.4, -1.0), 0.25), ("b", (0.8, 0.8), 0.2),
                                    ("c", (0.0, 0.0), 0.1)):  # fmt: skip
        X = {name: grid if name == column else np.zeros(41) for name in "abc"}
        scores = model.model_.decision_function(X)
        slopes = [float(np.polyfit(grid, scores[:, k], 1)[0]) for k in (0, -1)]
        assert np.abs(np.array(slopes) - expected).max() < slack, (column, slopes)


def test_a_column_of_changing_effects_has_a_shape_in_each_period() -> None:
    model, (X, _, _) = changing(), changing_data(40, seed=1)
    explanation = model.explain()
    assert explanation.outputs == ("died up to 1", "died after 1")
    first, second = explanation.shape("a").values[:, :-1]  # without the cell of missing values
    assert first[-1] - first[0] > 1.5
    assert second[-1] - second[0] < -1.0
    parts = explanation.contributions(X)
    hazards = np.exp(model.model_.decision_function(X))
    assert np.allclose(parts.scores[:, 0], np.log(hazards[:, :3].sum(axis=1)), atol=1e-5)
    assert np.allclose(parts.scores[:, 1], np.log(hazards[:, 3:].sum(axis=1)), atol=1e-5)


def test_a_model_whose_effects_change_is_loaded_and_keeps_directions(tmp_path: Path) -> None:
    model, (X, times, events) = changing(), changing_data(8000, seed=2)
    model.save(tmp_path / "m.hedge")
    again = hedgerow.load(tmp_path / "m.hedge")
    assert np.array_equal(again.predict(X), model.predict(X))
    falling = clone(model).set_params(monotone={"a": -1}, epsilon=20.0)
    falling.fit(X, (times, in_words(events)), parties=np.arange(8000) % 3)
    grid = {"a": np.linspace(-1, 1, 50), "b": np.zeros(50), "c": np.zeros(50)}
    scores = falling.model_.decision_function(grid)
    assert np.all(np.diff(scores, axis=0) <= 1e-6)
    assert scores[0, -1] > scores[-1, -1] + 0.5


def test_random_trees_learn_times_to_an_event_too() -> None:
    X, times, events = data(6000)
    y = (times, in_words(events))
    model = PrivateSurvivalBoosting(SCHEMA, epsilon=2.0, method="random-trees", random_state=0)
    model.fit(X, y)
    assert model.score(X, y) > 0.65
    assert model.statement_.epsilon == 2.0
    assert not model.curve_for_all_
    survival = model.predict_survival_function(X).mean(axis=0)
    assert np.abs(survival - fitted().predict_survival_function(X).mean(axis=0)).max() < 0.03
    for settings in ({"split": "histogram"}, {"update": "averaging"},
                     {"candidates": "iterative-hessian"}):  # fmt: skip
        with pytest.raises(SettingsError, match="know nothing of"):
            clone(model).set_params(settings=settings).fit(X, y)


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    model, (X, times, events) = fitted(), data(50)
    with pytest.raises(ExportError, match="time to 'died'"):
        model.to_sklearn(tmp_path / "m.npz")
    with pytest.raises(SettingsError, match="horizon 2"):
        model.predict_survival_function(X, [3.0])
    with pytest.raises(SettingsError, match="changing shapes by hand knows nothing of times"):
        hedgerow.inspection.edit(model.model_, "a", direction=1, reason="because")
    with pytest.raises(TableError, match="50 rows and y 20"):
        model.score(X, (times[:20], in_words(events[:20])))


BAD = {
    "negative": ({"years": [-1.0, 1.0]}, TableError, "is negative in 1 rows"),
    "no time": ({"years": [np.nan, 1.0]}, TableError, "is missing in 1 rows"),
    "text": ({"years": ["soon", "1"]}, TableError, "text that is no number"),
    "another code": ({"died": ["other", "no"]}, TableError, "competing events"),
    "no code": ({"died": [None, "no"]}, TableError, "is missing in 1 rows"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_labels_are_refused_before_anything_is_spent(name: str) -> None:
    changes, error, text = BAD[name]
    table = {"a": [0.1, 0.2], "b": [0.1, 0.2], "years": [1.0, 1.0], "died": ["yes", "no"]}
    ledger = Ledger.in_memory()
    with pytest.raises(error, match=text):
        PrivateSurvivalBoosting(SCHEMA, ledger=ledger).fit({**table, **changes})
    assert not ledger.lines()


@pytest.mark.parametrize("n_events", [0, 1])
def test_whether_there_is_an_event_at_all_is_not_told(n_events: int) -> None:
    """A fit that ended with an error only where no row has one would tell of a single row."""
    died = np.where(np.arange(300) < n_events, "yes", "no")
    table = {"a": np.full(300, 0.1), "b": np.full(300, 0.2), "years": np.ones(300), "died": died}
    with pytest.warns(PlanWarning, match="Kaplan-Meier curve for all rows"):
        model = PrivateSurvivalBoosting(SCHEMA, epsilon=0.1, delta=1e-6).fit(table)
    assert model.curve_for_all_


@pytest.mark.parametrize(
    ("y", "text"),
    [
        (np.zeros(2), "is no pair of times and events"),
        (np.zeros(2, [("a", float), ("b", float)]), "structured array of 2 fields"),
        (np.zeros(2, [("a", bool), ("b", float), ("c", float)]), "structured array of 3 fields"),
        (([1.0], ["no", "yes"]), "1 times and 2 events"),
        ({"years": [1.0, 2.0]}, "is no pair of times and events"),
    ],
)
def test_labels_of_another_form_are_refused(y: Any, text: str) -> None:
    ledger = Ledger.in_memory()
    with pytest.raises(TableError, match=text):
        PrivateSurvivalBoosting(SCHEMA, ledger=ledger).fit({"a": [0.1, 0.2], "b": [0.1, 0.2]}, y)
    assert not ledger.lines()


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"event": "died"}, "needs both: event"),
        ({"cuts": (1, 2)}, "needs both: event"),
        ({"event": "died", "cuts": (2, 1)}, "2 to 64 times above 0 that rise"),
        ({"event": "died", "cuts": (0, 1)}, "2 to 64 times above 0 that rise"),
        ({"event": "died", "cuts": (1,)}, "1 cuts"),
        ({"event": "died", "cuts": tuple(range(1, 67))}, "66 cuts"),
        ({"event": "died", "cuts": (1, 2), "event_codes": (0, 1, 2)}, "Competing events are not"),
        ({"event": "died", "cuts": (1, 2), "event_codes": (1,)}, "one event code"),
        ({"event": "died", "cuts": (1, 2), "event_codes": (1, "1")}, "same event code twice"),
        ({"event": "died", "cuts": (1, 2), "classes": ("a", "b")}, "keep one of the two"),
        ({"event": "died", "cuts": (1, 2), "lower": 0}, "keep one of the two"),
        ({"event": "died", "cuts": (1, 2, 3), "change_at": 3}, "its cuts before the last: 1, 2"),
        ({"event": "died", "cuts": (1, 2, 3), "change_at": 1.5}, "change_at = 1.5"),
        ({"classes": (0, 1), "change_at": 1}, "keep one of the two"),
        ({"lower": 0, "upper": 1, "change_at": 1}, "keep one of the two"),
    ],
)
def test_a_label_that_leaves_something_open_is_refused(facts: Any, text: str) -> None:
    with pytest.raises(SchemaError, match=text):
        Label("years", **facts)


def test_a_cluster_and_advice_know_nothing_of_times() -> None:
    from hedgerow.engines.dask.sources import ParquetFolder
    from hedgerow.inspection.advice import Facts

    with pytest.raises(SettingsError, match="a Dask cluster knows nothing of times"):
        ParquetFolder("rows", None, SCHEMA)
    with pytest.raises(SettingsError, match="advice on epsilon knows nothing of times"):
        Facts(SCHEMA, 1000)


def test_a_time_is_no_class_and_no_number_and_the_other_way_round() -> None:
    X, times, events = data(20)
    y = (times, in_words(events))
    for other in (PrivateBoostingClassifier, PrivateBoostingRegressor):
        with pytest.raises(SchemaError, match="use PrivateSurvivalBoosting"):
            other(SCHEMA).fit(X, times)
    with pytest.raises(SchemaError, match="is no time to an event"):
        PrivateSurvivalBoosting(SCHEMA.with_label(Label("y", (0, 1)))).fit(X, y)
    with pytest.raises(HedgerowError, match="method 'dp-rf' knows nothing of times to an event"):
        PrivateSurvivalBoosting(SCHEMA, method="dp-rf").fit(X, y)
    with pytest.raises(TableError, match="requires y to be passed"):
        PrivateSurvivalBoosting(SCHEMA).fit(X.to_numpy())
