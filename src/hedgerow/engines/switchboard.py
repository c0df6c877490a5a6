"""The coordinator's end of a relay: messages by party become a runtime's messages to its nodes.

A runtime knows nodes, the federation knows parties. Each node says for which party it stands, as
its administrator configured it. That is a claim, and a false one gains nothing: replies count for
the party whose pinned key signed them, and for no other.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hedgerow import clock
from hedgerow.engines.party_end import FILE, Answer, Question
from hedgerow.engines.relay import RelayService
from hedgerow.engines.sockets import MAX_BYTES, Listener, one_line
from hedgerow.errors import FormatError
from hedgerow.protocol.engine import Reply
from hedgerow.protocol.identity import NAME

log = logging.getLogger(__name__)
LOOK_SECONDS = 10.0  # for nodes to say for whom they stand
START_SECONDS = 60.0  # that parties are waited for while the runtime is starting
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 300.0  # before silent nodes are asked again
POLL_SECONDS = 5.0  # between looks for new nodes


@dataclass(frozen=True)
class CoordinatorEnd:
    """Where a runtime's process beside the coordinator listens for `hedgerow train`."""

    socket: str
    group: str = ""  # whose accounts may open it too


class Runtime(Protocol):
    """A runtime's messages, as far as a relay needs them."""

    @property
    def slack_seconds(self) -> float:
        """What a message takes beyond the time that the party has for it."""
        ...

    def nodes(self) -> Sequence[str]:
        """Everybody who can be sent a message now."""
        ...

    def carry(self, messages: Mapping[str, bytes], seconds: float) -> Mapping[str, Reply]:
        """What came back from each node; what an end of the relay says is in the body."""
        ...


class Switchboard:
    """Carries requests of a `RelayEngine` by a runtime. Use it in `with`: it looks for parties."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._changed, self._over = threading.Condition(), False
        self._missing = threading.Event()  # a party that was there, or it is over
        self._nodes: dict[str, set[str]] = {}  # by party: nodes that say they stand for it
        self._started = self._used = clock.monotonic()
        self._looking = threading.Thread(target=self._look, name="looking", daemon=True)

    @property
    def idle_seconds(self) -> float:
        """For how long nobody has asked for anything."""
        return clock.monotonic() - self._used

    def __enter__(self) -> Switchboard:
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._missing.set()
        self._looking.join(5.0)

    def connected(self) -> None:
        """A runtime knows whether its nodes are there, not whether the parties' processes are."""
        self._used = clock.monotonic()

    def ask_each(self, messages: Mapping[str, bytes], timeout_seconds: float) -> dict[str, Reply]:
        """Carry each party its message; who cannot be reached is named with the reason."""
        self._used, deadline = clock.monotonic(), clock.monotonic() + timeout_seconds
        nodes = self._nodes_of(messages, deadline)
        seconds = max(1.0, deadline - clock.monotonic())
        questions = {
            node: Question(messages[name], seconds).to_bytes()
            for name, node in nodes.items()
            if node is not None
        }
        carried = self._carried(questions, seconds + self._runtime.slack_seconds)
        self._used = clock.monotonic()
        return {
            name: Reply(None, self._why_not(name))
            if node is None
            else self._reply(name, node, carried.get(node))
            for name, node in nodes.items()
        }

    def _carried(self, questions: Mapping[str, bytes], seconds: float) -> Mapping[str, Reply]:
        if not questions:
            return {}
        try:
            return self._runtime.carry(questions, seconds)
        except Exception as error:  # whatever a runtime raises, the parties' names are known here
            log.warning("the runtime failed: %s", one_line(str(error)))
            failed = Reply(None, f"the runtime failed inside ({type(error).__name__})")
            return dict.fromkeys(questions, failed)

    def _nodes_of(self, names: Mapping[str, bytes], deadline: float) -> dict[str, str | None]:
        """The one node of each party; None where there is not one. All are waited for at first."""
        deadline = min(deadline, self._started + START_SECONDS)
        with self._changed:
            while any(name not in self._nodes for name in names):
                if (rest := deadline - clock.monotonic()) <= 0:
                    break
                self._changed.wait(rest)
            found = {name: self._nodes.get(name, set()) for name in names}
        return {name: next(iter(at)) if len(at) == 1 else None for name, at in found.items()}

    def _look(self) -> None:
        """Ask nodes for whom they stand: new ones at once, silent ones less and less often."""
        rests: dict[str, tuple[float, float]] = {}  # by node: not asked until when, and how long
        while not self._over:
            if self._missing.is_set():  # a party that was there may be behind any of them
                self._missing.clear()
                rests.clear()
            now, due = clock.monotonic(), list[str]()
            starting = now - self._started < START_SECONDS
            try:
                due = [n for n in self._strangers() if rests.get(n, (0.0, 0.0))[0] <= now]
                self._ask(due)
            except Exception as error:  # whatever a runtime raises, the next look may succeed
                log.warning("nodes could not be asked: %s", type(error).__name__)
            for node in due:
                rest = FIRST_PAUSE_SECONDS if starting or node not in rests else 2 * rests[node][1]
                rest = min(rest, LONGEST_PAUSE_SECONDS)
                rests[node] = (clock.monotonic() + rest, rest)
            if not self._over:
                self._missing.wait(FIRST_PAUSE_SECONDS if starting else POLL_SECONDS)

    def _strangers(self) -> list[str]:
        with self._changed:
            known = {node for nodes in self._nodes.values() for node in nodes}
        return [node for node in self._runtime.nodes() if node not in known]

    def _ask(self, strangers: Sequence[str]) -> None:
        """Note of these nodes for whom they say that they stand."""
        if not strangers:
            return
        question = Question(b"", LOOK_SECONDS).to_bytes()
        limit = LOOK_SECONDS + self._runtime.slack_seconds
        carried = self._runtime.carry(dict.fromkeys(strangers, question), limit)
        with self._changed:
            for node, reply in carried.items():
                if party := _party_in(reply):
                    self._nodes.setdefault(party, set()).add(node)
                    log.info("node %s says that it stands for %s", node, party)
            self._changed.notify_all()

    def _reply(self, name: str, node: str, carried: Reply | None) -> Reply:
        problem = "the runtime brought nothing back" if carried is None else carried.problem
        if carried is not None and carried.body is not None:
            try:
                answer = Answer.from_bytes(carried.body)
            except FormatError as error:
                problem = str(error)
            else:
                if answer.party == name:
                    words = one_line(answer.problem)
                    return Reply(None, words) if words else Reply(answer.body)
                problem = "its node stands for another party now"
        self._forget(name)  # it may be behind another node next time
        return Reply(None, one_line(f"{problem} (node {node})"))

    def _why_not(self, name: str) -> str:
        if several := self._forget(name):
            nodes = ", ".join(sorted(several))
            return f"several nodes say that they stand for it, and one may: {nodes}"
        return f"no node of the runtime says that it stands for it; look at {FILE} at its site"

    def _forget(self, name: str) -> set[str]:
        with self._changed:
            nodes = self._nodes.pop(name, set())
        if nodes:
            self._missing.set()
        return nodes


def listen(end: CoordinatorEnd, board: Switchboard) -> Listener:
    """Answer `hedgerow train` at the socket that the machine's administrator named."""
    return Listener(Path(end.socket), RelayService(board).handle, end.group, MAX_BYTES)


def _party_in(carried: Reply) -> str:
    """The party that a node says it stands for; empty if it did not say."""
    try:
        party = Answer.from_bytes(carried.body).party if carried.body else ""
    except FormatError:
        return ""
    return party if NAME.fullmatch(party) else ""
