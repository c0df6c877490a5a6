"""The long-lived process of a party: holds rows, key and ledger, and answers at two sockets.

The engine is a child process that only carries bytes. Roster and limits are read at the start.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from hedgerow.data.schema import Schema
from hedgerow.deployment.approvals import PlanFolder
from hedgerow.deployment.console import PartyConsole
from hedgerow.deployment.hold import holding
from hedgerow.deployment.ledger_head import note_ledger_head, open_ledger
from hedgerow.deployment.roles import role_factories
from hedgerow.deployment.start import Start, check_limits, record_limits
from hedgerow.deployment.status import StatusService
from hedgerow.deployment.store import FolderStore
from hedgerow.engines.site import Site
from hedgerow.engines.sockets import Listener
from hedgerow.errors import HedgerowError, SettingsError
from hedgerow.party.limits import Event, Limits
from hedgerow.party.party import Party
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.identity import Identity, Roster, fingerprint

log = logging.getLogger(__name__)
POLL_SECONDS = 0.5
_SPENT = "Nothing was asked and nothing was spent."


class Child(Protocol):
    """The engine's process, as its owner sees it."""

    def start(self) -> None: ...

    def watch(self) -> bool:
        """Whether it runs; starts it again if it died."""
        ...

    def stop(self) -> None: ...


def nvflare_child(site: Site) -> Child:
    """NVFlare's process of this site."""
    from hedgerow.engines.nvflare.processes import EngineProcess

    return EngineProcess(site)


