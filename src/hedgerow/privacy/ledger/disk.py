"""What stands under a ledger file: who opens it, and which file stands at a path.

SQLite on the machine's own disk; `hedgerow.testing` puts a simulated one in its place.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol


class Cursor(Protocol):
    """What a statement found."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """What a ledger needs of a connection; `sqlite3.Connection` is one."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...

    def executescript(self, sql_script: str, /) -> object: ...

    def close(self) -> None: ...


class Disk(Protocol):
    """Where ledger files lie."""

    def connect(self, file: Path, wait_seconds: float) -> Connection:
        """Open a file, which is made if it does not exist; errors are those of `sqlite3`."""
        ...

    def mark_of(self, file: Path) -> tuple[int, int] | None:
        """Which file stands at a path, as two numbers; None if there is none."""
        ...


class SystemDisk:
    """The machine's own disk."""

    def connect(self, file: Path, wait_seconds: float) -> sqlite3.Connection:
        create_private(file)
        return sqlite3.connect(
            file, isolation_level=None, timeout=wait_seconds, check_same_thread=False
        )

    def mark_of(self, file: Path) -> tuple[int, int] | None:
        """Device and inode."""
        try:
            found = os.stat(file)
        except OSError:
            return None
        return found.st_dev, found.st_ino


_DISK: ContextVar[Disk] = ContextVar("disk", default=SystemDisk())  # noqa: B039


def disk() -> Disk:
    """The disk that ledgers lie on."""
    return _DISK.get()


def mark_of(file: Path) -> tuple[int, int] | None:
    """Which file stands at a path; None if there is none."""
    return _DISK.get().mark_of(file)


@contextmanager
def disk_from(disk: Disk) -> Iterator[None]:
    """Keep ledgers on another disk inside the block. For `hedgerow.testing` only."""
    token = _DISK.set(disk)
    try:
        yield
    finally:
        _DISK.reset(token)


def create_private(file: Path) -> None:
    """Make an empty file that only its owner may read; one that exists is not touched.

    Nothing is opened that exists: closing it again would drop the locks that this process holds.
    """
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
