"""What an engine is: it carries messages to parties and brings back what they replied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from hedgerow.protocol.messages import Message
from hedgerow.protocol.replies import PartyReply


@dataclass(frozen=True)
class Reply:
    """What an engine brings back from one party: bytes, or the reason there are none."""

    body: bytes | None
    problem: str = ""


class Engine(Protocol):
    """What carries the messages. What it may do besides has protocols of its own below."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def simulated(self) -> bool:
        """Whether one process sees everything, so that trust is only simulated."""
        ...

    def ask(
        self, names: Sequence[str], message: bytes, timeout_seconds: float
    ) -> dict[str, Reply]: ...


@runtime_checkable
class AskEach(Protocol):
    """An engine that carries different messages at once; with others they go one after another."""

    def ask_each(
        self, messages: Mapping[str, bytes], timeout_seconds: float
    ) -> dict[str, Reply]: ...


@runtime_checkable
class TracksConnections(Protocol):
    """An engine that knows who is connected, so that nobody has to be asked for it."""

    def connected(self) -> Mapping[str, int] | None:
        """Parties that are connected now, with the boot counter of the process that is; None if
        what carries the messages cannot know."""
        ...


@runtime_checkable
class HandOver(Protocol):
    """What the engine of one process may do besides, for speed: messages and replies are handed
    over as objects, and nothing is packed, sealed or read."""

    def hand_over(self, messages: Mapping[str, Message]) -> dict[str, PartyReply]: ...
