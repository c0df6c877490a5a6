"""How the active party asks and passive parties answer, inside the steps of a conversation.

A side is written as a generator: what it yields is its step, what it gets back are the letters of
the others. A question and its answers take two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeVar

from hedgerow.errors import FormatError
from hedgerow.packing import pack, unpack
from hedgerow.protocol.peer_messages import Letter, by_writer
from hedgerow.protocol.roles import Step

T = TypeVar("T")
Talk = Generator[Step, Mapping[str, bytes], T]
DONE = pack({"kind": "done"})


class Asking:
    """The active party's way of asking; what it reports goes with its next step."""

    def __init__(self, passive: Sequence[str]) -> None:
        self.passive = tuple(passive)
        self.sent = 0  # bytes of letters, and of their answers
        self.received = 0
        self.questions = 0  # how often it asked
        self._report = b""

    def report(self, values: Mapping[str, Any]) -> None:
        """Tell the coordinator how far it is; nothing about rows."""
        self._report = pack(dict(values))

    def ask(self, letters: Mapping[str, bytes], kind: str) -> Talk[dict[str, Letter]]:
        """Send letters; the answers by party, all of one kind."""
        self.sent += sum(len(letter) for letter in letters.values())
        self.questions += 1
        report, self._report = self._report, b""
        got = yield Step(letters, report)
        by_writer(got, set(), "none")
        got = yield Step()
        by_writer(got, set(letters), kind)
        self.received += sum(len(answer) for answer in got.values())
        return {name: Letter(name, kind, got[name]) for name in letters}

    def tell_all(self, letter: bytes) -> Talk[None]:
        """Send one letter to every passive party and wait until all have it."""
        yield from self.ask(dict.fromkeys(self.passive, letter), "done")


def answering(active: str, answer: Callable[[str, bytes], tuple[bytes, bytes]]) -> Talk[None]:
    """A passive party: answer whatever the active party asks until it says that it is over.

    `answer` gets the kind of a letter and the letter; it returns the answer and a report for the
    coordinator. After a letter of kind "end" the party is done.
    """
    letters = yield Step()
    while True:
        if not letters:
            letters = yield Step()
            continue
        by_writer(letters, {active}, "question")
        kind = kind_of(active, letters[active])
        reply, report = answer(kind, letters[active])
        over = kind == "end"
        letters = yield Step({active: reply}, report, done=over)
        while over:
            by_writer(letters, set(), "none")
            letters = yield Step(done=True)


def kind_of(writer: str, data: bytes) -> str:
    try:
        kind = unpack(data)[0].get("kind")
    except FormatError as error:
        raise FormatError(f"a letter of {writer} cannot be read: {error}") from error
    if not isinstance(kind, str):
        raise FormatError(f"a letter of {writer} does not say what it is. The run ends here.")
    return kind
