"""What a party's process shows in the foreground: asked, charged, left, refused.

On a terminal a small table stays below the lines; elsewhere there are plain lines only.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import groupby
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from hedgerow import clock
from hedgerow.deployment.approvals import cell, printable
from hedgerow.deployment.status import limits_used
from hedgerow.party.limits import Event, Limits
from hedgerow.privacy.accounting.accountant import Accountant
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.messages import REFUSALS

LONGEST_LINE = 2000  # characters; names and reasons of others stand in some
PAUSE_SECONDS = 0.2  # queries answered within it share a line
log = logging.getLogger(__name__)


class PartyTerminal:
    """Turns the events of a party into lines, and keeps what is left in view."""

    def __init__(self, console: Console, name: str, limits: Limits) -> None:
        self._console, self._name, self._limits = console, name, limits
        self._ledger: Ledger | None = None
        self._charged: dict[str, Accountant] = {}  # by run
        self._live: Live | None = None
        self._last: Plan | None = None
        self._unwritten = False
        self.log: Callable[[str, str], None] = lambda text, about: None

    @property
    def is_terminal(self) -> bool:
        """Whether somebody looks at it, rather than a file that keeps it."""
        return self._console.is_terminal

    def say(self, text: str, style: str | None = None, about: str = "") -> None:
        """One line, with the time in UTC, here and in the log; never anything about rows."""
        self.log(text, about)
        self.show(text, style)

    def show(self, text: str, style: str | None = None) -> None:
        """The same here alone; a log is read by others than a screen."""
        terminal = self._console.is_terminal
        now = clock.utc_now().strftime("%H:%M:%S" if terminal else "%Y-%m-%dT%H:%M:%SZ")
        with suppress(OSError):  # nobody looks any more, or the disk behind the screen is full
            line = Text(f"{now} {printable(text, LONGEST_LINE)}", style=style or "")
            self._console.print(line, soft_wrap=not terminal)

    def follow(self, ledger: Ledger) -> AbstractContextManager[Any]:
        """From here on events come from a party with this ledger."""
        self._ledger = ledger
        if not self._console.is_terminal:
            self.say(self._left())
            return nullcontext()
        self._live = Live(self._table(), console=self._console, auto_refresh=False)
        return self._live

    @contextmanager
    def aside(self) -> Iterator[Callable[[Event], None]]:
        """Shows events a moment later, on a thread of its own: an answer waits for no screen."""
        waiting, some, over = deque[Event](), threading.Event(), threading.Event()

        def show() -> None:
            last = False
            while not last:
                some.wait()
                over.wait(PAUSE_SECONDS)
                some.clear()
                last = over.is_set()  # what is told before that is shown
                found = [waiting.popleft() for _ in range(len(waiting))]
                try:
                    self.events(found)
                except Exception:  # what is shown must not end what is answered
                    log.exception("events could not be shown")

        def tell(event: Event) -> None:
            waiting.append(event)
            if not some.is_set():  # waking a thread takes longer than all the rest of this
                some.set()

        thread = threading.Thread(target=show, name="hedgerow-terminal", daemon=True)
        thread.start()
        try:
            yield tell
        finally:
            over.set()
            some.set()
            thread.join()

    def events(self, events: Sequence[Event]) -> None:
        """Several at once, in order; answers of one run that follow each other are one line."""
        for (_, answered), of_run in groupby(events, lambda e: (e.run, e.what == "answered")):
            several = list(of_run)
            if answered and len(several) > 1:
                self._answered(several)
                self._refresh()
            else:
                for event in several:
                    self.event(event)

    def event(self, event: Event) -> None:
        run = printable(event.run, 12)
        if event.what == "reserved" and event.plan is not None:
            plan = event.plan
            cost = f"epsilon = {plan.epsilon:.4g} at delta = {plan.privacy.delta:g}"
            self.say(f"run {run}: {printable(plan.method)} reserved {cost}. {self._left()}")
        elif event.what == "answered" and event.plan is not None:
            self._answered([event])
        elif event.what == "agreed":
            what = f"{printable(event.kind)} with other parties; nothing of it has an epsilon"
            self.say(f"run {run}: takes part in {what}. The ledger says what is shown.", "yellow")
        elif event.what == "refused":
            reason = REFUSALS.get(event.word, "")
            self.say(f"run {run}: refused ({event.word}): {reason}{_advice(event.word)}", "yellow")
        elif event.what == "unwritten" and not self._unwritten:
            self._unwritten = True
            self.say(self._why_unwritten(), "bold red")
        self._refresh()

    def _refresh(self) -> None:
        if self._live is not None:
            self._live.update(self._table(), refresh=True)

    def _why_unwritten(self) -> str:
        silent = "so this party answers nothing, and nothing was let out"
        if self._ledger is not None and not self._ledger.in_place:
            return (
                f"somebody removed or replaced the ledger file, {silent}. Stop this process and "
                "put the newest ledger back; what was spent must not be forgotten."
            )
        return (
            f"the ledger cannot be written, {silent}. Free some disk space; it goes on by itself."
        )

    def _answered(self, events: Sequence[Event]) -> None:
        event, plan = events[-1], events[-1].plan
        assert plan is not None
        if self._unwritten:
            self._unwritten = False
            self.say("the ledger can be written again; this party answers.")
        self._last = plan
        what = f"slot {event.slot}, {printable(event.kind)} ({printable(plan.method)}), "
        what += plan.budget.price_words(event.price)
        if len(events) > 1:
            slots = [e.slot for e in events]
            kinds = ", ".join(printable(kind) for kind in dict.fromkeys(e.kind for e in events))
            what = f"{len(events)} queries, slots {min(slots)} to {max(slots)}, {kinds} "
            what += f"({printable(plan.method)})"
        self.say(
            f"run {printable(event.run, 12)}: answered {what}; epsilon so "
            f"far {self._charges(plan).epsilon():.4g} of {plan.epsilon:.4g} reserved"
        )

    def _charges(self, plan: Plan) -> Accountant:
        """Everything charged for a run, by earlier processes as well."""
        assert self._ledger is not None
        charged = self._charged.setdefault(plan.run, plan.budget.accountant())
        for line in self._ledger.lines(self._name, "charge", plan.run, after=charged.newest):
            charged.add(line)
        return charged

    def _left(self) -> str:
        assert self._ledger is not None
        parts = []
        for row in limits_used(self._ledger, self._name, self._limits):
            if row["used"] is None:
                parts.append(f"at most {row['epsilon']:g} {row['limit']}")
            else:
                used = f"{row['used']:.4g} of {row['epsilon']:g} used {row['limit']}"
                parts.append(f"{used} (next run at most {row['next_run']:.4g})")
        return f"Epsilon: {'; '.join(parts)}." if parts else "Epsilon is not limited here."

    def _table(self) -> Table:
        assert self._ledger is not None
        shown = Table(box=SIMPLE_HEAD, pad_edge=False, title=f"Party {self._name}")
        for column in ("what", "epsilon used", "limit", "next run at most"):
            shown.add_column(column, justify="left" if column == "what" else "right")
        for row in limits_used(self._ledger, self._name, self._limits):
            used = "" if row["used"] is None else f"{row['used']:.4g}"
            limit = f"{row['epsilon']:g} at {row['delta']:g}"
            shown.add_row(row["limit"], used, limit, f"{row['next_run']:.4g}")
        if (plan := self._last) is not None:
            charges = self._charges(plan)
            asked = f"run {printable(plan.run, 12)}: {len(charges.lines)} queries"
            spent = f"{charges.epsilon():.4g}"
            shown.add_row(cell(asked), spent, f"{plan.epsilon:.4g} reserved", "")
        return shown


def _advice(word: str) -> str:
    if word == "not-approved":
        return ". See `hedgerow party plans` and `hedgerow party approve`"
    if word == "unwitnessed":
        return ". See least_witnesses in `hedgerow party limits`"
    return ". See `hedgerow party limits`" if word == "over-limits" else ""
