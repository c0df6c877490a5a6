"""A federation of real NVFlare processes on this machine; the parties' own side is played here."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hedgerow.engines.nvflare.engine import NvflareEngine
from hedgerow.engines.nvflare.jobs import Jobs
from hedgerow.engines.nvflare.processes import EngineProcess
from hedgerow.engines.nvflare.provision import new_federation
from hedgerow.engines.site import Site
from hedgerow.engines.sockets import Listener

NAMES = ("p0", "p1", "p2", "p3", "p4")
STRANGER = "mallory"  # has a certificate; what it runs is up to a test
Handler = Callable[[bytes], bytes]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def echo(message: bytes) -> bytes:
    return b"echo " + message


class Sites:
    """The coordinator's and five parties' engines as processes, and a handler for each party."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        made = new_federation(folder, "trial", "localhost", self.port, (*NAMES, STRANGER))
        self.by_name = {name: Site.open(path) for name, path in made.items()}
        self.stranger = self.by_name.pop(STRANGER)
        self.coordinator = self.by_name["coordinator"]
        self.jobs = Jobs(self.coordinator)
        self.handlers: dict[str, Handler] = dict.fromkeys(NAMES, echo)
        self.processes = {name: EngineProcess(site) for name, site in self.by_name.items()}
        self._listeners: dict[str, Listener] = {}
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep)

    def start(self) -> None:
        for process in self.processes.values():
            process.start()
        for name in NAMES:
            self.open_door(name)
        self.processes["coordinator"].await_listening()
        self._keeper.start()

    def stop(self) -> None:
        self._over.set()
        if self._keeper.ident:
            self._keeper.join()
        for process in self.processes.values():
            process.stop()
        for listener in self._listeners.values():
            listener.close()

    def open_door(self, name: str) -> None:
        """What the party's own process does while it runs."""
        socket_file = self.by_name[name].party_socket
        self._listeners[name] = Listener(socket_file, lambda m: self.handlers[name](m))

    def close_door(self, name: str) -> None:
        self._listeners.pop(name).close()

    def engine(self) -> NvflareEngine:
        return NvflareEngine(self.coordinator, NAMES)

    @contextmanager
    def answering(self, handler: Handler, *names: str) -> Iterator[None]:
        before = dict(self.handlers)
        self.handlers.update(dict.fromkeys(names or NAMES, handler))
        try:
            yield
        finally:
            self.handlers.update(before)

    def kill_job_process(self, name: str) -> int:
        """Kill the process that carries messages at this site; returns which it was."""
        pid = self.job_process(name)
        os.kill(pid, signal.SIGKILL)
        return pid

    def job_process(self, name: str) -> int:
        parent = self.processes[name].pid
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline:
            for pid in children(parent or 0):
                return pid
            time.sleep(0.05)
        raise AssertionError(f"{name} has no job process")

    def _keep(self) -> None:
        while not self._over.wait(0.5):
            for process in self.processes.values():
                process.watch()


def children(parent: int) -> list[int]:
    """Job processes of an NVFlare parent, newest last."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            status = (folder / "stat").read_text().rpartition(")")[2].split()
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if int(status[1]) == parent and status[0] != "Z" and b"_process" in words:
            found.append(int(folder.name))
    return sorted(found)


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
