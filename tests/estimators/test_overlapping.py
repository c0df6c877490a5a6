"""Fits that overlap on one ledger: each gets its model, and exactly their budget is spent.

The 50 repeats run where HEDGEROW_SLOW is set; what they found last is in overlapping.json.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from hedgerow import Ledger, PrivateBoostingClassifier, Schema, local_federation, plan_for
from hedgerow.coordinator.gate import Gate
from hedgerow.methods.registry import method_named
from hedgerow.privacy.ledger.spending import spending
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.settings import Privacy
from tests.attacks.rig import SCHEMA, some_rows
from tests.slow import ALL

RESULT = Path(__file__).with_name("overlapping.json")
REPEATS = 50 if ALL else 1
RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (240, 2))
Y = (X[:, 0] + 0.3 * RNG.normal(size=240) > 0).astype(int)
EPSILON, DELTA = 1.0, 1e-5
SMALL = {"method": "random-trees", "n_trees": 3, "max_depth": 2, "random_state": 1}
Given = Ledger | str


def estimator(ledger: Given) -> PrivateBoostingClassifier:
    return PrivateBoostingClassifier(
        bounds=(-1, 1), classes=[0, 1], epsilon=EPSILON, delta=DELTA, ledger=ledger, **SMALL
    )


def eight_threads(ledger: Given) -> list[float]:
    with ThreadPoolExecutor(8) as pool:
        models = list(pool.map(lambda _: clone(estimator(ledger)).fit(X, Y), range(8)))
    return [model.score(X, Y) for model in models]


def scored_by(backend: str) -> Callable[[Given], list[float]]:
    def score(ledger: Given) -> list[float]:
        with joblib.parallel_backend(backend, n_jobs=4):
            return list(cross_val_score(estimator(ledger), X, Y, cv=4, error_score="raise"))

    return score


def searched(ledger: Given) -> list[float]:
    grid = {"n_trees": [2, 3]}
    with joblib.parallel_backend("threading", n_jobs=4):
        search = GridSearchCV(estimator(ledger), grid, cv=2, error_score="raise").fit(X, Y)
    return [*search.cv_results_["mean_test_score"], search.best_score_]


WAYS: dict[str, tuple[Callable[[Given], list[float]], int]] = {
    "8 threads": (eight_threads, 8),
    "cross_val_score, threads": (scored_by("threading"), 4),
    "cross_val_score, processes": (scored_by("loky"), 4),
    "GridSearchCV, threads": (searched, 5),
}
# Processes take the path of a ledger that is given as an object, so one of the two will do.
CASES = [
    (way, by) for way in WAYS for by in ("path", "object")
    if ALL or by == "object" or "processes" not in way
]  # fmt: skip


@pytest.fixture(scope="module")
def results() -> Iterator[dict[str, Any]]:
    found: dict[str, Any] = {}
    yield found
    if ALL and len(found) == 2 * len(WAYS):
        RESULT.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")


@pytest.mark.parametrize(("way", "by"), CASES)
def test_overlapping_fits_spend_what_they_cost_and_no_more(
    tmp_path: Path, way: str, by: str, results: dict[str, Any]
) -> None:
    fits, n_fits = WAYS[way]
    nans = 0
    for repeat in range(REPEATS):
        path = tmp_path / f"{repeat}.ledger"
        with Ledger.open(path) as ledger:
            scores = fits(ledger if by == "object" else str(path))
            nans += sum(math.isnan(score) for score in scores)
            assert all(score > 0.4 for score in scores)
            assert_spent(ledger, n_fits)
    results[f"{way}, by {by}"] = {"repeats": REPEATS, "fits": REPEATS * n_fits, "NaN": nans}


def assert_spent(ledger: Ledger, n_fits: int) -> None:
    """Every run was reserved once by its coordinator and its party, and none was lost."""
    plan = plan_for(
        Schema.from_bounds({"x0": (-1, 1), "x1": (-1, 1)}, classes=[0, 1]),
        Privacy(EPSILON, DELTA, "coordinator", spare=0),
        "random-trees",
    )
    for found in verify(ledger):
        assert found.spending.runs == n_fits
        assert found.spending.mu == pytest.approx(math.sqrt(n_fits) * plan.mu, rel=1e-6)
        assert found.charges == (found.releases if found.owner == "coordinator" else found.charges)
    assert {found.owner for found in verify(ledger)} == {"coordinator", "all"}
    assert not ledger.lines(kind="refuse")


@pytest.mark.parametrize("trust", ["coordinator", "parties"])
def test_two_federations_on_one_ledger_can_be_used_in_turn(trust: str) -> None:
    """The older party's key was refused before, after both runs had been reserved."""
    ledger, tables = Ledger.in_memory(), {name: some_rows(40, i) for i, name in enumerate("abc")}
    privacy = Privacy(1.0, 1e-6, trust)  # type: ignore[arg-type]
    settings = {"n_trees": 2, "max_depth": 1}
    plans = [plan_for(SCHEMA, privacy, "random-trees", settings=settings, seed=i) for i in range(2)]
    gates = [
        Gate(local_federation(tables, SCHEMA, ledger, trust=trust), plan, ledger) for plan in plans
    ]
    for gate in (gates[1], gates[0]):
        assert len(method_named("random-trees").grow(gate).trees) == 3
    assert spending(ledger).runs == spending(ledger, "a").runs == 2
    assert not ledger.lines(kind="refuse")


def test_the_recorded_result_is_of_fifty_repeats_without_a_gap() -> None:
    found = json.loads(RESULT.read_text())
    assert sorted(found) == sorted(f"{way}, by {by}" for way in WAYS for by in ("path", "object"))
    assert {one["repeats"] for one in found.values()} == {50}
    assert {one["NaN"] for one in found.values()} == {0}
