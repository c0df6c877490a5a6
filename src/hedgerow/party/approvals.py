"""A person's word on a plan, on the party's ledger: approved, rejected, withdrawn, by its hash.

A plan is decided on once, and an approval can be withdrawn once. Whoever made the plan gets a word
of a fixed list; names and reasons stay on this ledger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from hedgerow import clock
from hedgerow.errors import PlanError
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.line import Line
from hedgerow.protocol.messages import REJECTIONS, Refusal

What = Literal["approve", "reject", "withdraw"]
KINDS: tuple[What, ...] = ("approve", "reject", "withdraw")
LONGEST = {"name": 120, "reason": 1000}  # characters
_SPENT = "Nothing was decided and nothing was spent."


@dataclass(frozen=True)
class Decision:
    """What a person decided about one plan, when and why."""

    what: What
    plan: str  # the plan's hash
    run: str
    name: str  # of whoever decided; "" on lines of earlier versions
    reason: str
    time: str  # UTC
    role: str = ""  # the account's; "" where the site has no accounts
    word: str = ""  # of a rejection: what the coordinator is told
    line: int = 0  # of the ledger
    # The plan as it was shown, as a table; empty on lines of earlier versions.
    table: tuple[tuple[str, Any], ...] = ()

    @property
    def plan_table(self) -> dict[str, Any]:
        return dict(self.table)


class WaitingPlans(Protocol):
    """Where plans wait until a person has looked at them."""

    def keep(self, plan: Plan) -> None: ...


def decisions_on(ledger: Ledger, party: str, run: str | None = None) -> list[Decision]:
    """Everything that people decided at a party, in order; of one run alone if it is named."""
    lines = [line for kind in KINDS for line in ledger.lines(party, kind, run)]
    return [_read(line) for line in sorted(lines, key=lambda line: line.seq)]


def standing_of(ledger: Ledger, party: str, plan: Plan) -> Decision | None:
    """The last word on exactly this plan; None if nobody has decided."""
    found = [one for one in decisions_on(ledger, party, plan.run) if one.plan == plan.hash]
    return found[-1] if found else None


def decide(
    ledger: Ledger,
    party: str,
    plan: Plan,
    what: What,
    name: str,
    reason: str,
    role: str = "",
    word: str = "rejected",
) -> Decision:
    """Put a person's word on the ledger; PlanError if another one was quicker, or it cannot be."""
    name, reason = checked_text("name", name), checked_text("reason", reason)
    values: dict[str, Any] = {"hash": plan.hash, "name": name, "reason": reason}
    if role:
        values["role"] = role
    if what != "withdraw":
        values["plan"] = plan.table
    if what == "reject":
        if word not in REJECTIONS:
            raise PlanError(f"{word!r} is none of: {', '.join(REJECTIONS)}. {_SPENT}")
        values["word"] = word
    with ledger.transaction():  # two people may decide at the same time
        _check_open(what, standing_of(ledger, party, plan), plan)
        return _read(ledger.append(party, what, plan.run, values=values))


def check_standing(plan: Plan, ledger: Ledger, party: str, waiting: WaitingPlans | None) -> None:
    """Refuse unless a person approved exactly this plan, and it still holds."""
    last = standing_of(ledger, party, plan)
    if last is None:
        if waiting is not None:
            waiting.keep(plan)
        raise Refusal("not-approved")
    if last.what == "reject":
        raise Refusal(last.word if last.word in REJECTIONS else "rejected")
    if last.what == "withdraw":
        raise Refusal("withdrawn")


def check_not_withdrawn(plan: Plan, ledger: Ledger, party: str) -> None:
    """The same for a run that was opened, at every query: it reads no plan again."""
    if any(line.values["hash"] == plan.hash for line in ledger.lines(party, "withdraw", plan.run)):
        raise Refusal("withdrawn")


def check_not_ended(plan: Plan) -> None:
    """Refuse a plan after its last day, by this party's own clock."""
    if plan.request.has_ended(clock.utc_now().date()):
        raise Refusal("expired")


def _check_open(what: What, last: Decision | None, plan: Plan) -> None:
    if what == "withdraw":
        if last is None or last.what != "approve":
            state = "nobody has approved it" if last is None else _told(last)
            raise PlanError(f"run {plan.run} has no approval to withdraw: {state}. {_SPENT}")
    elif last is not None:
        raise PlanError(
            f"run {plan.run} is decided already: {_told(last)}. {_SPENT} A plan is decided on "
            "once; an approval can be withdrawn, and another plan can be asked for."
        )
    elif what == "approve" and plan.request.has_ended(clock.utc_now().date()):
        raise PlanError(f"run {plan.run} ended on {plan.request.ends}. {_SPENT}")


def _told(last: Decision) -> str:
    done = {"approve": "approved", "reject": "rejected", "withdraw": "withdrawn"}[last.what]
    by = f" by {last.name}" if last.name else ""
    return f"{done}{by} at {last.time[:19].replace('T', ' ')} UTC"


def checked_text(what: Literal["name", "reason"], text: str) -> str:
    """What a person said, on one line."""
    text, longest = " ".join(text.split()), LONGEST[what]
    if not text or len(text) > longest or not text.isprintable():
        raise PlanError(f"a {what} of 1 to {longest} printable characters is needed. {_SPENT}")
    return text


def _read(line: Line) -> Decision:
    told = line.values
    name, reason, role, word = (
        str(told.get(key, "")) for key in ("name", "reason", "role", "word")
    )
    what: What = line.kind  # type: ignore[assignment]
    table = tuple(told.get("plan", {}).items())
    hash_ = str(told["hash"])
    return Decision(what, hash_, line.run, name, reason, line.time, role, word, line.seq, table)
