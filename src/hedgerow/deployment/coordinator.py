"""The long-lived process of a coordinator: one port for the parties, one socket for whoever drives
a run, one for the operator."""

from __future__ import annotations

import ctypes
import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from hedgerow.deployment.console.coordinator_questions import CoordinatorQuestions
from hedgerow.deployment.hold import PORT_FILE, holding
from hedgerow.deployment.logs import SiteLog, log_file
from hedgerow.deployment.runs import list_runs
from hedgerow.deployment.site_service import SiteService
from hedgerow.deployment.watching import Watched
from hedgerow.engines.cards import PinnedRoster
from hedgerow.engines.grpc import check_installed
from hedgerow.engines.relay import RelayService
from hedgerow.engines.site import Site, write_file
from hedgerow.engines.sockets import MAX_BYTES, Listener, Unreachable, call
from hedgerow.errors import FormatError, HedgerowError, SettingsError

log = logging.getLogger(__name__)
POLL_SECONDS = 0.5
STATUS_SECONDS = 10.0
CRASH_LOOP_STARTS = 4  # of one party within ten minutes
_BOOTS = "boots.json"
_MALLOPT = ((-3, 2**20), (-8, 2))  # M_MMAP_THRESHOLD and M_ARENA_MAX of mallopt(3)


class CoordinatorProcess:
    """Lets parties connect, in the foreground until it is stopped."""

    def __init__(
        self,
        site: Site,
        tell: Callable[[str], None],
        console_socket: tuple[Path, str] | None = None,
    ) -> None:
        check_installed()
        if not site.address:
            raise SettingsError(
                f"{site.path} was made without --listen, for parties behind another runtime's "
                "relay. Nothing was started. Make a coordinator's site with `hedgerow coordinator "
                "init SITE --listen HOST:PORT`."
            )
        self.site, self._show = site, tell
        self._console_socket = console_socket or (site.console_socket, "")
        self._log = SiteLog(log_file(site, "coordinator"))
        self._over = threading.Event()

    def stop(self, *_: object) -> None:
        """End cleanly, soon; also the handler of Ctrl-C and SIGTERM."""
        self._over.set()

    def _tell(self, text: str) -> None:
        """On the screen and in the log."""
        self._log.say(text)
        self._show(text)

    def run(self) -> None:
        """Serve until stopped."""
        site = self.site
        _give_large_memory_back()
        with ExitStack() as stack:
            stack.enter_context(self._log.following())
            command = f"hedgerow coordinator start {site.path}"
            stack.enter_context(holding(site, command, PORT_FILE))
            if (agreed := self._await_roster()) is None:
                return
            server = stack.enter_context(self._server(agreed))
            service = StatusService(site, server)
            carried = RelayService(server).handle
            stack.enter_context(Listener(site.carrier_socket, carried, longest=MAX_BYTES))
            stack.enter_context(Listener(site.status_socket, service.handle))
            questions = CoordinatorQuestions(site, service.status, self._log)
            stack.callback(questions.close)
            console = SiteService(site, questions.questions(), questions.health)
            path, group = self._console_socket
            stack.enter_context(Listener(path, console.handle_console, group))
            self._tell(f"Parties dial {site.address}. Ctrl-C ends it; runs can be resumed later.")
            pinned = Watched(site.roster_file)
            while not self._over.wait(POLL_SECONDS):
                if pinned.changed():
                    self._accept(server)

    def _server(self, agreed: PinnedRoster) -> Any:
        from hedgerow.engines.grpc.server import Server

        key, certificate = self.site.certificate()
        if agreed.certificate.strip() != certificate.strip():
            raise SettingsError(
                "the pinned roster has another certificate of this coordinator than its site "
                "folder: every party would turn away. Nothing was started. Make a roster with "
                "the newest coordinator.card.toml and pin it everywhere."
            )
        boots = _read_boots(self.site)

        def note(public: str, boot: int) -> None:
            boots[public] = boot
            try:
                write_file(self.site.folder / _BOOTS, json.dumps(boots), 0o600)
            except OSError as error:  # a full disk does not keep parties out
                log.warning("cannot note a party's start: %s", error)

        members = _members(self.site, agreed)
        identity = self.site.identity()
        return Server(listen_at(self.site), certificate, key, identity, members, boots, note)

    def _await_roster(self) -> PinnedRoster | None:
        if not self.site.is_pinned:
            self._tell(
                "No roster is pinned yet: waiting for `hedgerow federation roster CARD... --site "
                f"{self.site.path}` or `hedgerow coordinator pin {self.site.path} ROSTER`."
            )
        while not self.site.is_pinned:
            if self._over.wait(POLL_SECONDS):
                return None
        return self.site.pinned()

    def _accept(self, server: Any) -> None:
        """A new roster holds at once; runs that are open keep theirs."""
        try:
            agreed = self.site.pinned()
            members = _members(self.site, agreed)
        except HedgerowError as error:
            self._tell(f"The roster file changed and cannot be used; the one before holds: {error}")
            return
        server.accept(members)
        self._tell(f"A new roster holds: {', '.join(agreed.roster.names)}.")


