"""Messages on their way to parties: who is connected, who still owes a reply, and until when.

A message belongs to a party, not to a stream: one that was sent on a stream that ended is sent
again on the next one, and the party answers a repeated message with the bytes it stored.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from hedgerow import clock
from hedgerow.protocol.engine import Reply

RETURN_SECONDS = 5.0  # for a party whose stream ended to come back, before it counts as gone


class Stream(Protocol):
    """One party's stream, as far as messages go."""

    def send(self, number: int, message: bytes) -> None:
        """Put a message in line; never waits."""
        ...

    def close(self, reason: str) -> None: ...


@dataclass
class _Errand:
    """One message to one party, until its reply is here."""

    name: str
    message: bytes
    reply: bytes | None = None


@dataclass
class _Line:
    """What is known of the way to one party."""

    stream: Stream | None = None
    since: float = 0.0  # that it is as it is, on the clock that never falls
    why: str = "it has not connected since the coordinator was started"


class Deliveries:
    """Carries messages over whatever streams there are; safe to use from many threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self._lines: dict[str, _Line] = {}
        self._errands: dict[int, _Errand] = {}

    def connected(self, name: str, stream: Stream) -> None:
        """From here on this stream leads to the party; an earlier one is closed."""
        with self._changed:
            before = self._lines.get(name, _Line()).stream
            self._lines[name] = _Line(stream, clock.monotonic(), "")
            for number, errand in self._errands.items():
                if errand.name == name and errand.reply is None:
                    stream.send(number, errand.message)
            self._changed.notify_all()
        if before is not None:
            before.close("a newer stream of this party took its place")

    def ended(self, name: str, stream: Stream, why: str) -> None:
        with self._changed:
            line = self._lines.get(name)
            if line is not None and line.stream is stream:  # else a newer one is there
                self._lines[name] = _Line(None, clock.monotonic(), why)
                self._changed.notify_all()

    def stream_of(self, name: str) -> Stream | None:
        with self._changed:
            return self._lines.get(name, _Line()).stream

    def wants(self, name: str, number: int) -> bool:
        """Whether this party owes a reply of this number."""
        with self._changed:
            errand = self._errands.get(number)
            return errand is not None and errand.name == name and errand.reply is None

    def replied(self, name: str, number: int, reply: bytes) -> None:
        with self._changed:
            errand = self._errands.get(number)
            if errand is not None and errand.name == name:
                errand.reply = reply
                self._changed.notify_all()

    def ask_each(self, messages: Mapping[str, bytes], timeout_seconds: float) -> dict[str, Reply]:
        """Carry each party its message, until all have replied, are gone, or time is over."""
        deadline = clock.monotonic() + timeout_seconds
        with self._changed:
            numbers = {name: next(self._numbers) for name in messages}
            for name, number in numbers.items():
                self._errands[number] = _Errand(name, messages[name])
                if (stream := self._lines.get(name, _Line()).stream) is not None:
                    stream.send(number, messages[name])
            try:
                while (rest := self._seconds_left(numbers, deadline)) > 0:
                    self._changed.wait(rest)
                return {name: self._reply(name, number) for name, number in numbers.items()}
            finally:
                for number in numbers.values():
                    del self._errands[number]

    def _seconds_left(self, numbers: Mapping[str, int], deadline: float) -> float:
        """How long something may still come; 0 once nothing can."""
        now, until = clock.monotonic(), 0.0
        for name, number in numbers.items():
            if self._errands[number].reply is not None:
                continue
            line = self._lines.get(name)
            if line is None:
                continue  # it never was there
            back = deadline if line.stream is not None else line.since + RETURN_SECONDS
            until = max(until, min(back, deadline))
        return until - now

    def _reply(self, name: str, number: int) -> Reply:
        if (body := self._errands[number].reply) is not None:
            return Reply(body)
        line = self._lines.get(name, _Line())
        if line.stream is None:
            return Reply(None, f"it is not connected: {line.why}")
        return Reply(None, "it is connected and did not reply in time")
