"""What the console may ask a coordinator: its sites, runs and models, and to stop runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hedgerow import __version__, clock
from hedgerow.deployment.accounts import Caller
from hedgerow.deployment.console.given import text_in
from hedgerow.deployment.console.ledger_questions import LedgerQuestions
from hedgerow.deployment.console.standing import compare, roster_facts, roster_history
from hedgerow.deployment.logs import SiteLog, log_file
from hedgerow.deployment.runs import RunRecord, list_runs, named_run, resume_run, stop_run
from hedgerow.deployment.site_service import Given, Question
from hedgerow.deployment.status import limits_used, refusal_counts
from hedgerow.engines.site import Site
from hedgerow.errors import HedgerowError, SettingsError
from hedgerow.party.limits import Limits
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.paging import Wanted, count_of
from hedgerow.privacy.ledger.spending import budget_of
from hedgerow.privacy.ledger.store import COORDINATOR

LONGEST_ROSTER = 60_000  # letters
MOST_RUNS = 200
MOST_RELEASES = 500


class CoordinatorQuestions:
    """Answers from the coordinator's files and its port.

    Parameters
    ----------
    status : what the port knows of the parties
    log : of the process, where runs that are resumed say so
    """

    def __init__(self, site: Site, status: Callable[[], dict[str, Any]], log: SiteLog) -> None:
        self._site, self._status, self._log = site, status, log
        self._opened: Ledger | None = None
        file = log_file(site, "coordinator")
        self._about = LedgerQuestions(COORDINATOR, self._ledger, self._limits, file)

    def questions(self) -> dict[str, Question]:
        return {
            **self._about.questions(),
            "sites": ("look", lambda given, caller: self._status()),
            "runs": ("look", self.runs),
            "run": ("look", self.run),
            "stop": ("operate", self.stop),
            "resume": ("operate", self.resume),
            "model": ("look", self.model),
            "report": ("look", self.report),
            "standing": ("look", self.standing),
            "decided": ("look", lambda given, caller: []),
        }

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def health(self) -> dict[str, Any]:
        """For monitoring: no session is needed, and nothing in it is about rows."""
        status, now, ledger = self._status(), clock.utc_now(), self._ledger()
        parties = status["parties"]
        reserved = ledger.lines(COORDINATOR, "reserve")
        absent = [party["name"] for party in parties if not party["connected"]]
        return {
            "role": COORDINATOR,
            "version": __version__,
            "state": "running",
            "connected": None,
            "problem": f"not connected: {', '.join(absent)}" if absent else "",
            "parties": len(parties),
            "parties_connected": len(parties) - len(absent),
            "strangers": status["strangers"],
            "runs": len(reserved),
            "rounds": count_of(ledger, Wanted(COORDINATOR, "charge")),
            "limits": limits_used(ledger, COORDINATOR, self._limits()),
            "refused": refusal_counts(ledger, COORDINATOR),
            "expires": [],
            "time": now.isoformat(timespec="seconds"),
        }

    def runs(self, given: Given, caller: Caller) -> list[dict[str, Any]]:
        """Runs, the newest first, with how far each is."""
        return [self._shown(record) for record in list_runs(self._site)[::-1][:MOST_RUNS]]

    def run(self, given: Given, caller: Caller) -> dict[str, Any]:
        """One run: its releases, and which parties were in each."""
        record = named_run(self._site, text_in(given, "run", 100))
        releases = [
            {
                "slot": line.slot,
                "attempt": line.attempt,
                "time": line.time,
                "parties": sorted(line.values.get("receipts", {})),
            }
            for line in self._ledger().lines(COORDINATOR, "release", record.run)[-MOST_RELEASES:]
        ]
        refused = self._ledger().lines(COORDINATOR, "refuse", record.run)
        return {
            **self._shown(record),
            "releases": releases,
            "refused": [{"time": line.time, **line.values} for line in refused],
        }

    def stop(self, given: Given, caller: Caller) -> bool:
        run = text_in(given, "run", 100)
        stop_run(self._site, run)
        self._log.say(f"{caller.name} asked run {run} to stop after its current release")
        return True

    def resume(self, given: Given, caller: Caller) -> bool:
        run = text_in(given, "run", 100)
        resume_run(self._site, run, log_file(self._site, "runs"))
        self._log.say(f"{caller.name} gave the command of run {run} again")
        return True

    def model(self, given: Given, caller: Caller) -> dict[str, Any]:
        """What the model of a run promises."""
        record, model = self._model(given)
        statement = model.statement
        return {
            "run": record.run,
            "file": Path(record.model).name,
            "words": statement.words(),
            "method": record.method,
            "trees": len(model.trees),
        }

    def report(self, given: Given, caller: Caller) -> str:
        from hedgerow.inspection.report import report_html

        return report_html(self._model(given)[1], self._ledger())

    def standing(self, given: Given, caller: Caller) -> dict[str, Any]:
        proposed, site = text_in(given, "roster", LONGEST_ROSTER), self._site
        return {
            "roster": roster_facts(site.pinned()) if site.is_pinned else None,
            "history": roster_history(site),
            "proposed": compare(site, proposed) if proposed.strip() else None,
            "limits": None,
        }

    def _model(self, given: Given) -> tuple[RunRecord, Any]:
        from hedgerow.model.ensemble import Ensemble

        record = named_run(self._site, text_in(given, "run", 100))
        if record.state != "finished" or not record.model:
            raise SettingsError(f"run {record.run} has no model. Nothing was done.")
        try:
            return record, Ensemble.load(Path(record.model))
        except (HedgerowError, OSError) as error:
            raise SettingsError(
                f"the model of run {record.run} cannot be read where it was written "
                f"({Path(record.model).name}): it was moved, or belongs to another account."
            ) from error

    def _shown(self, record: RunRecord) -> dict[str, Any]:
        ledger = self._ledger()
        attempts, slots = ledger.attempts(COORDINATOR, record.run)
        facts = asdict(record)
        reserved = ledger.lines(COORDINATOR, "reserve", record.run)
        plan = reserved[0].values["plan"] if reserved else {}
        rest = plan.get("rest")
        listed = sum(slot.get("repeat", 1) for slot in plan.get("slot", ()))
        for key in ("process", "born", "folder"):
            del facts[key]
        return {
            **facts,
            "command": " ".join(record.command),
            "model": Path(record.model).name if record.state == "finished" else "",
            "purpose": str(plan.get("purpose", "")),
            "asker": str(plan.get("asker", "")),
            "slots": listed + (rest["slots"] if rest else 0),
            "charged_slots": slots,
            "charged_attempts": attempts,
        }

    def _limits(self) -> Limits:
        return Limits(budget=budget_of(self._ledger()))

    def _ledger(self) -> Ledger:
        """The coordinator's ledger, which runs write to beside this process."""
        if self._opened is not None and self._opened.path and self._opened.in_place:
            return self._opened
        if self._site.ledger_path.exists():
            self.close()
            self._opened = Ledger.open(self._site.ledger_path, create=False)
            return self._opened
        return Ledger.in_memory()
