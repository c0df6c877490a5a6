"""Messages between processes of one site, through a socket file that only its owner may open.

A message is an eight-byte length and that many bytes; one request and one reply a connection. The
processes that carry messages pass bytes through such sockets and never see rows.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import stat
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hedgerow import clock
from hedgerow.errors import HedgerowError, SettingsError

log = logging.getLogger(__name__)
LONGEST_MESSAGE = 2**28  # to a party or from one, whatever carries it
MAX_BYTES = 2**31  # of messages to all parties together, or of their replies
MOST_CONNECTIONS = 64  # at once; further ones are closed
MOST_WORDS = 400  # characters of what others say
SERVE_SECONDS = 600.0  # for a request to come, and for its reply to go
_LENGTH = struct.Struct("<Q")


class Unreachable(HedgerowError):
    """Nobody listens at a socket, or the connection broke before a whole reply came."""

    exit_code = 5


class Listener:
    """Answers requests at a socket file until it is closed; each connection has its own thread.

    With `group` the accounts of that group may open it too, as those of another runtime have to.
    A request may have `longest` bytes; all connections together hold twice that, of requests and of
    replies that wait to be read. Whatever does not fit is closed before memory is taken.
    """

    def __init__(
        self,
        path: Path,
        handle: Callable[[bytes], bytes],
        group: str = "",
        longest: int = LONGEST_MESSAGE,
    ) -> None:
        self._path, self._handle, self._longest = path, handle, longest
        self._free, self._room = threading.BoundedSemaphore(MOST_CONNECTIONS), _Room(2 * longest)
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
        try:
            with connection:
                deadline = clock.monotonic() + SERVE_SECONDS
                length = _length(connection, deadline, self._longest)
                with self._room.for_bytes(length):
                    reply = self._handle(_exactly(connection, length, deadline))
                with self._room.for_bytes(len(reply)):
                    connection.settimeout(SERVE_SECONDS)
                    _write(connection, reply)
        except (Unreachable, OSError) as error:
            log.info("a connection at %s ended early: %s", self._path.name, error)
        except Exception as error:  # whatever went wrong, the caller sees a broken connection
            log.error("a request at %s failed: %s", self._path.name, type(error).__name__)
        finally:
            self._free.release()


class _Room:
    """How many bytes connections may still take, all together."""

    def __init__(self, size: int) -> None:
        self._lock, self._left = threading.Lock(), size

    @contextmanager
    def for_bytes(self, size: int) -> Iterator[None]:
        with self._lock:
            if size > self._left:
                raise Unreachable(f"{size} bytes are more than the {self._left} left for all")
            self._left -= size
        try:
            yield
        finally:
            with self._lock:
                self._left += size


def call(path: Path, message: bytes, timeout_seconds: float) -> bytes:
    """Send one request to whoever listens at `path` and wait for its reply."""
    deadline = clock.monotonic() + timeout_seconds
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(max(0.01, timeout_seconds))
            with _short(path) as address:
                connection.connect(address)
            _write(connection, message)
            return _exactly(connection, _length(connection, deadline, MAX_BYTES), deadline)
        except OSError as error:
            raise Unreachable(f"nobody answers at {path.name}") from error


def one_line(text: str) -> str:
    """Words of a peer, a site or a library, fit for one line of a log or a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)[:MOST_WORDS]


def _share(path: Path, group: str) -> None:
    """Open a socket file to a group: the very file, whatever stands at its path by then."""
    try:
        handle = os.open(path, os.O_PATH | os.O_NOFOLLOW)
        try:
            if not stat.S_ISSOCK(os.fstat(handle).st_mode):
                raise OSError("somebody put something else in its place")
            itself = f"/proc/self/fd/{handle}"
            shutil.chown(itself, group=group)
            os.chmod(itself, 0o660)
        finally:
            os.close(handle)
    except (LookupError, OSError) as error:
        path.unlink(missing_ok=True)
        raise SettingsError(
            f"the socket {path} cannot be given to the group {group!r}: {error}. Name a group that "
            "exists and that this account is in. Nothing was started."
        ) from error


def _write(connection: socket.socket, message: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(message)))
    if message:  # after the length of an empty one the reader may already have replied and gone
        connection.sendall(message)


def _length(connection: socket.socket, deadline: float, longest: int) -> int:
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size, deadline))
    if length > longest:
        raise Unreachable(f"a message of {length} bytes is longer than the {longest} allowed")
    return int(length)


def _exactly(connection: socket.socket, size: int, deadline: float) -> bytes:
    buffer, got = bytearray(size), 0  # the system gives memory as it is written to
    with memoryview(buffer) as view:
        while got < size:
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
