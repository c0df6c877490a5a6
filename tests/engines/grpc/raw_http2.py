"""HTTP/2 by hand over TLS: what gRPC's own client would never send to the coordinator's port."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import suppress

from hedgerow.engines.grpc import METHOD

DATA, HEADERS, SETTINGS, PING = 0, 1, 4, 6
END_HEADERS, ACKNOWLEDGES = 4, 1
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class RawHttp2:
    """One connection; it answers pings, so that only what a test does can be held against it."""

    def __init__(self, port: int, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = context.maximum_version = version
        context.set_alpn_protocols(["h2"])
        self._socket = context.wrap_socket(socket.create_connection(("127.0.0.1", port)))
        self._socket.settimeout(0.2)
        self._heard = b""
        self.settled = False  # the other side speaks HTTP/2 too
        self._socket.sendall(_PREFACE)
        self._send(SETTINGS)

    def call(self) -> None:
        """Open the one stream that the port knows."""
        headers = {
            ":method": "POST", ":scheme": "https", ":path": METHOD, ":authority": "x",
            "content-type": "application/grpc",
            "te": "trailers",  # codespell:ignore te
        }  # fmt: skip
        literal = b"".join(
            b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
            for name, value in headers.items()
        )
        self._send(HEADERS, END_HEADERS, literal, 1)

    def say(self, message: bytes) -> None:
        self._send(DATA, 0, struct.pack(">BI", 0, len(message)) + message, 1)

    def hear(self) -> bytes | None:
        """The next message on the stream; None once the port has ended it."""
        for kind, _, body in self.frames():
            if kind == DATA and body:
                return body[5:]
            if kind == HEADERS and b"grpc-status" in body:
                return None
        return None

    def frames(self, seconds: float = 30.0) -> Iterator[tuple[int, int, bytes]]:
        """Kind, flags and body of what comes, until the port closes the connection."""
        deadline = time.monotonic() + seconds
        while True:
            while (frame := self._next()) is not None:
                yield frame
            assert time.monotonic() < deadline, "the port keeps the connection open"
            with suppress(TimeoutError):
                if not (more := self._socket.recv(2**16)):
                    return
                self._heard += more

    def close(self) -> None:
        self._socket.close()

    def _next(self) -> tuple[int, int, bytes] | None:
        length = int.from_bytes(self._heard[:3], "big")
        if len(self._heard) < 9 + length:
            return None
        kind, flags = self._heard[3], self._heard[4]
        body, self._heard = self._heard[9 : 9 + length], self._heard[9 + length :]
        if kind in (SETTINGS, PING) and not flags & ACKNOWLEDGES:
            self._send(kind, ACKNOWLEDGES, body if kind == PING else b"")
            self.settled = True
        return kind, flags, body

    def _send(self, kind: int, flags: int = 0, body: bytes = b"", stream: int = 0) -> None:
        head = len(body).to_bytes(3, "big") + bytes([kind, flags]) + struct.pack(">I", stream)
        self._socket.sendall(head + body)
