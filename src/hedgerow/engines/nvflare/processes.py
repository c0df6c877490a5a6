"""The NVFlare process of a house, as a child of ours: started, watched, restarted and stopped."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from hedgerow import clock
from hedgerow.engines.nvflare import check_installed
from hedgerow.engines.nvflare.fence import Fence
from hedgerow.engines.nvflare.hardening import JOBS_FOLDER
from hedgerow.engines.nvflare.room import TEMPORARY, make_room
from hedgerow.engines.nvflare.tether import start_tethered
from hedgerow.engines.site import Site
from hedgerow.errors import HedgerowError

log = logging.getLogger(__name__)
STOP_SECONDS = 5.0  # between asking a process to end and killing it
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 120.0  # whoever ran this long starts again without a pause
_DOORS = "hedgerow.engines.nvflare.doors"
_PARENTS = {
    "coordinator": ("nvflare.private.fed.app.server.server_train", "fed_server.json"),
    "party": ("nvflare.private.fed.app.client.client_train", "fed_client.json"),
}


class EngineProcess:
    """NVFlare's process of this kit. It writes to `engine.log` in the kit and dies with us.

    Whoever owns it calls `watch()` every second or so, which starts it again if it died.
    """

    def __init__(self, kit: Site) -> None:
        check_installed()
        self.kit = kit
        self.log_path = kit.folder / "engine.log"
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._started = self._ended = 0.0
        self._pause = 0.0

    @property
    def pid(self) -> int | None:
        """Of the running process; None if there is none."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> None:
        """Start it; the port of a coordinator must be free."""
        if self.pid is not None:
            return
        if self.kit.role == "coordinator":
            self._check_port()
        self._begin()

    def await_listening(self, wait_seconds: float = 60.0) -> None:
        """Wait until the coordinator's process takes connections."""
        deadline = clock.monotonic() + wait_seconds
        while not _is_open(self._port):
            if self.pid is None or clock.monotonic() > deadline:
                raise HedgerowError(
                    f"the engine does not listen at port {self._port} after {wait_seconds:.0f} s "
                    f"or has ended; {self.log_path} says why"
                )
            clock.sleep(0.1)

    def watch(self) -> bool:
        """Whether it runs. If it died it is started again, after a pause that doubles each time."""
        if self.pid is not None:
            return True
        now = clock.monotonic()
        if self._ended < self._started:
            self._ended = now
            steady = now - self._started > STEADY_SECONDS
            longer = min(2 * self._pause or FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
            self._pause = 0.0 if steady else longer
            code = self._process.returncode if self._process else None
            log.warning(
                "the engine's process ended (code %s); it starts again in %.0f s, see %s",
                code,
                self._pause,
                self.log_path,
            )
        if now - self._ended >= self._pause:
            self._begin()
        return self.pid is not None

    def stop(self) -> None:
        """End it, and with it the processes of its jobs."""
        process = self._process
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)  # SIGINT leaves NVFlare hanging for 20 s
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._process = None

    def __enter__(self) -> EngineProcess:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _begin(self) -> None:
        self.kit.carrier_socket.unlink(missing_ok=True)
        room = make_room(self.kit)
        is_party = self.kit.role == "party"
        module, config = _PARENTS[self.kit.role]
        who = [f"uid={self.kit.name}"] if is_party else []
        words = ["-m", _DOORS, module, "-m", str(room), "-s", config, "--set"]
        words += ["secure_train=true", *who, "org=hedgerow", "config_folder=config"]
        folders = {"NVFL_JOB_STORE_ROOT": room / JOBS_FOLDER, "TMPDIR": room / TEMPORARY}
        environment = {**os.environ, **{name: str(path) for name, path in folders.items()}}
        mode = "wb" if self.starts == 0 else "ab"
        with open(self.log_path, mode, opener=_private) as output:
            self._process = start_tethered(
                words,
                environment,
                str(room),
                output,
                self._fence(room) if is_party else None,
            )
        self.starts += 1
        self._started = clock.monotonic()

    def _fence(self, room: Path) -> Fence:
        """A party's carriers need no more than to know the kit and to reach its socket."""
        ours = self.kit.folder
        return Fence((str(room),), (str(ours / "kit.toml"),), (str(ours),))

    @property
    def _port(self) -> int:
        return int(self.kit.address.rpartition(":")[2])

    def _check_port(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", self._port))
            except OSError as error:
                raise HedgerowError(
                    f"port {self._port} of this machine cannot be used: {error.strerror}. A "
                    "coordinator may be running already; stop it, or whatever else uses the port, "
                    "and start again. Nothing was started."
                ) from error


def _is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
