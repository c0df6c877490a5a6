"""Private evaluation: right without noise, honest about its noise, charged like any other run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from hedgerow import PrivateBoostingClassifier, PrivateBoostingRegressor, Schema, evaluate_privately
from hedgerow.coordinator.gate import Gate
from hedgerow.data.schema import Unit
from hedgerow.data.tables import rows_of
from hedgerow.errors import FormatError, PlanError, Refused, SettingsError, SlotSpent
from hedgerow.evaluation import Evaluation, evaluate, evaluation_plan
from hedgerow.evaluation.program import LEAST_PROBABILITY
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Tree, single_leaf
from hedgerow.party.limits import Limits
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.spending import Budget, spending
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import noise_off
from tests.conftest import federation_of

Rows = tuple[NDArray[np.float64], NDArray[Any]]
BOUNDS = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
TASKS = ("two", "many", "forest", "number")


def some_rows(task: str, n_rows: int = 6000, seed: int = 3) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n_rows, 2))
    score = 5 * (X[:, 0] - 0.5) + 3 * (X[:, 1] - 0.5) + rng.logistic(size=n_rows)
    if task == "number":
        return X, 10 + 2 * score
    if task == "many":
        return X, np.digitize(score, (-1.0, 1.0))
    return X, (score > 0.5).astype(np.int64)


def fitted(task: str) -> Ensemble:
    X, y = some_rows(task, 3000, 1)
    if task == "number":
        number = PrivateBoostingRegressor(
            bounds=BOUNDS, label_bounds=(-20.0, 60.0), epsilon=20.0, random_state=1
        )
        return number.fit(X, y).model_
    method = "dp-rf" if task == "forest" else "auto"
    classes = [0, 1, 2] if task == "many" else [0, 1]
    model = PrivateBoostingClassifier(
        bounds=BOUNDS, classes=classes, epsilon=20.0, method=method, random_state=1
    )
    return model.fit(X, y).model_


@pytest.fixture(scope="module")
def models() -> dict[str, Ensemble]:
    return {task: fitted(task) for task in TASKS}


@pytest.fixture
def two(models: dict[str, Ensemble]) -> Ensemble:
    return models["two"]


def columns(X: NDArray[np.float64]) -> dict[str, Any]:
    return {"a": X[:, 0], "b": X[:, 1]}


# Right without noise


@pytest.mark.parametrize("task", ["two", "many", "forest"])
def test_without_noise_classes_are_measured_as_by_hand(
    task: str, models: dict[str, Ensemble]
) -> None:
    model, (X, y) = models[task], some_rows(task)
    with noise_off():
        found = evaluate_privately(model, X, y, epsilon=5.0)
    p = model.predict(columns(X))
    predicted = p.argmax(axis=1)
    k = p.shape[1]
    by_hand = np.array([[np.sum((y == i) & (predicted == j)) for j in range(k)] for i in range(k)])
    assert found.findings.confusion is not None
    assert np.allclose(found.findings.confusion.counts, by_hand, atol=1e-3)
    assert found["rows"].value == pytest.approx(6000, abs=1e-3)
    assert found["accuracy"].value == pytest.approx(np.mean(predicted == y), abs=1e-6)
    held = np.maximum(p[np.arange(len(y)), y], LEAST_PROBABILITY)
    assert found["log_loss"].value == pytest.approx(-np.mean(np.log(held)), abs=1e-6)
    if k == 2:
        assert found["auc"].value == pytest.approx(roc_auc_score(y, p[:, 1]), abs=0.002)
    chosen = p[:, 1] if k == 2 else p.max(axis=1)
    right = y if k == 2 else predicted == y
    for point in found.findings.calibration:
        inside = (chosen > point.lower) & (chosen <= point.upper)
        assert point.rows == pytest.approx(inside.sum(), abs=1e-3)
        assert point.observed == pytest.approx(np.mean(right[inside]), abs=1e-6)
        assert point.predicted == pytest.approx(np.mean(chosen[inside]), abs=0.03)
        assert point.low <= point.observed <= point.high
    assert len(found.findings.calibration) >= 4


@pytest.mark.parametrize(("scale", "shift"), [(0.03, 0.0), (0.3, -3.0), (4.0, 0.0)])
def test_scores_that_are_narrow_wide_or_off_are_measured_as_well(
    scale: float, shift: float, two: Ensemble
) -> None:
    """The model's own scale says nothing about the AUC; the probabilities are wrong on purpose."""
    trees = tuple(Tree(tree.structure, tree.values * np.float32(scale)) for tree in two.trees)
    model, (X, y) = replace(two, trees=(*trees, single_leaf(np.array([shift])))), some_rows("two")
    with noise_off():
        found = evaluate_privately(model, X, y, epsilon=2.0)
    likely = model.decision_function(columns(X))[:, 0]
    assert found["auc"].value == pytest.approx(roc_auc_score(y, likely), abs=0.004)


