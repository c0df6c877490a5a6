"""NVFlare's side of the coordinator, seen through its administrator: who is there, jobs."""

from __future__ import annotations

import json
import logging
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hedgerow import clock
from hedgerow.engines.nvflare.envelopes import HELLO
from hedgerow.engines.nvflare.hardening import ADMIN, JOB_FILES
from hedgerow.engines.site import Site
from hedgerow.engines.sockets import Unreachable, call
from hedgerow.errors import HedgerowError

log = logging.getLogger(__name__)
_APP = "carriers"
HEARD_SECONDS = 25.0  # a house sends a sign of life every 10 s
_OVER = ("FINISHED", "FAILED", "ABORTED", "ABANDONED")


class NoCoordinator(HedgerowError):
    """The coordinator's NVFlare process does not run, or not yet."""

    exit_code = 5


class NotRunning(NoCoordinator):
    """Nothing listens at the coordinator's port."""


class JobEnded(NoCoordinator):
    """NVFlare did not run the job that carries messages."""


class Jobs:
    """Submits and ends the job that carries a run. Every session is closed again."""

    def __init__(self, kit: Site) -> None:
        self._kit = kit

    @contextmanager
    def session(self) -> Iterator[Any]:
        """An administrator's session; left open it would keep this process from ending."""
        from nvflare.fuel.flare_api.flare_api import new_secure_session
        from nvflare.fuel.hci.client import api

        api._print_hci_message = log.debug  # it would print "Connecting to FLARE ..." each time
        self._check_running()
        found = None
        try:
            found = new_secure_session(ADMIN, str(self._kit.path / "admin"), timeout=10.0)
            yield found
        except Exception as error:
            if not _is_of_nvflare(error):
                raise
            raise NoCoordinator(
                f"the coordinator's engine does not take orders ({type(error).__name__}: {error})"
            ) from error
        finally:
            if found is not None:
                with suppress(Exception):
                    found.close()

    def connected(self, session: Any) -> dict[str, float]:
        """When each party that is connected now was last heard of."""
        return {
            str(c.name): float(c.last_connect_time) for c in session.get_connected_client_list()
        }

    def await_parties(self, session: Any, names: Sequence[str], wait_seconds: float) -> list[str]:
        """Wait until these parties are connected; returns those that are in the end."""
        deadline = clock.monotonic() + wait_seconds
        while True:
            heard = self.connected(session)
            there = [n for n in names if heard.get(n, 0.0) > clock.timestamp() - HEARD_SECONDS]
            if len(there) == len(names) or clock.monotonic() > deadline:
                return there
            clock.sleep(0.3)

    def await_carrier(self, session: Any, job: str, wait_seconds: float) -> None:
        """Wait until the job's process listens at the kit's socket."""
        path, deadline = self._kit.carrier_socket, clock.monotonic() + wait_seconds
        while True:
            with suppress(Unreachable):
                if call(path, HELLO, 2.0).decode("utf-8", "replace") == job:
                    return
            status = self.why(session, job)
            if status.startswith(_OVER):
                raise JobEnded(f"NVFlare ended the job that carries messages: {status}")
            if clock.monotonic() > deadline:
                raise NoCoordinator(f"the job that carries messages does not start: {status}")
            clock.sleep(0.1)

    def submit(self, session: Any, names: Sequence[str]) -> str:
        """Submit a job of nothing but our two carriers, for these parties; returns its id."""
        with tempfile.TemporaryDirectory(prefix="hedgerow-job-") as folder:
            write_job(Path(folder) / "run", names)
            return str(session.submit_job(str(Path(folder) / "run")))

    def end_all(self, session: Any) -> None:
        """End jobs that an earlier engine left behind, and forget those that are over."""
        for job in session.list_jobs():
            over = str(job.get("status", "")).startswith(_OVER)
            with suppress(Exception):
                if over:
                    session.delete_job(job["job_id"])
                else:
                    session.abort_job(job["job_id"])

    def why(self, session: Any, job: str) -> str:
        """What NVFlare says of a job, in its own words."""
        meta = session.get_job_meta(job)
        detail = meta.get("job_deploy_detail") or meta.get("schedule_history") or ""
        return f"{meta.get('status')} {detail}".strip()

    def without_job(self, session: Any, names: Sequence[str], job: str) -> list[str]:
        """Those of these connected parties that do not run the job, as a restarted one does not."""
        found = session.get_client_job_status(list(names)) or []
        running = {
            str(entry.get("client_name"))
            for entry in found
            if job in json.dumps(entry, default=str)
        }
        return [name for name in names if name not in running]

    def _check_running(self) -> None:
        port = int(self._kit.address.rpartition(":")[2])
        try:
            socket.create_connection(("127.0.0.1", port), 2.0).close()
        except OSError as error:
            raise NotRunning(
                f"no coordinator runs at port {port} of this machine. Nothing was asked. Start it "
                f"with: hedgerow coordinator start {self._kit.path}"
            ) from error


def _is_of_nvflare(error: Exception) -> bool:
    """NVFlare's errors have no common class."""
    ours = isinstance(error, HedgerowError)
    return not ours and (
        isinstance(error, RuntimeError | OSError) or type(error).__module__.startswith("nvflare.")
    )


def write_job(folder: Path, names: Sequence[str]) -> None:
    """The folder of a job: which classes run where, and nothing else."""
    meta = {
        "name": "hedgerow",
        "resource_spec": {},
        "min_clients": 1,
        "deploy_map": {_APP: ["server", *names]},
    }
    files = {"meta.json": json.dumps(meta)}
    files |= {f"{_APP}/{name}": text for name, text in JOB_FILES.items()}
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
