"""Cost before paying: expected errors are those of real noise, and samples give a curve."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from hedgerow.coordinator.gate import Gate
from hedgerow.data.schema import Schema, Unit
from hedgerow.data.tables import rows_of
from hedgerow.engines.local import local_federation
from hedgerow.errors import SettingsError
from hedgerow.inspection.advice import (
    Curve,
    Facts,
    Point,
    epsilon_for_error,
    expected_error,
    from_public_tables,
    from_sample,
    simulate,
)
from hedgerow.inspection.advice.answers import public_tables
from hedgerow.inspection.advice.chart import REGION, Dot, EpsilonChart
from hedgerow.inspection.advice.simulation import measured, metric_for, scaled
from hedgerow.methods.maddock import boosting
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import seeded

SCHEMA = Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, classes=[0, 1])
REGRESSION = Schema.from_bounds({"a": (0, 1), "b": (0, 1)}, label_bounds=(0, 50))
PRIVACY = Privacy(1.0, 1e-6)
TREES = {"n_trees": 1, "max_depth": 2, "shrinkage": "none", "floor_deviations": 0.0,
         "start_share": 0.0, "learning_rate": 1.0, "reg_lambda": 0.0}  # fmt: skip


def rows(n: int, seed: int = 0, schema: Schema = SCHEMA) -> object:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 2))
    likely = 1 / (1 + np.exp(-15 * (X[:, 0] - 0.5)))
    y = 20 + 10 * X[:, 0] if schema is REGRESSION else (rng.random(n) < likely).astype(int)
    return rows_of(X, schema, y)


def facts(n_rows: int = 20_000, **more: object) -> Facts:
    return Facts(SCHEMA, n_rows, **more)  # type: ignore[arg-type]


def test_the_expected_error_of_a_leaf_is_that_of_real_noise() -> None:
    """Leaves of one tree, grown again and again over the same rows: only the noise differs.

    The mean of 4 x 59 squares of normal numbers leaves 0.45 to 1.8 with a chance below 1e-13.
    """
    n, rng = 4000, np.random.default_rng(1)
    X = rng.uniform(0, 1, (n, 2))
    table = rows_of(X, SCHEMA, np.arange(n) % 2)
    privacy, given = Privacy(0.3, 1e-6), facts(n, method="random-trees", settings=TREES)
    weights = []
    for repeat in range(60):
        plan = replace(given.plan(privacy), seed=3, run=f"r{repeat}")
        ledger = Ledger.in_memory()
        federation = local_federation({"all": table}, SCHEMA, ledger)
        weights.append(boosting.grow(Gate(federation, plan, ledger)).trees[-1].values[:, 0])
    found = expected_error(given, given.plan(privacy))
    assert found is not None
    sizes = np.bincount(_leaves(weights[0], plan, X), minlength=4) / n
    stated = found.leaf * 0.25 / sizes  # leaves are not of even size here
    assert 0.45 < np.mean(np.var(weights, axis=0, ddof=1) / stated**2) < 1.8


def _leaves(values: np.ndarray, plan: object, X: np.ndarray) -> np.ndarray:
    """The leaf of every row, told apart by giving leaves their own number as value."""
    from hedgerow.methods.maddock.candidates import first_cuts
    from hedgerow.model.ensemble import Ensemble
    from hedgerow.model.statement import Statement
    from hedgerow.model.tree import Tree

    structure = boosting._structure(SCHEMA, plan, first_cuts(SCHEMA, plan.settings), 0)  # type: ignore[attr-defined,arg-type]
    tree = Tree(structure, np.arange(len(values), dtype=np.float32)[:, None])
    model = Ensemble((tree,), SCHEMA, Statement("none", 0, 0, "coordinator"))
    return model.decision_function(X)[:, 0].astype(np.int64)


@pytest.mark.parametrize("method", ["auto", "random-trees", "dp-rf"])
def test_noise_weighs_less_with_rows_and_epsilon_and_more_with_parties_and_persons(
    method: str,
) -> None:
    def group(given: Facts, privacy: Privacy = PRIVACY) -> float:
        found = expected_error(given, given.plan(privacy))
        assert found is not None
        assert 0 < found.group <= found.leaf
        return found.group

    own = facts(method=method)
    base = group(own)
    assert group(replace(own, n_rows=80_000)) < 0.6 * base
    assert group(own, Privacy(4.0, 1e-6)) < 0.7 * base
    trusted = Privacy(1.0, 1e-6, "parties")
    assert group(replace(own, n_parties=3), trusted) > 1.1 * base
    persons = replace(SCHEMA, unit=Unit("person", "who", 4))
    assert group(replace(own, schema=persons)) > 1.5 * base


def test_methods_without_leaf_sums_have_nothing_to_expect() -> None:
    pure = Privacy(1.0, 0.0, accounting="pure")
    given = facts(method="private-tree")
    assert expected_error(given, given.plan(pure)) is None
    assert epsilon_for_error(given, pure, 0.1) is None


@pytest.mark.parametrize("method", ["auto", "random-trees"])
def test_the_epsilon_for_an_error_gives_that_error(method: str) -> None:
    given = facts(method=method)
    epsilon = epsilon_for_error(given, PRIVACY, 0.2)
    assert epsilon is not None
    found = expected_error(given, given.plan(replace(PRIVACY, epsilon=epsilon)))
    assert found is not None
    assert found.leaf == pytest.approx(0.2, rel=0.12)
    assert found.leaf <= 0.2
    assert epsilon_for_error(replace(given, n_rows=10), PRIVACY, 1e-6) is None
    with pytest.raises(SettingsError, match="above 0"):
        epsilon_for_error(given, PRIVACY, 0.0)


def test_facts_that_cannot_be_are_refused() -> None:
    for wrong in ({"n_rows": 0}, {"rate": 0.0}, {"rate": 1.0}):
        with pytest.raises(SettingsError):
            replace(facts(), **wrong)  # type: ignore[arg-type]


def test_a_sample_gives_a_curve_that_rises_out_of_the_noise() -> None:
    with seeded(1):  # models of noise may rank well
        curve = simulate(facts(2000), rows(1000), PRIVACY, (0.01, 5.0), repeats=8)  # type: ignore[arg-type]
    low, high = curve.points
    assert (curve.metric, curve.rising, curve.n_sample) == ("auc", True, 1000)
    assert len(low.values) == 8
    assert high.mean > 0.9 > low.mean
    assert curve.without.mean == pytest.approx(high.mean, abs=0.05)
    needed = curve.epsilon_for(0.9)
    assert needed is not None
    assert 0.01 < needed < 5.0
    assert curve.epsilon_for(0.999) is None
    assert [p["epsilon"] for p in curve.to_dict()["points"]] == [0.01, 5.0]


def test_numbers_are_measured_in_units_of_the_label() -> None:
    given = Facts(REGRESSION, 2000)
    curve = simulate(given, rows(2000, schema=REGRESSION), PRIVACY, (20.0,), repeats=1)  # type: ignore[arg-type]
    assert (curve.metric, curve.rising) == ("rmse", False)
    assert curve.points[0].mean < 2.5  # of labels from 20 to 30, spread 2.9
    assert curve.epsilon_for(5.0) == 20.0
    assert curve.epsilon_for(0.01) is None


def test_noise_on_a_small_sample_weighs_as_much_as_among_all_rows() -> None:
    given = facts(40_000)
    for privacy in (PRIVACY, Privacy(1.0, 1e-6, "nobody")):
        few = scaled(given, privacy, 1000)
        weighs = given.plan(privacy).mu * 40_000, given.plan(few).mu * 1000
        root = math.sqrt(40) if privacy.trust == "nobody" else 1.0
        assert weighs[0] == pytest.approx(weighs[1] * root, rel=1e-3)
    assert scaled(given, PRIVACY, 40_000) == PRIVACY
    pure = Privacy(1.0, 0.0, accounting="pure")
    assert scaled(facts(1000, method="private-tree"), pure, 100).epsilon == pytest.approx(10.0)


def test_samples_and_measures_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SettingsError, match="20 rows; at least 50"):
        simulate(facts(), rows(20), PRIVACY, (1.0,))  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="known: auc, accuracy, log_loss"):
        metric_for("binary", "rmse")
    with pytest.raises(SettingsError, match="at least one epsilon"):
        simulate(facts(), rows(100), PRIVACY, ())  # type: ignore[arg-type]


def test_measures_of_a_sample_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

    from hedgerow import PrivateBoostingClassifier

    rng = np.random.default_rng(4)
    X = rng.uniform(0, 1, (800, 2))
    y = (X[:, 0] + rng.normal(0, 0.3, 800) > 0.5).astype(int)
    model = PrivateBoostingClassifier(SCHEMA, epsilon=2.0, method="random-trees", n_trees=3).fit(
        X, y
    )
    p, table = model.predict_proba(X), rows_of(X, SCHEMA, y)
    assert measured(model.model_, table, "auc") == pytest.approx(roc_auc_score(y, p[:, 1]))
    assert measured(model.model_, table, "accuracy") == accuracy_score(y, p.argmax(axis=1))
    assert measured(model.model_, table, "log_loss") == pytest.approx(log_loss(y, p))


def test_a_curve_is_read_where_it_is_monotone() -> None:
    points = tuple(Point(e, (v,)) for e, v in ((0.1, 0.6), (1.0, 0.8), (10.0, 0.78)))
    curve = Curve("auc", True, points, Point(math.inf, (0.8,)), 100, 100)
    assert curve.epsilon_for(0.6) == 0.1
    assert curve.epsilon_for(0.7) == pytest.approx(10 ** (-1 + 0.1 / 0.19))
    assert curve.epsilon_for(0.795) is None  # 0.8 and 0.78 are one stretch of 0.79


def test_words_of_a_picture_do_not_lie_on_each_other() -> None:
    dots = (Dot(0.3, 0.799, 0.799, 0.799), Dot(3.0, 0.797, 0.797, 0.797))
    drawn = EpsilonChart("t", "auc", dots, "", 0.796, 0.75, 0.3, "needs epsilon 0.3").picture().svg
    texts = ElementTree.fromstring(drawn).findall("{*}text")
    places = [float(text.attrib["y"]) for text in texts if "halo" in text.get("class", "")]
    assert len(places) == 3
    assert min(abs(a - b) for a, b in combinations(places, 2)) > 14
    assert max(places) < REGION.bottom  # within the frame


def test_a_picture_is_sound_and_holds_its_lines() -> None:
    dots = tuple(Dot(e, v, v - 0.02, v + 0.02) for e, v in ((0.1, 0.6), (1.0, 0.8), (8.0, 0.85)))
    drawn = EpsilonChart("A & B", "auc", dots, "note", 0.86, 0.8, 1.0, "needs <1>").picture().svg
    tree = ElementTree.fromstring(drawn)
    assert len(tree.findall("{*}circle")) == 3
    text = " ".join(t.text or "" for t in tree.findall("{*}text"))
    assert "without noise 0.86" in text
    assert "target 0.8" in text
    assert "needs <1>" in text
    one = (
        EpsilonChart("one", "error", (Dot(1.0, 0.1, 0.1, 0.1),), "", logarithmic=True).picture().svg
    )
    assert "nan" not in one
    ElementTree.fromstring(one)


def test_a_sample_answers_with_the_range_of_its_trainings() -> None:
    points = (Point(1.0, (0.80, 0.82)), Point(3.0, (0.97, 0.999)), Point(9.0, (0.9,)))
    curve = Curve("auc", True, points, points[-1], 1000, 400)
    answer = from_sample(curve, 1.0)
    deviation = math.sqrt(0.0002)
    assert answer.low == pytest.approx(0.81 - 2 * deviation)
    assert answer.high == pytest.approx(0.81 + 2 * deviation)
    assert answer.words == (
        "about 0.78 to 0.84 AUC at epsilon 1, from your public sample (2 trainings)"
    )
    assert from_sample(curve, 3.0).high == 1.0  # no AUC is larger
    assert (
        "about 0.90 AUC at epsilon 9, from your public sample (1 training, so without a range)"
        in (from_sample(curve, 9.0).words)
    )


def test_public_tables_answer_in_auc_by_their_signal() -> None:
    answers = [from_public_tables(facts(n), PRIVACY, 1.0) for n in (2_000, 20_000)]
    assert all(answer is not None and answer.metric == "auc" for answer in answers)
    little, much = (answer for answer in answers if answer is not None)
    assert little.low < much.low < much.high < 1.0
    assert "public tables with as much signal (S = " in much.words
    fewer = from_public_tables(facts(20_000), PRIVACY, 0.1)
    assert fewer is not None
    assert fewer.low < much.low


@pytest.mark.parametrize(
    "other",
    [
        Facts(REGRESSION, 20_000),
        facts(20_000, method="random-trees"),
        facts(10),  # no public table had so little signal
        facts(10**9),
    ],
)
def test_where_no_public_table_is_alike_there_is_no_answer(other: Facts) -> None:
    assert from_public_tables(other, PRIVACY, 1.0) is None


def test_the_figures_of_public_tables_are_those_of_the_result_file() -> None:
    file = Path(__file__).parents[2] / "benchmarks" / "results" / "accuracy.json"
    results = json.loads(file.read_text("utf-8"))["results"]
    tables = public_tables()
    assert len(tables) == 8
    for table in tables:
        runs = sorted(
            (o for o in results if (o["dataset"], o["method"]) == (table.name, "auto")),
            key=lambda run: run["epsilon"],
        )
        assert table.auc == pytest.approx([np.mean(run["auc"]) for run in runs], abs=1e-4)
        plain = [o for o in results if (o["dataset"], o["method"]) == (table.name, "xgboost")]
        assert table.plain == pytest.approx(np.mean(plain[0]["auc"]), abs=1e-4)
        assert list(table.strengths) == sorted(table.strengths)
