"""A coordinator that bends plans of pure questions, their rounds and samples gains nothing."""

from __future__ import annotations

from dataclasses import replace
from secrets import token_hex
from typing import Any

import pytest

from hedgerow import wire
from hedgerow.errors import PlanError
from hedgerow.privacy.plan import Plan, Slot
from hedgerow.privacy.pure import Branches, Round
from hedgerow.queries import ColumnCounts, size_of
from hedgerow.queries.noise import noise_for
from hedgerow.settings import Privacy, Settings
from tests.attacks.rig import SCHEMA, Rig, word

COUNTS = replace(ColumnCounts.of(SCHEMA, together=True), price=0.05)


def pure_plan(trust: str, accounting: str = "exact", **changes: Any) -> Plan:
    """One round of counts of every column."""
    delta = 1e-9 if accounting == "exact" else 0.0
    privacy = Privacy(0.2, delta, trust, accounting)  # type: ignore[arg-type]
    slots = (Slot("counts", COUNTS.kind, 0.0, size_of(COUNTS)),)
    branches = Branches(0.01, (Round(1, 0.2),))
    facts = ("lies", SCHEMA.hash, "private-tree", Settings(), privacy, 1, slots)
    return replace(Plan(*facts, branches=branches), **changes)


def opened(rig: Rig, document: dict[str, Any]) -> str:
    values = {"plan": document, "roster": rig.roster.hash, "nonce": token_hex(16)}
    return word(rig.send("a", wire.plain("open", values)))


@pytest.mark.parametrize("accounting", ["exact", "pure"])
def test_pure_questions_are_not_asked_where_nobody_is_trusted(accounting: str) -> None:
    """A party would add one share of a Laplace that nobody else completes, however it is counted"""
    rig = Rig(trust="nobody", opened=False)
    document = pure_plan("parties", accounting).to_dict()
    document["privacy"]["trust"] = "nobody"
    assert opened(rig, document) == "bad-message"
    assert not rig.ledgers["a"].lines("a", "reserve")
    plan = pure_plan("parties")
    object.__setattr__(plan, "privacy", replace(plan.privacy, trust="nobody"))
    with pytest.raises(PlanError, match="noise of its own"):
        noise_for(COUNTS, 0.0, plan, SCHEMA)


@pytest.mark.parametrize("trust", ["parties", "nobody", "coordinator"])
@pytest.mark.parametrize("colluding", [-(10**6), 0, 2])
def test_nobody_says_how_many_share_the_noise(trust: str, colluding: int) -> None:
    """With -10^6 parties that may leak, a share of a Laplace would be nothing at all."""
    rig = Rig(trust=trust)
    assert word(rig.ask("a", colluding=colluding)) == "too-little-noise"
    assert word(rig.ask("a")) == "answer"
