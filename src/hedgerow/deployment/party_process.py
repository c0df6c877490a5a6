"""The long-lived process of a party: holds rows, key and ledger, and answers at two sockets.

The engine is a child process that only carries bytes. Roster and limits are read at the start.
"""

from __future__ import annotations

import signal
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import tomli_w

from hedgerow.deployment.board import Board
from hedgerow.deployment.desk import Desk
from hedgerow.deployment.limits import default_limits_text, limits_from_text, read_limits
from hedgerow.deployment.plans import PlanFolder, write_private
from hedgerow.errors import FormatError, LedgerError, SettingsError
from hedgerow.federation.kit import Kit
from hedgerow.federation.sockets import Listener
from hedgerow.limits import Limits, least_parties
from hedgerow.party import Party
from hedgerow.privacy.identity import Identity, Roster, fingerprint
from hedgerow.privacy.ledger import Ledger
from hedgerow.schema import Schema
from hedgerow.tables import Rows, rows_of

POLL_SECONDS = 0.5
_SPENT = "Nothing was asked and nothing was spent."


class Child(Protocol):
    """The engine's process, as its owner sees it."""

    def start(self) -> None: ...

    def watch(self) -> bool:
        """Whether it runs; starts it again if it died."""
        ...

    def stop(self) -> None: ...


def nvflare_child(kit: Kit) -> Child:
    """NVFlare's process of this kit."""
    from hedgerow.federation.nvflare.processes import EngineProcess

    return EngineProcess(kit)


@dataclass(frozen=True)
class Start:
    """Where a party's table, schema and limits are; remembered in its kit."""

    data: Path | None = None
    schema: Path | None = None
    limits: Path | None = None

    @classmethod
    def remembered(cls, kit: Kit) -> Start:
        file = kit.folder / "start.toml"
        if not file.exists():
            return cls()
        try:
            values = tomllib.loads(file.read_text("utf-8"))
            known = {key: Path(values[key]) for key in ("data", "schema", "limits") if values[key]}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FormatError(
                f"{file} is not readable; remove it and give --data and --schema. {_SPENT}"
            ) from error
        return cls(**known)

    def updated(self, data: Path | None, schema: Path | None, limits: Path | None) -> Start:
        """With what was given now instead, as absolute paths."""
        given = {"data": data, "schema": schema, "limits": limits}
        return replace(self, **{key: path.resolve() for key, path in given.items() if path})

    def remember(self, kit: Kit) -> None:
        values = {key: str(value or "") for key, value in self.__dict__.items()}
        write_private(kit.folder / "start.toml", tomli_w.dumps({"format": 1, **values}))

    def limits_file(self, kit: Kit) -> Path | None:
        """The limits file that was named, else the kit's own; None if there is neither."""
        own = kit.folder / "limits.toml"
        return self.limits or (own if own.exists() else None)

    def read_limits(self, kit: Kit) -> Limits:
        """What the party allows; without a file, the default limits."""
        file = self.limits_file(kit)
        if file is None:
            return limits_from_text(default_limits_text(), kit.name, "the default limits")
        return read_limits(file, kit.name)

    def read_table(self) -> tuple[Schema, Rows]:
        """Schema and rows; everything else waits until they fit each other."""
        if self.data is None or self.schema is None:
            missing = "--data" if self.data is None else "--schema"
            raise SettingsError(
                f"{missing} is not known yet: give it once, and `hedgerow party start` remembers "
                f"it in the kit. {_SPENT}"
            )
        schema = Schema.read(self.schema)
        return schema, rows_of(self.data, schema)


