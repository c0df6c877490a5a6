"""Messages between processes of one site: whole or not at all, and only for their owner."""

from __future__ import annotations

import socket
import stat
import struct
import threading
from pathlib import Path

import pytest

from hedgerow.engines import sockets
from hedgerow.engines.sockets import Listener, Unreachable, call


def test_a_message_of_any_length_comes_back_whole(tmp_path: Path) -> None:
    with Listener(tmp_path / "a.sock", lambda message: message[::-1]):
        for size in (0, 1, 8, 2**20 - 1, 2**20 + 1, 12_000_000):
            message = bytes(range(256)) * (size // 256) + bytes(size % 256)
            assert call(tmp_path / "a.sock", message, 20.0) == message[::-1]


def test_a_socket_may_lie_deeper_than_the_system_allows_addresses_to_be(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100) / ("y" * 100)
    with Listener(deep / "a.sock", lambda message: message):
        assert call(deep / "a.sock", b"here", 5.0) == b"here"


def test_only_its_owner_may_open_a_socket(tmp_path: Path) -> None:
    with Listener(tmp_path / "a.sock", lambda message: message):
        assert stat.S_IMODE((tmp_path / "a.sock").stat().st_mode) == 0o600


def test_many_callers_each_get_their_own_reply(tmp_path: Path) -> None:
    found: dict[int, bytes] = {}

    def ask(i: int) -> None:
        found[i] = call(tmp_path / "a.sock", bytes([i]) * 300_000, 20.0)

    with Listener(tmp_path / "a.sock", lambda message: message):
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {i: bytes([i]) * 300_000 for i in range(12)}


def test_nobody_there_and_nobody_any_more_are_unreachable(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=r"nobody answers at a\.sock"):
        call(tmp_path / "a.sock", b"", 1.0)
    with Listener(tmp_path / "a.sock", lambda message: message):
        call(tmp_path / "a.sock", b"", 5.0)
    assert not (tmp_path / "a.sock").exists()
    with pytest.raises(Unreachable):
        call(tmp_path / "a.sock", b"", 1.0)


def test_a_later_listener_keeps_its_place_when_the_earlier_one_ends(tmp_path: Path) -> None:
    earlier = Listener(tmp_path / "a.sock", lambda message: b"earlier")
    with Listener(tmp_path / "a.sock", lambda message: b"later"):
        earlier.close()
        assert call(tmp_path / "a.sock", b"", 5.0) == b"later"


def test_a_handler_that_fails_breaks_one_connection_only(tmp_path: Path) -> None:
    def handle(message: bytes) -> bytes:
        if message == b"bad":
            raise RuntimeError("inside")
        return message

    with Listener(tmp_path / "a.sock", handle):
        with pytest.raises(Unreachable):
            call(tmp_path / "a.sock", b"bad", 5.0)
        assert call(tmp_path / "a.sock", b"good", 5.0) == b"good"


def test_a_slow_reply_ends_at_the_time_limit(tmp_path: Path) -> None:
    free = threading.Event()

    def handle(message: bytes) -> bytes:
        free.wait(300)
        return message

    with Listener(tmp_path / "a.sock", handle):
        with pytest.raises(Unreachable):
            call(tmp_path / "a.sock", b"", 0.2)
        free.set()


@pytest.mark.parametrize("sent", [b"", b"\x01", struct.pack("<Q", 2**62), struct.pack("<Q", 9)])
def test_a_torn_or_endless_message_reaches_no_handler(tmp_path: Path, sent: bytes) -> None:
    seen: list[bytes] = []

    def handle(message: bytes) -> bytes:
        seen.append(message)
        return message

    with Listener(tmp_path / "a.sock", handle), sockets._short(tmp_path / "a.sock") as address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(address)
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
        assert call(tmp_path / "a.sock", b"next", 5.0) == b"next"
    assert seen == [b"next"]
