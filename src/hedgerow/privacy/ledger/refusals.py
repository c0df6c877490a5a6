"""Refusals as ledger lines: who was refused what stays on record, and cannot fill a disk."""

from __future__ import annotations

import logging
from collections import Counter

from hedgerow.errors import LedgerWriteFailed
from hedgerow.privacy.ledger.ledger import Ledger

log = logging.getLogger(__name__)
MOST = 100  # lines of one word and process; whoever asks chooses the names of runs
_LONGEST_RUN = 80


class Refusals:
    """Records each refusal of a run and word once a process, and counts what is beyond `MOST`.

    Every word has room of its own, so that a flood of one does not hide another. What is left
    out has a line ("unlisted") at 1, 10, 100, ...: also a process that is killed leaves a count.
    """

    def __init__(self, ledger: Ledger, owner: str) -> None:
        self._ledger, self._owner = ledger, owner
        self._seen: set[tuple[str, str]] = set()
        self._listed: Counter[str] = Counter()
        self._unlisted: Counter[str] = Counter()

    def record(self, run: str, word: str, slot: int = -1) -> bool:
        """Append a line unless there is one already; whether there is a new line."""
        run = run[:_LONGEST_RUN]
        slot = slot if -1 <= slot < 2**31 else -1
        if (run, word) in self._seen:
            return False
        try:
            if self._listed[word] >= MOST:
                self._count(word)
                return False
            self._ledger.append(self._owner, "refuse", run, slot, values={"word": word})
        except LedgerWriteFailed:
            log.error("the refusal %r could not be written to the ledger", word)
            return False
        self._seen.add((run, word))
        self._listed[word] += 1
        return True

    def _count(self, word: str) -> None:
        self._unlisted[word] += 1
        count = self._unlisted[word]
        if str(count).strip("0") == "1":  # a power of ten
            values = {"word": word, "count": count}
            self._ledger.append(self._owner, "unlisted", values=values)
