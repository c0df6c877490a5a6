"""`sample_weight` of `fit`: what it means, what it costs, and what is said of it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import hedgerow
from hedgerow import (
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateTreeClassifier,
    Schema,
    SimilarityBoostingClassifier,
    VerticalBoostingClassifier,
    Weight,
    evaluate_privately,
    local_federation,
    rows_of,
)
from hedgerow.errors import PlanWarning, Refused, SettingsError, TableError
from hedgerow.kernels import loops, statistics
from hedgerow.methods.registry import METHODS, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.settings import Privacy
from hedgerow.queries import QUERIES, ColumnSums, LabelSums
from hedgerow.queries.calibration import noise_for
from hedgerow.testing import noise_off, seeded

N = 1200
RNG = np.random.default_rng(7)
X = RNG.uniform(-1, 1, (N, 3))
Y = (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * RNG.normal(size=N) > 0.2).astype(int)
TIMES = RNG.integers(0, 4, N)
SCHEMA = Schema.from_bounds({"a": (-1, 1), "b": (-1, 1), "c": (-1, 1)}, classes=[0, 1])
FAST: dict[str, Any] = {"method": "random-trees", "n_trees": 4, "max_depth": 3, "random_state": 1}
NO_TREES = {"n_trees": None, "max_depth": None}
WEIGHING = sorted(name for name, m in METHODS.items() if m.weighs_rows and m.trust is None)


def fitted(
    weights: Any = None, cap: float | None = None, X: Any = X, y: Any = Y, parties: Any = None,
    **settings: Any,
) -> PrivateBoostingClassifier:  # fmt: skip
    model = PrivateBoostingClassifier(SCHEMA, max_weight=cap, **{**FAST, **settings})
    with noise_off():
        return model.fit(X, y, parties=parties, sample_weight=weights)


def same(one: Any, two: Any) -> bool:
    trees = zip(one.model_.trees, two.model_.trees, strict=True)
    return all(np.array_equal(a.values, b.values) for a, b in trees)


@pytest.mark.parametrize("method", WEIGHING)
def test_whole_weights_give_the_model_of_rows_that_are_there_so_often(method: str) -> None:
    """With the same cap, so the same noise and grid; leaf sums are then the same integers."""
    settings = {"method": method, **(NO_TREES if method == "auto" else {})}
    index = np.repeat(np.arange(N), TIMES)
    weighted = fitted(TIMES, 3.0, **settings)
    repeated = fitted(np.ones(index.size), 3.0, X[index], Y[index], **settings)
    once = fitted(np.ones(N), 3.0, **settings)
    if method == "auto":  # what a step was worth is truncated after the weight
        expected = repeated.predict_proba(X)
        assert np.allclose(weighted.predict_proba(X), expected, rtol=0, atol=1e-6)
    else:
        assert same(weighted, repeated)
    assert not same(weighted, once)


@pytest.mark.parametrize("method", WEIGHING)
def test_weights_of_one_under_a_cap_of_one_change_nothing(method: str) -> None:
    settings = {**FAST, "method": method, **(NO_TREES if method == "auto" else {})}
    models = []
    for weights, cap in ((None, None), (np.ones(N), 1.0)):
        with seeded(3):
            model = PrivateBoostingClassifier(SCHEMA, max_weight=cap, **settings)
            models.append(model.fit(X, Y, sample_weight=weights))
    assert same(*models)


def test_the_default_method_does_not_mind_the_scale_of_weights() -> None:
    """Its rule and priors count in rows of the largest weight, as its noise does."""
    weights = RNG.uniform(0, 2, N)
    one = fitted(weights, 2.0, method="auto", **NO_TREES)
    four = fitted(4 * weights, 8.0, method="auto", **NO_TREES)
    # Gradients lie on a grid that is as much coarser as their sums have grown.
    assert np.allclose(one.predict_proba(X), four.predict_proba(X), rtol=0, atol=1e-4)
    assert one.model_.record["strength"] == four.model_.record["strength"]


def test_any_parties_and_any_trust_give_the_same_model() -> None:
    weights = RNG.uniform(0, 2.5, N)
    parties = np.resize(["a", "b", "c"], N)
    alone = fitted(weights, 2.0)
    assert same(alone, fitted(weights, 2.0, parties=parties, trust="coordinator"))
    assert same(alone, fitted(weights, 2.0, parties=parties, trust="parties"))
    schema = replace(SCHEMA, weight=Weight("sample_weight", 2.0))
    rows = rows_of(X, schema, Y, weights=weights)
    tables = {name: rows.take(np.flatnonzero(parties == name)) for name in "abc"}
    packed = local_federation(tables, schema, trust="parties", packed=True)
    with noise_off():
        again = PrivateBoostingClassifier(**FAST).fit_federation(packed)
    assert same(alone, again)


def test_noise_of_every_question_grows_with_the_cap_and_a_persons_with_both() -> None:
    plan = plan_for(SCHEMA, Privacy(1.0, 1e-6))
    person = replace(SCHEMA, unit=hedgerow.Unit("person", "id", at_most=3))
    query = LabelSums(2)
    plain = noise_for(query, 0.1, plan, SCHEMA)
    for schema, times in (
        (replace(SCHEMA, weight=Weight("w", 5.0)), 5),
        (person, 3),
        (replace(person, weight=Weight("w", 5.0)), 15),
    ):
        noise = noise_for(query, 0.1, plan, schema)
        ratio = noise.sigmas[0] / 2.0**noise.bits / (plain.sigmas[0] / 2.0**plain.bits)
        assert ratio == pytest.approx(times, rel=1e-12)


def test_released_noise_is_the_cap_times_as_wide() -> None:
    """Of seeded draws: the same ones, times the cap; weights of zero leave the noise alone."""
    found = []
    for cap in (1.0, 4.0):
        with seeded(11):
            model = PrivateBoostingClassifier(SCHEMA, max_weight=cap, **{**FAST, "method": "dp-rf"})
            model.fit(X, Y, sample_weight=np.zeros(N))
        found.append(model.model_.trees[0].cover)
    assert found[0] is not None
    assert np.allclose(found[1], 4 * np.asarray(found[0]), rtol=1e-6)


def test_the_statement_and_the_plan_say_how_often_a_row_counts(tmp_path: Path) -> None:
    model = PrivateBoostingClassifier(SCHEMA, max_weight=2.0, **FAST)
    model.fit(X, Y, sample_weight=np.ones(N))
    assert model.statement_.neighbours == "add or remove one row, of a weight of at most 2"
    assert "of a weight of at most 2" in model.statement_.words()
    assert model.plan_.max_weight == 2.0
    model.plan_.write(tmp_path / "plan.toml")
    again = hedgerow.Plan.read(tmp_path / "plan.toml")
    assert again.hash == model.plan_.hash
    assert again.max_weight == 2.0
    unweighted = fitted()
    assert "weight" not in unweighted.statement_.neighbours
    assert "max_weight" not in unweighted.plan_.to_dict()


def test_a_plan_that_tells_another_cap_is_refused() -> None:
    schema = replace(SCHEMA, weight=Weight("w", 4.0))
    plan = plan_for(schema, Privacy(1.0, 1e-6))
    federation = local_federation({"all": rows_of(X, schema, Y, weights=TIMES)}, schema)
    with pytest.raises(Refused, match="another schema"):
        federation.open(replace(plan, max_weight=1.0))


def test_weights_without_a_cap_are_refused_with_two_ways_out() -> None:
    model = PrivateBoostingClassifier(SCHEMA, **FAST)
    with pytest.raises(SettingsError, match=r"max_weight=2 .* \[weight\] .* Nothing was asked"):
        model.fit(X, Y, sample_weight=np.ones(N))


def test_a_cap_without_weights_is_a_warning_or_an_error() -> None:
    model = PrivateBoostingClassifier(SCHEMA, max_weight=3.0, **FAST)
    with pytest.warns(PlanWarning, match="3 times as wide"), noise_off():
        model.fit(X, Y)
    assert same(model, fitted(np.ones(N), 3.0))
    agreed = PrivateBoostingClassifier(replace(SCHEMA, weight=Weight("w", 3.0)), **FAST)
    with pytest.raises(SettingsError, match="has the weight 'w', and there are no weights"):
        agreed.fit(X, Y)


def test_the_cap_of_the_schema_stands() -> None:
    schema = replace(SCHEMA, weight=Weight("w", 3.0))
    model = PrivateBoostingClassifier(schema, max_weight=2.0, **FAST)
    with pytest.raises(SettingsError, match=r"max_weight is 2, and the schema has .* at most 3"):
        model.fit(X, Y, sample_weight=TIMES)
    federation = local_federation({"all": rows_of(X, SCHEMA, Y)}, SCHEMA)
    with pytest.raises(SettingsError, match="the federation's schema has no weights"):
        PrivateBoostingClassifier(max_weight=2.0, **FAST).fit_federation(federation)


def test_weights_may_be_a_column_that_the_schema_names() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=Y, w=TIMES)
    schema = replace(SCHEMA, weight=Weight("w", 3.0))
    with noise_off():
        model = PrivateBoostingClassifier(schema, **FAST).fit(frame)
    assert same(model, fitted(TIMES, 3.0))
    assert model.predict(frame[["a", "b", "c"]]).shape == (N,)  # predictions need no weights


@pytest.mark.parametrize("weights", [[np.nan, *[1.0] * (N - 1)], np.ones(N - 1), ["x"] * N])
def test_weights_that_are_none_are_refused_before_anything_is_asked(weights: Any) -> None:
    with pytest.raises(TableError):
        fitted(weights, 2.0)


@pytest.mark.parametrize("method", sorted(set(METHODS) - {*WEIGHING, "ldp"}))
def test_methods_without_a_proof_refuse_weights_before_anything_is_asked(method: str) -> None:
    schema, method_ = replace(SCHEMA, weight=Weight("w", 2.0)), METHODS[method]
    privacy = Privacy(1.0, 0.0, "coordinator", accounting="pure")
    with pytest.raises(SettingsError, match=r"cannot weigh rows.* Nothing was asked"):
        plan_for(schema, privacy, method_.name)


def test_estimators_without_weights_say_so() -> None:
    with pytest.raises(SettingsError, match="fit takes no 'sample_weight'"):
        PrivateTreeClassifier(schema=SCHEMA).fit(X, Y, sample_weight=TIMES)
    with pytest.raises(SettingsError, match="fit takes no 'sample_weight'"):
        SimilarityBoostingClassifier(SCHEMA).fit(X, Y, sample_weight=TIMES)
    schema = replace(SCHEMA, weight=Weight("w", 2.0))
    for estimator, further in (
        (SimilarityBoostingClassifier(schema), {}),
        (VerticalBoostingClassifier(schema), {"owners": {"a": "bank"}, "active": "shop"}),
    ):
        with pytest.raises(SettingsError, match="no weights of rows"):
            estimator.fit(X, Y, **further)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="PrivateTreeClassifier has no weights of rows"):
        PrivateTreeClassifier(schema=schema).fit(X, Y)


def test_a_private_evaluation_counts_every_row_once() -> None:
    model = fitted(TIMES, 3.0)
    plain = fitted()
    with noise_off():
        weighted = evaluate_privately(model, X, Y, epsilon=1.0)
        other = evaluate_privately(replace(model.model_, schema=SCHEMA), X, Y, epsilon=1.0)
    assert weighted["accuracy"].value == pytest.approx(model.score(X, Y), abs=1e-3)
    assert weighted["accuracy"].value == other["accuracy"].value
    assert "weight" not in weighted.statement.neighbours
    assert plain.score(X, Y) > 0.6


def test_a_federation_with_weights_is_evaluated_without_them() -> None:
    schema = replace(SCHEMA, weight=Weight("sample_weight", 3.0))
    model = fitted(TIMES, 3.0)
    found = []
    for weights in (TIMES, np.ones(N)):
        rows = rows_of(X, schema, Y, weights=weights)
        with noise_off():
            federation = local_federation({"all": rows}, schema)
            plan = hedgerow.evaluation.evaluation_plan(model.model_, Privacy(1.0, 1e-6))
            ledger = hedgerow.Ledger.in_memory()
            gate = hedgerow.coordinator.gate.Gate(federation, plan, ledger, start=model.model_)
            found.append(hedgerow.evaluation.evaluate(gate, model.model_))
    assert found[0]["auc"].value == found[1]["auc"].value
    assert found[0]["log_loss"].value == found[1]["log_loss"].value


def test_a_loaded_model_is_fitted_again_with_weights(tmp_path: Path) -> None:
    model = fitted(TIMES, 3.0)
    model.save(tmp_path / "model.hedge")
    again = hedgerow.load(tmp_path / "model.hedge")
    assert Ensemble.load(tmp_path / "model.hedge").schema.max_weight == 3.0
    again.set_params(random_state=1)
    with noise_off():
        again.fit(X, Y, sample_weight=TIMES)  # type: ignore[attr-defined]
    assert same(model, again)


def test_scikit_learn_hands_weights_on() -> None:
    model = PrivateBoostingClassifier(SCHEMA, max_weight=3.0, **{**FAST, "epsilon": 100.0})
    found = cross_val_score(model, X, Y, cv=2, params={"sample_weight": TIMES})
    assert found.shape == (2,)
    assert not np.isnan(found).any()
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(model.set_fit_request(sample_weight=True))
        with noise_off():
            routed.fit(X, Y, sample_weight=TIMES)
    assert same(routed[-1], fitted(TIMES, 3.0, epsilon=100.0))


def test_scores_take_weights() -> None:
    model = fitted(TIMES, 3.0)
    right = model.predict(X) == Y
    assert model.score(X, Y, sample_weight=TIMES) == pytest.approx(right @ TIMES / TIMES.sum())


def test_a_regressor_takes_weights() -> None:
    target = np.clip(X[:, 0] + (TIMES > 1), -1, 2)
    heavy = np.where(TIMES > 1, 3.0, 0.0)
    model = PrivateBoostingRegressor(
        bounds=(-1, 1), label_bounds=(-1, 2), max_weight=3.0, **{**FAST, "n_trees": 30}
    )
    with noise_off():
        model.fit(X, target, sample_weight=heavy)
    mean = model.predict(X).mean()
    assert mean == pytest.approx(target[TIMES > 1].mean(), abs=0.1)
    assert abs(mean - target.mean()) > 0.2


def test_weights_compile_no_loop_a_second_time() -> None:
    fitted()
    known = {**vars(loops), **vars(statistics)}
    compiled = {name: loop for name, loop in known.items() if hasattr(loop, "signatures")}
    before = {name: len(loop.signatures) for name, loop in compiled.items()}
    fitted(TIMES, 3.0)
    assert {name: len(loop.signatures) for name, loop in compiled.items()} == before
    assert max(before.values()) > 0


def test_methods_that_weigh_rows_ask_nothing_that_refuses_them() -> None:
    """Every kind that a weighing method declares has a bound under weights."""
    schema = replace(SCHEMA, weight=Weight("w", 2.0))
    for name in WEIGHING:
        plan = plan_for(schema, Privacy(1.0, 1e-6), name)
        kinds = {slot.kind for slot in plan.slots} | set(plan.budget.adaptive.kinds)
        assert kinds <= set(QUERIES) - {
            "class-histograms", "impurity-bounds", "split-choices", "leaf-averages",
        }  # fmt: skip
        assert ColumnSums.kind in kinds or name != "auto"
    assert math.isfinite(plan.epsilon)
