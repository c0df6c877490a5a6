"""What an engine is: it carries messages to parties and brings back what they replied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Reply:
    """What an engine brings back from one party: bytes, or the reason there are none."""

    body: bytes | None
    problem: str = ""


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
