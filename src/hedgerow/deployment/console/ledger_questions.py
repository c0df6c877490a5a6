"""What the console may ask of any site's ledger: lines, budget, verification, refusals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hedgerow import clock
from hedgerow.deployment.accounts import Caller
from hedgerow.deployment.console.budget import Runs, budget_facts, calculated
from hedgerow.deployment.console.given import amount_in, count_in, text_in
from hedgerow.deployment.console.ledger_lines import in_words, lines_after, lines_page
from hedgerow.deployment.logs import recent
from hedgerow.deployment.site_service import Given, Question
from hedgerow.deployment.status import refusal_counts
from hedgerow.party.limits import Limits
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.paging import Wanted, page_of
from hedgerow.privacy.ledger.verify import verify
from hedgerow.protocol.messages import REFUSALS

MOST_REFUSALS = 200


class LedgerQuestions:
    """Answers from a ledger that the site's process holds.

    Parameters
    ----------
    owner : whose lines they are
    ledger, limits : asked for anew with every question
    log : of the site's process, for connections that failed
    """

    def __init__(
        self,
        owner: str,
        ledger: Callable[[], Ledger],
        limits: Callable[[], Limits],
        log: Path,
    ) -> None:
        self._owner, self._ledger, self._limits, self._log = owner, ledger, limits, log
        self._runs = Runs(ledger, owner)
        self._verifying = threading.Lock()

    def questions(self) -> dict[str, Question]:
        return {
            "budget": ("look", self.budget),
            "ledger": ("look", self.lines),
            "lines": ("look", self.lines_after),
            "verify": ("look", self.verify),
            "refusals": ("look", self.refusals),
        }

    @property
    def runs(self) -> Runs:
        return self._runs

    def budget(self, given: Given, caller: Caller) -> dict[str, Any]:
        runs, limits, ledger = self._runs.all(), self._limits(), self._ledger()
        facts = budget_facts(runs, ledger, self._owner, limits)
        epsilon, delta = amount_in(given, "epsilon"), amount_in(given, "delta")
        facts["next"] = calculated(runs, ledger, self._owner, limits, None, None)
        if epsilon is not None:
            facts["asked"] = calculated(runs, ledger, self._owner, limits, epsilon, delta)
        return facts

    def lines(self, given: Given, caller: Caller) -> dict[str, Any]:
        return lines_page(self._ledger(), self._wanted(given), count_in(given, "before"))

    def lines_after(self, given: Given, caller: Caller) -> list[dict[str, Any]]:
        return lines_after(self._ledger(), self._wanted(given), count_in(given, "after"))

    def _wanted(self, given: Given) -> Wanted:
        filters = (text_in(given, key, 100) for key in ("kind", "run", "since", "until"))
        return Wanted(self._owner, *filters)

    def verify(self, given: Given, caller: Caller) -> dict[str, Any]:
        """Walk and re-add the whole ledger, one at a time, while the process goes on."""
        ledger = self._ledger()
        with self._verifying:
            own = (one for one in verify(ledger) if one.owner == self._owner)
            found = next(own, None)
            count, head = ledger.last()
        return {
            "lines": count,
            "hash": head,
            "charges": found.charges if found else 0,
            "answers": found.answers + found.releases if found else 0,
            "runs": found.spending.runs if found else 0,
            "time": clock.utc_now().isoformat(timespec="seconds"),
        }

    def refusals(self, given: Given, caller: Caller) -> dict[str, Any]:
        ledger = self._ledger()
        lines = [
            *page_of(ledger, Wanted(self._owner, "refuse"), most=MOST_REFUSALS),
            *page_of(ledger, Wanted(self._owner, "unlisted"), most=MOST_REFUSALS),
        ]
        lines.sort(key=lambda line: -line.seq)
        counts = refusal_counts(ledger, self._owner)
        return {
            "counts": [
                {"word": word, "count": count, "words": REFUSALS.get(word, "")}
                for word, count in sorted(counts.items(), key=lambda item: -item[1])
            ],
            "lines": [in_words(line) for line in lines[:MOST_REFUSALS]],
            "connections": recent(self._log, "connection"),
        }
