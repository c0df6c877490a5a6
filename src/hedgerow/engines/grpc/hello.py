"""The hello on a new stream: each side proves its pinned signing key before anything else is said.

    coordinator -> party   a challenge: random bytes, the same for friend and stranger
    party -> coordinator   who it is and what it has pinned, signed
    coordinator -> party   welcome, or a refusal in words, signed; to strangers nothing at all

Either signature covers both names and keys, both nonces, the coordinator's certificate, what each
side has pinned and speaks, and the party's boot counter, under a label of its role: nothing of it
can be used on another stream, at another time or in the other direction.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Annotated, Any, TypeVar

from hedgerow import clock
from hedgerow.data.documents import Document, Matching, Within
from hedgerow.engines.cards import COORDINATOR
from hedgerow.engines.sockets import one_line
from hedgerow.errors import FormatError, HedgerowError
from hedgerow.packing import canonical_json, digest
from hedgerow.protocol.identity import NAME, Identity, Roster, signed_by

VERSION = 1  # of what is said on a stream
LEAST_VERSION = 1  # of a peer that is still spoken to
SOFTWARE = version("hedgerow")
NONCE_BYTES = 32
LONGEST_HELLO = 4096
CLOCK_SECONDS = 120.0  # by which two clocks may differ before anybody is told
_PARTY, _COORDINATOR = "hedgerow hello of a party 1", "hedgerow hello of a coordinator 1"
_HELLO, _VERDICT = Document("hello"), Document("verdict")
_Number = Annotated[int, Within(0, 2**53)]
_Name = Annotated[str, Matching(NAME, "the name of a party")]
_Software = Annotated[  # operators of the other side read it
    str, Matching(re.compile(r"[0-9A-Za-z.+!_-]{1,60}"), "a version, such as 1.2.0")
]
T = TypeVar("T", bound="PartyHello | Verdict")


class Unwelcome(HedgerowError):
    """The other side of a stream is not who it should be, or does not want this one."""

    exit_code = 5


class Stranger(Unwelcome):
    """Whoever dialled has proven nothing; it is told nothing."""


@dataclass(frozen=True)
class Binding:
    """What both ends know of a stream before the hello."""

    challenge: str  # of the coordinator, hex
    certificate: str  # hash of the one that the coordinator shows
    coordinator: str  # public signing key


@dataclass(frozen=True)
class PartyHello:
    """What a party says of itself."""

    name: _Name
    key: str
    boot: _Number  # rises with every start of the party
    instance: str  # random, of the party's process
    roster: str  # hash of the pinned one
    nonce: str
    version: _Number = VERSION
    least: _Number = LEAST_VERSION
    software: _Software = SOFTWARE
    time: Annotated[float, Within(0, 1e11)] = field(default_factory=clock.timestamp)
    signature: str = ""

    def text(self, binding: Binding) -> bytes:
        said = {**self.__dict__, "signature": ""}
        return canonical_json([_PARTY, COORDINATOR, binding.__dict__, said])

    def signed(self, identity: Identity, binding: Binding) -> PartyHello:
        return replace(self, signature=identity.sign(self.text(binding)))


@dataclass(frozen=True)
class Verdict:
    """What the coordinator answers to a party that it knows."""

    welcome: bool
    words: str  # why not; or what the party should know although it is welcome
    roster: str
    version: _Number = VERSION
    least: _Number = LEAST_VERSION
    software: _Software = SOFTWARE
    time: Annotated[float, Within(0, 1e11)] = field(default_factory=clock.timestamp)
    signature: str = ""

    def text(self, hello: PartyHello, binding: Binding) -> bytes:
        said = {**self.__dict__, "signature": ""}
        heard = digest(hello.text(binding), hello.signature)
        return canonical_json([_COORDINATOR, binding.__dict__, heard, said])

    def signed(self, identity: Identity, hello: PartyHello, binding: Binding) -> Verdict:
        return replace(self, signature=identity.sign(self.text(hello, binding)))


def new_challenge() -> str:
    return secrets.token_hex(NONCE_BYTES)


def read_challenge(frame: bytes) -> str:
    if len(frame) != 2 * NONCE_BYTES or not frame.isalnum():
        raise Unwelcome("what answers there does not speak hedgerow's protocol")
    return frame.decode("ascii")


def to_frame(said: PartyHello | Verdict) -> bytes:
    return canonical_json(said.__dict__)


def read_hello(frame: bytes) -> PartyHello:
    return _read(PartyHello, _HELLO, frame)


def read_verdict(frame: bytes, hello: PartyHello, binding: Binding) -> Verdict:
    """The coordinator's answer; Unwelcome unless the pinned one gave it, and it is a welcome."""
    try:
        verdict = _read(Verdict, _VERDICT, frame)
    except FormatError as error:
        raise Unwelcome("the coordinator's hello is not readable") from error
    if not signed_by(binding.coordinator, verdict.text(hello, binding), verdict.signature):
        raise Unwelcome(
            "the coordinator did not prove its pinned signing key: it has a new one, or somebody "
            "else uses its certificate. Ask its operator by telephone; a new key needs a new roster"
        )
    if not verdict.welcome:
        raise Unwelcome(f"the coordinator refused: {one_line(verdict.words)}")
    return verdict


@dataclass(frozen=True)
class Members:
    """Whom the coordinator knows: its pinned roster, and keys of earlier ones."""

    roster: Roster
    former: Mapping[str, str] = field(default_factory=dict)  # key to name, no longer pinned
    certificates: Mapping[str, str] | None = None  # of parties, where they have to show them

    def judge(self, hello: PartyHello, binding: Binding) -> str:
        """Why a party may not come in, in words; "" if it may. Stranger if it is not known."""
        known = self.roster.keys.get(hello.name) == hello.key
        if not known and self.former.get(hello.key) != hello.name:
            raise Stranger(f"the key that it calls {hello.name} is in no roster")
        if not signed_by(hello.key, hello.text(binding), hello.signature):
            raise Stranger(f"its signature as {hello.name} is not valid on this stream")
        if not known:
            return (
                f"this key of {hello.name} is not in the roster any more. Make a new key and send "
                "its card, or pin the roster that has your new one"
            )
        if hello.version < LEAST_VERSION:
            return (
                f"{hello.name} speaks version {hello.version} of the stream (hedgerow "
                f"{hello.software}), and at least {LEAST_VERSION} is needed (hedgerow "
                f"{SOFTWARE} runs here). Upgrade the party"
            )
        if hello.least > VERSION:
            return (
                f"{hello.name} wants version {hello.least} of the stream at least, and the "
                f"coordinator speaks {VERSION} (hedgerow {SOFTWARE}). Upgrade the "
                "coordinator"
            )
        return ""


def remarks(one: float, other: float, roster: str, their_roster: str) -> str:
    """What both sides should know although they are connected, in words."""
    found = []
    if roster != their_roster:
        found.append(
            "party and coordinator have pinned different rosters: runs are refused until both pin "
            "the same one"
        )
    if abs(one - other) > CLOCK_SECONDS:
        found.append(f"their clocks differ by {abs(one - other):.0f} s: set the wrong one")
    return "; ".join(found)


def _read(cls: type[T], document: Document, frame: bytes) -> T:
    if len(frame) > LONGEST_HELLO:
        raise FormatError("a hello is too long")
    try:
        text = frame.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError("a hello is not readable") from error
    values: dict[str, Any] = document.parse(text, "it", "JSON")
    read: T = document.read(cls, values)
    return read
