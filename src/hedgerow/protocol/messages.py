"""Messages between coordinator and parties: versioned, length-checked, signed, no pickle.

A message is an envelope {version, type, request, signature} with a body; the signature covers type,
request and body. A reply names the hash of the message it answers, so it cannot stand for another.
Trees travel beside an ask's body, because the body already names them by hash.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Schema
from hedgerow.errors import FormatError, HedgerowError, LedgerWriteFailed
from hedgerow.model.stacking import stack_trees, stacked_shapes, unstack_trees
from hedgerow.model.tree import Tree
from hedgerow.packing import digest, pack, packed_size, unpack
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.protocol.identity import Identity, Roster, signed_by
from hedgerow.queries import SumQuery, query_bytes, query_from_bytes
from hedgerow.queries.calibration import Noise, noise_for

VERSION = 7
SIGNED = 128  # characters of a signature
# Everything a party may say instead of answering. None of it depends on a row.
REFUSALS = {
    "bad-message": "the message was not readable",
    "bad-signature": "the message was not signed by the pinned coordinator",
    "unknown-run": "the party has not opened this run, or was restarted since",
    "other-plan": "the run was opened with another plan",
    "other-schema": "the party's table has another schema",
    "other-roster": "the party pinned another roster",
    "bad-announcement": "a mask key is missing, old, or not signed by its pinned party",
    "not-in-plan": "the question does not fit its slot in the plan",
    "too-few-parties": "the set of parties is smaller than the roster allows",
    "unknown-party": "the set names a party that is not in the roster",
    "too-little-noise": "the noise is not what the plan's slot prescribes",
    "answered-differently": "this attempt was answered before for another question or set",
    "old-attempt": "a later attempt was answered before",
    "no-attempts-left": "slots and spare attempts of the plan are used up",
    "over-limits": "the plan exceeds the party's own limits",
    "not-allowed": "the party's own limits do not allow this coordinator or one of the parties",
    "some-columns": "the party holds some of the columns alone, and sums need all of them",
    "not-approved": "a person at the party has to approve the plan first",
    "rejected": "a person at the party rejected the plan",
    "rejected-purpose": "a person at the party rejected the plan for its purpose",
    "rejected-cost": "a person at the party rejected the plan for what it costs",
    "rejected-method": "a person at the party rejected the plan for its method",
    "rejected-parties": "a person at the party rejected the plan for who takes part",
    "withdrawn": "a person at the party withdrew the approval of the plan",
    "expired": "the plan's last day is over",
    "rolled-back": "the party's ledger lacks lines that others know of; a person has to settle it",
    "unwitnessed": "too few others showed the party what they know of its ledger",
    "bad-witness": "what a party knows of another's ledger is not signed, or not for this run",
    "cannot-write": "the party cannot write its ledger, most likely because its disk is full; it "
    "answers again when it can",
    "failed": "the party failed inside; its own log says why",
}
REJECTIONS = tuple(word for word in REFUSALS if word.startswith("rejected"))


class OtherVersion(FormatError):
    """A message of another version of hedgerow."""


class Refusal(HedgerowError):
    """Raised inside a party; travels as one of the words in REFUSALS."""

    exit_code = 3

    def __init__(self, word: str) -> None:
        super().__init__(REFUSALS[word])
        self.word = word


@dataclass(frozen=True, eq=False)
class Ask:
    """One question to the parties of a roster, for one slot and attempt of one run.

    Most of the time all of them are in the sum, and its size does not grow with their number.
    """

    run: str
    slot: int
    attempt: int
    absent: tuple[str, ...]  # who of the roster is not in the sum: few, so few travel
    query: SumQuery
    noise: Noise
    colluding: int
    joined: str  # hash of the announcements that everyone has to use
    reply_to: str  # the coordinator's X25519 key, for which answers are sealed

    def is_within(self, roster: Roster) -> bool:
        """Whether those absent are parties of the roster, each named once and in order."""
        if not self.absent:
            return True
        if roster.hash not in self._within:
            ordered = list(self.absent) == sorted(set(self.absent))
            self._within[roster.hash] = ordered and roster.keys.keys() >= self.left_out
        return self._within[roster.hash]

    @cached_property
    def left_out(self) -> frozenset[str]:
        return frozenset(self.absent)

    def n_parties(self, roster: Roster) -> int:
        return len(roster.parties) - len(self.absent)

    def check(self, schema: Schema) -> None:
        """Raise FormatError unless the question makes sense for the schema."""
        if schema.hash not in self._fits:  # else another party of this process has looked
            self.query.check(schema)
            self._fits.add(schema.hash)

    def has_noise_of(self, mu: float, plan: Plan, schema: Schema) -> bool:
        """Whether its noise is exactly what a slot of this mu prescribes."""
        key = (mu, plan.hash, schema.hash)
        if key not in self._prescribed:
            self._prescribed[key] = noise_for(self.query, mu, plan, schema, self.noise.part)
        return self.noise == self._prescribed[key]

    @cached_property
    def _fits(self) -> set[str]:
        return set()

    @cached_property
    def _within(self) -> dict[str, bool]:
        return {}

    @cached_property
    def _prescribed(self) -> dict[tuple[float, str, str], Noise]:
        return {}

    def body(self) -> bytes:
        values = {
            "run": self.run, "slot": self.slot, "attempt": self.attempt,
            "absent": list(self.absent), "mu": self.noise.mu, "bits": self.noise.bits,
            "sigmas": list(self.noise.sigmas), "mechanism": self.noise.mechanism,
            "part": self.noise.part,
            "colluding": self.colluding, "joined": self.joined, "reply_to": self.reply_to,
        }  # fmt: skip
        return pack(values, {"query": _bytes_array(query_bytes(self.query))})

    @staticmethod
    def from_body(body: bytes) -> Ask:
        values, arrays = unpack(body)
        try:
            noise = Noise(
                float(values["mu"]),
                int(values["bits"]),
                tuple(float(s) for s in values["sigmas"]),
                str(values["mechanism"]),
                float(values["part"]),
            )
            return Ask(
                str(values["run"]),
                int(values["slot"]),
                int(values["attempt"]),
                tuple(str(name) for name in values["absent"]),
                query_from_bytes(arrays["query"].tobytes()),
                noise,
                int(values["colluding"]),
                str(values["joined"]),
                str(values["reply_to"]),
            )
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError("an ask is not readable") from error


@dataclass(frozen=True, eq=False)
class Message:
    """An envelope as it travels."""

    type: str
    body: bytes
    signature: str = ""
    trees_from: int = 0
    trees: tuple[Tree, ...] = field(default=())
    request: str = ""  # of a reply: the hash of the message that it answers
    # What the body says, from whoever wrote it in this process. A message that travelled has none.
    written: Any = field(default=None, repr=False)
    # By party: bytes that the body lacks because `written` hands them over as they are.
    beside: Mapping[str, int] = field(default_factory=dict, repr=False)
    # Who signs it when it travels; no field, so that a changed copy has nobody who would.
    _signer: ClassVar[Identity | None] = None

    @cached_property
    def values(self) -> dict[str, Any]:
        """A plain body; not to be written to."""
        return unpack(self.body)[0]

    @cached_property
    def ask(self) -> Ask:
        """The question that the body holds."""
        return self.written if isinstance(self.written, Ask) else Ask.from_body(self.body)

    @cached_property
    def plan(self) -> Plan:
        """The plan of an opening."""
        if isinstance(self.written, Plan):
            return self.written
        return Plan.from_dict(self.values.get("plan", {}))

    @cached_property
    def hash(self) -> str:
        return digest("hedgerow message 2", self.type, self.request, self.body)

    def signed(self, identity: Identity) -> Message:
        signature = identity.sign(self.hash.encode())
        made = Message(
            self.type, self.body, signature, self.trees_from, self.trees, self.request,
            self.written, self.beside,
        )  # fmt: skip
        made.__dict__["hash"] = self.hash  # what the signature covers is the same
        made._signers.add(identity.public)
        return made

    def handed_over_by(self, identity: Identity) -> Message:
        """As `signed`, for parties of this process: the signature is made if it ever travels.

        They take the message from its writer's hands and so know whose it is, as they would of one
        whose signature was verified before. A copy that says something else is signed by nobody.
        """
        made = replace(self, signature="")
        made.__dict__["hash"] = self.hash
        made.__dict__["_signer"] = identity
        made._signers.add(identity.public)
        return made

    def is_signed_by(self, public: str) -> bool:
        if public not in self._signers and signed_by(public, self.hash.encode(), self.signature):
            self._signers.add(public)
        return public in self._signers

    @cached_property
    def _signers(self) -> set[str]:
        """Keys that are known to have signed this very object, which parties may share."""
        return set()

    def to_bytes(self) -> bytes:
        signature = self.signature
        if self._signer is not None:
            signature = self._signer.sign(self.hash.encode())
        arrays: dict[str, NDArray[Any]] = {"body": _bytes_array(self.body)}
        if self.trees:
            arrays.update(stack_trees(self.trees))
        return pack(self._envelope(signature), arrays)

    def size_for(self, name: str) -> int:
        """The length of what would travel to this party; it is not made for that."""
        inside = len(self.body) + self.beside.get(name, 0)
        return self._size if inside == len(self.body) else envelope_size(self.type, False, inside)

    @cached_property
    def _size(self) -> int:
        shapes: dict[str, tuple[str, tuple[int, ...]]] = {"body": ("uint8", (len(self.body),))}
        if self.trees:
            shapes.update(stacked_shapes(self.trees))
        signature = self.signature if self._signer is None else "0" * SIGNED
        return packed_size(self._envelope(signature), shapes)

    def _envelope(self, signature: str) -> dict[str, Any]:
        return {
            "version": VERSION, "type": self.type, "signature": signature,
            "trees_from": self.trees_from, "request": self.request,
        }  # fmt: skip

    @staticmethod
    def from_bytes(data: bytes) -> Message:
        values, arrays = unpack(data)
        version = values.get("version")
        if version != VERSION:
            raise OtherVersion(
                f"it speaks version {version!r:.20} of the messages, and {VERSION} is spoken here: "
                "install the same version of hedgerow at both"
            )
        try:
            body = arrays.pop("body").tobytes()
            trees = tuple(unstack_trees(arrays)) if arrays else ()
            return Message(
                str(values["type"]),
                body,
                str(values["signature"]),
                int(values["trees_from"]),
                trees,
                str(values["request"]),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError("a message is not readable") from error


def plain(type_: str, values: Mapping[str, Any], written: Plan | None = None) -> Message:
    """A message whose body is a plain table."""
    return Message(type_, pack(values), written=written)


def about(message: Message) -> tuple[str, int]:
    """The run and slot that a message names, for the record; "" and -1 where it names none."""
    try:
        values = message.values
        plan = values.get("plan")
        run = values.get("run") or (plan.get("run") if isinstance(plan, dict) else "")
        slot = values.get("slot", -1)
    except FormatError:
        return "", -1
    return (run if isinstance(run, str) else ""), (slot if isinstance(slot, int) else -1)


def word_of(error: Exception) -> str:
    """What a party says instead of an answer when this went wrong inside."""
    if isinstance(error, Refusal):
        return error.word
    if isinstance(error, LedgerWriteFailed) or _is_full(error):
        return "cannot-write"
    return "bad-message" if isinstance(error, HedgerowError) else "failed"


def _is_full(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def refusal(word: str) -> Message:
    return plain("refusal", {"word": word})


def _bytes_array(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


def envelope_size(type_: str, answers: bool, inside: int) -> int:
    """Bytes of a signed message without trees, whose body is so long."""
    return _empty_envelope(type_, answers) + len(str(inside)) - len("0") + inside


@lru_cache(maxsize=64)
def _empty_envelope(type_: str, answers: bool) -> int:
    request, signature = "0" * 64 if answers else "", "0" * SIGNED
    values = {
        "version": VERSION, "type": type_, "signature": signature, "trees_from": 0,
        "request": request,
    }  # fmt: skip
    return packed_size(values, {"body": ("uint8", (0,))})
