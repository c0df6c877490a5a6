"""What may stand between a party and the coordinator: a line that goes dead, an HTTP proxy."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any


class Line:
    """Forwards connections to a port; a dead line takes bytes and passes none on.

    With `proxy` it waits for an HTTP CONNECT first, as a site's proxy does.
    """

    def __init__(self, port: int, proxy: bool = False) -> None:
        self._target, self._proxy = ("127.0.0.1", port), proxy
        self.asked: list[str] = []
        self._dead, self._over = threading.Event(), threading.Event()
        self._open: list[socket.socket] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def die(self) -> None:
        """From here on nothing passes, and nobody is told."""
        self._dead.set()

    def live(self) -> None:
        """New connections pass again; those that were dead stay so."""
        self._dead = threading.Event()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for one in (self._socket, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                near, _ = self._socket.accept()
            except OSError:
                return
            self._open.append(near)
            if self._proxy:
                self.asked.append(near.recv(4096).decode("ascii").splitlines()[0])
                near.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            try:
                far = socket.create_connection(self._target)
            except OSError:
                near.close()
                continue
            self._open.append(far)
            for pair in ((near, far), (far, near)):
                args = (*pair, self._dead)
                threading.Thread(target=self._pass, args=args, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, dead: Any) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not dead.is_set():
                    target.sendall(data)
        if not dead.is_set():
            with suppress(OSError):
                target.shutdown(socket.SHUT_RDWR)
