"""How the active party asks and passive parties answer, inside the steps of a session.

A side is written as a generator: what it yields is its step, what it gets back are the messages of
the others. A question and its answers take two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeVar

from hedgerow.errors import FormatError
from hedgerow.packing import pack, unpack
from hedgerow.protocol.peer_messages import PeerMessage, check_senders
from hedgerow.protocol.roles import Step

T = TypeVar("T")
PeerSteps = Generator[Step, Mapping[str, bytes], T]
DONE = pack({"kind": "done"})


class Asking:
    """The active party's way of asking; what it reports goes with its next step."""

    def __init__(self, passive: Sequence[str]) -> None:
        self.passive = tuple(passive)
        self.sent = 0  # bytes of messages, and of their answers
        self.received = 0
        self.questions = 0  # how often it asked
        self._report = b""

    def report(self, values: Mapping[str, Any]) -> None:
        """Tell the coordinator how far it is; nothing about rows."""
        self._report = pack(dict(values))

    def ask(self, messages: Mapping[str, bytes], kind: str) -> PeerSteps[dict[str, PeerMessage]]:
        """Send messages; the answers by party, all of one kind."""
        self.sent += sum(len(message) for message in messages.values())
        self.questions += 1
        report, self._report = self._report, b""
        got = yield Step(messages, report)
        check_senders(got, set(), "none")
        got = yield Step()
        check_senders(got, set(messages), kind)
        self.received += sum(len(answer) for answer in got.values())
        return {name: PeerMessage(name, kind, got[name]) for name in messages}

    def tell_all(self, message: bytes) -> PeerSteps[None]:
        """Send one message to every passive party and wait until all have it."""
        yield from self.ask(dict.fromkeys(self.passive, message), "done")


def answering(active: str, answer: Callable[[str, bytes], tuple[bytes, bytes]]) -> PeerSteps[None]:
    """A passive party: answer whatever the active party asks until it says that it is over.

    `answer` gets the kind of a message and the message; it returns the answer and a report for the
    coordinator. After a message of kind "end" the party is done.
    """
    messages = yield Step()
    while True:
        if not messages:
            messages = yield Step()
            continue
        check_senders(messages, {active}, "question")
        kind = kind_of(active, messages[active])
        reply, report = answer(kind, messages[active])
        over = kind == "end"
        messages = yield Step({active: reply}, report, done=over)
        while over:
            check_senders(messages, set(), "none")
            messages = yield Step(done=True)


def kind_of(sender: str, data: bytes) -> str:
    try:
        kind = unpack(data)[0].get("kind")
    except FormatError as error:
        raise FormatError(f"a message of {sender} cannot be read: {error}") from error
    if not isinstance(kind, str):
        raise FormatError(f"a message of {sender} does not say what it is. The run ends here.")
    return kind
