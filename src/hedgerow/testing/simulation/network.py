"""The network between coordinator and parties, and the engine that real code sends through.

Messages are those of production: packed, sealed, signed bytes. They may be lost, late, doubled,
changed, out of order or held up by a partition; an old reply may come instead of a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from hedgerow.protocol.engine import Reply
from hedgerow.protocol.handshake import JOIN_RUN
from hedgerow.testing.simulation.faults import FROM, TO, Fault
from hedgerow.testing.simulation.reading import read
from hedgerow.testing.simulation.world import World

LEFT = "it left before it replied"  # what the engine of gRPC says of a broken stream
LATE = "no reply in time"
REST_SECONDS = 9.9  # in which nobody probes a party that was silent
PATIENCE = 60.0  # seconds within which a reply counts, by what commands are told


class Answering(Protocol):
    """A party's machine, as the network sees it."""

    name: str

    def receive(self, data: bytes) -> bytes | None:
        """The reply; None if the process is not there, or died over it."""
        ...

    @property
    def boot(self) -> int | None: ...


class Network:
    """Carries bytes to parties and back."""

    def __init__(self, world: World, parties: Mapping[str, Answering], connected: bool) -> None:
        self.world, self.parties, self.connected = world, parties, connected
        self.blocked: dict[tuple[str, str], float] = {}  # (party, direction): until when
        self.losing: dict[str, float] = {}  # parties whose answers are lost: until when
        self.slow: dict[str, float] = {}  # parties that take their time: until when
        self.heard: list[tuple[str, bytes]] = []  # messages that parties were sent, for lies
        self.honest_joins: set[bytes] = set()  # what the coordinator let parties join with
        self.replies: dict[str, bytes] = {}  # the last reply of each party
        self.on_reply: Callable[[str, bytes, bytes], None] = lambda name, asked, reply: None

    def block(self, party: str, directions: Sequence[str], seconds: float) -> None:
        for direction in directions:
            self.blocked[party, direction] = self.world.scheduler.now + seconds

    def is_blocked(self, party: str, direction: str) -> bool:
        return self.blocked.get((party, direction), 0.0) > self.world.scheduler.now

    def is_connected(self, party: str) -> bool:
        up = self.parties[party].boot is not None
        return up and not self.is_blocked(party, TO) and not self.is_blocked(party, FROM)

    def send(self, party: str, data: bytes, arrived: Callable[[bytes | None], None]) -> None:
        """A message to a party; its reply, or None for a broken connection, arrives later."""
        self.heard.append((party, data))
        if len(self.heard) > 60:
            del self.heard[:20]
        self._carry(party, TO, data, lambda came: self._delivered(party, came, arrived))

    def _delivered(self, party: str, data: bytes, arrived: Callable[[bytes | None], None]) -> None:
        machine = self.parties[party]
        reply = machine.receive(data)
        if reply is None:
            if self.connected:
                self.world.scheduler.after(0.05, lambda: arrived(None))
            return
        self.on_reply(party, data, reply)
        old, self.replies[party] = self.replies.get(party), reply
        late = self.world.scheduler.now < self.slow.get(party, 0.0)
        seconds = self.world.dice.between(5.0, 90.0) if late else self.world.dice.between(0, 0.02)
        self.world.scheduler.after(
            seconds, lambda: self._carry(party, FROM, reply, lambda came: arrived(came), old)
        )

    def _carry(
        self,
        party: str,
        direction: str,
        data: bytes,
        deliver: Callable[[bytes], None],
        old: bytes | None = None,
    ) -> None:
        world = self.world
        faults = world.passed(party, direction)
        if self.is_blocked(party, direction):
            world.count("held up by a partition")
            return
        losing = direction == FROM and world.scheduler.now < self.losing.get(party, 0.0)
        if losing and kind_of(data) == "answer":
            world.count("answer lost")
            return
        seconds, copies = world.dice.between(0.001, 0.02), 1
        for fault in faults:
            if fault.kind == "lose":
                copies = 0
            elif fault.kind == "duplicate":
                copies += 1
            elif fault.kind == "delay":
                seconds += fault.seconds
            elif fault.kind == "corrupt":
                data = _corrupted(data, fault)
            elif fault.kind == "stale reply" and old is not None:
                data = old
        for copy in range(copies):
            world.scheduler.after(seconds + copy * 0.5, lambda: deliver(data))