class PartyProcess:
    """One party in the foreground, from the check of its table until it is stopped.

    Parameters
    ----------
    kit : the party's kit
    start : where its table, schema and limits are
    make_board : gives the board on which everything is shown
    engine : makes the engine's child process; None for a party that only listens at its sockets
    wait : whether to wait for a roster that is not pinned yet
    """

    def __init__(
        self,
        kit: Kit,
        start: Start,
        make_board: Callable[[Limits], Board],
        engine: Callable[[Kit], Child] | None,
        wait: bool = True,
    ) -> None:
        self.kit, self._start, self._wait = kit, start, wait
        self._limits = start.read_limits(kit)
        self._board = make_board(self._limits)
        self._make_engine = engine
        self._state = "starting"
        self._over = threading.Event()

    def stop(self, *_: object) -> None:
        """End cleanly, soon; also the handler of Ctrl-C and SIGTERM."""
        self._over.set()

    def run(self) -> None:
        """Serve until stopped. Raises before anything else happens if the table does not fit."""
        schema, rows = self._start.read_table()
        child = self._make_engine(self.kit) if self._make_engine else None
        self._board.say(f"{self._start.data} fits the schema: {rows.n_rows:,} rows.")
        with ExitStack() as stack:
            ledger = stack.enter_context(self._open_ledger())
            self._start.remember(self.kit)
            identity = self._identify()
            desk = Desk(self.kit, ledger, self._limits, lambda: self._state)
            stack.enter_context(Listener(self.kit.desk_socket, desk.handle))
            roster = self._await_roster()
            if roster is None:
                return
            self._check_roster(roster)
            party = Party(
                self.kit.name, rows, schema, ledger, identity, self._limits,
                PlanFolder.of(self.kit), self._board.event,
            )  # fmt: skip
            party.pin(roster)
            stack.callback(party.close)
            stack.enter_context(self._board.follow(ledger))
            stack.enter_context(Listener(self.kit.party_socket, party.handle))
            self._serve(child, stack)
        self._board.say("stopped.")

    def _serve(self, child: Child | None, stack: ExitStack) -> None:
        if child is not None:
            child.start()
            stack.callback(child.stop)
        self._state = "running"
        self._board.say(
            f"answering for {self.kit.federation}; Ctrl-C ends it. Roster and limits were read "
            "now; start again after changing one of them."
        )
        files = {"roster": self.kit.folder / "roster.toml"}
        if (limits := self._start.limits_file(self.kit)) is not None:
            files["limits"] = limits
        stamps, was_running = {name: _stamp(file) for name, file in files.items()}, True
        while not self._over.wait(POLL_SECONDS):
            for name, file in files.items():
                if (now := _stamp(file)) != stamps[name]:
                    stamps[name] = now
                    self._board.say(
                        f"the {name} file changed; this process still uses what it read at its "
                        "start. Start it again to use the new one.",
                        "yellow",
                    )
            if child is not None and (running := child.watch()) != was_running:
                was_running = running
                words = "runs again" if running else "ended; it is started again"
                self._board.say(f"the engine's process {words}.", "yellow")

    def _open_ledger(self) -> Ledger:
        try:
            return Ledger.open(self.kit.ledger_path)
        except LedgerError as error:
            if "another process" in str(error):
                raise LedgerError(
                    f"the ledger of {self.kit.name} is in use by another process, most likely "
                    f"another `hedgerow party start {self.kit.path}`. Stop that one first. {_SPENT}"
                ) from error
            raise

    def _identify(self) -> Identity:
        first = not (self.kit.folder / "signing-key.pem").exists()
        identity = self.kit.identity()
        card = self.kit.path / f"{self.kit.name}.key.toml"
        if first or not card.exists():
            card = self.kit.write_card()
        made = "made now" if first else "its key card"
        self._board.say(
            f"party {self.kit.name}, fingerprint {fingerprint(identity.public)} ({made}: {card})"
        )
        if self._start.limits_file(self.kit) is None:
            self._board.say(
                "no limits file: the default limits hold. `hedgerow party limits "
                f"{self.kit.path} --write` writes them to a file that you can change."
            )
        return identity

    def _await_roster(self) -> Roster | None:
        """The pinned roster; None if the process was stopped before there was one."""
        file = self.kit.folder / "roster.toml"
        if not file.exists():
            if not self._wait:
                self.kit.roster()  # raises, and says what to do
            self._state = "waiting for a roster"
            self._board.say(
                f"no roster is pinned yet. Send {self.kit.path / (self.kit.name + '.key.toml')} to "
                "the other houses, compare fingerprints by telephone, then run `hedgerow "
                f"federation pin {self.kit.path}` with their key cards or with the roster that "
                "you were sent. Waiting for it; Ctrl-C ends."
            )
        while not self._over.is_set():
            if file.exists():
                return self.kit.roster()
            self._over.wait(POLL_SECONDS)
        return None

    def _check_roster(self, roster: Roster) -> None:
        """A roster under which every plan would be refused is an error at once."""
        problem = self._limits.objection(roster)
        if not problem and self._limits.wants_more_than(roster):
            problem = (
                f"the roster allows sums of {least_parties(roster)} parties, and the limits ask "
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
