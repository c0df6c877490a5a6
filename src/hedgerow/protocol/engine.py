"""What an engine is: it carries messages to parties and brings back what they replied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hedgerow.protocol.replies import Spoken


class Reply:
    """What an engine brings back from one party: bytes, or the reason there are none.

    An engine inside one process hands over what was `said`, and bytes are made if somebody looks.
    """

    def __init__(self, body: bytes | None, problem: str = "", said: Spoken | None = None) -> None:
        self._body, self.problem, self.said = body, problem, said

    @property
    def body(self) -> bytes | None:
        return self._body if self.said is None else self.said.message.to_bytes()


class Engine(Protocol):
    """What carries the messages.

    One that carries different messages at once has `ask_each(messages, timeout_seconds)` as well;
    with others they go one after another.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def simulated(self) -> bool:
        """Whether one process sees everything, so that trust is only simulated."""
        ...

    def ask(
        self, names: Sequence[str], message: bytes, timeout_seconds: float
    ) -> dict[str, Reply]: ...
