"""Plans that wait for a person: in words, compared with the last one that was approved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hedgerow.deployment.approvals import plan_in_words, printable, waiting_plans
from hedgerow.deployment.service import decision_table
from hedgerow.deployment.status import own_delta
from hedgerow.engines.site import Site
from hedgerow.model.statement import guess_words
from hedgerow.model.tradeoff import EXACT_LIMIT, gaussian_guess, plain_guess
from hedgerow.party.approvals import Decision, decisions_on
from hedgerow.party.limits import Limits
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.messages import REFUSALS, REJECTIONS

MOST_DECISIONS = 100
_APART = ("format", "run", "seed", "slot", "rest", "branches")  # compared in words, or of no matter


def plan_facts(site: Site, ledger: Ledger, limits: Limits) -> dict[str, Any]:
    """Plans that wait, each beside the last approved one, and what people decided before."""
    decisions = decisions_on(ledger, site.name)
    last = _last_approved(decisions)
    return {
        "waiting": [_waiting(plan, last, limits) for plan in waiting_plans(site, ledger)],
        "decisions": [_decided(one) for one in decisions[::-1][:MOST_DECISIONS]],
        "standing": sorted({plan for plan, one in _newest(decisions).items() if one == "approve"}),
        "approves": limits.approve,
        "rejections": {word: REFUSALS[word] for word in REJECTIONS},
    }


def decision_facts(site: Site, ledger: Ledger) -> list[dict[str, Any]]:
    """All decisions, the newest first, without their plans."""
    return [_decided(one) for one in decisions_on(ledger, site.name)[::-1]]


def _decided(decision: Decision) -> dict[str, Any]:
    facts = decision_table(decision)
    del facts["table"]
    return facts


def _newest(decisions: list[Decision]) -> dict[str, str]:
    """The last word on each plan."""
    return {one.plan: one.what for one in decisions}


def _last_approved(decisions: list[Decision]) -> Plan | None:
    for one in reversed(decisions):
        if one.what == "approve" and one.plan_table:
            return Plan.from_dict(one.plan_table)
    return None


def _waiting(plan: Plan, last: Plan | None, limits: Limits) -> dict[str, Any]:
    words = plan_in_words(plan, own_delta(limits))
    return {
        "run": plan.run,
        "hash": plan.hash,
        "method": plan.method,
        "epsilon": plan.epsilon,
        "delta": plan.privacy.delta,
        "purpose": plan.request.purpose,
        "asker": plan.request.asker,
        "ends": plan.request.ends,
        "words": words,
        "odds": odds_in_words(plan),
        "last": None if last is None else last.run,
        "changes": [] if last is None else differences(last, plan),
    }


def odds_in_words(plan: Plan) -> str:
    """What the cost means for one person: how often the best guess about it can be right."""
    chance = plain_guess(plan.epsilon, plan.privacy.delta)
    if plan.guarantee != "pure" and plan.mu <= EXACT_LIMIT:
        chance = min(chance, gaussian_guess(plan.mu, plan.budget.coordinates))
    return (
        f"Take one {plan.unit} that is as likely in the table as not: whoever saw all that leaves "
        f"and guesses is right {guess_words(chance)}."
    )


def differences(before: Plan, now: Plan) -> list[dict[str, str]]:
    """What is not as in another plan: each value that changed, and what is asked."""
    old, new = _flat(before.to_dict()), _flat(now.to_dict())
    found = [
        {"what": key, "before": old.get(key, "not said"), "now": new.get(key, "not said")}
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]
    for what, then, later in (
        ("epsilon reserved", f"{before.epsilon:.4g}", f"{now.epsilon:.4g}"),
        ("queries, at most", f"{before.n_slots:,}", f"{now.n_slots:,}"),
        ("values released, at most", f"{before.budget.released:,}", f"{now.budget.released:,}"),
        ("kinds of queries", _kinds(before), _kinds(now)),
    ):
        if then != later:
            found.append({"what": what, "before": then, "now": later})
    return found


def _kinds(plan: Plan) -> str:
    return ", ".join(sorted(plan.budget.kinds()))


def _flat(table: Mapping[str, Any], above: str = "") -> dict[str, str]:
    """Values of a table and the tables in it, by their place."""
    found: dict[str, str] = {}
    for key, value in table.items():
        if not above and key in _APART:
            continue
        if isinstance(value, Mapping):
            found |= _flat(value, f"{above}{key}.")
        else:
            found[f"{above}{key}"] = printable(str(value), 200)
    return found
