"""What the engine and the coordinator's carrier say to each other: whom to send a message, and
what became of it. The message itself travels as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hedgerow.errors import FormatError
from hedgerow.packing import pack, unpack

HELLO = b"hello"  # answered by the id of the job
FINISH = b"finish"


@dataclass(frozen=True)
class Round:
    """One message to some parties. Without a body it only asks how the message of this id goes."""

    id: str
    names: tuple[str, ...]
    body: bytes
    wait_seconds: float  # that a party's end waits for its own process before it says "working"
    grace_seconds: float  # beyond which a silent party counts as not reached

    def to_bytes(self) -> bytes:
        values = {
            "id": self.id,
            "names": list(self.names),
            "wait": self.wait_seconds,
            "grace": self.grace_seconds,
        }
        return pack(values, {"body": np.frombuffer(self.body, np.uint8)})

    @staticmethod
    def from_bytes(data: bytes) -> Round:
        values, arrays = unpack(data)
        try:
            return Round(
                str(values["id"]),
                tuple(str(name) for name in values["names"]),
                arrays["body"].tobytes(),
                float(values["wait"]),
                float(values["grace"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError("an envelope is not readable") from error


@dataclass(frozen=True)
class Outcome:
    """How it went at one party.

    done: the reply is here. working: the party's process has the message. down: the party's own
    process does not run. unknown: its end never had this message, or was restarted since.
    silent, absent, failed: it was not reached.
    """

    state: str
    body: bytes = b""


def pack_outcomes(outcomes: Mapping[str, Outcome]) -> bytes:
    states = {name: outcome.state for name, outcome in outcomes.items()}
    bodies = {name: np.frombuffer(found.body, np.uint8) for name, found in outcomes.items()}
    return pack(states, bodies)


def unpack_outcomes(data: bytes) -> dict[str, Outcome]:
    states, arrays = unpack(data)
    return {name: Outcome(str(state), arrays[name].tobytes()) for name, state in states.items()}
