"""Refusals as ledger lines: who was refused what stays on record, and cannot fill a disk."""

from __future__ import annotations

import logging

from hedgerow.errors import LedgerWriteFailed
from hedgerow.privacy.ledger import Ledger

log = logging.getLogger(__name__)
MOST = 1000  # lines of one process; whoever asks chooses the names of runs
_LONGEST_RUN = 80


class Refusals:
    """Records each refusal of a run and word once a process."""

    def __init__(self, ledger: Ledger, owner: str) -> None:
        self._ledger, self._owner = ledger, owner
        self._seen: set[tuple[str, str]] = set()

    def record(self, run: str, word: str, slot: int = -1) -> bool:
        """Append a line unless there is one already; whether there is a new line."""
        run = run[:_LONGEST_RUN]
        slot = slot if -1 <= slot < 2**31 else -1
        if (run, word) in self._seen or len(self._seen) >= MOST:
            return False
        try:
            self._ledger.append(self._owner, "refuse", run, slot, values={"word": word})
        except LedgerWriteFailed:
            log.error("the refusal %r could not be written to the ledger", word)
            return False
        self._seen.add((run, word))
        return True
