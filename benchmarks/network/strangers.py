"""Whoever knocks at the coordinator's port from another host: silent, idle, garbage, too large.

Run on a host as `python strangers.py KIND ADDRESS PORT COUNT SECONDS`; it holds what it opened for
so long.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable

PATH = b"/hedgerow.Federation/Connect"


def silent(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, 10)


def garbage(address: tuple[str, int]) -> socket.socket:
    stranger = socket.create_connection(address, 10)
    stranger.sendall(os.urandom(4096))
    return stranger


def huge(address: tuple[str, int]) -> socket.socket:
    """TLS, HTTP/2, a stream, and the head of a message of 1.5 GB with as much behind it as goes."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    stranger = context.wrap_socket(socket.create_connection(address, 10))
    stranger.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, b""))
    stranger.sendall(_frame(1, 4, 1, b"".join(_header(*pair) for pair in _HEADERS)))
    message = struct.pack(">BI", 0, 1_500_000_000) + bytes(2**14 - 5)
    stranger.sendall(_frame(0, 0, 1, message))
    for _ in range(3):  # within the window that HTTP/2 allows at first
        stranger.sendall(_frame(0, 0, 1, bytes(2**14)))
    return stranger


_HEADERS = (
    (b":method", b"POST"), (b":scheme", b"https"), (b":path", PATH), (b":authority", b"x"),
    (b"content-type", b"application/grpc"), (b"te", b"trailers"),  # codespell:ignore te
)  # fmt: skip


def _header(name: bytes, value: bytes) -> bytes:
    """A header field written out, neither compressed nor remembered (RFC 7541, 6.2.2)."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload


KINDS: dict[str, Callable[[tuple[str, int]], socket.socket]] = {
    "silent": silent, "garbage": garbage, "huge": huge,
}  # fmt: skip


def main() -> None:
    kind, host, port, count, seconds = sys.argv[1:]
    held = []
    for _ in range(int(count)):
        try:
            held.append(KINDS[kind]((host, int(port))))
        except OSError:  # turned away already
            continue
    print(f"{len(held)} connections are open", flush=True)
    time.sleep(float(seconds))


if __name__ == "__main__":
    main()
