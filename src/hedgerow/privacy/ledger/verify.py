"""Re-adds a ledger: every release was charged first, and no run drew more than it reserved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hedgerow.errors import LedgerError
from hedgerow.privacy.accounting.accountant import Accountant
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.ledger.reservation import reserved_facts
from hedgerow.privacy.ledger.spending import Budget, Spending, budget_of, spending
from hedgerow.privacy.ledger.witnesses import has_head


@dataclass(frozen=True)
class Verified:
    """What a ledger adds up to for one owner."""

    owner: str
    spending: Spending
    charges: int
    releases: int
    answers: int
    budget: Budget | None
    witnessed: bool = False  # whether it left heads with others, or keeps some of theirs


def verify(ledger: Ledger) -> list[Verified]:
    """Walk the hash chain, then re-add the lines of every owner; raise at the first defect."""
    ledger.verify()
    sums: dict[str, _Sums] = {}
    for line in ledger.walk():  # few lines in memory, however long the ledger is
        sums.setdefault(line.owner, _Sums(ledger)).add(line)
    return [
        Verified(
            owner,
            spending(ledger, owner),
            added.counts["charge"],
            added.counts["release"],
            added.counts["answer"],
            budget_of(ledger, owner),
            added.witnessed,
        )
        for owner, added in sorted(sums.items())
    ]


class _Sums:
    """What the lines of one owner add up to so far."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.counts = {"charge": 0, "release": 0, "answer": 0}
        self.witnessed = False
        self._charged: set[tuple[str, int, int]] = set()
        self._accountants: dict[str, Accountant] = {}
        self._approved: dict[str, set[str]] = {}
        self._ended: set[str] = set()  # plans that people rejected, or whose approval they withdrew

    def add(self, line: Line) -> None:
        if line.kind in self.counts:
            self.counts[line.kind] += 1
        self.witnessed |= line.kind in ("head", "witness", "gap")
        key = (line.run, line.slot, line.attempt)
        if line.kind == "reserve":
            plan = _reserved(line)
            self._accountants[line.run] = plan.budget.accountant()
            if plan.hash not in self._approved.get(line.run, {plan.hash}):
                _wrong(line, "reserves another plan than the one that a person approved")
            if plan.hash in self._ended:
                _wrong(line, "reserves a plan that a person rejected, or withdrew the approval of")
        elif line.kind == "charge":
            _check_charge(line, self._accountants.get(line.run))
            self._charged.add(key)
        elif line.kind in ("release", "answer") and key not in self._charged:
            _wrong(line, "lets something out that was not charged before")
        elif line.kind == "approve":
            self._approved.setdefault(line.run, set()).add(str(line.values.get("hash")))
        elif line.kind in ("reject", "withdraw"):
            self._ended.add(str(line.values.get("hash")))
        elif line.kind == "head" and not has_head(self._ledger, line.owner, line.run):
            _wrong(line, "commits to another line than it says")
        elif line.kind == "refuse" and not line.values.get("word"):
            _wrong(line, "does not say what was refused")


def _check_charge(line: Line, accountant: Accountant | None) -> None:
    """A charge is for a slot of a reserved plan, at a price that its budget covers."""
    if accountant is None:
        _wrong(line, "charges a slot that was never reserved")
        return
    if what := accountant.fault(line):
        _wrong(line, what)
    accountant.add(line)


def _reserved(line: Line) -> Plan:
    """The plan of a reservation, whose line says of it what totals and limits are counted from."""
    values = line.values
    plan = Plan.from_dict(values["plan"], f"line {line.seq}")
    facts = {name: fact for name, fact in reserved_facts(plan).items() if name != "plan"}
    facts.setdefault("pure", math.inf)
    for name, fact in facts.items():
        said: Any = values.get(name, math.inf if name == "pure" else None)
        # Costs are computed; another version may differ in the last digits.
        near = name in ("mu", "epsilon", "pure") and isinstance(said, int | float)
        if not (math.isclose(said, fact, rel_tol=1e-9) if near else said == fact):
            _wrong(line, f"reserves another {name} than its plan adds up to")
    return plan


def _wrong(line: Line, what: str) -> None:
    raise LedgerError(
        f"line {line.seq} of the ledger ({line.owner}, run {line.run}, slot {line.slot}) {what}. "
        "Do not train on these rows until this is understood."
    )