def test_without_noise_numbers_are_measured_as_by_hand(models: dict[str, Ensemble]) -> None:
    model, (X, y) = models["number"], some_rows("number")
    with noise_off():
        found = evaluate_privately(model, X, y, epsilon=5.0)
    error = y - model.predict(columns(X))
    assert found["rmse"].value == pytest.approx(np.sqrt(np.mean(error**2)), rel=0.01)
    assert found["mae"].value == pytest.approx(np.mean(np.abs(error)), rel=0.01)
    assert found["bias"].value == pytest.approx(np.mean(error), abs=0.05)
    assert found["r2"].value == pytest.approx(1 - np.mean(error**2) / np.var(y), abs=0.02)
    assert "count as so much" in found.findings.notes[0]
    for point in found.findings.calibration:
        assert point.low <= point.observed <= point.high
        assert -20 <= point.lower < point.upper <= 60


@pytest.mark.parametrize("task", TASKS)
def test_one_party_and_several_say_the_same_without_noise(
    task: str, models: dict[str, Ensemble]
) -> None:
    model, (X, y) = models[task], some_rows(task, 900)
    parties = np.resize(["a", "b", "c"], len(y))
    with noise_off():
        alone = evaluate_privately(model, X, y, epsilon=5.0)
        three = evaluate_privately(model, X, y, epsilon=5.0, parties=parties, trust="coordinator")
        masked = evaluate_privately(model, X, y, epsilon=5.0, parties=parties)
    assert alone.findings == three.findings
    assert masked["rows"].value == pytest.approx(900, abs=1e-3)
    assert masked.statement.trust == "parties"
    assert alone.statement.guarantee == "not private"
    assert alone.to_dict()["private"] is False


def test_the_roc_curve_rises_from_corner_to_corner(two: Ensemble) -> None:
    X, y = some_rows("two")
    found = evaluate_privately(two, X, y, epsilon=0.3)
    points = found.findings.roc
    rates = np.array([[p.false_positive_rate, p.true_positive_rate] for p in points])
    assert np.all(np.diff(rates, axis=0) >= 0)
    assert rates[0].tolist() == [0.0, 0.0]
    assert rates[-1].tolist() == [1.0, 1.0]
    assert all(p.low <= p.true_positive_rate <= p.high for p in points)
    assert np.all(np.diff([p.threshold for p in points]) < 0)
    area = float(np.trapezoid(rates[:, 1], rates[:, 0]))
    assert area == pytest.approx(found["auc"].value, abs=0.03)


# Honest about noise


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("two", ("rows", "auc", "accuracy", "log_loss")),
        ("many", ("rows", "accuracy", "log_loss")),
        ("number", ("rows", "mae", "rmse", "bias", "r2")),
    ],
)
def test_stated_noise_is_the_noise_there_is(
    task: str, names: tuple[str, ...], models: dict[str, Ensemble]
) -> None:
    """30 repeats; a mean of squares leaves 0.2 to 2.9 less than once in a million times."""
    model, (X, y) = models[task], some_rows(task, 3000)
    with noise_off():
        exact = evaluate_privately(model, X, y, epsilon=2.0)
    repeats = [evaluate_privately(model, X, y, epsilon=2.0) for _ in range(30)]
    for name in names:
        right = exact[name].value
        assert right is not None
        away = [(found[name].value or 0.0) - right for found in repeats]
        stated = [found[name].noise_error or 0.0 for found in repeats]
        ratio = np.mean(np.square(away)) / np.mean(np.square(stated))
        assert 0.2 < ratio < 2.9, (name, ratio)