def _corrupted(data: bytes, fault: Fault) -> bytes:
    """One bit is another, anywhere; or the end is missing."""
    place = int(fault.drawn * 8 * len(data))
    if fault.number % 4 == 0:
        return data[: place // 8]
    changed = bytearray(data)
    changed[place // 8] ^= 1 << (place % 8)
    return bytes(changed)


class SimulatedEngine:
    """What real code sends through: an engine that knows nothing of who is connected."""

    simulated = False

    def __init__(self, network: Network, names: Sequence[str], process: str) -> None:
        self._network, self._names, self._process = network, tuple(names), process

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def ask(self, names: Sequence[str], message: bytes, timeout_seconds: float) -> dict[str, Reply]:
        return self._exchange(dict.fromkeys(names, message), timeout_seconds)

    def _exchange(self, data: Mapping[str, bytes], timeout_seconds: float) -> dict[str, Reply]:
        world, network = self._network.world, self._network
        kinds = sorted({kind_of(message) for message in data.values()})
        about = sorted({_about(message) for message in data.values()})
        world.note(self._process, f"{' and '.join(about)} -> {', '.join(data)}")
        world.count(f"sent {kinds[0]}")
        if kinds == [JOIN_RUN]:
            network.honest_joins |= set(data.values())
        found: dict[str, Reply] = {}
        waiting, began = [True], world.scheduler.now

        def arrived(name: str, reply: bytes | None) -> None:
            if not waiting or name in found:
                early = world.scheduler.now < began + PATIENCE and kinds != ["ready"]
                given_up = name not in found and early and reply is not None
                world.require(not given_up, "a reply in time is waited for", name)
                return
            found[name] = Reply(reply, "" if reply is not None else LEFT)
            if len(found) == len(data):
                waiting.clear()
                world.wake(self._process)

        def too_late() -> None:
            if waiting:
                waiting.clear()
                world.wake(self._process)

        asked = [name for name in data if not network.connected or network.is_connected(name)]
        found |= {name: Reply(None, LEFT) for name in data if name not in asked}
        for name in asked:
            network.send(name, data[name], lambda reply, name=name: arrived(name, reply))  # type: ignore[misc]
        if asked:
            world.scheduler.after(timeout_seconds, too_late)
            world.wait()
        silent = [name for name in data if name not in found]
        if kinds == ["ready"]:
            self._probed(began, data, silent)
        if silent:
            world.note(self._process, f"no reply from {', '.join(silent)}")
            world.count("no reply in time")
        return {name: found.get(name, Reply(None, LATE)) for name in data}

    def _probed(self, began: float, names: Iterable[str], silent: Sequence[str]) -> None:
        """Parties were probed at this time, and some of them gave no reply."""


class ConnectedEngine(SimulatedEngine):
    """One that knows, as that of gRPC does: who is connected, and that a stream broke."""

    def __init__(self, network: Network, names: Sequence[str], process: str) -> None:
        super().__init__(network, names, process)
        self._silent: dict[str, float] = {}  # since when

    def _probed(self, began: float, names: Iterable[str], silent: Sequence[str]) -> None:
        """A party that is connected and silent is left alone for a while, or all wait for it."""
        world = self._network.world
        early = [name for name in names if began < self._silent.get(name, -60.0) + REST_SECONDS]
        world.require(not early, "a silent party is not probed at once again", ", ".join(early))
        self._silent |= dict.fromkeys(silent, world.scheduler.now)

    def connected(self) -> Mapping[str, int] | None:
        network = self._network
        boots = {name: network.parties[name].boot for name in self._names}
        return {
            name: boot
            for name, boot in boots.items()
            if boot is not None and network.is_connected(name)
        }

    def ask_each(self, messages: Mapping[str, bytes], timeout_seconds: float) -> dict[str, Reply]:
        return self._exchange(messages, timeout_seconds)


def kind_of(data: bytes) -> str:
    message = read(data)
    return "unreadable bytes" if message is None else message.type


def _about(data: bytes) -> str:
    """A message in a few words."""
    message = read(data)
    if message is None or message.type != "ask":
        return kind_of(data)
    return f"ask slot {message.ask.slot}, attempt {message.ask.attempt}"
