"""Slots priced during the run: whatever the prices, together they cost what was planned."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import LedgerError, PlanError, SettingsError, SlotSpent
from hedgerow.privacy.accounting.accountant import Price
from hedgerow.privacy.accounting.budget import AdaptiveSlots, DeclaredQuery
from hedgerow.privacy.accounting.gaussian_budget import AdaptiveQueries
from hedgerow.privacy.accounting.plan import Plan, make_plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.settings import Privacy, Settings
from hedgerow.protocol.messages import Message
from hedgerow.queries import ColumnCounts, LabelSums
from hedgerow.queries.calibration import noise_for
from tests.attacks.rig import SCHEMA, Rig, word

DECLARED = DeclaredQuery("row count", LabelSums.kind, 0.01, 2)
ADAPTIVE = AdaptiveQueries(0.99, 0.15, 1000, 4, (LabelSums.kind,))


def plan_of(
    spare: int = 0, trust: str = "coordinator", adaptive: AdaptiveQueries = ADAPTIVE
) -> Plan:
    privacy = Privacy(1.0, 1e-6, trust, spare=spare)  # type: ignore[arg-type]
    return make_plan(
        SCHEMA.hash, "check", Settings(), privacy, [DECLARED], 0, "run-1", adaptive=adaptive
    )


def adaptive_of(plan: Plan) -> AdaptiveSlots:
    return plan.budget.adaptive


@pytest.mark.parametrize("spare", [0, 1, 3])
def test_the_whole_plan_costs_its_promise(spare: int) -> None:
    plan = plan_of(spare)
    rest = adaptive_of(plan)
    assert plan.epsilon == pytest.approx(1.0, rel=1e-6)
    squares = plan.slots[0].mu ** 2 + rest.mu**2 + spare * max(plan.slots[0].mu, rest.retry) ** 2
    assert plan.mu == pytest.approx(math.sqrt(squares), rel=1e-12)
    assert plan.n_slots == 5
    assert plan.budget.coordinates == 1002 + spare * 1000


def test_a_plan_of_later_slots_survives_its_file(tmp_path: Path) -> None:
    plan = plan_of(1)
    plan.write(tmp_path / "plan.toml")
    again = Plan.read(tmp_path / "plan.toml")
    assert again == plan
    assert again.hash == plan.hash


@pytest.mark.parametrize(
    "changes",
    [
        {"mu": math.inf}, {"mu": 0.0}, {"retry": 9.0}, {"retry": 0.0}, {"coordinates": 0},
        {"coordinates": 2**40}, {"slots": 0}, {"slots": 10**9}, {"kinds": ()}, {"mu": math.nan},
    ],
)  # fmt: skip
def test_a_later_part_that_makes_no_sense_is_refused(changes: dict[str, Any]) -> None:
    plan = plan_of()
    with pytest.raises(PlanError):
        replace(plan.budget, adaptive=replace(adaptive_of(plan), **changes))


def test_more_than_the_promise_is_refused() -> None:
    plan = plan_of()
    with pytest.raises(PlanError, match="more than the promised"):
        replace(plan.budget, adaptive=replace(adaptive_of(plan), mu=1.01 * adaptive_of(plan).mu))


def test_unknown_keys_of_the_later_part_are_refused() -> None:
    document = plan_of().to_dict()
    document["rest"]["share"] = 1.0
    with pytest.raises((PlanError, SettingsError), match="exactly these keys"):
        Plan.from_dict(document)


@given(st.lists(st.floats(0.01, 1.2), min_size=1, max_size=6), st.integers(1, 400))
def test_no_prices_add_up_to_more_than_was_planned(parts: list[float], numbers: int) -> None:
    """Prices are drawn as parts of what there is; the ledger stops at the planned sum."""
    plan, ledger = plan_of(), Ledger.in_memory()
    rest = adaptive_of(plan)
    reservation = Reservation(ledger, plan)
    drawn, taken, slot = 0.0, 0, 1
    for part in parts:
        mu = part * rest.mu
        fits = math.hypot(drawn, mu) <= rest.mu and taken + numbers <= rest.coordinates and slot < 5
        if fits:
            reservation.charge(slot, "q", price=Price(mu, numbers))
            drawn, taken, slot = math.hypot(drawn, mu), taken + numbers, slot + 1
        else:
            with pytest.raises(PlanError):
                reservation.charge(slot, "q", price=Price(mu, numbers))
    squares = sum(line.values["mu"] ** 2 for line in ledger.lines(COORDINATOR, "charge"))
    assert squares <= rest.mu**2 * (1 + 1e-6)
    assert verify(ledger)[0].charges == slot - 1


def test_a_further_attempt_is_paid_by_a_spare_and_costs_no_more_than_it() -> None:
    plan = plan_of(spare=1)
    rest = adaptive_of(plan)
    reservation = Reservation(Ledger.in_memory(), plan)
    reservation.charge(1, "q", price=Price(0.9 * rest.mu, 10))
    with pytest.raises(PlanError):
        reservation.charge(1, "q", price=Price(0.9 * rest.mu, 10))
    assert reservation.charge(1, "q", price=Price(rest.retry, 10)) == 2
    with pytest.raises(SlotSpent):
        reservation.charge(1, "q", price=Price(rest.retry, 10))
    reservation.charge(2, "q", price=Price(math.sqrt(1 - 0.81) * rest.mu * 0.999, 10))
    with pytest.raises(PlanError):
        reservation.charge(3, "q", price=Price(0.1 * rest.mu, 10))


@pytest.mark.parametrize("part", [1.01, 1.5])
def test_a_further_attempt_may_not_draw_on_what_other_slots_have_left(part: float) -> None:
    """Only the spare was paid for it: what is left of the whole does not count."""
    plan, ledger = plan_of(spare=1), Ledger.in_memory()
    adaptive, reservation = adaptive_of(plan), Reservation(ledger, plan)
    reservation.charge(1, "q", price=Price(0.1 * adaptive.mu, 10))
    with pytest.raises(PlanError):
        reservation.charge(1, "q", price=Price(part * adaptive.retry, 10))
    values = {"mu": part * adaptive.retry, "request": "q", "numbers": 10}
    ledger.append(COORDINATOR, "charge", plan.run, 1, 2, values)
    with pytest.raises(LedgerError, match="more than is left"):
        verify(ledger)


@pytest.mark.parametrize("wrong", [{"mu": 0.9}, {"numbers": 999}])
def test_a_ledger_that_drew_too_much_is_found(wrong: dict[str, Any]) -> None:
    plan, ledger = plan_of(), Ledger.in_memory()
    reservation = Reservation(ledger, plan)
    reservation.charge(1, "q", price=Price(0.5 * adaptive_of(plan).mu, 10))
    verify(ledger)
    values = {"mu": 0.5 * adaptive_of(plan).mu, "request": "q", "numbers": 10, **wrong}
    if "mu" in wrong:
        values["mu"] = 0.9 * adaptive_of(plan).mu
    ledger.append(COORDINATOR, "charge", plan.run, 2, 1, values)
    with pytest.raises(LedgerError, match="more than is left"):
        verify(ledger)


# A coordinator that lies about prices.


class PricedRig(Rig):
    """A rig whose plan has a listed slot and adaptive ones."""

    def __init__(self, spare: int = 1) -> None:
        super().__init__(opened=False)
        self.plan = plan_of(spare, "parties")
        self.open(self.plan)

    def price(self, name: str, slot: int, mu: float, **changes: Any) -> Message:
        query = changes.pop("query", LabelSums(2))
        noise = noise_for(query, mu, self.plan, SCHEMA)
        ask = replace(super().question(), slot=slot, query=query, noise=noise, **changes)
        return self.send(name, Message("ask", ask.body()))


def test_an_honest_price_is_answered_and_charged() -> None:
    rig = PricedRig()
    mu = 0.5 * adaptive_of(rig.plan).mu
    assert [rig.price(name, 1, mu).type for name in rig.parties] == ["answer"] * 4
    line = rig.ledgers["a"].lines("a", "charge")[-1]
    assert line.values["mu"] == mu
    rig.check_books()


def test_a_party_stops_when_its_part_is_drawn_whatever_the_coordinator_says() -> None:
    rig = PricedRig()
    mu = adaptive_of(rig.plan).mu
    assert rig.price("a", 1, 0.8 * mu).type == "answer"
    assert word(rig.price("a", 2, 0.7 * mu)) == "not-in-plan"
    assert rig.price("a", 2, 0.5 * mu).type == "answer"
    assert word(rig.price("a", 3, 0.4 * mu)) == "not-in-plan"
    rig.check_books()


def test_a_further_attempt_may_not_cost_more_than_a_spare() -> None:
    rig = PricedRig()
    rest = adaptive_of(rig.plan)
    assert rig.price("a", 1, 0.9 * rest.mu).type == "answer"
    assert word(rig.price("a", 1, 0.9 * rest.mu, attempt=2)) == "not-in-plan"
    assert rig.price("a", 1, rest.retry, attempt=2).type == "answer"
    assert word(rig.price("a", 1, rest.retry, attempt=3)) == "no-attempts-left"
    rig.check_books()


@pytest.mark.parametrize(("slot", "factor"), [(1, 1.01), (1, 1e-12), (5, 0.1), (999, 0.1)])
def test_slots_and_prices_outside_of_the_plan_are_refused(slot: int, factor: float) -> None:
    rig = PricedRig()
    mu = factor * adaptive_of(rig.plan).mu
    try:
        answer = word(rig.price("a", slot, mu))
    except PlanError:  # so little that no noise of that width can be drawn
        answer = "not-in-plan"
    assert answer == "not-in-plan"
    assert not rig.ledgers["a"].lines("a", "charge")


def test_other_kinds_of_questions_are_refused() -> None:
    rig = PricedRig()
    asked = rig.price("a", 1, 0.1 * adaptive_of(rig.plan).mu, query=ColumnCounts.of(SCHEMA))
    assert word(asked) == "not-in-plan"
    assert not rig.ledgers["a"].lines("a", "charge")


def test_more_numbers_than_a_listed_slot_has_are_refused_by_a_party() -> None:
    """Each of them adds to delta, and the plan has paid for so many."""
    rig = PricedRig()
    one = replace(DECLARED, coordinates=1)
    rig.plan = make_plan(
        SCHEMA.hash, "check", Settings(), rig.plan.privacy, [one], 0, "run-2", adaptive=ADAPTIVE
    )
    rig.open(rig.plan)
    mu = rig.plan.slots[0].mu
    assert word(rig.price("a", 0, mu, run="run-2")) == "not-in-plan"
    assert not rig.ledgers["a"].lines("a", "charge")
    rig = PricedRig()
    assert rig.price("a", 0, rig.plan.slots[0].mu).type == "answer"
