"""The long-lived process of a party: holds rows, key and ledger, and one stream to the coordinator.

It answers at local sockets too: for its operator, and for relays of other runtimes. Limits are read
at the start; a roster that is pinned while it runs holds at once.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hedgerow import clock
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.deployment.approvals import PlanFolder
from hedgerow.deployment.console.party_questions import PartyQuestions
from hedgerow.deployment.hold import holding
from hedgerow.deployment.ledger_head import note_ledger_head, open_ledger
from hedgerow.deployment.logs import SiteLog, log_file
from hedgerow.deployment.roles import role_factories
from hedgerow.deployment.sandbox import bring_compiled, is_confined
from hedgerow.deployment.service import PartyService
from hedgerow.deployment.start import Start, check_limits, record_limits
from hedgerow.deployment.status import StatusService
from hedgerow.deployment.store import FolderStore
from hedgerow.deployment.terminal import PartyTerminal
from hedgerow.deployment.warming import PARTY_METHODS, task_of, warm
from hedgerow.deployment.watching import Watched
from hedgerow.engines.cards import PinnedRoster
from hedgerow.engines.grpc import check_installed
from hedgerow.engines.site import Site
from hedgerow.engines.sockets import Listener
from hedgerow.errors import HedgerowError, SettingsError, TableError
from hedgerow.kernels.compiling import say_when_compiling
from hedgerow.party.limits import Event, Limits
from hedgerow.party.party import Party
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.witnesses import open_gaps
from hedgerow.protocol.identity import Identity, Roster, fingerprint

if TYPE_CHECKING:
    from hedgerow.engines.grpc.client import Link, Target

log = logging.getLogger(__name__)
POLL_SECONDS = 0.5
_SPENT = "Nothing was asked and nothing was spent."


class PartyProcess:
    """One party in the foreground, from the check of its table until it is stopped.

    Parameters
    ----------
    site : the party's site folder
    start : where its table, schema and limits are
    make_terminal : gives the terminal on which everything is shown
    dials : whether it dials the coordinator; otherwise it listens at its sockets only
    wait : whether to wait for a roster that is not pinned yet
    new_ledger : whether to go on although the ledger, and so what was spent, was lost
    relay : a socket, and the group whose accounts may open it, for another runtime's relay
    unconfined : why this process is not confined to its site folder, if it is not
    console_socket : the same for the web console; by default in the site folder, for its owner
    """

    def __init__(
        self,
        site: Site,
        start: Start,
        make_terminal: Callable[[Limits], PartyTerminal],
        dials: bool,
        wait: bool = True,
        new_ledger: bool = False,
        relay: tuple[Path, str] | None = None,
        unconfined: str = "",
        console_socket: tuple[Path, str] | None = None,
    ) -> None:
        self._unconfined = unconfined
        self.site, self._start, self._wait, self._new_ledger = site, start, wait, new_ledger
        self._in_force = start.in_force(site)
        self._limits = self._in_force.limits
        self._terminal = make_terminal(self._limits)
        if dials:
            check_installed()
        self._dials, self._relay = dials, relay
        self._log = SiteLog(log_file(site, "party"))
        self._last_heard: float | None = None
        self._console_socket = console_socket or (site.console_socket, "")
        self._link: Link | None = None
        self._state = "starting"
        self._problem = ""  # that the operator has to see to
        self._over = threading.Event()

    def stop(self, *_: object) -> None:
        """End cleanly, soon; also the handler of Ctrl-C and SIGTERM."""
        self._over.set()

    def run(self) -> None:
        """Serve until stopped. Raises before anything else happens if the table does not fit."""
        with self._log.following():
            self._terminal.log = self._log.say
            self._run()

    def _run(self) -> None:
        if is_confined():
            self._terminal.say("the kernel lets this process write to its site folder alone.")
        elif self._unconfined:
            self._terminal.say(f"this process is not confined: {self._unconfined}.", "yellow")
        schema, rows = self._read_table()
        held = f", with {len(rows.columns)} of its columns" if rows.columns is not None else ""
        self._terminal.say(f"{self._start.data} fits the schema{held}.")
        self._say_checked(schema, rows.n_rows)
        self._warm(schema)
        with ExitStack() as stack:
            stack.enter_context(holding(self.site, f"hedgerow party start {self.site.path}"))
            ledger = stack.enter_context(open_ledger(self.site, self._new_ledger))
            check_limits(self.site, ledger, self._in_force)
            note_ledger_head(self.site, ledger)
            stack.callback(self._note, ledger)
            self._start.remember(self.site, self._in_force)
            identity = self._identify()
            service = self._service(ledger, schema, rows.n_rows)
            stack.enter_context(Listener(self.site.status_socket, service.handle))
            path, group = self._console_socket
            stack.enter_context(Listener(path, service.handle_console, group))
            agreed = self._await_roster()
            if agreed is None:
                return
            self._check_roster(agreed.roster)
            self._record_limits(ledger)
            stack.enter_context(self._terminal.follow(ledger))
            show = stack.enter_context(self._terminal.aside())
            party = Party(
                self.site.name, rows, schema, ledger, identity, self._limits,
                PlanFolder.of(self.site), partial(self._told, ledger, show), roles=role_factories(),
                store=FolderStore.of(self.site), witnesses=True,
            )  # fmt: skip
            note_ledger_head(self.site, ledger)  # before anybody hears of this start
            party.pin(agreed.roster)
            stack.callback(party.close)
            stack.enter_context(Listener(self.site.party_socket, party.handle))
            if self._relay is not None:
                path, group = self._relay
                stack.enter_context(Listener(path, party.handle, group))
                self._terminal.say(f"relays may carry messages through {path} (group {group}).")
            self._serve(party, agreed, stack)
        self._terminal.say("stopped.")

    def _read_table(self) -> tuple[Schema, Rows]:
        try:
            return self._start.read_table()
        except TableError as error:
            if self._terminal.is_terminal:
                raise
            data, schema = self._start.data, self._start.schema
            text = error.for_a_log(str(data), str(schema)).rstrip(".")
            raise TableError(
                f"{text}. {_SPENT} `hedgerow schema check {schema} --data {data}` shows more."
            ) from None

    def _service(self, ledger: Ledger, schema: Schema, n_rows: int) -> PartyService:
        status = StatusService(self.site, ledger, self._limits, lambda: self._state, self._facts)
        pages = PartyQuestions(
            self.site, self._start, self._in_force, ledger, schema, n_rows, status,
            lambda: self._last_heard,
        )  # fmt: skip
        return PartyService(status, pages.questions(), pages.health)

    def _say_checked(self, schema: Schema, n_rows: int) -> None:
        """What the schema does to the rows, on the operator's own screen.

        Exact counts do not go into a file or a service's journal, which others may read.
        """
        if not self._terminal.is_terminal:
            self._terminal.say(
                "look once at what the schema does to the rows, with `hedgerow schema check "
                f"{self._start.schema} --data {self._start.data}`."
            )
            return
        self._terminal.show(f"{n_rows:,} rows.")
        for finding in self._start.check_table(schema).findings:
            self._terminal.show(finding.text, "yellow")

    def _warm(self, schema: Schema) -> None:
        """Compile before the party is ready: a round must not wait for it past its time-out."""
        if is_confined():
            bring_compiled()
        say_when_compiling(self._terminal.say)
        warm(PARTY_METHODS, (task_of(schema.label),))

    def _serve(self, party: Party, agreed: PinnedRoster, stack: ExitStack) -> None:
        self._agreed = agreed
        self._terminal.say(
            f"answering for {agreed.federation}; Ctrl-C ends it. Limits were read now; start again "
            "after changing them."
        )
        self._dial(party, stack)
        self._state = "running"
        roster, limits = Watched(self.site.roster_file), None
        if (file := self._start.limits_file(self.site)) is not None:
            limits = Watched(file)
        while not self._over.wait(POLL_SECONDS):
            if roster.changed():
                self._pin_again(party)
            if limits is not None and limits.changed():
                self._terminal.say(
                    "the limits file changed; this process still uses what it read at its start. "
                    "Start it again to use the new one.",
                    "yellow",
                )

    def _dial(self, party: Party, stack: ExitStack) -> None:
        if not self._dials:
            return
        if not self._agreed.address:
            self._terminal.say("the roster has no coordinator's address: relays alone can carry.")
            return
        from hedgerow.engines.grpc.client import Link

        def heard(message: bytes) -> bytes:
            self._last_heard = clock.timestamp()
            return party.handle(message)

        def say(text: str) -> None:
            self._terminal.say(text, about="connection")

        link = Link(party.name, party.identity, party.boot, heard, self._target, say)
        link.start()
        stack.callback(link.stop)
        self._link = link

    def _target(self) -> Target:
        from hedgerow.engines.grpc.client import Target

        agreed = self._agreed
        own = self.site.certificate() if agreed.mutual_tls else None
        return Target(agreed.address, agreed.certificate, agreed.roster, own)

    def _pin_again(self, party: Party) -> None:
        """A roster that was pinned while we run holds at once; open runs keep theirs."""
        try:
            agreed = self.site.pinned()
            self._check_roster(agreed.roster)
            party.pin(agreed.roster)
        except HedgerowError as error:
            self._terminal.say(
                f"the roster file changed and cannot be used; the one before holds: {error}",
                "bold red",
            )
            return
        if agreed.hash == self._agreed.hash:
            return
        for text in agreed.differences(self._agreed):
            self._terminal.say(f"a new roster holds: {text}", "yellow")
        self._agreed = agreed
        if self._link is not None:
            self._link.redial()

    def _facts(self) -> dict[str, Any]:
        """What a status says of the process itself."""
        link = self._link
        connection = None if link is None else {**link.state.__dict__}
        return {"connection": connection, "problem": self._problem, "confined": is_confined()}

    def _note(self, ledger: Ledger) -> None:
        """Also on a full disk a party goes on and ends cleanly: an older note is still true."""
        try:
            note_ledger_head(self.site, ledger)
        except HedgerowError as error:
            log.warning("%s", error)

    def _told(self, ledger: Ledger, show: Callable[[Event], None], event: Event) -> None:
        if event.what == "reserved":
            self._note(ledger)
        if event.what == "refused" and event.word == "rolled-back":
            self._say_lost(ledger)
        if event.what == "unwritten":
            self._problem = "the ledger cannot be written, so nothing is answered: free disk space"
        elif event.what in ("answered", "reserved"):
            self._problem = ""
        show(event)

    def _say_lost(self, ledger: Ledger) -> None:
        for gap in open_gaps(ledger, self.site.name):
            self._terminal.say(
                f"this ledger has lost lines: {gap.shown_by} keeps a head of it of {gap.time[:19]} "
                "UTC that is not here. Nothing is answered. Put the newest ledger back, or see "
                f"`hedgerow party settle {self.site.path}`.",
                "bold red",
            )

    def _record_limits(self, ledger: Ledger) -> None:
        if record_limits(self.site, ledger, self._in_force):
            self._terminal.say(
                "the limits are not those of the last start; the ledger says when they changed.",
                "yellow",
            )

    def _identify(self) -> Identity:
        identity = self.site.identity()
        self._terminal.say(
            f"party {self.site.name}, fingerprint {fingerprint(identity.public)} (its card: "
            f"{self.site.card_file})"
        )
        if self._start.limits_file(self.site) is None:
            self._terminal.say(
                "no limits file: the default limits hold. `hedgerow party limits "
                f"{self.site.path} --write` writes them to a file that you can change."
            )
        return identity

    def _await_roster(self) -> PinnedRoster | None:
        """The pinned roster; None if the process was stopped before there was one."""
        if not self.site.is_pinned:
            if not self._wait:
                self.site.pinned()  # raises, and says what to do
            self._state = "waiting for a roster"
            self._terminal.say(
                f"no roster is pinned yet. Send {self.site.card_file} to the coordinator, compare "
                f"phrases by telephone, then run `hedgerow party pin {self.site.path} ROSTER`. "
                "Waiting for it; Ctrl-C ends."
            )
        while not self._over.is_set():
            if self.site.is_pinned:
                return self.site.pinned()
            self._over.wait(POLL_SECONDS)
        return None

    def _check_roster(self, roster: Roster) -> None:
        """A roster under which every plan would be refused is an error at once."""
        problem = self._limits.objection(roster)
        if not problem and self._limits.wants_more_than(roster):
            problem = (
                f"the roster allows sums of {roster.least_set} parties, and the limits ask "
                f"for at least {self._limits.least_parties}"
            )
        if problem:
            raise SettingsError(
                f"{problem}. {_SPENT} Change least_parties, coordinator or [[party]] in the limits "
                "file if you agree with the roster, or pin another roster."
            )


class Stoppable(Protocol):
    """A process in the foreground."""

    def stop(self, *_: object) -> None: ...


@contextmanager
def stopped_by_signals(process: Stoppable) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the process cleanly; a second Ctrl-C ends it at once."""

    def stop(number: int, _: object) -> None:
        process.stop()
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
