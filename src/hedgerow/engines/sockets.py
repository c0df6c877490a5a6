"""Messages between processes of one site, through a socket file that only its owner may open.

A message is an eight-byte length and that many bytes; one request and one reply a connection. The
processes that carry messages pass bytes through such sockets and never see rows.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hedgerow import clock
from hedgerow.errors import HedgerowError, SettingsError

log = logging.getLogger(__name__)
MAX_BYTES = 2**31  # a longer message is refused before any memory is taken
MOST_CONNECTIONS = 64  # at once; further ones are closed
_LENGTH = struct.Struct("<Q")


class Unreachable(HedgerowError):
    """Nobody listens at a socket, or the connection broke before a whole reply came."""

    exit_code = 5


class Listener:
    """Answers requests at a socket file until it is closed; each connection has its own thread.

    With `group` the accounts of that group may open it too, as those of another runtime have to.
    """

    def __init__(self, path: Path, handle: Callable[[bytes], bytes], group: str = "") -> None:
        self._path, self._handle = path, handle
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)  # the file is born with mode 0600
        try:
            with _short(path) as address:
                self._socket.bind(address)
        finally:
            os.umask(before)
        if group:
            try:
                _share(path, group)
            except SettingsError:
                self._socket.close()
                raise
        self._inode = path.stat().st_ino
        self._socket.listen(16)
        self._thread = threading.Thread(target=self._accept, name=f"at {path.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._socket.close()
        with suppress(FileNotFoundError):
            if self._path.stat().st_ino == self._inode:  # else a later listener took the place
                self._path.unlink()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # closed
            if not self._free.acquire(blocking=False):
                log.warning("too many connections at %s", self._path.name)
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with _released(self._free), connection:
            try:
                connection.settimeout(600.0)
                _write(connection, self._handle(_read(connection)))
            except (Unreachable, OSError):
                log.info("a connection at %s ended early", self._path.name)
            except Exception as error:  # whatever went wrong, the caller sees a broken connection
                log.error("a request at %s failed: %s", self._path.name, type(error).__name__)


def call(path: Path, message: bytes, timeout_seconds: float) -> bytes:
    """Send one request to whoever listens at `path` and wait for its reply."""
    deadline = clock.monotonic() + timeout_seconds
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(max(0.01, timeout_seconds))
            with _short(path) as address:
                connection.connect(address)
            _write(connection, message)
            return _read(connection, deadline)
        except OSError as error:
            raise Unreachable(f"nobody answers at {path.name}") from error


def _share(path: Path, group: str) -> None:
    try:
        shutil.chown(path, group=group)
        path.chmod(0o660)
    except (LookupError, OSError) as error:
        path.unlink()
        raise SettingsError(
            f"the socket {path} cannot be given to the group {group!r}: {error}. Name a group that "
            "exists and that this account is in. Nothing was started."
        ) from error


@contextmanager
def _released(free: threading.BoundedSemaphore) -> Iterator[None]:
    try:
        yield
    finally:
        free.release()


def _write(connection: socket.socket, message: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(message)))
    if message:  # after the length of an empty one the reader may already have replied and gone
        connection.sendall(message)


def _read(connection: socket.socket, deadline: float | None = None) -> bytes:
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size, deadline))
    if length > MAX_BYTES:
        raise Unreachable(f"a message of {length} bytes is longer than the {MAX_BYTES} allowed")
    return _exactly(connection, length, deadline)


def _exactly(connection: socket.socket, size: int, deadline: float | None) -> bytes:
    buffer, got = bytearray(size), 0  # the system gives memory as it is written to
    with memoryview(buffer) as view:
        while got < size:
            if deadline is not None:
                connection.settimeout(max(0.01, deadline - clock.monotonic()))
            received = connection.recv_into(view[got:])
            if not received:
                raise Unreachable("the connection ended in the middle of a message")
            got += received
    return bytes(buffer)


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """An address of the socket file that fits the system's 107 bytes, however deep it lies."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
