"""A party's reply to a message: an answer or a plain message, and how either is made to travel.

Sealing, signing and packing wait until somebody wants the bytes: inside one process nobody does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError
from hedgerow.kernels.threads import over_items
from hedgerow.packing import pack, packed_size, unpack
from hedgerow.protocol.identity import Identity
from hedgerow.protocol.masks import SEAL_BYTES
from hedgerow.protocol.messages import Message, envelope_size
from hedgerow.protocol.session_steps import StepReply


class ReceivedReply(Protocol):
    """A reply as the coordinator reads it, whether it travelled or was handed over."""

    @property
    def type(self) -> str: ...

    @property
    def request(self) -> str:
        """The hash of the message that it answers."""
        ...

    @property
    def body(self) -> bytes:
        """Of an answer: sealed."""
        ...

    @property
    def signature(self) -> str: ...

    @property
    def values(self) -> dict[str, Any]: ...


@dataclass(frozen=True, eq=False)
class Answer:
    """A party's contribution to a sum, before it is sealed for the coordinator.

    `check` is a zero under the same mask; it travels behind the total.
    """

    party: str
    source: str  # of its noise
    total: NDArray[np.uint64]
    check: int = 0
    n_rows: int = 0
    type: ClassVar[str] = "answer"

    @cached_property
    def body(self) -> bytes:
        values = {"party": self.party, "source": self.source, "rows": self.n_rows}
        return pack(values, {"total": np.append(self.total, np.uint64(self.check))})

    @property
    def size(self) -> int:
        """Bytes of the body when it is sealed; it is not made for that."""
        # Names have no character that JSON writes as several.
        shape = (self.total.size + 1,)
        return _unnamed(self.source, self.n_rows, shape) + len(self.party) + SEAL_BYTES

    @staticmethod
    def from_body(body: bytes) -> Answer:
        values, arrays = unpack(body)
        party, source, n_rows = (values.get(name) for name in ("party", "source", "rows"))
        total = arrays.get("total")
        if total is None or not isinstance(party, str) or not isinstance(source, str):
            raise FormatError("an answer is not readable")
        if total.dtype != np.uint64 or total.ndim != 1 or not total.size:
            raise FormatError("an answer is not readable")
        if type(n_rows) is not int:
            raise FormatError("an answer is not readable")
        return Answer(party, source, total[:-1], int(total[-1]), n_rows)


@dataclass(frozen=True, eq=False)
class PartyReply:
    """A reply in the process of the party that gave it."""

    reply: Message | Answer | StepReply
    request: str  # the hash of the message that it answers
    identity: Identity
    seal: Callable[[bytes], bytes]  # an answer, for nobody but the coordinator

    @property
    def type(self) -> str:
        return self.reply.type

    @cached_property
    def message(self) -> Message:
        """What travels: sealed if it is an answer, and signed."""
        reply = self.reply
        body = self.seal(reply.body) if isinstance(reply, Answer) else reply.body
        return Message(self.type, body, request=self.request).signed(self.identity)

    @property
    def body(self) -> bytes:
        return self.message.body

    @property
    def signature(self) -> str:
        return self.message.signature

    @property
    def values(self) -> dict[str, Any]:
        return self.reply.values if isinstance(self.reply, Message) else self.message.values

    @property
    def size(self) -> int:
        """Bytes that would travel; they are not made for that."""
        reply = self.reply
        inside = len(reply.body) if isinstance(reply, Message) else reply.size
        return envelope_size(self.type, bool(self.request), inside)


# A party's way to a reply. It yields what it computes over its rows and takes what came of that;
# all else, its ledger too, it does itself. So parties of one process can compute at the same time.
Work = Callable[[], Any]
Steps = Generator[Work, Any, PartyReply]
Replying = Generator[Work, Any, Message | Answer | StepReply]


def collect_replies(
    parties: Sequence[Steps],
    together: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> list[PartyReply]:
    """The replies of all parties; each step of theirs is done by all of them before the next.

    What they do besides computing over rows they do inside of `together`: where they share a
    ledger, one transaction a step. Nobody else waits for a ledger while rows are gone over.
    """
    replies: dict[int, PartyReply] = {}
    came: dict[int, _Outcome] = dict.fromkeys(range(len(parties)), (None, None))
    try:
        while came:
            wanted: dict[int, Work] = {}
            with together():
                for i, (value, error) in came.items():
                    try:
                        steps = parties[i]
                        wanted[i] = steps.send(value) if error is None else steps.throw(error)
                    except StopIteration as done:
                        replies[i] = done.value
            # The first alone: others find what it has made ready of the question they share.
            works = list(wanted.values())
            outcomes = [*map(_outcome, works[:1]), *over_items(_outcome, works[1:])]
            came = dict(zip(wanted, outcomes, strict=True))
    finally:
        for steps in parties:
            steps.close()  # one that was interrupted lets go of its party
    return [replies[i] for i in range(len(parties))]


_Outcome = tuple[Any, Exception | None]


def _outcome(work: Work) -> _Outcome:
    try:
        return work(), None
    except Exception as error:  # the party's own affair: it gets it back
        return None, error


@lru_cache(maxsize=64)
def _unnamed(source: str, n_rows: int, shape: tuple[int, ...]) -> int:
    values = {"party": "", "source": source, "rows": n_rows}
    return packed_size(values, {"total": ("uint64", shape)})
