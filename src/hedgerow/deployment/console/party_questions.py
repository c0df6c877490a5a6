"""What the console may ask a party's process: its state, budget, ledger, roster, refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509

from hedgerow import __version__, clock
from hedgerow.data.schema import Column, Schema
from hedgerow.data.schema_words import values_in_words
from hedgerow.deployment.accounts import Caller
from hedgerow.deployment.console.given import text_in
from hedgerow.deployment.console.ledger_questions import LedgerQuestions
from hedgerow.deployment.console.standing import roster_and_limits
from hedgerow.deployment.console.waiting_plans import decision_facts, plan_facts
from hedgerow.deployment.limits_file import InForce
from hedgerow.deployment.logs import log_file
from hedgerow.deployment.site_service import Given, Question
from hedgerow.deployment.start import Start
from hedgerow.deployment.status import StatusService
from hedgerow.engines.site import Site
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.paging import Wanted, count_of, page_of

UNDER_WAY = timedelta(minutes=5)  # since the last question of a run that is not over
LONGEST_ROSTER = 60_000  # letters
_FAR = timedelta(days=3650)  # what ends later does not count as expiring


@dataclass
class PartyQuestions:
    """Answers from the ledger, schema and limits that the party's process holds."""

    site: Site
    start: Start
    in_force: InForce
    ledger: Ledger
    schema: Schema
    n_rows: int
    service: StatusService
    last_heard: Callable[[], float | None]

    def __post_init__(self) -> None:
        log, limits = log_file(self.site, "party"), self.in_force.limits
        self._ledger = LedgerQuestions(self.site.name, lambda: self.ledger, lambda: limits, log)

    def questions(self) -> dict[str, Question]:
        """By name: what a role must be allowed to do, and what answers."""
        return {
            **self._ledger.questions(),
            "party": ("look", self.party),
            "rows": ("operate", lambda given, caller: self.n_rows),
            "plans": ("look", self.plans),
            "decided": ("look", self.decided),
            "standing": ("look", self.standing),
        }

    def health(self) -> dict[str, Any]:
        """For monitoring: no session is needed, and nothing in it is about rows."""
        status, now = self.service.status(most_runs=1), clock.utc_now()
        link = status["connection"]
        return {
            "role": "party",
            "name": self.site.name,
            "version": __version__,
            "state": status["state"],
            "connected": None if link is None else bool(link["connected"]),
            "since": None if link is None else link["since"],
            "last_heard": self.last_heard(),
            "problem": status["problem"],
            "runs": status["n_runs"],
            "rounds": count_of(self.ledger, Wanted(self.site.name, "charge")),
            "limits": status["limits"],
            "refused": status["refused"],
            "pending": len(status["pending"]),
            "expires": self._expiries(now),
            "time": now.isoformat(timespec="seconds"),
        }

    def party(self, given: Given, caller: Caller) -> dict[str, Any]:
        status = self.service.status(most_runs=1)
        count, head = self.ledger.last()
        return {
            **status,
            "runs": [],
            "run": self._newest_run(status),
            "version": __version__,
            "last_heard": self.last_heard(),
            "expires": self._expiries(clock.utc_now()),
            "columns": [_column(column) for column in self.schema.columns],
            "schema": {
                "name": self.schema.name,
                "hash": self.schema.hash,
                "label": self.schema.label.name,
                "unit": self.schema.unit.text,
            },
            "head": {"lines": count, "hash": head},
        }

    def plans(self, given: Given, caller: Caller) -> dict[str, Any]:
        return plan_facts(self.site, self.ledger, self.in_force.limits)

    def decided(self, given: Given, caller: Caller) -> list[dict[str, Any]]:
        return decision_facts(self.site, self.ledger)

    def standing(self, given: Given, caller: Caller) -> dict[str, Any]:
        return roster_and_limits(
            self.site,
            self.start,
            self.in_force,
            self.ledger,
            text_in(given, "roster", LONGEST_ROSTER),
        )

    def _newest_run(self, status: dict[str, Any]) -> dict[str, Any] | None:
        """The run that was reserved last: how far it is, and whether it is still asked."""
        if not status["runs"]:
            return None
        run = status["runs"][-1]
        newest = page_of(self.ledger, Wanted(self.site.name, "charge", run["run"]), most=1)
        asked = newest[0].time if newest else run["time"]
        recently = clock.utc_now() - UNDER_WAY < datetime.fromisoformat(asked)
        facts = self._ledger.runs.newest()
        return {
            **run,
            "asker": facts.asker if facts else "",
            "purpose": facts.purpose if facts else "",
            "asked": asked,
            "under_way": recently and run["charged_slots"] < run["slots"],
        }

    def _expiries(self, now: datetime) -> list[dict[str, Any]]:
        """Whatever ends by itself: certificates of the roster."""
        if not self.site.is_pinned:
            return []
        agreed = self.site.pinned()
        named = {"the coordinator's certificate": agreed.certificate}
        named |= {f"the certificate of {name}": pem for name, pem in agreed.certificates.items()}
        found = []
        for what, pem in named.items():
            if not pem:
                continue
            ends = x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc
            if ends - now < _FAR:
                found.append({"what": what, "time": ends.isoformat(), "days": (ends - now).days})
        return found


def _column(column: Column) -> dict[str, str]:
    return {"name": column.name, "kind": column.kind, "values": values_in_words(column)}
