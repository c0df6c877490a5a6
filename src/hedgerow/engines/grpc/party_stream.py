"""A party's stream at the coordinator after the hello: pieces out, whole replies in."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

from hedgerow.engines.grpc.hello import PartyHello
from hedgerow.engines.grpc.pieces import Assembler, pieces_of
from hedgerow.errors import FormatError

log = logging.getLogger(__name__)


class PartyStream:
    """A party's stream after the hello."""

    def __init__(
        self,
        hello: PartyHello,
        assembler: Assembler,
        context: Any,
        replied: Callable[[str, int, bytes], None],
    ) -> None:
        self.hello, self.name, self.why = hello, hello.name, ""
        self._assembler, self._context, self._replied = assembler, context, replied
        self._line: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()

    def start(self, frames: Iterator[bytes]) -> None:
        name = f"from {self.name}"
        threading.Thread(target=self._read, args=(frames,), name=name, daemon=True).start()

    def send(self, number: int, message: bytes) -> None:
        self._line.put((number, message))

    def outgoing(self) -> Iterator[bytes]:
        """Pieces of what is to be sent, for as long as the stream lasts."""
        while (entry := self._line.get()) is not None:
            yield from pieces_of(*entry)

    def close(self, reason: str) -> None:
        """End the stream; the first reason is the one that is told."""
        self.why = self.why or reason
        self._line.put(None)
        self._context.cancel()

    def _read(self, frames: Iterator[bytes]) -> None:
        try:
            for frame in frames:
                if (entry := self._assembler.add(frame)) is not None:
                    self._replied(self.name, *entry)
        except FormatError as error:
            self.close(f"it sent what is not allowed: {error}")
        except Exception:  # the stream broke off; whoever waits for it is told by its callback
            log.debug("the stream of %s broke off", self.name)
