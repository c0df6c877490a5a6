"""Re-adds a ledger: every release was charged first, and no run drew more than it reserved."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hedgerow.errors import LedgerError
from hedgerow.privacy.accounting.paths import Paths, priced_of
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.charges import Charges
from hedgerow.privacy.ledger.ledger import Budget, Ledger, Line
from hedgerow.privacy.ledger.spending import Spending, budget_of, spending


@dataclass(frozen=True)
class Verified:
    """What a ledger adds up to for one owner."""

    owner: str
    spending: Spending
    charges: int
    releases: int
    answers: int
    budget: Budget | None


def verify(ledger: Ledger) -> list[Verified]:
    """Walk the hash chain, then re-add the lines of every owner; raise at the first defect."""
    ledger.verify()
    lines = ledger.lines()
    return [
        _verify_owner(ledger, owner, [line for line in lines if line.owner == owner])
        for owner in sorted({line.owner for line in lines})
    ]


def _verify_owner(ledger: Ledger, owner: str, lines: list[Line]) -> Verified:
    plans: dict[str, Plan] = {}
    charged: dict[tuple[str, int, int], str] = {}
    charges: dict[str, list[Line]] = {}
    approved: dict[str, set[str]] = {}
    counts = {"charge": 0, "release": 0, "answer": 0}
    for line in lines:
        if line.kind in counts:
            counts[line.kind] += 1
        key = (line.run, line.slot, line.attempt)
        if line.kind == "reserve":
            plans[line.run] = _reserved(line)
            if plans[line.run].hash not in approved.get(line.run, {plans[line.run].hash}):
                _wrong(line, "reserves another plan than the one that a person approved")
        elif line.kind == "charge":
            _check_charge(line, plans.get(line.run), charges.setdefault(line.run, []))
            charges[line.run].append(line)
            charged[key] = line.values["request"]
        elif line.kind in ("release", "answer") and key not in charged:
            _wrong(line, "lets something out that was not charged before")
        elif line.kind == "approve":
            approved.setdefault(line.run, set()).add(str(line.values.get("hash")))
        elif line.kind == "refuse" and not line.values.get("word"):
            _wrong(line, "does not say what was refused")
    return Verified(
        owner,
        spending(ledger, owner),
        counts["charge"],
        counts["release"],
        counts["answer"],
        budget_of(ledger, owner),
    )


def _check_charge(line: Line, plan: Plan | None, before: list[Line]) -> None:
    """A charge is for a slot of the plan, at its price; those priced later stay in their part."""
    if plan is None or not 0 <= line.slot < plan.n_slots:
        _wrong(line, "charges a slot that was never reserved")
        return
    firsts = len({other.slot for other in [*before, line]})
    if len(before) + 1 - firsts > plan.privacy.spare:
        _wrong(line, "charges more attempts than the plan reserved")
    kind = line.values.get("kind")  # parties say what they were asked
    listed = line.slot < len(plan.slots)
    if kind and kind not in ({plan.slots[line.slot].kind} if listed else plan.kinds()):
        _wrong(line, "charges a question that its slot is not for")
    if plan.branches is not None:
        _check_paths(line, plan, before)
        return
    if "prices" in line.arrays:
        _wrong(line, "charges nodes of a tree, and its plan has no prices of nodes")
    mu, rest = float(line.values["mu"]), plan.rest
    if line.slot < len(plan.slots):
        if not math.isclose(mu, plan.slots[line.slot].mu, rel_tol=1e-12):
            _wrong(line, "charges another price than its slot's")
        return
    assert rest is not None
    if not isinstance(line.values.get("numbers"), int):
        _wrong(line, "does not say how many numbers it released")
    if any(other.slot == line.slot for other in before):
        fits = mu <= rest.retry and line.values["numbers"] <= rest.coordinates
    else:
        drawn = Charges(plan, before).drawn_from_rest()
        fits = drawn.fits_with(mu, line.values["numbers"], rest)
    if not fits:
        _wrong(line, "charges more than is left of the part priced during the run")


def _check_paths(line: Line, plan: Plan, before: list[Line]) -> None:
    """A charge of a pure plan extends the tree of its round, and no path of it has too much."""
    branches = plan.branches
    assert branches is not None
    priced, again = priced_of(line), any(other.slot == line.slot for other in before)
    if not math.isclose(float(line.values["epsilon"]), priced.most, rel_tol=1e-12):
        _wrong(line, "charges another price than its nodes pay")
    paths = Paths.of(branches.of_round(line.slot, before))
    ceiling = branches.round_of(line.slot)[1].epsilon
    if reason := paths.objection(priced, ceiling, branches.retry if again else None):
        _wrong(line, f"charges what it may not: {reason}")


def _reserved(line: Line) -> Plan:
    values = line.values
    plan = Plan.from_dict(values["plan"], f"line {line.seq}")
    stated = math.isclose(plan.mu, values["mu"], rel_tol=1e-12) and math.isclose(
        plan.epsilon, values["epsilon"], rel_tol=1e-9
    )
    pure = math.inf if plan.branches is None else plan.pure_epsilon
    stated = stated and math.isclose(values.get("pure", math.inf), pure, rel_tol=1e-9)
    if plan.hash != values["hash"] or not stated:
        _wrong(line, "reserves another sum than its plan adds up to")
    return plan


def _wrong(line: Line, what: str) -> None:
    raise LedgerError(
        f"line {line.seq} of the ledger ({line.owner}, run {line.run}, slot {line.slot}) {what}. "
        "Do not train on these rows until this is understood."
    )