def test_where_noise_is_larger_than_a_class_nothing_is_said(two: Ensemble) -> None:
    X, y = some_rows("two", 60)
    found = evaluate_privately(two, X, y, epsilon=0.02)
    assert [m.name for m in found.findings.measures if m.value is None] == [
        "auc", "accuracy", "log_loss", "calibration_error",
    ]  # fmt: skip
    assert "too few rows" in found.findings.notes[0]
    assert found.findings.roc == found.findings.calibration == ()
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_person_of_three_rows_has_three_times_the_noise(two: Ensemble) -> None:
    X, y = some_rows("two")
    unit = Unit("person", "who", 3)
    schema = replace(two.schema, unit=unit)
    model = replace(two, schema=schema)
    table = {**columns(X), "who": np.arange(len(y)) // 3}
    once = evaluate_privately(two, X, y, epsilon=1.0)
    found = evaluate_privately(model, table, y, epsilon=1.0)
    one, three = once.findings.confusion, found.findings.confusion
    assert one is not None
    assert three is not None
    assert three.noise_error == pytest.approx(3 * one.noise_error, rel=0.05)
    assert "one person" in found.words()


# Charged like any other run


def test_coordinator_and_parties_pay_beside_training(two: Ensemble) -> None:
    X, y = some_rows("two", 900)
    ledger, parties = Ledger.in_memory(), np.resize(["a", "b", "c"], len(y))
    found = evaluate_privately(two, X, y, epsilon=0.25, parties=parties, ledger=ledger)
    for owner in ("coordinator", "a", "b", "c"):
        charges = ledger.lines(owner, "charge", found.run)
        assert [line.slot for line in charges] == [0, 1]
        assert spending(ledger, owner).epsilon(1e-6) == pytest.approx(0.25, rel=1e-6)
    evaluate_privately(two, X, y, epsilon=0.25, parties=parties, ledger=ledger)
    assert spending(ledger).epsilon(1e-6) > 0.3
    assert found.statement.epsilon == 0.25
    assert found.statement.builds_on == two.hash
    assert "Whoever sees all that the coordinator" in found.words()
    assert "the two add up" in found.words()
    assert f"It measures the model {two.hash[:12]}, which promises epsilon = 20" in found.words()


def test_limits_of_a_party_hold_for_evaluations(two: Ensemble) -> None:
    X, y = some_rows("two", 300)
    from hedgerow.engines.local import local_federation

    rows, privacy = rows_of(X, two.schema, y), Privacy(0.5, 1e-6)
    plan = evaluation_plan(two, privacy)
    for limits in (Limits(per_run=Budget(0.4, 1e-6)), Limits(methods=frozenset({"auto"}))):
        ledger = Ledger.in_memory()
        federation = local_federation({"all": rows}, two.schema, ledger, limits=limits)
        with pytest.raises(Refused, match="over-limits"):
            evaluate(Gate(federation, plan, ledger, start=two), two)
        assert not ledger.lines(kind="charge")
    ledger = Ledger.in_memory()
    allowed = Limits(methods=frozenset({"evaluation"}), per_run=Budget(0.5, 1e-6))
    federation = local_federation({"all": rows}, two.schema, ledger, limits=allowed)
    assert evaluate(Gate(federation, plan, ledger, start=two), two)["rows"].value is not None


def test_a_run_that_is_repeated_replays_its_releases(two: Ensemble) -> None:
    X, y = some_rows("two", 900)
    rows, privacy, ledger = rows_of(X, two.schema, y), Privacy(0.5, 1e-6), Ledger.in_memory()
    plan = evaluation_plan(two, privacy)
    both = []
    for _ in range(2):
        federation = federation_of({"all": rows}, two.schema, privacy, ledger)
        both.append(evaluate(Gate(federation, plan, ledger, start=two), two))
    assert both[0] == both[1]
    assert len(ledger.lines("coordinator", "charge")) == 2


@pytest.mark.parametrize("task", ["two", "number"])
def test_a_lost_first_answer_is_made_up_for_and_a_lost_last_one_is_said(
    task: str, models: dict[str, Ensemble]
) -> None:
    model, (X, y) = models[task], some_rows(task)
    rows, privacy = rows_of(X, model.schema, y), Privacy(2.0, 1e-6)
    for slot in (0, 1):
        ledger, plan = Ledger.in_memory(), evaluation_plan(model, privacy)
        Reservation(ledger, plan).charge(slot, "lost", 1)
        gate = Gate(federation_of({"all": rows}, model.schema, privacy, ledger), plan, ledger,
                    start=model)  # fmt: skip
        if slot:
            with pytest.raises(SlotSpent, match="stays charged"):
                evaluate(gate, model)
        else:
            assert evaluate(gate, model)["rows"].value == pytest.approx(6000, rel=0.05)


def test_a_plan_measures_the_model_that_it_names(
    two: Ensemble, models: dict[str, Ensemble]
) -> None:
    X, y = some_rows("two", 90)
    privacy, ledger = Privacy(0.5, 1e-6), Ledger.in_memory()
    federation = federation_of({"all": rows_of(X, two.schema, y)}, two.schema, privacy, ledger)
    with pytest.raises(PlanError, match="Nothing was asked"):
        Gate(federation, evaluation_plan(two, privacy), ledger, start=models["forest"])
    with pytest.raises(PlanError, match="Nothing was asked"):
        Gate(federation, evaluation_plan(two, privacy), ledger)


def test_a_model_without_a_promise_says_so_and_the_evaluation_keeps_its_own(two: Ensemble) -> None:
    X, y = some_rows("two", 900)
    open_one = replace(two, statement=replace(two.statement, guarantee="not private"))
    found = evaluate_privately(open_one, X, y, epsilon=0.5)
    assert found.statement.guarantee == "epsilon-delta"
    assert "which is not private: about rows that it has seen nothing is promised" in found.words()


def test_what_cannot_be_evaluated_is_refused(two: Ensemble) -> None:
    X, y = some_rows("two", 30)
    with pytest.raises(SettingsError, match="fit it first"):
        evaluate_privately(PrivateBoostingClassifier(), X, y, epsilon=1.0)
    with pytest.raises(SettingsError, match="no pure epsilon"):
        evaluate_privately(two, X, y, epsilon=1.0, delta=0.0, accounting="pure")
    with pytest.raises(SettingsError, match="at least 3 parties"):
        evaluate_privately(two, X, y, epsilon=1.0, parties=["a", "b"] * 15)


# The file


def test_a_file_is_read_back(two: Ensemble, tmp_path: Path) -> None:
    X, y = some_rows("two")
    found = evaluate_privately(two, X, y, epsilon=1.0)
    found.save(tmp_path / "e.json")
    assert Evaluation.load(tmp_path / "e.json") == found
    told = json.loads((tmp_path / "e.json").read_text())
    assert (told["kind"], told["format"], told["model"]) == ("hedgerow evaluation", 1, two.hash)
    assert told["private"] is True
    assert set(told["measures"]["auc"]) == {"value", "noise_error", "sampling_error", "low", "high"}


def test_other_files_are_no_evaluations(two: Ensemble, tmp_path: Path) -> None:
    X, y = some_rows("two", 600)
    told = evaluate_privately(two, X, y, epsilon=1.0).to_dict()
    file = tmp_path / "e.json"
    for text, words in (
        ("[]", "there is no table in it"),
        ("{", "not valid JSON"),
        (json.dumps({**told, "kind": "plan"}), "no hedgerow evaluation"),
        (json.dumps({**told, "format": 2}), "newer than this hedgerow reads"),
        (json.dumps({**told, "roc": [{"threshold": 1}]}), r"\[\[roc\]\] number 1 has no"),
    ):
        file.write_text(text)
        with pytest.raises(FormatError, match=words):
            Evaluation.load(file)
    with pytest.raises(FormatError, match="no evaluation file"):
        Evaluation.load(tmp_path / "none.json")


def test_a_schema_of_another_table_is_refused(two: Ensemble) -> None:
    other = Schema.from_bounds({"z": (0, 1)}, classes=[0, 1])
    privacy, ledger = Privacy(0.5, 1e-6), Ledger.in_memory()
    rows = rows_of({"z": [0.5]}, other, [1])
    with pytest.raises(PlanError, match="Nothing was asked"):
        Gate(
            federation_of({"all": rows}, other, privacy, ledger),
            evaluation_plan(two, privacy), ledger, start=two,
        )  # fmt: skip
