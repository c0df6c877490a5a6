"""Messages on their way to parties: over which streams, who still owes a reply, and until when.

A message belongs to a party, not to a stream: one that was sent on a stream that ended is sent
again on the next one, and the party answers a repeated message with the bytes it stored.
"""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hedgerow import clock
from hedgerow.engines.grpc.hello import PartyHello
from hedgerow.engines.grpc.pieces import Assembler, pieces_of
from hedgerow.errors import FormatError
from hedgerow.protocol.engine import Reply

log = logging.getLogger(__name__)
RETURN_SECONDS = 5.0  # for a party whose stream ended to come back, before it counts as gone


class PartyStream:
    """A party's stream after the hello: pieces out, whole replies in."""

    def __init__(self, hello: PartyHello, deliveries: Deliveries, context: Any) -> None:
        self.hello, self.name, self.why = hello, hello.name, ""
        self._deliveries, self._context = deliveries, context
        self._line: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()

    def start(self, frames: Iterator[bytes]) -> None:
        name = f"from {self.name}"
        threading.Thread(target=self._read, args=(frames,), name=name, daemon=True).start()

    def send(self, number: int, message: bytes) -> None:
        """Put a message in line; never waits."""
        self._line.put((number, message))

    def outgoing(self) -> Iterator[bytes]:
        """Pieces of what is to be sent, for as long as the stream lasts."""
        while (entry := self._line.get()) is not None:
            yield from pieces_of(*entry)
            del entry  # or the message would be kept until the next one

    def close(self, reason: str) -> None:
        """End the stream; the first reason is the one that is told."""
        self.why = self.why or reason
        self._line.put(None)
        self._context.cancel()

    def _read(self, frames: Iterator[bytes]) -> None:
        assembler = Assembler(partial(self._deliveries.wants, self.name))
        try:
            for frame in frames:
                if (entry := assembler.add(frame)) is not None:
                    self._deliveries.replied(self.name, *entry)
                del entry  # or the reply would be kept until the next one begins
        except FormatError as error:
            self.close(f"it sent what is not allowed: {error}")
        except Exception:  # the stream broke off; whoever waits for it is told by its callback
            log.debug("the stream of %s broke off", self.name)
        finally:
            assembler.clear()  # see `Assembler`


@dataclass
class _Errand:
    """One message to one party, until its reply is here."""

    name: str
    message: bytes
    reply: bytes | None = None


@dataclass
class _Line:
    """What is known of the way to one party."""

    stream: PartyStream | None = None
    since: float = 0.0  # that it is as it is, on the clock that never falls
    why: str = "it has not connected since the coordinator was started"


class Deliveries:
    """Carries messages over whatever streams there are; safe to use from many threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self._lines: dict[str, _Line] = {}
        self._errands: dict[int, _Errand] = {}

    def streams(self) -> dict[str, PartyStream]:
        """Those that are open, by party."""
        with self._changed:
            lines = self._lines.items()
            return {name: line.stream for name, line in lines if line.stream is not None}

    def connected(self, stream: PartyStream) -> None:
        """From here on this stream leads to its party; an earlier one is closed."""
        with self._changed:
            before = self._lines.get(stream.name, _Line()).stream
            self._lines[stream.name] = _Line(stream, clock.monotonic(), "")
            for number, errand in self._errands.items():
                if errand.name == stream.name and errand.reply is None:
                    stream.send(number, errand.message)
            self._changed.notify_all()
        if before is not None:
            before.close("a newer stream of this party took its place")

    def ended(self, stream: PartyStream) -> bool:
        """Whether it was the party's newest one, so that the party is gone."""
        with self._changed:
            newest = self._lines.get(stream.name, _Line()).stream is stream
            if newest:
                self._lines[stream.name] = _Line(None, clock.monotonic(), stream.why)
                self._changed.notify_all()
            return newest

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
