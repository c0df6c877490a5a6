"""The console as a process: one port, on this machine alone unless TLS protects it."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from hedgerow.deployment.console.client import SiteClient
from hedgerow.deployment.console.coordinator_pages import COORDINATOR_PAGES, coordinator_routes
from hedgerow.deployment.console.metrics import metrics_routes, read_token
from hedgerow.deployment.console.pages import PARTY_PAGES, entrance_routes, party_routes
from hedgerow.deployment.console.security import LONGEST_HEAD, Door, Guard
from hedgerow.deployment.console.web import Console, when_refused
from hedgerow.deployment.logs import SiteLog
from hedgerow.errors import SettingsError

DEFAULT_LISTEN = "127.0.0.1:8420"
MOST_AT_ONCE = 64
_NOTHING = "Nothing was started."


@dataclass(frozen=True)
class ConsoleSettings:
    """Where a console listens, whom it asks, and where it keeps its token and log."""

    title: str
    role: str  # of the site: "party" or "coordinator"
    socket: Path  # of the site's process
    state: Path  # folder of the console's own
    listen: str = DEFAULT_LISTEN
    names: tuple[str, ...] = ()  # further host names under which browsers reach it
    certificate: Path | None = None
    key: Path | None = None

    @property
    def tls(self) -> bool:
        return self.certificate is not None

    def url(self, port: int) -> str:
        """Where browsers find it."""
        host = (self.names or (self.listen.rpartition(":")[0],))[0]
        return f"{'https' if self.tls else 'http'}://{host}:{port}"

    def address(self) -> tuple[str, int]:
        """Host and port, checked: beyond this machine nothing is served in the clear."""
        host, _, port = self.listen.rpartition(":")
        host = host.strip("[]")
        if not host or not port.isdigit() or not 0 <= int(port) < 65536:
            raise SettingsError(
                f"--listen {self.listen!r} is no HOST:PORT, such as {DEFAULT_LISTEN}. {_NOTHING}"
            )
        if (self.certificate is None) != (self.key is None):
            raise SettingsError(
                f"--certificate and --key belong together: PEM files of TLS. {_NOTHING}"
            )
        if not _is_loopback(host) and not self.tls:
            raise SettingsError(
                f"--listen {self.listen} can be reached from other machines, and sessions would "
                f"travel in the clear. {_NOTHING} Give --certificate and --key (PEM files), or "
                "listen at 127.0.0.1 and reach it through ssh -L."
            )
        return host, int(port)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class ConsoleServer:
    """Serves pages in the foreground until it is stopped."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self._settings = settings
        host, port = settings.address()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
            self._socket.listen(128)
        except OSError as error:
            self._socket.close()
            raise SettingsError(
                f"{settings.listen} cannot be listened at: {error.strerror or error}. {_NOTHING} "
                "Name another port with --listen."
            ) from error
        self.port: int = self._socket.getsockname()[1]
        self.log = SiteLog(settings.state / "logs" / "console.log")
        self.door = self._door(host)
        self.app = make_app(settings, self.door, self.log)
        self._server = uvicorn.Server(self._config(self.app))

    @property
    def url(self) -> str:
        return self._settings.url(self.port)

    def _door(self, host: str) -> Door:
        settings = self._settings
        names = {"localhost", "127.0.0.1", "[::1]", *settings.names}
        names.add(f"[{host}]" if ":" in host else host)
        hosts = {f"{name.lower()}:{self.port}" for name in names}
        if self.port == (443 if settings.tls else 80):  # browsers leave it out
            hosts |= {name.lower() for name in names}
        cookie = "__Host-hedgerow" if settings.tls else f"hedgerow-{self.port}"
        return Door(frozenset(hosts), settings.tls, cookie, self.log.say)

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until `stop`."""
        with self.log.following("uvicorn.error"):  # what never was a request
            self.log.say(f"the console of {self._settings.title} listens at {self.url}")
            ready()
            self._server.run(sockets=[self._socket])
            self.log.say("the console stopped")

    def close(self) -> None:
        """Let go of a port that was never served."""
        self._socket.close()
        self.log.close()

    def stop(self, *_: object) -> None:
        """End soon; also the handler of Ctrl-C and SIGTERM."""
        self._server.should_exit = True

    def _config(self, app: ASGIApp) -> uvicorn.Config:
        settings = self._settings
        return uvicorn.Config(
            app, access_log=False, log_config=None, server_header=False, proxy_headers=False,
            http="h11", ws="none", lifespan="off", loop="asyncio",
            h11_max_incomplete_event_size=LONGEST_HEAD, limit_concurrency=MOST_AT_ONCE,
            timeout_keep_alive=15, timeout_graceful_shutdown=3,
            ssl_certfile=settings.certificate, ssl_keyfile=settings.key,
        )  # fmt: skip


def make_app(settings: ConsoleSettings, door: Door, log: SiteLog) -> Starlette:
    """The pages of a party's or a coordinator's site."""
    command = f"hedgerow {settings.role} start SITE"
    client = SiteClient(settings.socket)
    is_party = settings.role == "party"
    menu = PARTY_PAGES if is_party else COORDINATOR_PAGES
    console = Console(client, door, settings.title, menu, command, log, is_party)
    routes = [
        *(party_routes(console) if is_party else coordinator_routes(console)),
        *entrance_routes(console),
        *metrics_routes(console, read_token(settings.state)),
    ]
    handlers = when_refused(console)
    return Starlette(
        routes=routes, exception_handlers=handlers, middleware=[Middleware(Guard, door=door)]
    )
