"""How NVFlare starts the process of a job in this house, and starts it again when it was killed.

NVFlare ends a whole job when one party's process dies. Ours holds no state, so a new one takes its
place and the run does not notice more than a pause.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.job_launcher_spec import (
    JobHandleSpec,
    JobLauncherSpec,
    JobProcessArgs,
    JobReturnCode,
    add_launcher,
)
from nvflare.app_common.storages.filesystem_storage import FilesystemStorage
from nvflare.utils.job_launcher_utils import (
    get_client_job_args,
    get_credential_env,
    get_server_job_args,
)

from hedgerow.federation.nvflare.hardening import SNAPSHOTS_FOLDER
from hedgerow.federation.nvflare.tether import start_tethered

RESTARTS = 50  # of one job's process, before the job is given up
PAUSE_SECONDS = 1.0
_KNOWN_CODES = {0: JobReturnCode.SUCCESS, 9: JobReturnCode.ABORTED}


class KitStorage(FilesystemStorage):
    """NVFlare's snapshots in the coordinator's kit instead of a shared folder; unused by us."""

    def __init__(self) -> None:
        super().__init__(root_dir=os.path.join(os.getcwd(), SNAPSHOTS_FOLDER))


class _JobProcess(JobHandleSpec):
    """A job's process, restarted up to `restarts` times if a signal ended it."""

    def __init__(self, words: list[str], environment: dict[str, str], restarts: int) -> None:
        self._words, self._environment, self._restarts = words, environment, restarts
        self._lock = threading.Lock()
        self._stopped = False
        self._process = self._start()

    def terminate(self) -> None:
        with self._lock:
            self._stopped = True
            if self._process.poll() is None:
                self._process.kill()

    def poll(self) -> int:
        code = self._process.poll()
        if code is None or self._may_restart(code):
            return int(JobReturnCode.UNKNOWN)
        return int(_KNOWN_CODES.get(code, code if code > 0 else JobReturnCode.EXECUTION_ERROR))

    def wait(self) -> None:
        while self._may_restart(self._process.wait()):
            time.sleep(PAUSE_SECONDS)
            self._restart()

    def _restart(self) -> None:
        with self._lock:
            if not self._stopped:
                self._restarts -= 1
                self._process = self._start()

    def _may_restart(self, code: int) -> bool:
        # Ended by a signal, and not by ours.
        return code < 0 and self._restarts > 0 and not self._stopped

    def _start(self) -> subprocess.Popen[bytes]:
        return start_tethered(self._words, self._environment)


class _Launcher(JobLauncherSpec):
    """Starts the process of a job, tied to the life of NVFlare's parent process."""

    restarts = 0
    options: tuple[str, ...] = ()

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        if event_type == EventType.BEFORE_JOB_LAUNCH:
            add_launcher(self, fl_ctx)

    def launch_job(self, job_meta: dict[str, Any], fl_ctx: FLContext) -> JobHandleSpec:
        values = fl_ctx.get_prop(FLContextKey.JOB_PROCESS_ARGS)
        environment = {**os.environ, **get_credential_env(values)}
        return _JobProcess(_words(values, self.options), environment, self.restarts)


class PartyLauncher(_Launcher):
    """In a party's house: a killed process comes back and rejoins the running job."""

    restarts = RESTARTS
    options = tuple(get_client_job_args())


class CoordinatorLauncher(_Launcher):
    """In the coordinator's house: the engine submits a new job instead, so nothing restarts."""

    options = tuple(get_server_job_args())


def _words(values: dict[str, tuple[str, str]], options: tuple[str, ...]) -> list[str]:
    """The command as a list: NVFlare's own joins it by spaces, which breaks paths with spaces."""
    words: list[str] = []
    for name in options:
        if name in values:
            flag, value = values[name]
            is_list = name == JobProcessArgs.OPTIONS
            words += [flag, *(value.split() if is_list else [str(value)])]
    return words
