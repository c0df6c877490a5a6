"""Ledger lines in words: what a person reads instead of packed bodies. Never a value of a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hedgerow.deployment.approvals import printable
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.ledger.paging import Wanted, count_of, page_after, page_of
from hedgerow.protocol.messages import REFUSALS

PAGE = 100  # lines
MOST_AT_ONCE = 2000  # of a download, piece by piece
KINDS = {
    "open": "budget set",
    "boot": "started",
    "peer": "key of a peer",
    "reserve": "reserved",
    "approve": "approved",
    "reject": "rejected",
    "withdraw": "approval withdrawn",
    "charge": "charged",
    "answer": "answered",
    "release": "released",
    "refuse": "refused",
    "unlisted": "refused more",
    "disclose": "agreed without epsilon",
    "recover": "recovered",
    "limits": "limits set",
    "renew": "ledger lost",
    "data": "files counted",
    "account": "account changed",
    "head": "head left with others",
    "witness": "head kept for another",
    "gap": "lines missing",
    "settle": "gap settled",
}


def lines_page(ledger: Ledger, wanted: Wanted, before: int) -> dict[str, Any]:
    """One page of lines in words, the newest first, and how many there are."""
    lines = page_of(ledger, wanted, before, PAGE)
    count, head = ledger.last()
    return {
        "lines": [in_words(line) for line in lines],
        "count": count_of(ledger, wanted),
        "head": {"lines": count, "hash": head},
        "kinds": KINDS,
    }


def lines_after(ledger: Ledger, wanted: Wanted, after: int) -> list[dict[str, Any]]:
    """Lines in order from number `after` on, a piece of a download; none at its end."""
    return [in_words(line) for line in page_after(ledger, wanted, after, MOST_AT_ONCE)]


def in_words(line: Line) -> dict[str, Any]:
    """A line for people, with the numbers that it is about."""
    return {
        "seq": line.seq,
        "time": line.time,
        "owner": line.owner,
        "kind": line.kind,
        "what": KINDS.get(line.kind, line.kind),
        "run": printable(line.run, 80),
        "slot": None if line.slot < 0 else line.slot,
        "attempt": line.attempt or None,
        "words": _words(line),
        "hash": line.hash,
    }


def _words(line: Line) -> str:
    if line.kind in ("answer", "release"):
        return _PLAIN[line.kind]
    values = line.values
    teller = _TELLERS.get(line.kind)
    return teller(values) if teller else _PLAIN.get(line.kind, f"A line of kind {line.kind}.")


def _reserved(values: dict[str, Any]) -> str:
    plan = values["plan"]
    words = (
        f"Reserved epsilon = {float(values['epsilon']):.4g} at delta = {float(values['delta']):g} "
        f"for {printable(str(plan['method']))}; it counts the cost to {values['unit']}."
    )
    if plan.get("purpose"):
        words += f" Purpose: {printable(str(plan['purpose']), 200)}."
    if plan.get("asker"):
        words += f" Asked by {printable(str(plan['asker']), 100)}."
    return words


def _charged(values: dict[str, Any]) -> str:
    if "mu" in values:
        return f"One query was charged: mu = {float(values['mu']):.4g}."
    if "epsilon" in values:
        return f"One query was charged: epsilon = {float(values['epsilon']):.4g}."
    return "One query of the plan was charged at the plan's price."


def _decided(done: str) -> Callable[[dict[str, Any]], str]:
    """Of a person's word on a plan: who, on which plan, why, and what the coordinator is told."""

    def words(values: dict[str, Any]) -> str:
        who = printable(str(values.get("name") or "A person"), 120)
        role = f" ({str(values['role']).replace('-', ' ')})" if values.get("role") else ""
        why = f" Reason: {printable(str(values['reason']), 1000)}." if values.get("reason") else ""
        told = f" The coordinator is told: {values['word']}." if values.get("word") else ""
        plan = str(values.get("hash", ""))[:12]
        return f"{who}{role} {done} the plan {plan}.{why}{told}"

    return words


def _refused(values: dict[str, Any]) -> str:
    word = str(values.get("word", ""))
    return f"Refused ({printable(word)}): {REFUSALS.get(word, 'for a reason of its own')}."


def _unlisted(values: dict[str, Any]) -> str:
    return (
        f"{int(values['count']):,} more refusals ({printable(str(values['word']))}) of this start "
        "have no line of their own."
    )


def _limits(values: dict[str, Any]) -> str:
    sources = {
        "default": "the default limits",
        "kit": "the site's own limits.toml",
        "named": "a limits file that was named at the start",
    }
    source = sources.get(str(values.get("source")), "limits")
    return f"From here on {source} hold, hash {str(values.get('hash', ''))[:12]}."


def _renewed(values: dict[str, Any]) -> str:
    return (
        "The ledger was lost, and a person decided to go on without it: what was spent before is "
        f"forgotten. {int(values.get('kept') or 0):,} lines were kept."
    )


def _opened(values: dict[str, Any]) -> str:
    return (
        f"A budget of epsilon = {float(values['epsilon']):g} at delta = "
        f"{float(values['delta']):g} was set for all runs."
    )


def _booted(values: dict[str, Any]) -> str:
    return f"The process was started; it was start number {int(values.get('boot', 0)):,}."


def _account(values: dict[str, Any]) -> str:
    name = printable(str(values.get("name", "")), 80)
    if values.get("what") == "remove":
        return f"The account {name} was removed."
    return f"The account {name} has the role {str(values.get('role', '')).replace('-', ' ')}."


def _head(values: dict[str, Any]) -> str:
    return f"A hiding commitment to the head at line {values['line']} was left with the others."


def _settled(values: dict[str, Any]) -> str:
    who, why = (printable(str(values.get(key, "")), 1000) for key in ("name", "reason"))
    return f"{who} settled missing lines, and what they may have cost is booked. Reason: {why}."


def _disclosed(values: dict[str, Any]) -> str:
    agreement = values.get("agreement", {})
    role = printable(str(agreement.get("role", agreement.get("program", "a session"))))
    return f"Agreed to take part in {role} with other parties, which has no epsilon."


_PLAIN = {
    "answer": "A masked or noisy answer was stored and may be sent.",
    "release": "A noisy sum was stored as released.",
    "peer": "The key of another party's process was noted.",
    "recover": "The disk takes lines again after it was full.",
    "data": "Files whose rows this ledger counts were noted.",
    "witness": "Another party's signed head is kept here, to be shown to it at its next run.",
    "gap": "Another party shows a head that this ledger lacks: it is an older copy.",
}
_TELLERS = {
    "reserve": _reserved,
    "charge": _charged,
    "approve": _decided("approved"),
    "reject": _decided("rejected"),
    "withdraw": _decided("withdrew the approval of"),
    "account": _account,
    "head": _head,
    "settle": _settled,
    "refuse": _refused,
    "unlisted": _unlisted,
    "limits": _limits,
    "renew": _renewed,
    "open": _opened,
    "boot": _booted,
    "disclose": _disclosed,
}
