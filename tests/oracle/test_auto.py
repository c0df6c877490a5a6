"""The default method over any parties, and what one row can do to everything it releases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Gate
from hedgerow.data.schema import Label, Schema
from hedgerow.data.tables import Rows, rows_of
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.party.running_scores import RunningScores
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.settings import Privacy
from hedgerow.queries import SumQuery
from hedgerow.queries.calibration import noise_for
from hedgerow.testing import noise_off, seeded
from tests.conftest import federation_of, split_rows
from tests.oracle.runs import LABELS, schema_of, table_of

HOLDERS = ((1, "coordinator"), (3, "coordinator"), (3, "parties"), (20, "parties"))
SIZES = {1: (), 3: (100, 150), 20: (20,) * 19}


def trained(
    schema: Schema, rows: Rows, n_parties: int, trust: str, epsilon: float = 1.0, **settings: Any
) -> tuple[Ensemble, Plan, Ledger, Federation]:
    privacy = Privacy(epsilon, 1e-6, trust)  # type: ignore[arg-type]
    ledger = Ledger.in_memory()
    federation = federation_of(split_rows(rows, SIZES[n_parties]), schema, privacy, ledger)
    plan = plan_for(schema, privacy, "auto", settings, seed=5)
    model = method_named("auto").grow(Gate(federation, plan, ledger))
    return model, plan, ledger, federation


@pytest.mark.parametrize("loss", LABELS)
# Without tables, with them, and with many rounds over a dictionary of them.
@pytest.mark.parametrize(("epsilon", "rounds"), [(0.5, 16), (200.0, 16), (200.0, 60)])
def test_any_number_of_parties_gives_the_same_model(loss: str, epsilon: float, rounds: int) -> None:
    schema = schema_of(loss)
    rows = rows_of(table_of(500, 1), schema)
    with noise_off():
        models = [
            trained(schema, rows, n, trust, epsilon, rounds=rounds)[0]
            for n, trust in (
                (1, "coordinator"),
                (3, "coordinator"),
                (3, "parties"),
                (20, "parties"),
            )
        ]
    assert len(models[0].trees) > 1
    assert all(model == models[0] for model in models[1:])
    least = 300 if rounds > 16 else 100
    assert (n_interaction_tables(models[0]) > least) == (epsilon > 1)


def n_interaction_tables(model: Ensemble) -> int:
    """Trees over two columns and more."""
    return sum(len(set(t.structure.feature.tolist()) - {-1}) > 1 for t in model.trees)


def test_permuting_the_classes_permutes_the_model_and_its_tables() -> None:
    schema, order, table = schema_of("softmax-3"), [2, 0, 1], table_of(500, 1)
    classes = schema.label.classes
    turned = schema.with_label(Label(schema.label.name, tuple(classes[k] for k in order)))
    with noise_off():
        one, two = (
            trained(s, rows_of(table, s), 1, "coordinator", 200.0)[0] for s in (schema, turned)
        )
    assert n_interaction_tables(one) > 100
    for first, second in zip(one.trees, two.trees, strict=True):
        structures = (first.structure.arrays(), second.structure.arrays())
        assert all(np.array_equal(a, structures[1][n]) for n, a in structures[0].items())
        assert np.allclose(first.values[:, order], second.values, rtol=1e-4, atol=1e-5)
    assert np.allclose(one.predict(table)[:, order], two.predict(table), atol=1e-4)


@pytest.mark.parametrize(
    ("trust", "epsilon", "rounds"),
    [("coordinator", 1.0, 16), ("parties", 1.0, 16), ("nobody", 1.0, 16), ("parties", 200.0, 50)],
)
@pytest.mark.parametrize("loss", LABELS)
def test_every_run_stays_within_its_plan(
    loss: str, trust: str, epsilon: float, rounds: int
) -> None:
    schema = schema_of(loss)
    rows = rows_of(table_of(300, 2), schema)
    model, plan, ledger, _ = trained(schema, rows, 3, trust, epsilon, rounds=rounds)
    assert model.statement.guarantee == "epsilon-delta"
    for owner in verify(ledger):
        assert owner.charges == model.statement.releases
    charges = ledger.lines(COORDINATOR, "charge")
    assert math.sqrt(sum(line.values["mu"] ** 2 for line in charges)) <= plan.mu
    assert math.sqrt(sum(line.values["mu"] ** 2 for line in charges)) >= 0.999 * plan.mu
    assert rounds - 34 < len(charges) <= rounds
    assert model.record["rounds"] == len(charges)


def test_a_declared_row_count_asks_no_count() -> None:
    schema = schema_of("logistic")
    rows = rows_of(table_of(300, 2), schema)
    model, plan, _, federation = trained(schema, rows, 1, "coordinator", rows_hint=300)
    assert not plan.slots
    assert federation.rounds == model.statement.releases == model.record["rounds"]


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_direction_holds_for_every_row(loss: str) -> None:
    schema = schema_of(loss)
    table = table_of(3000, 3)
    for sign in (1, -1):
        model, *_ = trained(
            schema, rows_of(table, schema), 1, "coordinator", 100.0, monotone={"age": sign}
        )
        assert any((tree.structure.feature == 0).any() for tree in model.trees)
        some = {name: [values[i] for i in range(40)] for name, values in table.items()}
        ages = np.arange(0, 101)
        many = {
            name: np.repeat(np.array(v, dtype=object), 101).tolist() for name, v in some.items()
        }
        many["age"] = np.tile(ages, 40).tolist()
        scores = model.decision_function(many)[:, 0].reshape(40, 101)
        assert (sign * np.diff(scores, axis=1) >= -1e-6).all()


class _Kept(Gate):
    """A gate that keeps every question with its price."""

    def release(self, query: SumQuery, mu: float = 0.0, name: str = "") -> Any:
        slot = self._plan.slots[self._cursor] if self._cursor < len(self._plan.slots) else None
        self.__dict__.setdefault("asked", []).append((query, slot.mu if slot else mu))
        return super().release(query, mu, name)

    def publish(self, tree: Any) -> None:
        self.__dict__.setdefault("told", []).append(tree)
        super().publish(tree)


@pytest.mark.parametrize("loss", LABELS)
@pytest.mark.parametrize(("epsilon", "rounds"), [(1.0, 16), (300.0, 16), (300.0, 32)])
def test_a_canary_moves_everything_released_by_no_more_than_the_plan_says(
    loss: str, epsilon: float, rounds: int
) -> None:
    """White box: whatever row is added, its part of every sum in units of the noise, squared and
    added up over all questions, is at most the plan's mu squared; and no single one is beyond its
    own price."""
    schema = schema_of(loss)
    table = table_of(400, 4)
    rows = rows_of(table, schema)
    privacy = Privacy(epsilon, 1e-6)
    plan = plan_for(schema, privacy, "auto", {"rounds": rounds}, seed=9)
    with seeded(3):
        ledger = Ledger.in_memory()
        gate = _Kept(federation_of({"all": rows}, schema, privacy, ledger), plan, ledger)
        method_named("auto").grow(gate)
    cheap = [
        query for query, _ in gate.__dict__["asked"] if getattr(query, "update", "") == "slope"
    ]
    assert (sum(query.kind == "leaf-sums" for query in cheap) > 10) == (rounds > 16)
    canaries = rows_of(table_of(60, 11), schema)  # values out of bounds, missing ones, both labels
    scores = RunningScores(canaries, schema)
    total = np.zeros(canaries.n_rows)
    for query, mu in gate.__dict__["asked"]:
        told, step = gate.__dict__["told"][: query.ensemble.length], query.step_trees
        assert scores.sync(query.ensemble, 0, told, step)
        noise = noise_for(query, mu, plan, schema)
        sigma = np.concatenate(
            [np.full(b.size, s) for b, s in zip(query.blocks, noise.sigmas, strict=True)]
        )
        at = scores.at(query.ensemble, step)
        for i in range(canaries.n_rows):
            one = query.answer(canaries.take(np.array([i])), at[i : i + 1], schema, noise.bits)
            moved = float(np.sum((one / sigma) ** 2))
            assert moved <= mu**2 * (1 + 1e-9)
            total[i] += moved
    assert total.max() <= plan.mu**2 * (1 + 1e-9)
    assert total.max() > 0.05 * plan.mu**2  # the canaries do press against the bound
