"""What people may ask: what a party was asked, what it cost, what is left, what waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, ClassVar

from hedgerow import clock
from hedgerow.deployment.approvals import plan_in_words, waiting_plans
from hedgerow.engines.site import Site
from hedgerow.errors import PlanError
from hedgerow.party.limits import Limits
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.ledger.spending import Budget, Ceiling
from hedgerow.privacy.ledger.witnesses import open_gaps, witnesses_of
from hedgerow.protocol.identity import fingerprint

TIMEOUT_SECONDS = 60.0  # the party may be busy with a question
_WHAT = {
    "boot": "started",
    "approve": "approved",
    "reject": "rejected",
    "withdraw": "withdrawn",
    "account": "account",
    "reserve": "reserved",
    "charge": "charged",
    "refuse": "refused",
    "recover": "recovered",
    "unlisted": "refused more",
    "limits": "limits set",
    "renew": "ledger lost",
    "gap": "lines lost",
    "settle": "gap settled",
}
_SHOWN = (
    "kind", "mu", "word", "epsilon", "delta", "hash", "source", "count", "kept", "name", "reason",
    "role", "shown_by", "bound",
)  # fmt: skip


@dataclass(frozen=True)
class StatusService:
    """Answers whoever looks, from a ledger that this process holds."""

    QUESTIONS: ClassVar = ("status", "log", "pending", "witnesses")
    site: Site
    ledger: Ledger
    limits: Limits
    state: Callable[[], str] = lambda: "not running"
    facts: Callable[[], dict[str, Any]] = lambda: {
        "connection": None,
        "problem": "",
        "confined": None,
    }

    def answer(self, question: str) -> Any:
        if question == "status":
            return self.status()
        if question == "log":
            return log_of(self.ledger, self.site.name)
        if question == "pending":
            return pending(self.site, self.ledger, self.limits)
        if question == "witnesses":
            return witnesses_of(self.ledger, self.site.name)
        raise ValueError(question)

    def status(self, most_runs: int | None = None) -> dict[str, Any]:
        """Everything at a glance; of the runs the newest alone, if a number is given."""
        name, ledger, state = self.site.name, self.ledger, self.state()
        reserved = ledger.lines(name, "reserve")
        return {
            "name": name,
            "federation": self.site.federation,
            "running": state != "not running",
            "state": state,
            **_with_gaps(self.facts(), ledger, name),
            "recent_starts": _recent_starts(ledger, name),
            **_identities(self.site),
            "runs": [_run(line, ledger) for line in reserved[-most_runs if most_runs else 0 :]],
            "n_runs": len(reserved),
            "limits": limits_used(ledger, name, self.limits),
            "refused": refusal_counts(ledger, name),
            "gaps": [asdict(gap) for gap in open_gaps(ledger, name)],
            "pending": [plan.run for plan in waiting_plans(self.site, self.ledger)],
        }


def refusal_counts(ledger: Ledger, name: str) -> dict[str, int]:
    """How often each word was refused, what has no line of its own included."""
    lines = ledger.lines(name, "refuse")
    refused = Counter(str(line.values.get("word", "by parties")) for line in lines)
    for line in ledger.lines(name, "unlisted"):  # at 1, 10, 100, ...: the last one counts all
        count = int(line.values["count"])
        refused[str(line.values["word"])] += count - count // 10
    return dict(sorted(refused.items()))


def limits_used(ledger: Ledger, name: str, limits: Limits) -> list[dict[str, Any]]:
    """Each limit on epsilon: what is used of it, and the dearest run that still fits."""
    rows: list[dict[str, Any]] = []
    if limits.per_run is not None:
        rows.append(_limit("per run", limits.per_run, None, limits.per_run.epsilon))
    for label, budget, monthly in (
        ("in the last 31 days", limits.per_month, True),
        ("in total", limits.budget, False),
    ):
        if budget is not None:
            spent = Ceiling(budget, monthly).spent(ledger, name)
            try:
                room = spent.room(budget)
            except PlanError:  # a limit that leaves nothing to release
                room = 0.0
            rows.append(_limit(label, budget, budget.counts(spent), room))
    return rows


def log_of(ledger: Ledger, name: str) -> list[dict[str, Any]]:
    """Everything that was asked, charged, approved or refused, in order, with UTC times."""
    lines = [line for kind in _WHAT for line in ledger.lines(name, kind)]
    return [_entry(line) for line in sorted(lines, key=lambda line: line.seq)]


def pending(site: Site, ledger: Ledger, limits: Limits) -> list[dict[str, Any]]:
    """Plans that wait for a person: in words, and as a table."""
    return [
        {
            "run": plan.run,
            "hash": plan.hash,
            **asdict(plan.request),
            "words": plan_in_words(plan, own_delta(limits)),
            "plan": plan.table,
        }
        for plan in waiting_plans(site, ledger)
    ]


def own_delta(limits: Limits) -> float | None:
    """The delta at which a party counts, whichever limits it has."""
    budgets = (limits.per_run, limits.per_month, limits.budget)
    return limits.delta or next((budget.delta for budget in budgets if budget), None)


def _limit(label: str, budget: Budget, used: float | None, room: float) -> dict[str, Any]:
    left = None if used is None else max(0.0, budget.epsilon - used)
    return {
        "limit": label,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "used": used,
        "left": left,
        "next_run": min(room, budget.epsilon),
    }


def _run(line: Line, ledger: Ledger) -> dict[str, Any]:
    values = line.values
    attempts, slots = ledger.attempts(line.owner, line.run)
    rest = values["plan"].get("rest")
    listed = sum(slot.get("repeat", 1) for slot in values["plan"]["slot"])
    return {
        "run": line.run,
        "time": line.time,
        "method": values["plan"]["method"],
        "epsilon": values["epsilon"],
        "delta": values["delta"],
        "slots": listed + (rest["slots"] if rest else 0),
        "charged_slots": slots,
        "charged_attempts": attempts,
    }


def _entry(line: Line) -> dict[str, Any]:
    values = line.values
    entry: dict[str, Any] = {
        "time": line.time,
        "what": _WHAT[line.kind],
        "run": line.run,
        "slot": None if line.slot < 0 else line.slot,
        "attempt": line.attempt or None,
    }
    for key in _SHOWN:
        if key in values:
            entry[key] = values[key]
    return entry


def _with_gaps(facts: dict[str, Any], ledger: Ledger, name: str) -> dict[str, Any]:
    """Lines that the ledger has lost are the first problem: while they are, nothing is answered."""
    gaps = open_gaps(ledger, name)
    if not gaps:
        return facts
    by = ", ".join(sorted({gap.shown_by for gap in gaps}))
    problem = (
        f"the ledger has lost lines that {by} knows of, so nothing is answered: put the newest "
        "ledger back, or see `hedgerow party settle`"
    )
    return {**facts, "problem": problem}


def _recent_starts(ledger: Ledger, name: str) -> int:
    """How often the party was started in the last ten minutes, by its ledger."""
    since = (clock.utc_now() - timedelta(minutes=10)).isoformat()
    return sum(line.time > since for line in ledger.lines(name, "boot"))


def _identities(site: Site) -> dict[str, Any]:
    has_key = (site.folder / "signing-key.pem").exists()
    found: dict[str, Any] = {
        "fingerprint": fingerprint(site.identity().public) if has_key else None,
        "pinned": site.is_pinned,
    }
    if found["pinned"]:
        agreed = site.pinned()
        roster = agreed.roster
        found["roster"], found["phrase"] = roster.hash, agreed.phrase
        found["coordinator"] = fingerprint(roster.coordinator)
        found["parties"] = {name: fingerprint(key) for name, key in roster.parties}
        found["trust"] = roster.trust
    return found
