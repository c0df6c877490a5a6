"""Checked, then reserved, then charged: what happens between the steps costs nothing twice."""

from __future__ import annotations

import contextlib
import threading

import pytest

from hedgerow.coordinator.gate import Gate
from hedgerow.engines.local import local_federation
from hedgerow.errors import BudgetExceeded, LedgerError, PlanError, Refused, SlotSpent
from hedgerow.methods.registry import plan_for
from hedgerow.party.limits import Limits
from hedgerow.privacy.accounting.accountant import Accountant
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.spending import Budget, spending
from hedgerow.privacy.settings import Privacy
from hedgerow.queries import LabelSums
from tests.conftest import MIXED, mixed_rows, mixed_table


def a_plan(epsilon: float = 1.0, run: str = "run-1", spare: int = 0) -> Plan:
    privacy = Privacy(epsilon, 1e-5, spare=spare)
    return plan_for(MIXED, privacy, "random-trees", settings={"n_trees": 3}, seed=1, run=run)


def test_threads_cannot_draw_one_spare_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits after counting for the other to count too, which must not happen."""
    reservation = Reservation(Ledger.in_memory(), a_plan(spare=1))
    reservation.charge(0, "request")
    reservation.charge(1, "request")
    both, check = threading.Barrier(2), Reservation._check_spare

    def slowly(self: Reservation, slot: int, last: int, charges: Accountant) -> None:
        check(self, slot, last, charges)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.5)

    monkeypatch.setattr(Reservation, "_check_spare", slowly)
    outcomes: list[str] = []

    def charge(slot: int) -> None:
        try:
            outcomes.append(f"attempt {reservation.charge(slot, 'request')}")
        except SlotSpent:
            outcomes.append("none left")

    threads = [threading.Thread(target=charge, args=(slot,)) for slot in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["attempt 2", "none left"]
    assert len(reservation.ledger.lines(kind="charge")) == 3


@pytest.mark.parametrize("part", [0.995, 1 - 1e-6])
def test_a_budget_that_is_a_little_too_small_refuses(part: float) -> None:
    plan = a_plan()
    for budget in ({"budget": Budget(part, 1e-5)}, {"per_month": Budget(part, 1e-5)}):
        with pytest.raises(BudgetExceeded):
            Reservation(Ledger.in_memory(), plan, **budget)
    Reservation(Ledger.in_memory(), plan, budget=Budget(1.0, 1e-5))


def test_nothing_is_charged_to_a_plan_that_is_only_checked() -> None:
    ledger = Ledger.in_memory()
    reservation = Reservation(ledger, a_plan(), at_once=False)
    with pytest.raises(LedgerError, match="not reserved"):
        reservation.charge(0, "request")
    assert ledger.lines() == []
    for _ in range(2):
        reservation.reserve()
    assert reservation.charge(0, "request") == 1
    assert [line.kind for line in ledger.lines()] == ["reserve", "charge"]
    with pytest.raises(BudgetExceeded):
        Reservation(ledger, a_plan(run="two"), budget=Budget(0.5, 1e-5), at_once=False)
    with pytest.raises(PlanError, match="another plan"):
        Reservation(ledger, a_plan(0.5), at_once=False)


def test_a_budget_used_up_between_check_and_reservation_still_holds() -> None:
    ledger, budget = Ledger.in_memory(), Budget(1.2, 1e-5)
    late = Reservation(ledger, a_plan(run="late"), budget=budget, at_once=False)
    Reservation(ledger, a_plan(run="first"), budget=budget)
    with pytest.raises(BudgetExceeded):
        late.reserve()
    assert spending(ledger).runs == 1


def test_a_plan_that_a_party_refuses_costs_the_coordinator_nothing() -> None:
    privacy = Privacy(1.0, 1e-5, "parties")
    plan = plan_for(MIXED, privacy, "random-trees", settings={"n_trees": 1}, seed=1)
    rows = mixed_rows(mixed_table(9))
    strict = Limits(kinds=frozenset({"leaf-sums"}))
    federation = local_federation(dict.fromkeys("abc", rows), MIXED, limits=strict)
    ledger = Ledger.in_memory()
    for _ in range(2):
        gate = Gate(federation, plan, ledger, Budget(1.0001, 1e-5))
        with pytest.raises(Refused, match="over-limits"):
            gate.release(LabelSums(2))
        assert {line.kind for line in ledger.lines()} == {"refuse"}
        assert spending(ledger).runs == 0
    willing = local_federation(dict.fromkeys("abc", rows), MIXED)
    Gate(willing, plan, ledger, Budget(1.0001, 1e-5)).release(LabelSums(2))
    kinds = [line.kind for line in ledger.lines() if line.kind != "refuse"]
    assert kinds == ["reserve", "charge", "release"]


def test_a_plan_over_the_coordinators_budget_reaches_no_party() -> None:
    privacy, parties = Privacy(1.0, 1e-5, "parties"), Ledger.in_memory()
    plan = plan_for(MIXED, privacy, "random-trees", settings={"n_trees": 1}, seed=1)
    rows = mixed_rows(mixed_table(9))
    federation = local_federation(dict.fromkeys("abc", rows), MIXED, parties)
    with pytest.raises(BudgetExceeded, match="No party was asked"):
        Gate(federation, plan, Ledger.in_memory(), Budget(0.9, 1e-5))
    assert parties.lines(kind="reserve") == []
