"""A signed coordinator that costs a party much for little: memory and time have bounds."""

from __future__ import annotations

from dataclasses import replace
from secrets import token_hex

import pytest

from hedgerow.party.run import MOST_JOINED, MOST_OPENED
from hedgerow.privacy.accounting.budget import MAX_SLOTS
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.protocol import masks, messages
from hedgerow.protocol.masks import MaskKeys
from hedgerow.protocol.messages import Message
from tests.attacks.rig import Rig, word


def opening(rig: Rig, plan: Plan, nonce: str = "") -> Message:
    values = {"plan": plan.to_dict(), "roster": rig.roster.hash, "nonce": nonce or token_hex(16)}
    return messages.plain("open", values)


def held(rig: Rig) -> list[str]:
    return list(rig.parties["a"]._runs._kept)


def named(rig: Rig, run: str) -> Plan:
    return replace(rig.plan, run=run)


@pytest.mark.parametrize("repeat", [MAX_SLOTS + 1, 1_000_000, 10**30])
def test_a_short_plan_of_very_many_slots_is_refused(repeat: int) -> None:
    rig = Rig(opened=False)
    document = rig.plan.to_dict()
    document["slot"] = [{**document["slot"][0], "mu": 1e-9, "repeat": repeat}]
    values = {"plan": document, "roster": rig.roster.hash, "nonce": "n"}
    assert word(rig.send("a", messages.plain("open", values))) == "bad-message"
    assert held(rig) == []


def test_repeated_slots_are_looked_at_once() -> None:
    """The most that a plan may have are one object, and what is checked is checked of that."""
    rig = Rig(opened=False)
    document = rig.plan.to_dict()
    document["slot"] = [{**document["slot"][0], "mu": 1e-9, "repeat": MAX_SLOTS}]
    plan = Plan.from_dict(document)
    assert len({id(slot) for slot in plan.slots}) == len(plan.budget.repeated) == 1
    assert plan.to_dict() == document


def test_opened_runs_fill_no_memory_and_push_out_none_that_was_joined() -> None:
    rig = Rig()
    for number in range(5 * MOST_OPENED):
        assert rig.send("a", opening(rig, named(rig, f"run-{number}"))).type == "opened"
    assert len(held(rig)) == MOST_OPENED + 1
    assert held(rig)[0] == rig.plan.run
    assert rig.ask("a").type == "answer"
    late = messages.plain("join", {"run": "run-0", "announcements": rig.announced})
    assert word(rig.send("a", late)) == "unknown-run"


def test_a_joined_run_that_fell_out_is_opened_again_and_knows_its_charges() -> None:
    rig = Rig()
    first = rig.plan
    assert rig.ask("a").type == "answer"
    before = rig.announced
    for number in range(MOST_JOINED):
        rig.plan = named(rig, f"run-{number}")
        rig.open(rig.plan)
    assert first.run not in held(rig)
    assert len(held(rig)) == MOST_JOINED
    rig.plan = first
    assert word(rig.ask("a")) == "unknown-run"
    assert word(rig.join("a", before)) == "unknown-run"
    rig.open(first)
    assert word(rig.ask("a")) == "answered-differently"  # under other announcements
    assert rig.ask("a", slot=0, attempt=2, parties=("a", "b", "c")).type == "answer"
    rig.check_books()


def test_a_forgotten_run_that_is_opened_again_takes_no_old_announcements() -> None:
    """Numbers of openings rise over all runs of a process, also over those it has forgotten."""
    rig = Rig(opened=False)
    old = rig.open(rig.plan)
    first = rig.plan
    for number in range(MOST_JOINED):
        rig.plan = named(rig, f"run-{number}")
        rig.open(rig.plan)
    rig.plan = first
    assert first.run not in held(rig)
    assert rig.send("a", opening(rig, first)).type == "opened"
    assert word(rig.join("a", old)) == "bad-announcement"


def test_keys_that_a_coordinator_names_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "MOST_SECRETS", 10)
    rig = Rig()
    for _ in range(30):
        rig.ask("a", reply_to=MaskKeys().public)
    assert len(rig.parties["a"]._keys._secrets) == 10
    assert word(rig.ask("b")) == "answer"
    rig.check_books()
