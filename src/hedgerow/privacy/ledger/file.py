"""The file under a ledger: made for its owner alone. Is it in place, and is it ours?"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from hedgerow.errors import LedgerWriteFailed
from hedgerow.privacy.ledger.disk import Connection, disk


def tables_of(version: int) -> str:
    """What a new ledger file is made with; triggers keep its lines as they are."""
    return f"""
CREATE TABLE meta (format INTEGER NOT NULL);
INSERT INTO meta VALUES ({version});
CREATE TABLE line (
    seq INTEGER PRIMARY KEY, time TEXT NOT NULL, owner TEXT NOT NULL, kind TEXT NOT NULL,
    run TEXT NOT NULL, slot INTEGER NOT NULL, attempt INTEGER NOT NULL,
    body BLOB NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL UNIQUE);
CREATE UNIQUE INDEX once ON line (owner, kind, run, slot, attempt)
    WHERE kind IN ('open', 'reserve', 'charge', 'release');
CREATE INDEX by_run ON line (run, owner, kind, slot);
CREATE TRIGGER no_update BEFORE UPDATE ON line BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER no_replace BEFORE INSERT ON line
    WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM line)
    OR EXISTS (SELECT 1 FROM line WHERE hash = NEW.hash)
    BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER no_delete BEFORE DELETE ON line BEGIN SELECT RAISE(ABORT, 'append-only'); END;
"""


class _Forks:
    """How often this process was forked off: cheaper to ask for than who it is."""

    count = 0

    def add(self) -> None:
        self.count += 1


forks = _Forks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forks.add)


def connect(file: Path, version: int, wait_seconds: float) -> Connection:
    """A connection to a ledger file, which is made if it does not exist."""
    connection = disk().connect(file, wait_seconds)
    # A journal cut to nothing is synced under FULL. One that is unlinked is not, and after a power
    # failure it would come back and take the last transaction away.
    connection.execute("PRAGMA journal_mode=TRUNCATE")
    connection.execute("PRAGMA synchronous=FULL")
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return connection
    try:
        connection.executescript(f"BEGIN IMMEDIATE; {tables_of(version)} COMMIT;")
    except sqlite3.OperationalError as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if "already exists" not in str(error):  # else another process was quicker
            raise
    return connection


def not_written(error: Exception) -> LedgerWriteFailed:
    if "locked" in str(error):
        return LedgerWriteFailed(
            "another process has held the ledger for too long, most likely one that was stopped "
            "while it wrote. Nothing more was asked or released. End that process, then run the "
            "same command again."
        )
    return LedgerWriteFailed(
        f"the ledger could not be written ({error}). Nothing more was asked or released. "
        "Free some disk space or repair the file, then run the same command again."
    )


def not_read(error: Exception) -> LedgerWriteFailed:
    if "locked" in str(error):
        return not_written(error)
    return LedgerWriteFailed(
        f"the ledger could not be read ({error}). Nothing more was asked or released. Free some "
        "disk space or repair the file, then run the same command again."
    )


def older_copy(file: Path, line: int) -> LedgerWriteFailed:
    return LedgerWriteFailed(
        f"the ledger {file} no longer has line {line}, which this process has seen on disk: "
        "somebody put an older copy or another ledger in its place. What was spent would be "
        "forgotten, so nothing more was asked or released. Stop this process, put the newest "
        "ledger back, then run the same command again."
    )


def left_open() -> LedgerWriteFailed:
    return LedgerWriteFailed(
        "an earlier step was interrupted while it wrote to the ledger, and what was written since "
        "is not on disk. Nothing was asked. Start Python again and run the same command."
    )


def not_in_place(file: Path | None) -> LedgerWriteFailed:
    return LedgerWriteFailed(
        f"somebody removed or replaced the ledger {file} while it was in use. What is written now "
        "would be lost, and what was spent forgotten, so nothing more was asked or released. Stop "
        "this process, put the file back that was there, then run the same command again."
    )


def not_ours(file: Path | None) -> LedgerWriteFailed:
    return LedgerWriteFailed(
        f"the ledger {file or 'in memory'} was opened by another process, of which this one is a "
        "fork. Two processes would each spend what is left, so nothing was asked or released here. "
        "Give the ledger's path instead, or open its file in the process that uses it."
    )


def open_problem(file: Path, error: Exception) -> str:
    """Why a ledger cannot be opened, and what to do."""
    text = str(error)
    if file.is_dir():
        return f"{file} is a folder; name a ledger file in it. Nothing was spent."
    if "locked" in text:
        return (
            f"another process has held {file} for too long, most likely one that was stopped while "
            "it wrote. End it, then run the same command again. Nothing was spent."
        )
    if "not a database" in text or "malformed" in text:
        advice = "Name a ledger file, or put the last good copy back."
        return f"{file} is not a hedgerow ledger, or it is damaged. Nothing was spent. {advice}"
    return f"cannot open the ledger {file}: {text}. Check the folder and its permissions."
