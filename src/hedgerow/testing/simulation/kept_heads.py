"""What parties keep of each other's ledgers, as it was seen on the wire.

What witnesses promise: nobody joins a run whose ledger lacks a head, or whose process is older than
a start, that another party of that run keeps, unless a person has settled it; and nobody is said to
have lost lines who has them all. Lines after the last head that others keep may be lost unnoticed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.witnesses import KeptHead, has_head, settlements
from hedgerow.protocol.identity import Announcement, signed_by
from hedgerow.protocol.witnesses import head_from


class KeptHeads:
    """The last head and the newest start that each party keeps of each other one."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], KeptHead] = {}  # by witness and party
        self._starts: dict[tuple[str, str], tuple[Announcement, str]] = {}  # and when it was seen

    def keep(self, witness: str, heads: Iterable[Any]) -> None:
        """A party has said that it keeps these."""
        for head in map(head_from, heads):
            known = self._last.get((witness, head.party))
            if known is None or known.key != head.key or known.count < head.count:
                self._last[witness, head.party] = head

    def saw(self, witness: str, announced: Iterable[Announcement], now: str) -> None:
        """A party has joined with these starts of the others."""
        for start in announced:
            known = self._starts.get((witness, start.name))
            if start.name != witness and (known is None or known[0].boot < start.boot):
                self._starts[witness, start.name] = (start, now)

    def missed(self, party: str, key: str, ledger: Ledger, by: Collection[str]) -> list[str]:
        """Those who keep a head of a party under its key that its ledger does not have."""
        kept = {name: self._last.get((name, party)) for name in sorted(by)}
        settled = settlements(ledger, party)
        return [
            name
            for name, head in kept.items()
            if head is not None
            and head.key == key
            and not has_head(ledger, party, head.commitment)
            and not any(one.covers(head.time, head.count) for one in settled)
        ]

    def missed_starts(
        self, mine: Announcement, key: str, ledger: Ledger, by: Collection[str], now: str
    ) -> list[str]:
        """Those who joined with a later start of a party, or with another of the same number."""
        found = []
        for name in sorted(by):
            start, seen = self._starts.get((name, mine.name), (mine, now))
            later = start.boot > mine.boot or (start.boot == mine.boot and start.key != mine.key)
            if later and signed_by(key, start.message(), start.signature):
                settled = settlements(ledger, mine.name)
                if not any(one.covers(min(seen, now), boot=start.boot) for one in settled):
                    found.append(name)
        return found