class PartyProcess:
    """One party in the foreground, from the check of its table until it is stopped.

    Parameters
    ----------
    site : the party's site folder
    start : where its table, schema and limits are
    make_console : gives the console on which everything is shown
    engine : makes the engine's child process; None for a party that only listens at its sockets
    wait : whether to wait for a roster that is not pinned yet
    new_ledger : whether to go on although the ledger, and so what was spent, was lost
    """

    def __init__(
        self,
        site: Site,
        start: Start,
        make_console: Callable[[Limits], PartyConsole],
        engine: Callable[[Site], Child] | None,
        wait: bool = True,
        new_ledger: bool = False,
    ) -> None:
        self.site, self._start, self._wait, self._new_ledger = site, start, wait, new_ledger
        self._in_force = start.in_force(site)
        self._limits = self._in_force.limits
        self._console = make_console(self._limits)
        self._make_engine = engine
        self._state = "starting"
        self._over = threading.Event()

    def stop(self, *_: object) -> None:
        """End cleanly, soon; also the handler of Ctrl-C and SIGTERM."""
        self._over.set()

    def run(self) -> None:
        """Serve until stopped. Raises before anything else happens if the table does not fit."""
        schema, rows = self._start.read_table()
        child = self._make_engine(self.site) if self._make_engine else None
        held = f", {len(rows.columns)} of its columns" if rows.columns is not None else ""
        self._console.say(f"{self._start.data} fits the schema: {rows.n_rows:,} rows{held}.")
        self._say_checked(schema)
        with ExitStack() as stack:
            stack.enter_context(holding(self.site, f"hedgerow party start {self.site.path}"))
            ledger = stack.enter_context(open_ledger(self.site, self._new_ledger))
            check_limits(self.site, ledger, self._in_force)
            note_ledger_head(self.site, ledger)
            stack.callback(self._note, ledger)
            self._start.remember(self.site, self._in_force)
            identity = self._identify()
            service = StatusService(self.site, ledger, self._limits, lambda: self._state)
            stack.enter_context(Listener(self.site.status_socket, service.handle))
            roster = self._await_roster()
            if roster is None:
                return
            self._check_roster(roster)
            self._record_limits(ledger)
            party = Party(
                self.site.name, rows, schema, ledger, identity, self._limits,
                PlanFolder.of(self.site), partial(self._told, ledger), roles=role_factories(),
                store=FolderStore.of(self.site),
            )  # fmt: skip
            note_ledger_head(self.site, ledger)  # before anybody hears of this start
            party.pin(roster)
            stack.callback(party.close)
            stack.enter_context(self._console.follow(ledger))
            stack.enter_context(Listener(self.site.party_socket, party.handle))
            self._serve(child, stack)
        self._console.say("stopped.")

    def _say_checked(self, schema: Schema) -> None:
        """What the schema does to the rows, on the operator's own screen.

        Exact counts do not go into a file or a service's journal, which others may read.
        """
        if not self._console.is_terminal:
            self._console.say(
                "look once at what the schema does to the rows, with `hedgerow schema check "
                f"{self._start.schema} --data {self._start.data}`."
            )
            return
        for finding in self._start.check_table(schema).findings:
            self._console.say(finding.text, "yellow")

    def _serve(self, child: Child | None, stack: ExitStack) -> None:
        if child is not None:
            child.start()
            stack.callback(child.stop)
        self._state = "running"
        self._console.say(
            f"answering for {self.site.federation}; Ctrl-C ends it. Roster and limits were read "
            "now; start again after changing one of them."
        )
        files = {"roster": self.site.folder / "roster.toml"}
        if (limits := self._start.limits_file(self.site)) is not None:
            files["limits"] = limits
        stamps, was_running = {name: _stamp(file) for name, file in files.items()}, True
        while not self._over.wait(POLL_SECONDS):
            for name, file in files.items():
                if (now := _stamp(file)) != stamps[name]:
                    stamps[name] = now
                    self._console.say(
                        f"the {name} file changed; this process still uses what it read at its "
                        "start. Start it again to use the new one.",
                        "yellow",
                    )
            if child is not None and (running := child.watch()) != was_running:
                was_running = running
                words = "runs again" if running else "ended; it is started again"
                self._console.say(f"the engine's process {words}.", "yellow")

    def _note(self, ledger: Ledger) -> None:
        """Also on a full disk a party goes on and ends cleanly: an older note is still true."""
        try:
            note_ledger_head(self.site, ledger)
        except HedgerowError as error:
            log.warning("%s", error)

    def _told(self, ledger: Ledger, event: Event) -> None:
        if event.what == "reserved":
            self._note(ledger)
        self._console.event(event)

    def _record_limits(self, ledger: Ledger) -> None:
        if record_limits(self.site, ledger, self._in_force):
            self._console.say(
                "the limits are not those of the last start; the ledger says when they changed.",
                "yellow",
            )

    def _identify(self) -> Identity:
        first = not (self.site.folder / "signing-key.pem").exists()
        identity = self.site.identity()
        card = self.site.path / f"{self.site.name}.key.toml"
        if first or not card.exists():
            card = self.site.write_card()
        made = "made now" if first else "its key card"
        self._console.say(
            f"party {self.site.name}, fingerprint {fingerprint(identity.public)} ({made}: {card})"
        )
        if self._start.limits_file(self.site) is None:
            self._console.say(
                "no limits file: the default limits hold. `hedgerow party limits "
                f"{self.site.path} --write` writes them to a file that you can change."
            )
        return identity

    def _await_roster(self) -> Roster | None:
        """The pinned roster; None if the process was stopped before there was one."""
        file = self.site.folder / "roster.toml"
        if not file.exists():
            if not self._wait:
                self.site.roster()  # raises, and says what to do
            self._state = "waiting for a roster"
            self._console.say(
                f"no roster is pinned yet. Send {self.site.path / (self.site.name + '.key.toml')} "
                "to the other sites, compare fingerprints by telephone, then run `hedgerow "
                f"federation pin {self.site.path}` with their key cards or with the roster that "
                "you were sent. Waiting for it; Ctrl-C ends."
            )
        while not self._over.is_set():
            if file.exists():
                return self.site.roster()
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


@contextmanager
def stopped_by_signals(process: PartyProcess) -> Iterator[None]:
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


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
