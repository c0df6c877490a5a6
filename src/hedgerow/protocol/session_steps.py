"""One step of a session as messages: what the coordinator brings a party, and what that replies.

Peer messages are sealed by their senders for their recipients when they travel. Inside one process
they are handed over beside the body as they are: sealing would hide them from nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.packing import digest, pack, packed_size, unpack
from hedgerow.protocol.masks import SEAL_BYTES
from hedgerow.protocol.messages import Message, Refusal
from hedgerow.protocol.roles import Step

# These words are part of the wire format: the type of both messages, the names of their arrays and,
# below, the label that a peer message is sealed under.
STEP = "letters"
_ARRAY = "letter"
MOST_MESSAGES = 10_000  # in one step
_ENTRY = len(
    f'["{_ARRAY}","uint8",[]],'
)  # of a message in a packed header, without its two numbers


def seal_label(agreement: str, joined: str, step: int, recipient: str) -> str:
    """What a peer message is sealed for; the sender's name is bound in beside it.

    A seal's nonce is fixed, so no label may come twice with two texts. `joined` has the number of
    the sender's opening in it, which rises: a run that is begun again has other labels.
    """
    return digest("hedgerow letter 2", agreement, joined, str(step), recipient)


@dataclass(frozen=True, eq=False)
class Delivery:
    """What the coordinator brings the parties in one step: messages by recipient and sender."""

    run: str
    step: int
    reply_to: str  # the coordinator's X25519 key, for which reports are sealed
    inboxes: Mapping[str, Mapping[str, bytes]]  # sealed, unless they are handed over

    def travelling(self) -> dict[str, Message]:
        """A message for each party, with its sealed peer messages in the body."""
        found = {}
        for name, inbox in self.inboxes.items():
            arrays = {f"{_ARRAY}{i}": _array(inbox[s]) for i, s in enumerate(sorted(inbox))}
            found[name] = Message(STEP, pack(self._values(name), arrays))
        return found

    def handed_over(self) -> dict[str, Message]:
        """One message for all parties of this process, with what is for each of them beside it."""
        body = pack({"run": self.run, "step": self.step, "reply_to": self.reply_to})
        beside = {name: self._size(name) - len(body) for name in self.inboxes}
        return dict.fromkeys(self.inboxes, Message(STEP, body, written=self, beside=beside))

    def _size(self, name: str) -> int:
        senders = tuple(sorted(self.inboxes[name]))
        lengths = [len(self.inboxes[name][sender]) for sender in senders]
        names = (self.run, self.reply_to, senders)
        return _first_delivery(*names) + len(str(self.step)) - len("0") + _beside(lengths)

    def _values(self, name: str) -> dict[str, Any]:
        return {
            "run": self.run, "step": self.step, "writers": sorted(self.inboxes[name]),
            "reply_to": self.reply_to,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class StepReply:
    """What a party did in one step; sealed once it travels."""

    taken: Step
    seal: Callable[[str, bytes], bytes]  # for a recipient: a message to that party
    seal_report: Callable[[bytes], bytes]  # for nobody but the coordinator
    type: ClassVar[str] = STEP

    @cached_property
    def body(self) -> bytes:
        arrays = {
            f"{_ARRAY}{i}": _array(self.seal(name, self.taken.messages[name]))
            for i, name in enumerate(self._recipients)
        }
        arrays["report"] = _array(self.seal_report(self.taken.report))
        return pack(self._values, arrays)

    @property
    def size(self) -> int:
        """Bytes of the body; it is not made for that."""
        recipients = tuple(self._recipients)
        lengths = [len(self.taken.messages[name]) for name in recipients]
        report = len(self.taken.report) + SEAL_BYTES
        comma = 1 if recipients else 0
        empty = _empty_reply(recipients, self.taken.done) + len(str(report)) - len("0") + report
        return empty + _beside(lengths) + comma

    @property
    def _recipients(self) -> list[str]:
        return sorted(self.taken.messages)

    @property
    def _values(self) -> dict[str, Any]:
        return {"readers": self._recipients, "done": self.taken.done}


def messages_in(body: bytes) -> list[bytes]:
    """The sealed messages of a body that travelled, in their order."""
    arrays = unpack(body)[1]
    names = [name for name in arrays if name.startswith(_ARRAY)]
    if len(names) > MOST_MESSAGES:
        raise Refusal("bad-message")
    return [arrays[f"{_ARRAY}{i}"].tobytes() for i in range(len(names))]


@lru_cache(maxsize=256)
def _first_delivery(run: str, reply_to: str, senders: tuple[str, ...]) -> int:
    """Bytes of a delivery in step 0 without its messages; steps come by the thousand."""
    return len(pack({"run": run, "step": 0, "writers": list(senders), "reply_to": reply_to}))


@lru_cache(maxsize=256)
def _empty_reply(recipients: tuple[str, ...], done: bool) -> int:
    """Bytes of a reply without its messages and report."""
    return packed_size({"readers": list(recipients), "done": done}, {"report": ("uint8", (0,))})


def _beside(lengths: Sequence[int]) -> int:
    """Bytes that sealed messages add to a packed body: entries of its header, and themselves."""
    if not lengths:
        return 0
    sealed = [length + SEAL_BYTES for length in lengths]
    counts = "".join(map(str, (*range(len(sealed)), *sealed)))
    return len(sealed) * _ENTRY - len(",") + len(counts) + sum(sealed)


def _array(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)
