"""What a party's process answers at its local sockets: looking, deciding, signing in.

At the status socket asks whoever owns the site folder; at the console's socket people with a
session. Every request names a question; roles are checked here and nowhere else. A client only
carries words: names and roles of whoever decides come from the site's accounts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hedgerow.deployment.accounts import OWNER, Caller, NotAllowed
from hedgerow.deployment.approvals import PlanFolder, plan_named
from hedgerow.deployment.hold import is_held
from hedgerow.deployment.site_service import Given, Question, SiteService, answered
from hedgerow.deployment.status import TIMEOUT_SECONDS, StatusService
from hedgerow.engines.site import Site
from hedgerow.engines.sockets import Unreachable, call
from hedgerow.errors import HedgerowError, LedgerError
from hedgerow.methods.registry import METHODS
from hedgerow.party.approvals import Decision, checked_text, decide, decisions_on
from hedgerow.party.limits import Limits
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.gaps import Ceilings, settle, settlement_for
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.witnesses import open_gaps


class PartyService(SiteService):
    """Answers one request as JSON with JSON: {"question": ..., ...}, and {"error": ...} if not.

    Parameters
    ----------
    status : answers what only looks
    further : questions of the console's pages, by name
    health : what monitoring may know without a session
    """

    def __init__(
        self,
        status: StatusService,
        further: Mapping[str, Question] | None = None,
        health: Callable[[], Any] | None = None,
    ) -> None:
        self._status = status
        self._site, self._ledger = status.site, status.ledger
        own: dict[str, Question] = {
            **dict.fromkeys(StatusService.QUESTIONS, ("look", self._looked)),
            "decisions": ("look", self._decisions),
            "approve": ("decide", self._decide),
            "reject": ("decide", self._decide),
            "withdraw": ("decide", self._decide),
            "gap": ("look", self._gap),
            "settle": ("decide", self._settle),
        }
        super().__init__(status.site, {**own, **(further or {})}, health)

    def handle(self, message: bytes) -> bytes:
        """A request of the site's own account, which may speak for any account (`as`)."""
        return answered(message, self._of_owner)

    def _of_owner(self, given: Given) -> Any:
        if given.get("question") == "account":
            return self._administer(given)
        name = str(given.get("as", ""))
        if not self.accounts.everyone():
            return self.answer(given, Caller(name, OWNER))
        if name:
            return self.answer(given, Caller(name, self.accounts.named(name).role))
        if self._questions.get(str(given.get("question")), ("",))[0] == "decide":
            raise NotAllowed(
                "this site has accounts, so a decision names the account that takes it: --name. "
                "Nothing was decided."
            )
        return self.answer(given, Caller("", OWNER))

    def _looked(self, given: Given, caller: Caller) -> Any:
        return self._status.answer(str(given["question"]))

    def _decisions(self, given: Given, caller: Caller) -> Any:
        return [decision_table(one) for one in decisions_on(self._ledger, self._site.name)]

    def _decide(self, given: Given, caller: Caller) -> Any:
        """Approve, reject or withdraw the plan with the hash, or whose run begins so."""
        what, folder = given["question"], PlanFolder.of(self._site)
        plan = plan_named(self._site, self._ledger, str(given.get("plan", "")), what == "withdraw")
        role = "" if caller.role == OWNER else caller.role
        decision = decide(
            self._ledger, self._site.name, plan, what, caller.name, str(given.get("reason", "")),
            role, str(given.get("word") or "rejected"),
        )  # fmt: skip
        folder.let_go(plan)
        return decision_table(decision)

    def _gap(self, given: Given, caller: Caller) -> Any:
        """What settling the open gaps would book, from the limits in force."""
        ceilings, runs = ceilings_of(self._status.limits), int(given.get("runs", 0))
        return asdict(settlement_for(self._ledger, self._site.name, ceilings, runs=runs))

    def _settle(self, given: Given, caller: Caller) -> Any:
        """A person's word that lines are lost; what they may have cost is booked."""
        ceilings, runs = ceilings_of(self._status.limits), int(given.get("runs", 0))
        role = "" if caller.role == OWNER else caller.role
        name, reason = caller.name, str(given.get("reason", ""))
        about = (checked_text("name", name), checked_text("reason", reason), role)
        # Others refuse this start's number where they know a later one; the next start is above it.
        again = any(gap.boot for gap in open_gaps(self._ledger, self._site.name))
        booked = settle(self._ledger, self._site.name, ceilings, *about, runs)
        return {**asdict(booked), "start_again": again}

    def _administer(self, given: Given) -> Any:
        """Accounts: listed, added, removed, given a one-time link; changes are on the ledger."""
        name, role = str(given.get("name", "")), str(given.get("role", ""))
        what = given.get("what", "list")
        if what == "link":
            return {"code": self.accounts.make_link(name)}
        if what == "put":
            self.accounts.put(name, role)
        elif what == "remove":
            self.accounts.remove(name)
        if what in ("put", "remove"):
            values = {"name": name, "what": what, **({"role": role} if role else {})}
            self._ledger.append(self._site.name, "account", values=values)
        return [{"name": one.name, "role": one.role} for one in self.accounts.everyone()]


def ceilings_of(limits: Limits) -> Ceilings:
    """What bounds lost lines: the limits in force, if they held then too."""
    allowed = METHODS if limits.methods is None else limits.methods
    gaussian = not any(METHODS[name].can_be_pure for name in allowed if name in METHODS)
    labels = limits.roles is None or any("-ldp" in role for role in limits.roles)
    return Ceilings(limits.per_run, limits.per_month, limits.budget, gaussian, labels)


def decision_table(decision: Decision) -> dict[str, Any]:
    """A decision as JSON; `plan` is the hash, `table` the plan as it was shown."""
    return {**asdict(decision), "table": decision.plan_table}


def ask_party(site: Site, limits: Limits, question: str, **values: Any) -> Any:
    """Ask the party's process as the owner of its site; without one, answer from the ledger file.

    `as` in the values names the account that decides.
    """
    request = json.dumps({"question": question, **values}).encode()
    try:
        return _read(call(site.status_socket, request, TIMEOUT_SECONDS))
    except Unreachable:
        held = is_held(site)
    if held and question not in StatusService.QUESTIONS:
        raise LedgerError(
            "the party's process runs and does not answer yet; try again in a moment. Nothing was "
            "decided and nothing was spent."
        )
    state = "running, and not answering yet" if held else "not running"
    if not site.ledger_path.exists():  # never started: all empty
        return _read(_service(site, Ledger.in_memory(), limits, "not running").handle(request))
    with Ledger.open(site.ledger_path, create=False) as ledger:
        return _read(_service(site, ledger, limits, state).handle(request))


def ask_console(socket: Path, question: str, session: str = "", **values: Any) -> Any:
    """Ask a party's process at its console socket, as the console does for people signed in."""
    request = json.dumps({"question": question, "session": session, **values}).encode()
    return _read(call(socket, request, TIMEOUT_SECONDS))


def _service(site: Site, ledger: Ledger, limits: Limits, state: str) -> PartyService:
    return PartyService(StatusService(site, ledger, limits, lambda: state))


def _read(reply: bytes) -> Any:
    found = json.loads(reply)
    if isinstance(found, dict) and "error" in found:
        raise (NotAllowed if found.get("denied") else HedgerowError)(found["error"])
    return found


def plan_of(decision: Mapping[str, Any]) -> Plan | None:
    """The plan that a decision is about, as it was shown; None on lines of earlier versions."""
    return Plan.from_dict(decision["table"]) if decision.get("table") else None
