"""A coordinator that bends plans of pure questions, their rounds and samples gains nothing."""

from __future__ import annotations

from dataclasses import replace
from secrets import token_hex
from typing import Any

import pytest

from hedgerow import wire
from hedgerow.errors import PlanError
from hedgerow.privacy.plan import Plan, Slot
from hedgerow.privacy.pure import (
    MOST_KINDS,
    Branches,
    Round,
    _excess,
    _losses_of,
    _merged,
    composed,
)
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


def test_a_plan_of_many_different_rounds_takes_no_memory_and_little_time() -> None:
    """Two groups of rounds would pair 10^10 privacy losses, and a million kinds take for ever."""
    one, n = 1e-4, 100_000
    together = composed([(one, 2 * n)], 1e-6)
    apart = composed([(one, n), (one * (1 + 1e-12), n)], 1e-6)  # the same, in effect
    assert together <= apart * (1 + 1e-9) <= together * 1.02
    kinds = tuple(Round(1, 1e-6 * (1 + k)) for k in range(MOST_KINDS + 1))
    slots = pure_plan("parties").slots
    pure_plan("parties", slots=slots * MOST_KINDS, branches=Branches(0.01, kinds[1:]))
    document = pure_plan("parties").to_dict()
    document["slot"][0]["repeat"] = len(kinds)
    document["branches"] = Branches(0.01, kinds).to_dict()
    rig = Rig(opened=False)
    assert opened(rig, document) == "bad-message"


@pytest.mark.parametrize(("n", "cost"), [(3, 0.5), (40, 0.1), (3000, 0.01)])
def test_merged_losses_never_promise_more(n: int, cost: float) -> None:
    """Rounding of losses, up to a grid of any fineness, only adds to delta."""
    losses, chances = _losses_of([(cost, n)])
    for epsilon in (0.1 * n * cost, 0.3 * n * cost, 0.0):
        exact = _excess(losses, chances, epsilon)
        for most in (3, 4, 10, 1000):
            assert exact <= _excess(*_merged(losses, chances, most), epsilon) * (1 + 1e-9)
