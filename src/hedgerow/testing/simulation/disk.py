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
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw

from hedgerow.testing.simulation.randomness import Dice

SECTOR = 512
_VFS = "hedgerow-simulation"
_marks = itertools.count(1)
Touched = Callable[[str, str], None]


class Crashed(BaseException):
    """The process that was at work is gone; nothing of hedgerow may catch this."""


class File:
    """One file of a machine."""

    def __init__(self) -> None:
        self.data, self.durable = bytearray(), bytearray()
        self.writes: list[tuple[int, bytes | None]] = []  # since the last sync; None: cut there
        self.mark = (7, next(_marks))
        self.locks: dict[Handle, int] = {}
        self.exists_durably = False

    def write(self, offset: int, data: bytes | None) -> None:
        self.writes.append((offset, data))
        _apply(self.data, offset, data)

    def sync(self) -> None:
        for offset, data in self.writes:
            _apply(self.durable, offset, data)
        self.writes.clear()
        self.exists_durably = True

    def lose_power(self, dice: Dice) -> None:
        """Each write since the last sync is there, gone, or torn between two sectors."""
        for offset, data in self.writes:
            fate = dice.unit()
            if fate < 0.4:
                continue
            if data is not None and fate < 0.6:
                data = data[: SECTOR * dice.integer(0, len(data) // SECTOR)]
            _apply(self.durable, offset, data)
        self.writes.clear()
        self.data = bytearray(self.durable)
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
        self.unlinked: dict[str, File] = {}  # and the folder not synced since: may come back
        self.handles: dict[str, list[Handle]] = {}  # by the process that opened them
        self.process = ""  # whose code is running
        self.shared = False  # whether processes take turns on one file
        self.preempt: Callable[[bool], None] = lambda begun: None
        self.connections: list[apsw.Connection] = []

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

    def lose_power(self, machine: str) -> None:
        for name, file in list(self.unlinked.items()):
            if name.startswith(f"{machine}/") and self._dice.chance(0.7):
                self.files.setdefault(name, file)
        self.unlinked.clear()
        for name, file in list(self.files.items()):
            if name.startswith(f"{machine}/"):
                created = file.exists_durably or not file.writes or self._dice.chance(0.5)
                file.lose_power(self._dice)
                if not created:
                    del self.files[name]

    def unsynced(self, name: str) -> bool:
        return bool(self.files[name].writes)

    def copy(self, name: str) -> bytes:
        """A backup of a file, as an operator makes one while nobody writes."""
        return bytes(self.files[name].data)

    def put_back(self, name: str, data: bytes) -> None:
        """Another file under the same name, and no journal beside it."""
        file = File()
        file.data, file.durable, file.exists_durably = bytearray(data), bytearray(data), True
        self.files[name] = file
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
        self.file.write(offset, bytes(data))

    def xTruncate(self, size: int) -> None:
        self._touch("write")
        self.file.write(size, None)

    def xSync(self, flags: int) -> None:
        self._touch("sync")
        if not self.file.exists_durably:  # a new file's first sync is one of its folder, too
            self.disk.unlinked.clear()
        self.file.sync()

    def _touch(self, what: str) -> None:
        if self.dead:
            raise apsw.IOError("the process is gone")
        self.disk.touched(self.machine, what)
        if self.dead:  # by that
            raise apsw.IOError("the process is gone")

    def xFileSize(self) -> int:
        return len(self.file.data)

    def xLock(self, level: int) -> None:
        others = [held for handle, held in self.file.locks.items() if handle is not self]
        exclusive = apsw.SQLITE_LOCK_EXCLUSIVE
        if level == apsw.SQLITE_LOCK_SHARED:
            free = all(held < apsw.SQLITE_LOCK_PENDING for held in others)
        elif level == exclusive:
            free = not any(others)
        else:
            free = all(held < apsw.SQLITE_LOCK_RESERVED for held in others)
        if not free:
            raise apsw.BusyError("database is locked")
        self.level = level
        self.file.locks[self] = level

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
        found = self.disk.files.pop(name, None)
        if found is not None and not sync_directory:
            self.disk.unlinked[name] = found

    def xAccess(self, name: str, flags: int) -> bool:
        return name in self.disk.files

    def xFullPathname(self, name: str) -> str:
        return name


_vfs = _SimulatedVFS()
_ERRORS: tuple[tuple[type[Exception], type[sqlite3.Error]], ...] = (
    (apsw.ConstraintError, sqlite3.IntegrityError),
    (apsw.CorruptError, sqlite3.DatabaseError),
    (apsw.NotADBError, sqlite3.DatabaseError),
)


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
        self._connection = apsw.Connection(name, flags=flags, vfs=_VFS, statementcachesize=16)
        disk.connections.append(self._connection)

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        self._check_alive()
        waited, found = 0.0, None
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
                self._wait(0.05)
            except apsw.Error as error:
                self._check_alive()
                raise _translated(error) from error
        self._check_alive()
        if self._disk.shared:
            self._disk.preempt(sql.startswith("BEGIN"))
        return Rows(rows)

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
