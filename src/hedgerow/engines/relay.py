"""One protocol between whoever drives a run and whatever carries its messages: a local socket.

The process that drives a run (`hedgerow train`) asks; the process that holds the parties' streams
(`hedgerow coordinator start`, or a relay inside another runtime) carries. Over `sockets.call`, all
values and bytes packed by `packing.pack`, one request and one reply a connection:

    {"format": 1, "what": "ask", "names": [...], "timeout": seconds}  arrays: "all", or one a name
        -> {"format": 1, "problems": {name: words}, "boots": as below}  arrays: a reply by its name
    {"format": 1, "what": "who"}
        -> {"format": 1, "boots": {name: boot counter}}    of parties that are connected; or null
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hedgerow import clock
from hedgerow.engines.party_end import LONGEST_SECONDS
from hedgerow.engines.sockets import Unreachable, call, one_line
from hedgerow.errors import FormatError, HedgerowError
from hedgerow.packing import pack, unpack
from hedgerow.protocol.engine import Reply
from hedgerow.protocol.identity import check_names

FORMAT = 1
GRACE_SECONDS = 45.0  # for the carrier, beyond the parties' time: Flower may take half a minute
WHO_SECONDS = 10.0
RESTART_SECONDS = 15.0  # for a carrier to be started again in the middle of a run
FRESH_SECONDS = 0.05  # for so long what a carrier said of who is there counts as now
_ALL = "all"
_LEFT_OUT = Reply(None, "it is left out of this run (--without)")


class Carrier(Protocol):
    """Whatever brings messages to parties and their replies back."""

    def ask_each(
        self, messages: Mapping[str, bytes], timeout_seconds: float
    ) -> dict[str, Reply]: ...

    def connected(self) -> Mapping[str, int] | None:
        """Boot counters of parties that are connected now; None if it cannot know."""
        ...


class RelayService:
    """The carrier's end: `handle` answers one request; give it to a `Listener`."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier

    def handle(self, request: bytes) -> bytes:
        values, arrays = unpack(request)
        del request  # of what is long only what is still needed is kept: messages, then replies
        if values.get("format") != FORMAT or values.get("what") not in ("ask", "who"):
            raise FormatError("a request is not readable")
        if values["what"] == "who":
            return pack({"format": FORMAT, "boots": self._boots()})
        seconds = values.get("timeout")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
            raise FormatError("a request is not readable")
        messages = _messages_in(values.get("names"), arrays)
        del arrays
        replies = self._carrier.ask_each(messages, float(min(seconds, LONGEST_SECONDS)))
        del messages
        bodies = {n: _array(r.body) for n, r in replies.items() if r.body is not None}
        problems = {name: r.problem for name, r in replies.items() if r.body is None}
        found = {"format": FORMAT, "problems": problems, "boots": self._boots()}
        return pack(found, bodies)

    def _boots(self) -> dict[str, int] | None:
        boots = self._carrier.connected()
        return None if boots is None else dict(boots)


