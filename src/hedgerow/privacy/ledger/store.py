"""Lines in one SQLite file: appended, never changed, each bound to the one before it by a hash.

A line is on disk (synchronous=FULL) before anything that depends on it happens. Several owners
(the coordinator and in-process parties), threads and processes may write to one file: its lock is
held for a transaction and no longer, and whoever reads waits for a commit at most.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray

from hedgerow import clock
from hedgerow.errors import LedgerError
from hedgerow.packing import pack
from hedgerow.privacy.ledger.disk import Connection, mark_of
from hedgerow.privacy.ledger.file import (
    connect,
    forks,
    left_open,
    not_in_place,
    not_ours,
    not_read,
    not_written,
    older_copy,
    open_problem,
    tables_of,
)
from hedgerow.privacy.ledger.line import GENESIS, Line, check_chain, line_hash
from hedgerow.privacy.ledger.migrations import FORMAT, check_format

COORDINATOR = "coordinator"
# Transactions take milliseconds, and a fit that gives up loses what it has reserved: patience is
# cheap. Beyond it a process that was stopped half-way holds the file.
WAIT_SECONDS = 60.0
COLUMNS = "seq, time, owner, kind, run, slot, attempt, body, previous, hash"
_AT_ONCE = 500  # lines in memory while all of them are walked
_INSERT = f"INSERT INTO line ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class _Inside:
    """A block inside of a transaction."""

    __slots__ = ("_ledger",)

    def __init__(self, ledger: LineStore) -> None:
        self._ledger = ledger

    def __enter__(self) -> None:
        if not self._ledger._is_inside:
            raise LedgerError("a block of a transaction was entered after that had ended")
        if not self._ledger._connection.in_transaction:  # nothing would hold others back any more
            raise not_written(sqlite3.OperationalError("its transaction was given up"))

    def __exit__(self, *_: object) -> None:
        return None


class LineStore:
    """The lines of a ledger; see `Ledger`, which people open."""

    def __init__(self, connection: Connection, path: Path | None) -> None:
        self._connection = connection
        self.path = path
        self._mark = mark_of(path) if path else None
        self._process, self._forks = os.getpid(), forks.count
        self._writer = 0  # the thread whose transaction is open
        self._joined: dict[int, ExitStack] = {}  # threads whose transactions end together
        self._version: int | None = None  # of the file, as SQLite counts what others commit
        # What is known of the lines until somebody else writes: the last one,
        self._tail: tuple[int, str] | None = None
        self._newest: dict[tuple[str, str, str], int] = {}  # those of some owners, kinds and runs,
        self._pairs: set[tuple[str, str]] | None = None  # and owners and kinds that have any.
        self._seen = (0, GENESIS)  # a line that was on disk, so it must stay
        self.closed = False
        self.rolled_back = 0  # how often lines that were read may have gone again
        self._lock = threading.RLock()  # threads may share a ledger; transactions do not overlap

    @classmethod
    def _in_memory(cls) -> Self:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection.executescript(tables_of(FORMAT))
        return cls(connection, None)

    @classmethod
    def _opened(cls, file: Path) -> Self:
        """The store in a file, its chain walked; the file is made if it does not exist."""
        mark = mark_of(file)
        try:
            connection = connect(file, FORMAT, WAIT_SECONDS)
        except (sqlite3.DatabaseError, OSError) as error:
            raise LedgerError(open_problem(file, error)) from error
        store = cls(connection, file)
        if mark not in (None, store._mark):  # replaced while it was opened
            raise not_in_place(file)
        check_format(connection, file)
        store.verify()
        return store

    @property
    def forked(self) -> bool:
        """Whether this process is a fork of the one that opened the ledger."""
        return os.getpid() != self._process

    def _check_open(self) -> None:
        if self.closed:
            raise LedgerError(
                f"the ledger {self.path or 'in memory'} is closed, as at the end of its `with` "
                "block. Nothing was asked and nothing was spent. Open it again, and use it inside "
                "of the block."
            )

    @property
    def in_place(self) -> bool:
        """Whether the file that was opened still stands at its path."""
        return self.path is None or mark_of(self.path) == self._mark

    def close(self) -> None:
        """Let go of the file; nothing can be read or written any more."""
        if self.closed:
            return
        self.closed = True
        if self.path is not None and not self.forked:
            with suppress(sqlite3.Error):  # an empty journal is not left lying about
                self._connection.execute("PRAGMA busy_timeout=0")
                self._connection.execute("PRAGMA journal_mode=DELETE")
        self._connection.close()

    def transaction(self) -> AbstractContextManager[None]:
        """Lines appended inside reach the disk together, before the block ends."""
        if self._is_inside:
            return _Inside(self)
        joined = self._joined.get(threading.get_ident())
        if joined is None:
            return self._transaction()
        joined.enter_context(self._transaction())
        return _Inside(self)

    @contextmanager
    def together(self) -> Iterator[None]:
        """All transactions of this block are one, begun with the first and ended with the block."""
        me = threading.get_ident()
        if self._is_inside or me in self._joined:
            yield
            return
        with ExitStack() as stack:
            self._joined[me] = stack
            try:
                yield
            finally:
                del self._joined[me]

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
        # A forked child has our memory and a connection that SQLite forbids it to use: what one of
        # us spends, the other might not see, and lines of both could overwrite each other.
        if self.forked:
            raise not_ours(self.path)
        with self._lock:
            self._check_open()
            self._check_in_place()  # before the journal is touched
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self._writer = threading.get_ident()
                self._look_again()
                yield
                self._check_in_place()
                self._connection.execute("COMMIT")
                self._seen = self._tail or self._seen
            except BaseException as error:  # Ctrl-C as well, whenever it comes
                self._roll_back()
                if isinstance(error, sqlite3.DatabaseError):
                    raise not_written(error) from error
                raise
            finally:
                self._writer = 0

    def _look_outside(self) -> None:
        if not self._is_inside:  # inside of a transaction nobody else can write
            self._look_again()

    def _look_again(self) -> None:
        """Forget what was known of the lines if somebody else wrote; what stood there must stay."""
        if self.path is None:
            return
        (version,) = self._read("PRAGMA data_version")[0]
        if version == self._version:
            return
        self._tail, self._pairs = None, None
        self._newest.clear()
        if not self.contains(*self._seen):
            raise older_copy(self.path, self._seen[0])
        self._version = version

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
            rows = self._read(
                f"SELECT {COLUMNS} FROM line WHERE {where} ORDER BY seq", (*given.values(), after)
            )
        return [Line(*row) for row in rows]

    def _read(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        self._check_open()
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            # Reading writes as well, where another process died in the middle of a transaction.
            raise not_read(error) from error

    def _has_any(self, owner: str, kind: str) -> bool:
        """Whether an owner has lines of a kind; all pairs are read once, until others write."""
        with self._lock:
            self._look_outside()
            if self._pairs is None:
                self._pairs = set(self._read("SELECT DISTINCT owner, kind FROM line"))
            return (owner, kind) in self._pairs

    def newest(self, owner: str, kind: str, run: str) -> int:
        """Number of an owner's last line of a kind in a run, 0 if there is none.

        It is looked up once, and again after others wrote.
        """
        found = "SELECT max(seq) FROM line WHERE run = ? AND owner = ? AND kind = ?"
        with self._lock:
            self._look_outside()
            if (owner, kind, run) not in self._newest:
                seq = 0
                if self._has_any(owner, kind):
                    (seq,) = self._read(found, (run, owner, kind))[0]
                self._newest[owner, kind, run] = seq or 0
            return self._newest[owner, kind, run]

    def last(self) -> tuple[int, str]:
        """Number and hash of the last line; 0 and GENESIS if there is none."""
        with self._lock:
            self._look_outside()
            if self._tail is None:
                found = self._read("SELECT seq, hash FROM line ORDER BY seq DESC LIMIT 1")
                self._tail = found[0] if found else (0, GENESIS)
            return self._tail

    def contains(self, seq: int, hash_: str) -> bool:
        """Whether this line, as `last` gave it once, is here."""
        if seq == 0:
            return hash_ == GENESIS
        found = "SELECT 1 FROM line WHERE seq = ? AND hash = ?"
        with self._lock:
            return bool(self._read(found, (seq, hash_)))

    def has_reserved(self, owner: str, run: str) -> bool:
        """Whether an owner reserved a run; cheaper than reading the line, which holds the plan."""
        found = "SELECT 1 FROM line WHERE run = ? AND owner = ? AND kind = 'reserve'"
        if not self._has_any(owner, "reserve"):
            return False
        with self._lock:
            return bool(self._read(found, (run, owner)))

    def attempts(self, owner: str, run: str) -> tuple[int, int]:
        """How many attempts an owner charged in a run, and over how many slots."""
        with self._lock:
            (row,) = self._read(
                "SELECT count(*), count(DISTINCT slot) FROM line"
                " WHERE run = ? AND owner = ? AND kind = 'charge'",
                (run, owner),
            )
        return int(row[0]), int(row[1])

    def select(self, what: str, where: str, values: tuple[Any, ...]) -> list[Any]:
        """Rows of a reading query over the lines; `paging` asks so for a few of very many."""
        with self._lock:
            return self._read(f"SELECT {what} FROM line WHERE {where}", values)

    def walk(self) -> Iterator[Line]:
        """All lines in order, a few in memory at a time, while others may go on writing."""
        after = 0
        found = f"SELECT {COLUMNS} FROM line WHERE seq > ? ORDER BY seq LIMIT {_AT_ONCE}"
        while True:
            with self._lock:
                rows = self._read(found, (after,))
            for row in rows:
                yield Line(*row)
            if len(rows) < _AT_ONCE:
                return
            after = rows[-1][0]

    def verify(self) -> int:
        """Walk the hash chain: the number of lines, or LedgerError at the first break."""
        last = (0, GENESIS)

        def noting() -> Iterator[Line]:
            nonlocal last
            for line in self.walk():
                last = (line.seq, line.hash)
                yield line

        count = check_chain(noting())
        if not self._is_inside and count > self._seen[0]:
            self._seen = last
        return count
