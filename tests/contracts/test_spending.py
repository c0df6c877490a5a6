"""Every method spends exactly its plan, and nothing is released that was not charged first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hedgerow.coordinator.gate import Gate
from hedgerow.data.tables import rows_of
from hedgerow.errors import LedgerError, PlanError
from hedgerow.methods.maddock.candidates import CANDIDATES
from hedgerow.methods.registry import METHODS, method_named, plan_for
from hedgerow.model.losses import TREE_UPDATES
from hedgerow.model.tradeoff import epsilon_of
from hedgerow.privacy.accounting.path_budget import PathBudget
from hedgerow.privacy.accounting.paths import path_costs
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.settings import Privacy, settings_table
from hedgerow.queries import LabelSums
from tests.conftest import (
    MIXED,
    federation_of,
    mixed_rows,
    mixed_table,
    promise,
    split_rows,
    train,
)
from tests.oracle.runs import LABELS, schema_of, table_of

ROWS = mixed_rows(mixed_table(120, seed=2))
SETTINGS = {"n_trees": 6, "max_depth": 2, "batch_size": 4}
FEDERATIONS = [(1, "coordinator"), (5, "coordinator"), (5, "parties"), (5, "nobody")]


def parts_of(n_parties: int) -> dict[str, Any]:
    return split_rows(ROWS, [3 + i for i in range(n_parties - 1)])


@pytest.mark.parametrize(("n_parties", "trust"), FEDERATIONS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_spends_exactly_its_plan(method: str, n_parties: int, trust: str) -> None:
    """Learned trees may leave slots of closed branches unused, and slots priced during the run
    share what there is; the others use every slot.
    """
    chosen = method_named(method)
    privacy = promise(method, trust)
    ledger = Ledger.in_memory()
    federation = federation_of(parts_of(n_parties), MIXED, privacy, ledger)
    settings = {name: value for name, value in SETTINGS.items() if name in chosen.uses}
    plan = plan_for(MIXED, privacy, method, settings, seed=1)
    chosen.grow(Gate(federation, plan, ledger))
    if isinstance(plan.budget, PathBudget):
        check_paths(plan, ledger, federation.names)
        return
    learned = (
        settings_table(plan.settings)["split"] != "totally-random" or plan.budget.adaptive.slots > 0
    )
    for owner in (COORDINATOR, *federation.names):
        charges = ledger.lines(owner, "charge", plan.run)
        slots = [line.slot for line in charges]
        spent = math.fsum(line.values["mu"] ** 2 for line in charges)
        if learned:
            assert slots == sorted(set(slots))
            assert set(slots) <= set(range(plan.n_slots))
            assert spent <= plan.mu**2 * (1 + 1e-12)
            assert spent >= 0.99 * plan.mu**2 or not plan.budget.adaptive.slots
        else:
            assert slots == list(range(len(plan.slots)))
            assert spent == pytest.approx(plan.mu**2, rel=1e-12)
        reserved = ledger.lines(owner, "reserve", plan.run)
        assert [line.values["mu"] for line in reserved] == [plan.mu]
    cost = epsilon_of(plan.mu, privacy.delta, plan.budget.coordinates)
    assert 0.999 * privacy.epsilon < cost <= privacy.epsilon * (1 + 1e-9)
    asked = [v for v in verify(ledger) if v.owner == COORDINATOR]
    assert [v.releases for v in asked] == [v.charges for v in asked]


def check_paths(plan: Plan, ledger: Ledger, names: tuple[str, ...]) -> None:
    """A pure plan is a ceiling of every path; leaves draw what the nodes above them left."""
    assert plan.epsilon == pytest.approx(1.0, rel=1e-9)
    branches = PathBudget.of(plan.budget).branches
    for owner in (COORDINATOR, *names):
        charges = ledger.lines(owner, "charge", plan.run)
        assert [line.slot for line in charges] == sorted({line.slot for line in charges})
        for number, found in enumerate(branches.rounds):
            mine = [line for line in charges if branches.round_of(line.slot)[0] == number]
            costs = path_costs(mine).values()
            assert costs
            assert all(0.999 * found.epsilon < cost <= found.epsilon for cost in costs)
        reserved = ledger.lines(owner, "reserve", plan.run)
        assert [line.values["epsilon"] for line in reserved] == [plan.epsilon]
    verify(ledger)


@pytest.mark.parametrize("candidates", CANDIDATES)
@pytest.mark.parametrize("update", TREE_UPDATES)
@pytest.mark.parametrize("loss", LABELS)
def test_every_fit_spends_exactly_its_plan(loss: str, update: str, candidates: str) -> None:
    schema, ledger = schema_of(loss), Ledger.in_memory()
    rows = rows_of(table_of(60, 4), schema)
    privacy = Privacy(1.0, 1e-5, "parties", spare=1)
    settings = {**SETTINGS, "update": update, "candidates": candidates, "n_bins": 6}
    model, plan, federation = train(split_rows(rows, [9, 20]), schema, privacy, settings, ledger)
    for owner in (COORDINATOR, *federation.names):
        charges = ledger.lines(owner, "charge", plan.run)
        assert [line.slot for line in charges] == list(range(len(plan.slots)))
        spent = math.fsum(line.values["mu"] ** 2 for line in charges)
        unused = max(slot.mu for slot in plan.slots) ** 2  # the spare attempt
        assert spent + unused == pytest.approx(plan.mu**2, rel=1e-12)
    assert model.statement.releases == len(plan.slots)
    cost = epsilon_of(plan.mu, privacy.delta, plan.budget.coordinates)
    assert 0.999 * privacy.epsilon < cost <= privacy.epsilon * (1 + 1e-9)
    kinds = [slot.kind for slot in plan.slots]
    assert ("column-hessians" in kinds) == (candidates == "iterative-hessian")
    assert ("label-sums" in kinds) == (update != "averaging")


@pytest.mark.parametrize(("n_parties", "trust"), FEDERATIONS)
def test_charges_of_everyone_come_before_the_release(n_parties: int, trust: str) -> None:
    ledger = Ledger.in_memory()
    _, plan, federation = train(
        parts_of(n_parties),
        MIXED,
        Privacy(1.0, 1e-5, trust),
        SETTINGS,
        ledger,  # type: ignore[arg-type]
    )
    owners = {COORDINATOR, *federation.names}
    charged: dict[int, set[str]] = {}
    releases = 0
    for line in ledger.lines():
        if line.kind == "charge":
            charged.setdefault(line.slot, set()).add(line.owner)
        if line.kind == "release":
            releases += 1
            assert charged[line.slot] == owners
    assert releases == len(plan.slots)


def test_a_release_without_a_charge_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reservation, "charge", lambda *a, **k: 1)
    ledger = Ledger.in_memory()
    train({"all": ROWS}, MIXED, Privacy(1.0, 1e-5), SETTINGS, ledger)
    with pytest.raises(LedgerError, match="not charged before"):
        verify(ledger)


def test_the_gate_lets_nothing_out_beyond_its_plan() -> None:
    privacy = Privacy(1.0, 1e-5)
    ledger = Ledger.in_memory()
    federation = federation_of({"all": ROWS}, MIXED, privacy, ledger)
    plan = plan_for(MIXED, privacy, "random-trees", settings={"n_trees": 1}, seed=1)
    gate = Gate(federation, plan, ledger)
    gate.release(LabelSums(2))
    before = len(ledger.lines())
    with pytest.raises(PlanError, match="Nothing was asked"):
        gate.release(LabelSums(2))  # the second slot is for leaf sums
    assert len(ledger.lines()) == before


def test_a_stored_release_is_returned_and_not_asked_again() -> None:
    privacy, ledger = Privacy(1.0, 1e-5), Ledger.in_memory()
    plan = plan_for(MIXED, privacy, "random-trees", settings={"n_trees": 2, "max_depth": 2}, seed=1)
    models = []
    for _ in range(2):
        federation = federation_of({"all": ROWS}, MIXED, privacy, ledger)
        models.append(method_named(plan.method).grow(Gate(federation, plan, ledger)))
    assert models[0] == models[1]  # real noise: only a replay can be equal
    assert federation.rounds == 0
    assert len(ledger.lines(COORDINATOR, "charge")) == len(plan.slots)
    total = ledger.lines(COORDINATOR, "release")[0].arrays["total"]
    assert total.dtype == np.int64
