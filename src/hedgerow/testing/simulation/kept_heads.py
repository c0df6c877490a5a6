"""What parties keep of each other's ledgers, as it was seen on the wire.

Nobody may take part whose ledger lacks what the others in the run keep of it, unless it is settled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.witnesses import KeptHead, has_head, settlements
from hedgerow.protocol.witnesses import head_from


class KeptHeads:
    """The last head that each party keeps of each other one."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], KeptHead] = {}  # by witness and party

    def keep(self, witness: str, heads: Iterable[Any]) -> None:
        """A party has said that it keeps these."""
        for head in map(head_from, heads):
            known = self._last.get((witness, head.party))
            if known is None or known.key != head.key or known.count < head.count:
                self._last[witness, head.party] = head

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
            and not any(one.covers(head.time) for one in settled)
        ]
