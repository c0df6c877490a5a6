"""The ledger: an append-only, hash-chained list of charges and releases in one SQLite file.

A line is on disk (synchronous=FULL) before anything that depends on it happens. Several owners
(the coordinator and in-process parties) may write to one file.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from hedgerow import clock
from hedgerow.errors import LedgerError
from hedgerow.packing import pack
from hedgerow.privacy.ledger.file import (
    create_private,
    forks,
    left_open,
    mark_of,
    not_in_place,
    not_ours,
    not_written,
    open_problem,
    tables_of,
)
from hedgerow.privacy.ledger.line import GENESIS, Line, check_chain, line_hash
from hedgerow.privacy.ledger.migrations import FORMAT, check_format

COORDINATOR = "coordinator"
_COLUMNS = "seq, time, owner, kind, run, slot, attempt, body, previous, hash"
_INSERT = f"INSERT INTO line ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_TABLES = tables_of(FORMAT)


@dataclass(frozen=True)
class Budget:
    """A ceiling over everything a ledger ever records for one owner."""

    epsilon: float
    delta: float


class _Inside:
    """A block inside of a transaction."""

    __slots__ = ("_ledger",)

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __enter__(self) -> None:
        if not self._ledger._is_inside:
            raise LedgerError("a block of a transaction was entered after that had ended")

    def __exit__(self, *_: object) -> None:
        return None


class Ledger:
    """Open with `Ledger.open(path)`, or `Ledger.in_memory()` for one fit alone."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self._connection = connection
        self.path = path
        self._mark = mark_of(path) if path else None
        self._process, self._forks = os.getpid(), forks.count
        self._writer = 0  # the thread whose transaction is open
        # The last line, as far as it is known: nobody else writes to a file under our lock.
        self._tail: tuple[int, str] | None = None
        self.rolled_back = 0  # how often lines that were read may have gone again
        self._newest: dict[tuple[str, str, str], int] = {}  # of some owners, kinds and runs
        # Owners and kinds of which there may be lines, if that was read; of others there are none.
        self._pairs: set[tuple[str, str]] | None = None
        self._lock = threading.RLock()  # threads may share a ledger; transactions do not overlap

    @classmethod
    def in_memory(cls) -> Ledger:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection.executescript(_TABLES)
        return cls(connection, None)

    @classmethod
    def open(cls, path: str | PathLike[str], *, create: bool = True) -> Ledger:
        """Open a ledger file under an exclusive lock; create it if it does not exist."""
        file = Path(path)
        if not file.exists() and not create:
            raise LedgerError(f"no ledger at {file}; check the path")
        try:
            create_private(file)
            mark = mark_of(file)
            connection = sqlite3.connect(
                file, isolation_level=None, timeout=0.2, check_same_thread=False
            )
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("BEGIN EXCLUSIVE")
            found = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            connection.execute("COMMIT")
            if not found:
                connection.executescript(f"BEGIN; {_TABLES} COMMIT;")
        except (sqlite3.DatabaseError, OSError) as error:
            raise LedgerError(open_problem(file, error)) from error
        ledger = cls(connection, file)
        if ledger._mark != mark:  # replaced while it was opened
            raise not_in_place(file)
        check_format(connection, file)
        ledger.verify()
        return ledger

    @property
    def in_place(self) -> bool:
        """Whether the file that was opened still stands at its path."""
        return self.path is None or mark_of(self.path) == self._mark

    def close(self) -> None:
        self._connection.close()

    def __copy__(self) -> Ledger:
        return self  # one ledger, one budget: a cloned estimator spends from the same one

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def transaction(self) -> AbstractContextManager[None]:
        """Lines appended inside reach the disk together, before the block ends."""
        return _Inside(self) if self._is_inside else self._transaction()

    @property
    def _is_inside(self) -> bool:
        """Whether this thread has a transaction open, which then ends for both."""
        return self._writer == threading.get_ident() and self._forks == forks.count

    def check_written(self) -> None:
        """Raise unless what this thread appended is on disk.

        Ctrl-C can come where a block neither begins nor ends any more; while its traceback is kept,
        as notebooks do, the transaction stays open, and all that follows would be a part of it.
        """
        if self._is_inside:
            raise left_open()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        # A forked child has our memory and not our lock: what one of us spends, the other would
        # not see, and lines of both would overwrite each other.
        if os.getpid() != self._process:
            raise not_ours(self.path)
        with self._lock:
            self._check_in_place()  # before the journal is touched
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self._writer = threading.get_ident()
                yield
                self._check_in_place()
                self._connection.execute("COMMIT")
            except BaseException as error:  # Ctrl-C as well, whenever it comes
                self._roll_back()
                if isinstance(error, sqlite3.DatabaseError):
                    raise not_written(error) from error
                raise
            finally:
                self._writer = 0

    def _check_in_place(self) -> None:
        if not self.in_place:
            raise not_in_place(self.path)

    def _roll_back(self) -> None:
        self._forget()
        # After a full disk SQLite has rolled back by itself.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _forget(self) -> None:
        """Lines that were read or written may have gone again."""
        self._tail = None
        self._newest.clear()
        self.rolled_back += 1

    def append(
        self,
        owner: str,
        kind: str,
        run: str = "",
        slot: int = -1,
        attempt: int = 0,
        values: Mapping[str, Any] | None = None,
        arrays: Mapping[str, NDArray[Any]] | None = None,
        body: bytes | None = None,
    ) -> Line:
        """Append one line and return it once it is on disk (or in the open transaction).

        What it says may be packed already.
        """
        body = pack(values or {}, arrays) if body is None else body
        with self.transaction():
            try:
                count, previous = self.last()
                seq = count + 1
                time = clock.utc_now().isoformat(timespec="milliseconds")
                hash_ = line_hash(seq, time, owner, kind, run, slot, attempt, body, previous)
                line = Line(seq, time, owner, kind, run, slot, attempt, body, previous, hash_)
                self._connection.execute(_INSERT, line)
                self._tail = (seq, hash_)
                if self._pairs is not None:
                    self._pairs.add((owner, kind))
                if (owner, kind, run) in self._newest:
                    self._newest[owner, kind, run] = seq
            except sqlite3.IntegrityError as error:
                self._tail = None
                raise LedgerError(f"the ledger already has this {kind} line") from error
            except sqlite3.DatabaseError as error:
                self._forget()  # SQLite may have rolled back by itself
                raise not_written(error) from error
        return line

    def lines(
        self,
        owner: str | None = None,
        kind: str | None = None,
        run: str | None = None,
        slot: int | None = None,
        after: int = 0,
    ) -> list[Line]:
        """Lines in order, filtered by what is given; those behind number `after` alone."""
        if owner is not None and kind is not None and not self._has_any(owner, kind):
            return []
        wanted = {"owner": owner, "kind": kind, "run": run, "slot": slot}
        given = {name: value for name, value in wanted.items() if value is not None}
        # The plus keeps SQLite from walking all lines instead of those of the index.
        where = " AND ".join([*(f"{name} = ?" for name in given), "+seq > ?"])
        with self._lock:
            rows = self._connection.execute(
                f"SELECT {_COLUMNS} FROM line WHERE {where} ORDER BY seq", (*given.values(), after)
            ).fetchall()
        return [Line(*row) for row in rows]

    def _has_any(self, owner: str, kind: str) -> bool:
        """Whether an owner has lines of a kind; all pairs are read once, as nobody else writes."""
        with self._lock:
            if self._pairs is None:
                found = self._connection.execute("SELECT DISTINCT owner, kind FROM line")
                self._pairs = set(found.fetchall())
            return (owner, kind) in self._pairs

    def newest(self, owner: str, kind: str, run: str) -> int:
        """Number of an owner's last line of a kind in a run, 0 if there is none.

        Looked up once: nobody else writes to a file under our lock.
        """
        found = "SELECT max(seq) FROM line WHERE run = ? AND owner = ? AND kind = ?"
        with self._lock:
            if (owner, kind, run) not in self._newest:
                seq = 0
                if self._has_any(owner, kind):
                    (seq,) = self._connection.execute(found, (run, owner, kind)).fetchone()
                self._newest[owner, kind, run] = seq or 0
            return self._newest[owner, kind, run]

    def last(self) -> tuple[int, str]:
        """Number and hash of the last line; 0 and GENESIS if there is none."""
        newest = "SELECT seq, hash FROM line ORDER BY seq DESC LIMIT 1"
        with self._lock:
            if self._tail is None:
                self._tail = self._connection.execute(newest).fetchone() or (0, GENESIS)
            return self._tail

    def contains(self, seq: int, hash_: str) -> bool:
        """Whether this line, as `last` gave it once, is here."""
        if seq == 0:
            return hash_ == GENESIS
        found = "SELECT 1 FROM line WHERE seq = ? AND hash = ?"
        with self._lock:
            return self._connection.execute(found, (seq, hash_)).fetchone() is not None

    def has_reserved(self, owner: str, run: str) -> bool:
        """Whether an owner reserved a run; cheaper than reading the line, which holds the plan."""
        found = "SELECT 1 FROM line WHERE run = ? AND owner = ? AND kind = 'reserve'"
        if not self._has_any(owner, "reserve"):
            return False
        with self._lock:
            return self._connection.execute(found, (run, owner)).fetchone() is not None

    def attempts(self, owner: str, run: str) -> tuple[int, int]:
        """How many attempts an owner charged in a run, and over how many slots."""
        with self._lock:
            row = self._connection.execute(
                "SELECT count(*), count(DISTINCT slot) FROM line"
                " WHERE run = ? AND owner = ? AND kind = 'charge'",
                (run, owner),
            ).fetchone()
        return int(row[0]), int(row[1])

    def verify(self) -> int:
        """Walk the hash chain: the number of lines, or LedgerError at the first break."""
        return check_chain(self.lines())
