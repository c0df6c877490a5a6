"""A simulated disk under SQLite: every write, sync and lock of a ledger passes here.

Files are what the operating system would show (`data`) and what would be found after the power
failed (`durable`), with the writes between the two. A killed process loses nothing that it wrote; a
power failure keeps a drawn part of the writes since the last sync, the last of them torn.
SQLite itself is real: that of apsw, whose files are these.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw

from hedgerow.testing.simulation.randomness import Dice

SECTOR = 512
_PENDING = apsw.SQLITE_LOCK_PENDING
_VFS = "hedgerow-simulation"
_marks = itertools.count(1)
Touched = Callable[[str, str], None]


class Crashed(BaseException):
    """The process that was at work is gone; nothing of hedgerow may catch this."""


class File:
    """One file of a machine."""

    def __init__(self, data: bytes = b"") -> None:
        self.data, self._durable = bytearray(data), bytearray(data)
        self._writes: list[tuple[int, bytes | None]] = []  # not in `_durable` yet; None: cut there
        self._synced = 0  # so many of them would survive
        self.mark = (7, next(_marks))
        self.locks: dict[Handle, int] = {}
        self.exists_durably = bool(data)

    @property
    def unsynced(self) -> bool:
        return len(self._writes) > self._synced

    def write(self, offset: int, data: bytes | None) -> None:
        self._writes.append((offset, data))
        if data is not None and offset <= len(self.data):  # as most are
            self.data[offset : offset + len(data)] = data
        else:
            _apply(self.data, offset, data)

    def sync(self) -> None:
        if self.data:
            self._synced = len(self._writes)  # where they led is looked at when the power fails
        else:  # a journal that was cut
            self._durable.clear()
            self._writes.clear()
            self._synced = 0
        self.exists_durably = True

    def lose_power(self, dice: Dice) -> None:
        """Each write since the last sync is there, gone, or torn between two sectors."""
        for number, (offset, data) in enumerate(self._writes):
            if number >= self._synced:
                fate = dice.unit()
                if fate < 0.4:
                    continue
                if data is not None and fate < 0.6:
                    data = data[: SECTOR * dice.integer(0, len(data) // SECTOR)]
            _apply(self._durable, offset, data)
        self._writes.clear()
        self._synced = 0
        self.data = bytearray(self._durable)
        self.exists_durably = True


def _apply(data: bytearray, offset: int, change: bytes | None) -> None:
    if change is None:
        del data[offset:]
        return
    if len(data) < offset:
        data.extend(bytes(offset - len(data)))
    data[offset : offset + len(change)] = change


class SimulatedDisk:
    """The files of all machines of one history, by "machine/name"."""

    def __init__(self, touched: Touched, wait: Callable[[float], None], dice: Dice) -> None:
        self.files: dict[str, File] = {}
        self.touched, self._wait, self._dice = touched, wait, dice
        self.full: set[str] = set()  # machines without room
        self.watched: Container[tuple[str, str]] | None = None  # what is to be told; None: all
        self.unlinked: dict[str, File] = {}  # and the folder not synced since: may come back
        self.handles: dict[str, list[Handle]] = {}  # by the process that opened them
        self.process = ""  # whose code is running
        self.shared = False  # whether processes take turns on one file
        self.preempt: Callable[[bool], None] = lambda begun: None
        self.count: Callable[[str], None] = lambda what: None
        self.connections: list[apsw.Connection] = []
        self.changes = Counter[str]()  # by machine: counts whatever may change what is read there

    def shut(self) -> None:
        """The history is over: nothing that still has a file open may write to it."""
        for process in list(self.handles):
            self.end_process(process)
        for connection in self.connections:
            with suppress(apsw.Error):
                connection.close(True)

    def connect(self, file: Path, wait_seconds: float) -> SimulatedConnection:
        name = str(file)
        if name not in self.files:
            self.files[name] = File()
        _vfs.disk = self
        return SimulatedConnection(self, name, self.process, wait_seconds, self._wait)

    def mark_of(self, file: Path) -> tuple[int, int] | None:
        found = self.files.get(str(file))
        return None if found is None else found.mark

    def end_process(self, process: str) -> None:
        """Locks go with their process; what it does from now on reaches no file."""
        for handle in self.handles.pop(process, []):
            handle.dead = True
            handle.file.locks.pop(handle, None)
            if handle.name.endswith("-journal") and handle.file.data:
                self.count("undone")
            self.changes[handle.machine] += 1  # what it left half done is undone by who reads next

    def lose_power(self, machine: str) -> None:
        self.changes[machine] += 1
        for name, file in list(self.unlinked.items()):
            if name.startswith(f"{machine}/") and self._dice.chance(0.7):
                self.files.setdefault(name, file)
        self.unlinked.clear()
        for name, file in list(self.files.items()):
            if name.startswith(f"{machine}/"):
                created = file.exists_durably or not file.unsynced or self._dice.chance(0.5)
                file.lose_power(self._dice)
                if not created:
                    del self.files[name]

    def unsynced(self, name: str) -> bool:
        return self.files[name].unsynced

    def copy(self, name: str) -> bytes:
        """A backup of a file, as an operator makes one while nobody writes."""
        return bytes(self.files[name].data)

    def put_back(self, name: str, data: bytes) -> None:
        """Another file under the same name, and no journal beside it."""
        self.files[name] = File(data)
        self.changes[name.partition("/")[0]] += 1
        self.files.pop(f"{name}-journal", None)


class Handle:
    """An open file, as SQLite sees it."""

    def __init__(self, disk: SimulatedDisk, name: str, process: str) -> None:
        self.disk, self.name, self.dead, self.level = disk, name, False, 0
        self.machine = name.partition("/")[0]
        self.file = disk.files[name]
        disk.handles.setdefault(process, []).append(self)

    def xRead(self, amount: int, offset: int) -> bytes:
        return bytes(self.file.data[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        self._touch("write")
        if self.machine in self.disk.full:
            raise apsw.FullError("database or disk is full")
        self.disk.changes[self.machine] += 1
        self.file.write(offset, bytes(data))

    def xTruncate(self, size: int) -> None:
        self._touch("write")
        self.disk.changes[self.machine] += 1
        self.file.write(size, None)

    def xSync(self, flags: int) -> None:
        self._touch("sync")
        if not self.file.exists_durably:  # a new file's first sync is one of its folder, too
            self.disk.unlinked.clear()
        self.file.sync()

    def _touch(self, what: str) -> None:
        if self.dead:
            raise apsw.IOError("the process is gone")
        if self.disk.watched is None or (self.machine, what) in self.disk.watched:
            self.disk.touched(self.machine, what)
            if self.dead:  # by that
                raise apsw.IOError("the process is gone")

    def xFileSize(self) -> int:
        return len(self.file.data)

    def xLock(self, level: int) -> None:
        locks = self.file.locks
        if len(locks) <= (self in locks):  # nobody else has the file locked
            self.level = locks[self] = level
            return
        others = [held for handle, held in locks.items() if handle is not self]
        exclusive = apsw.SQLITE_LOCK_EXCLUSIVE
        if level == apsw.SQLITE_LOCK_SHARED:
            free = all(held < apsw.SQLITE_LOCK_PENDING for held in others)
        elif level == exclusive:
            free = not any(others)
        else:
            free = all(held < apsw.SQLITE_LOCK_RESERVED for held in others)
        if not free:
            raise apsw.BusyError("database is locked")
        self.level = locks[self] = level

    def xUnlock(self, level: int) -> None:
        self.level = level
        if level:
            self.file.locks[self] = level
        else:
            self.file.locks.pop(self, None)

    def xCheckReservedLock(self) -> bool:
        return any(held >= apsw.SQLITE_LOCK_RESERVED for held in self.file.locks.values())

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return 4096

    def xDeviceCharacteristics(self) -> int:
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE

    def xClose(self) -> None:
        self.file.locks.pop(self, None)


class _SimulatedVFS(apsw.VFS):
    """Hands SQLite the files of the history that runs in this process."""

    def __init__(self) -> None:
        super().__init__(_VFS, base="")
        self.disk: SimulatedDisk

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        if path not in self.disk.files:
            self.disk.files[path] = File()
        flags[1] = flags[0]
        return Handle(self.disk, path, self.disk.process)

    def xDelete(self, name: str, sync_directory: bool) -> None:
        self.disk.changes[name.partition("/")[0]] += 1
        found = self.disk.files.pop(name, None)
        if found is not None and not sync_directory:
            self.disk.unlinked[name] = found

    def xAccess(self, name: str, flags: int) -> bool:
        found = self.disk.files.get(name)  # one without a byte is not there, as on Unix
        return found is not None and len(found.data) > 0

    def xFullPathname(self, name: str) -> str:
        return name


_vfs = _SimulatedVFS()
_ERRORS: tuple[tuple[type[Exception], type[sqlite3.Error]], ...] = (
    (apsw.ConstraintError, sqlite3.IntegrityError),
    (apsw.CorruptError, sqlite3.DatabaseError),
    (apsw.NotADBError, sqlite3.DatabaseError),
)


_READING, _LOCKING = ("SELECT", "PRAGMA data_version"), ("BEGIN IMMEDIATE", "COMMIT")


class SimulatedConnection:
    """What a ledger gets instead of a connection of `sqlite3`, with that module's errors."""

    def __init__(
        self,
        disk: SimulatedDisk,
        name: str,
        process: str,
        wait_seconds: float,
        wait: Callable[[float], None],
    ) -> None:
        self._disk, self._process, self._patience, self._wait = disk, process, wait_seconds, wait
        self.name = name
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        self._connection = apsw.Connection(name, flags=flags, vfs=_VFS, statementcachesize=64)
        disk.connections.append(self._connection)
        self._machine = name.partition("/")[0]
        self._known: dict[tuple[str, tuple[Any, ...]], list[Any]] = {}
        self._known_at = -1  # the machine's changes when that was read

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        self._check_alive()
        rows = self._known_rows(sql, parameters)
        if rows is None:
            at = self._disk.changes[self._machine]
            rows = self._run(sql, parameters)
            self._know(sql, parameters, rows, at)
        if self._disk.shared:
            self._disk.preempt(sql.startswith("BEGIN"))
        return Rows(rows)

    def _known_rows(self, sql: str, parameters: Sequence[Any]) -> list[Any] | None:
        """What this connection has read before, if nothing can have changed since.

        Ledgers read the same again and again, because others might have written: in a history it
        is known whether anybody has.
        """
        if self._known_at != self._disk.changes[self._machine]:
            return None
        file = self._disk.files.get(self.name)
        if file is None:
            return None
        if file.locks and any(n >= _PENDING for n in file.locks.values()):
            return None  # SQLite would have to wait
        return self._known.get((sql, tuple(parameters)))

    def _know(self, sql: str, parameters: Sequence[Any], rows: list[Any], at: int) -> None:
        now = self._disk.changes[self._machine]
        if sql.startswith(_READING) and at == now:
            if self._known_at != now:
                self._known.clear()
                self._known_at = now
            self._known[sql, tuple(parameters)] = rows
        elif not sql.startswith(_LOCKING):
            self._known_at = -1  # it may have changed pages that are not written yet

    def _run(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        waited = 0.0
        while True:
            try:
                self._disk.process = self._process
                found = self._connection.execute(sql, tuple(parameters) or None)
                rows = found.fetchall()
                break
            except apsw.BusyError as error:
                self._check_alive()
                if waited >= self._patience:
                    raise sqlite3.OperationalError("database is locked") from error
                waited += 0.05
                self._disk.count("waited for the lock")
                self._wait(0.05)
            except apsw.Error as error:
                self._known_at = -1
                self._check_alive()
                raise _translated(error) from error
        self._check_alive()
        return list(rows)

    def executescript(self, script: str) -> None:
        self.execute(script)

    def close(self) -> None:
        self._disk.process = self._process
        try:
            self._connection.close()
        except apsw.Error:
            self._check_alive()

    def _check_alive(self) -> None:
        if self._process and self._process not in self._disk.handles:
            raise Crashed(self._process)


class Rows(list[Any]):
    """What a statement found."""

    def fetchall(self) -> list[Any]:
        return self

    def fetchone(self) -> Any:
        return self[0] if self else None


def _translated(error: Exception) -> sqlite3.Error:
    for kind, wanted in _ERRORS:
        if isinstance(error, kind):
            return wanted(re.sub(r"^\w+Error: ", "", str(error)))
    return sqlite3.OperationalError(str(error))
