"""A coordinator's port and parties' streams within one process, over real TLS on loopback."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import grpc

from hedgerow.engines.grpc import METHOD
from hedgerow.engines.grpc.certificate import make_certificate
from hedgerow.engines.grpc.client import OPTIONS, Link, Target
from hedgerow.engines.grpc.hello import Members
from hedgerow.engines.grpc.server import Server
from hedgerow.protocol.engine import Reply
from hedgerow.protocol.identity import Identity, Roster

NAMES = ("p0", "p1", "p2", "p3", "p4")
Handler = Callable[[bytes], bytes]


def echo(message: bytes) -> bytes:
    return b"echo " + message


def until(reached: Callable[[], Any], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


class Rig:
    """A server, and a link for each party; what a party answers is up to a test."""

    simulated = False

    def __init__(self, names: tuple[str, ...] = NAMES, mutual_tls: bool = False) -> None:
        self.names = names
        self.own = {name: make_certificate(name) for name in names} if mutual_tls else {}
        self.coordinator = Identity()
        self.identities = {name: Identity() for name in names}
        self.key, self.certificate = make_certificate("test")
        self.roster = self.roster_of(self.identities)
        self.handlers: dict[str, Handler] = dict.fromkeys(names, echo)
        self.told: dict[str, list[str]] = {name: [] for name in names}
        self.boots = dict[str, int]()
        self.links: dict[str, Link] = {}
        self.server = self.listen("127.0.0.1:0")
        self.port = self.server.port

    def roster_of(self, identities: Mapping[str, Identity]) -> Roster:
        keys = tuple((name, identities[name].public) for name in sorted(identities))
        return Roster(keys, self.coordinator.public, 1, 3, "parties")

    def listen(self, address: str) -> Server:
        return Server(
            address, self.certificate, self.key, self.coordinator, self.members(self.roster),
            self.boots, self.boots.__setitem__,
        )  # fmt: skip

    def members(self, roster: Roster) -> Members:
        shown = {name: pair[1] for name, pair in self.own.items() if name in roster.keys}
        return Members(roster, certificates=shown or None)

    def target(self, **changes: Any) -> Target:
        values = {"address": f"127.0.0.1:{self.port}", "certificate": self.certificate}
        return Target(**{**values, "roster": self.roster, **changes})

    def link(
        self, name: str, boot: int = 1, identity: Identity | None = None, **target: Any
    ) -> Link:
        def handle(message: bytes) -> bytes:
            return self.handlers[name](message)

        told = self.told.setdefault(name, [])
        target = {"own": self.own.get(name), **target}
        made = Link(
            name, identity or self.identities[name], boot, handle,
            lambda: self.target(**target), told.append,
        )  # fmt: skip
        made.start()
        return made

    def connect(self, *names: str) -> None:
        for name in names or self.names:
            self.links[name] = self.link(name)
        until(lambda: len(self.server.connected()) == len(self.links))

    def reconnect(self, name: str) -> None:
        """End a party's stream, as a network that breaks does, and wait for the next one."""
        link = self.links[name]
        before = link.state
        link.redial()
        until(lambda: link.state is not before and link.state.connected)

    def ask(self, names: Any, message: bytes, timeout_seconds: float) -> dict[str, Reply]:
        return self.server.ask_each(dict.fromkeys(names, message), timeout_seconds)

    def ask_each(self, messages: Mapping[str, bytes], timeout_seconds: float) -> dict[str, Reply]:
        return self.server.ask_each(messages, timeout_seconds)

    def close(self) -> None:
        for link in self.links.values():
            link.stop()
        self.server.close()

    @contextmanager
    def answering(self, handler: Handler, *names: str) -> Iterator[None]:
        before = dict(self.handlers)
        self.handlers.update(dict.fromkeys(names or self.names, handler))
        try:
            yield
        finally:
            self.handlers.update(before)


class RawStream:
    """A stream on which a test says whatever it likes."""

    def __init__(self, rig: Rig) -> None:
        self._said: list[bytes] = []
        self._more = threading.Condition()
        self._over = False
        credentials = grpc.ssl_channel_credentials(rig.certificate.encode())
        options = [*OPTIONS, ("grpc.enable_http_proxy", 0)]
        self._channel = grpc.secure_channel(f"127.0.0.1:{rig.port}", credentials, options)
        self._call = self._channel.stream_stream(METHOD)(self._frames())
        self.challenge = next(self._call)

    def say(self, frame: bytes) -> None:
        with self._more:
            self._said.append(frame)
            self._more.notify()

    def hear(self) -> bytes | None:
        """The next frame; None if the coordinator ended the stream."""
        try:
            return next(self._call, None)
        except grpc.RpcError:
            return None

    def close(self) -> None:
        with self._more:
            self._over = True
            self._more.notify()
        self._call.cancel()
        self._channel.close()

    def _frames(self) -> Iterator[bytes]:
        while True:
            with self._more:
                self._more.wait_for(lambda: self._said or self._over)
                if not self._said:
                    return
                frame = self._said.pop(0)
            yield frame