def _give_large_memory_back() -> None:
    """Messages go back to the system when they are done with.

    Otherwise glibc keeps what was freed for every thread that once carried one, in up to eight
    arenas a core: three parties with 10 MB each took half a gigabyte.
    """
    with suppress(OSError, AttributeError):  # another C library has another way, or none
        for option, value in _MALLOPT:
            ctypes.CDLL(None).mallopt(option, value)


def listen_at(site: Site) -> str:
    """Where the port is opened: everywhere on this machine, unless the address is its own."""
    from hedgerow.engines.grpc.dialling import is_loopback

    if site.bind:
        return site.bind
    port = site.address.rpartition(":")[2]
    return f"127.0.0.1:{port}" if is_loopback(site.address) else f"0.0.0.0:{port}"


def _members(site: Site, agreed: PinnedRoster) -> Any:
    from hedgerow.engines.grpc.hello import Members

    certificates = agreed.certificates if agreed.mutual_tls else None
    return Members(agreed.roster, site.former_keys(), certificates)


def _read_boots(site: Site) -> dict[str, int]:
    file = site.folder / _BOOTS
    if not file.exists():
        return {}
    try:
        read = json.loads(file.read_text("utf-8"))
        return {str(key): int(boot) for key, boot in read.items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise FormatError(
            f"{file} is not readable. It notes the newest start of every party; remove it if you "
            "are sure that no older copy of a party runs"
        ) from error


class StatusService:
    """Answers the coordinator's operator."""

    def __init__(self, site: Site, server: Any) -> None:
        self._site, self._server = site, server

    def handle(self, message: bytes) -> bytes:
        return json.dumps(self.status()).encode()

    def status(self) -> dict[str, Any]:
        agreed = self._site.pinned()
        return {
            "running": True,
            "federation": agreed.federation,
            "address": self._site.address,
            "roster": agreed.roster.hash,
            "phrase": agreed.phrase,
            "strangers": self._server.turned_away,
            "parties": _with_problems(self._server.status(), _absent_in_runs(self._site)),
        }


def _with_problems(
    parties: Sequence[dict[str, Any]], absent: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    return [{**one, "problems": [*_problems(one), *absent.get(one["name"], ())]} for one in parties]


def _problems(party: dict[str, Any]) -> list[str]:
    """What the port knows of a party."""
    problems = [party["remarks"]] if party["connected"] and party["remarks"] else []
    if party["starts"] >= CRASH_LOOP_STARTS:
        problems.append(f"started {party['starts']} times in ten minutes: it keeps crashing")
    if not party["connected"]:
        problems.append(party["why"])
    return problems


def _absent_in_runs(site: Site) -> dict[str, list[str]]:
    """By party: why it is not in the sums of a run that is under way, as whoever drives it says."""
    found: dict[str, list[str]] = {}
    for record in list_runs(site):
        for name, why in record.absent.items() if record.state == "running" else ():
            found.setdefault(name, []).append(f"not in the sums of run {record.run}: {why}")
    return found


def ask_status(site: Site) -> dict[str, Any]:
    """What the coordinator's process says; {"running": False} if there is none."""
    try:
        found: dict[str, Any] = json.loads(call(site.status_socket, b"status", STATUS_SECONDS))
        return found
    except Unreachable:
        return {"running": False, "federation": site.federation, "address": site.address,
                "parties": []}  # fmt: skip
