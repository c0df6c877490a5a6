"""Parties that refuse or do not answer, as whoever drives a run is told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hedgerow.errors import HedgerowError, Refused
from hedgerow.protocol.messages import REFUSALS, REJECTIONS
from hedgerow.protocol.replies import ReceivedReply


class RefusedBy(Refused):
    """A party's refusal, with its name and the word it gave."""

    def __init__(self, party: str, word: str) -> None:
        reason = REFUSALS.get(word, "it gave no known reason")
        self.party, self.word = party, word
        advice = f"Settle it with {party}, then run the same command again."
        if self.is_final:
            advice = "That plan is answered no more; another one may be asked for."
        super().__init__(
            f"{party} refused ({word}): {reason}. Nothing was released by it; what was reserved "
            f"and charged before stays so. {advice}"
        )

    @property
    def waits(self) -> bool:
        """Whether the same plan may be accepted later, once people have approved it."""
        return self.word == "not-approved"

    @property
    def is_final(self) -> bool:
        """Whether the plan is refused for good."""
        return self.word in (*REJECTIONS, "withdrawn", "expired")


class PartiesLost(HedgerowError):
    """Some parties did not answer an attempt. The attempt stays charged."""

    exit_code = 5

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"no answer from {', '.join(names)}")
        self.names = tuple(names)


@dataclass(frozen=True)
class Loss:
    """A party that did not answer an attempt at a slot, and why, in words."""

    slot: int
    party: str
    why: str


def word_in(reply: ReceivedReply) -> str:
    """Of a refusal: a word of the vocabulary, whatever the party wrote."""
    if reply.type != "refusal":
        return ""
    word = reply.values.get("word")
    return word if isinstance(word, str) and word in REFUSALS else "failed"


def raise_refusals(replies: Mapping[str, ReceivedReply]) -> None:
    """Raise if a party refused: the cause first, last what waiting helps against.

    Others refuse a party, too, whose ledger was rolled back; and a plan that one has rejected
    need not be approved by another.
    """
    words = {name: word for name, reply in replies.items() if (word := word_in(reply))}
    waiting = [name for name, word in words.items() if word == "not-approved"]
    for name, word in sorted(words.items(), key=lambda one: one[1] != "rolled-back"):
        if name not in waiting:
            raise RefusedBy(name, word)
    if waiting:
        raise RefusedBy(", ".join(waiting), "not-approved")
