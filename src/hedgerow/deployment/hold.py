"""A site has one process at a time that works for it; others may look.

The lock is on a file in the site folder and goes with the process that took it, however that ends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from hedgerow.engines.site import Site
from hedgerow.errors import LedgerError

FILE = "process.lock"
PORT_FILE = "port.lock"  # of the coordinator's port, beside which runs are driven


@contextmanager
def holding(site: Site, command: str, file: str = FILE) -> Iterator[None]:
    """Keep other processes from working for the site; LedgerError if one does already.

    Two processes of one party would each answer with keys of their own, and two of one coordinator
    each drive a run: their ledger would add up, their runs would fail half-way.
    """
    handle = _open(site, file)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LedgerError(
                f"the site {site.name} is in use by another process, most likely another "
                f"`{command}`. Stop that one first, or wait for it. Nothing was asked and nothing "
                "was spent."
            ) from error
        yield
    finally:
        os.close(handle)


def is_held(site: Site) -> bool:
    """Whether some process works for the site."""
    handle = _open(site, FILE)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _open(site: Site, file: str) -> int:
    return os.open(site.folder / file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