class RelayEngine:
    """The driver's end: an engine whose messages a process of this machine carries.

    Parameters
    ----------
    path : the socket at which it listens
    names : the parties to carry to
    start : what to tell people who have not started it
    without : parties that are left out, as if they were not there
    """

    simulated = False

    def __init__(
        self, path: Path, names: Sequence[str], start: str, without: Sequence[str] = ()
    ) -> None:
        self._path, self._start, self._without = path, start, frozenset(without)
        self._names = tuple(sorted(check_names(names)))
        self._heard: tuple[float, dict[str, Any]] = (-1.0, {})  # when a reply said who is there

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def ask(self, names: Sequence[str], message: bytes, timeout_seconds: float) -> dict[str, Reply]:
        asked = [name for name in names if name not in self._without]
        replies = self._carried(asked, {_ALL: message}, timeout_seconds) if asked else {}
        return {name: replies.get(name, _LEFT_OUT) for name in names}

    def ask_each(self, messages: Mapping[str, bytes], timeout_seconds: float) -> dict[str, Reply]:
        asked = {name: m for name, m in messages.items() if name not in self._without}
        replies = self._carried(list(asked), asked, timeout_seconds) if asked else {}
        return {name: replies.get(name, _LEFT_OUT) for name in messages}

    def connected(self) -> dict[str, int] | None:
        """Parties that are connected now, with their boot counters; None if the carrier cannot
        know. A carrier that is just being started again is given a moment.

        Rounds follow each other within milliseconds, and each reply says who is there.
        """
        now, (heard, said) = clock.monotonic(), self._heard
        fresh = 0 <= heard <= now <= heard + FRESH_SECONDS
        boots = _boots_in(said) if fresh else self._boots(now + RESTART_SECONDS)
        if boots is None:
            return None
        wanted = {*self._names} - self._without
        return {name: boot for name, boot in boots.items() if name in wanted}

    def await_parties(self, seconds: float) -> list[str]:
        """Wait until all are connected, or for so long; returns those that are missing.

        Raises if by then the carrier itself does not run.
        """
        deadline = clock.monotonic() + seconds
        wanted = [name for name in self._names if name not in self._without]
        while True:
            boots = self._boots(deadline)
            missing = [] if boots is None else [name for name in wanted if name not in boots]
            if not missing or clock.monotonic() >= deadline:
                return missing
            clock.sleep(0.2)

    def _boots(self, deadline: float) -> dict[str, int] | None:
        """What the carrier says of who is there; Unreachable if by then it does not run."""
        while True:
            try:
                values, _ = self._call({"what": "who"}, {}, WHO_SECONDS)
                return _boots_in(values)
            except Unreachable as error:
                if clock.monotonic() >= deadline:
                    raise Unreachable(
                        f"nothing carries messages at {self._path}. {self._start} What was "
                        "released is stored; then run the same command again."
                    ) from error
            clock.sleep(0.2)

    def close(self) -> None:
        """Nothing is kept open."""

    def __enter__(self) -> RelayEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _carried(
        self, names: Sequence[str], messages: Mapping[str, bytes], seconds: float
    ) -> dict[str, Reply]:
        asked = {"what": "ask", "names": list(names), "timeout": seconds}
        try:
            values, bodies = self._call(asked, messages, seconds + GRACE_SECONDS)
        except Unreachable:
            problem = f"whatever carries messages does not run or broke off. {self._start}"
            self._heard = (-1.0, {})
            return {name: Reply(None, problem) for name in names}
        if "boots" in values:  # a carrier of an earlier version does not say
            self._heard = (clock.monotonic(), {"boots": values["boots"]})
        problems = values.get("problems")
        told = problems if isinstance(problems, dict) else {}
        return {
            name: Reply(bodies[name].tobytes())
            if name in bodies
            else Reply(None, one_line(str(told.get(name, "no word of it"))))
            for name in names
        }

    def _call(
        self, values: Mapping[str, Any], messages: Mapping[str, bytes], seconds: float
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays = {name: _array(message) for name, message in messages.items()}
        reply = call(self._path, pack({"format": FORMAT, **values}, arrays), seconds)
        try:
            found, bodies = unpack(reply)
        except FormatError as error:
            raise HedgerowError(f"what listens at {self._path} is no carrier of ours") from error
        if found.get("format") != FORMAT:
            raise HedgerowError(
                f"what listens at {self._path} speaks format {found.get('format')!r} and not "
                f"{FORMAT}: it is of another version of hedgerow. Start it again"
            )
        return found, bodies


def _messages_in(names: Any, arrays: Mapping[str, Any]) -> dict[str, bytes]:
    """The message of each party; where all get the same one, it is in memory once."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FormatError("a request is not readable")
    if _ALL in arrays:
        return dict.fromkeys(names, arrays[_ALL].tobytes())
    if set(arrays) != set(names):
        raise FormatError("a request has not one message for each name")
    return {name: arrays[name].tobytes() for name in names}


def _boots_in(values: Mapping[str, Any]) -> dict[str, int] | None:
    """What a carrier says of who is there; what it may not say is not believed."""
    boots = values.get("boots")
    if boots is None:
        return None
    if not isinstance(boots, dict) or not all(type(boot) is int for boot in boots.values()):
        raise HedgerowError("what carries messages says what is not readable of who is there")
    return boots


def _array(message: bytes) -> Any:
    return np.frombuffer(message, np.uint8)
