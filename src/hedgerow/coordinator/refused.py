"""Parties that refuse or do not answer, as whoever drives a run is told of it."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.errors import HedgerowError, Refused
from hedgerow.protocol.messages import REFUSALS, REJECTIONS


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
