"""A party's end of a relay: what a runtime's process at a site does with a message.

It hands bytes to the party's own process and brings its bytes back; it reads neither. Everything
here loads quickly, because some runtimes start a process for every message.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np

from hedgerow.data.documents import Document, Matching
from hedgerow.engines.sockets import Unreachable, call
from hedgerow.errors import FormatError, SettingsError
from hedgerow.packing import pack, unpack
from hedgerow.protocol.identity import NAME

FORMAT = 1  # of what travels between the two ends
FILE = "hedgerow.toml"  # of whoever administers the machine, among the runtime's own files
LONGEST_SECONDS = 3600.0  # that anybody is waited for
_DOWN = "its end of the relay runs, but nobody answers at the socket of its `hedgerow party start`"
T = TypeVar("T")


@dataclass(frozen=True)
class Question:
    """What travels to a party's end. Without a body it only asks for which party it stands."""

    body: bytes
    wait_seconds: float

    def to_bytes(self) -> bytes:
        values = {"format": FORMAT, "wait": self.wait_seconds}
        return pack(values, {"body": np.frombuffer(self.body, np.uint8)})

    @staticmethod
    def from_bytes(data: bytes) -> Question:
        values, arrays = _unpack(data)
        body, wait = arrays.get("body"), values.get("wait")
        if body is None or isinstance(wait, bool) or not isinstance(wait, int | float):
            raise FormatError("what a relay carried is not readable")
        if not 0 <= wait <= LONGEST_SECONDS:
            raise FormatError("a relay says to wait for longer than anybody is waited for")
        return Question(body.tobytes(), float(wait))


@dataclass(frozen=True)
class Answer:
    """What travels back: the party's bytes as they are, or why there are none."""

    party: str
    body: bytes = b""
    problem: str = ""

    def to_bytes(self) -> bytes:
        values = {"format": FORMAT, "party": self.party, "problem": self.problem}
        return pack(values, {"body": np.frombuffer(self.body, np.uint8)})

    @staticmethod
    def from_bytes(data: bytes) -> Answer:
        values, arrays = _unpack(data)
        body, party, problem = arrays.get("body"), values.get("party"), values.get("problem")
        if body is None or not isinstance(party, str) or not isinstance(problem, str):
            raise FormatError("what a relay brought back is not readable")
        return Answer(party, body.tobytes(), problem)


@dataclass(frozen=True)
class PartyEnd:
    """For which party a site's runtime stands, and where that party's process listens."""

    party: Annotated[str, Matching(NAME, "the name of a party")]
    socket: str

    def answer(self, data: bytes) -> bytes:
        """Hand a question to the party's process and bring back what it says."""
        asked = Question.from_bytes(data)
        if not asked.body:
            return Answer(self.party).to_bytes()
        try:
            reply = call(Path(self.socket), asked.body, asked.wait_seconds)
        except Unreachable:
            return Answer(self.party, problem=_DOWN).to_bytes()
        return Answer(self.party, reply).to_bytes()


def _unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    values, arrays = unpack(data)
    if values.get("format") != FORMAT:
        raise FormatError(
            f"the other end of the relay speaks format {values.get('format')!r} and not {FORMAT}: "
            "install the same version of hedgerow at both"
        )
    return values, arrays


def read_end(cls: type[T], file: Path) -> T:
    """What the machine's administrator configured; a job or a run cannot say otherwise."""
    document = Document("relay", SettingsError, format=1)
    return document.read(cls, document.load(file, "the administrator of this machine writes it"))
