"""Which ledger a fit is charged to that names none: the one whose `with` block it runs in.

A block is in force for the code inside of it and for threads without a block of their own, because
joblib and others hand fits to threads that know nothing of where they were started.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar

from hedgerow.errors import LedgerError
from hedgerow.privacy.ledger.store import LineStore

_own: ContextVar[tuple[LineStore, ...]] = ContextVar("hedgerow ledgers", default=())
_blocks: list[tuple[int, LineStore]] = []  # of the whole process: who entered it, and its ledger
_lock = threading.Lock()


def enter_block(ledger: LineStore) -> None:
    """Charge what follows to a ledger, until its block is left."""
    _own.set((*_own.get(), ledger))
    with _lock:
        _blocks.append((threading.get_ident(), ledger))


def leave_block(ledger: LineStore) -> None:
    """End the newest block of a ledger, whoever entered it."""
    with _lock:
        for place in reversed(range(len(_blocks))):
            if _blocks[place][1] is ledger:
                del _blocks[place]
                break


def ledger_in_force() -> LineStore | None:
    """The ledger of the innermost block around the caller; None outside of every block.

    A thread that entered no block is inside of the one that all others are in. Where they are in
    several there is no telling which of them pays, and LedgerError is raised.
    """
    with _lock:
        blocks = list(_blocks)
    around = [one for one in _own.get() if any(one is ledger for _, ledger in blocks)]
    if around:
        return around[-1]
    innermost = {id(ledger): ledger for ledger in dict(blocks).values()}  # the last of each thread
    if len(innermost) > 1:
        places = ", ".join(sorted(str(one.path or "in memory") for one in innermost.values()))
        raise LedgerError(
            f"this fit runs in a thread of its own while {len(innermost)} ledgers are in force "
            f"({places}), and it does not say which of them pays. Nothing was asked and nothing "
            "was spent. Give the estimator its ledger."
        )
    return next(iter(innermost.values()), None)
