"""How NVFlare starts the process of a job in this house, and starts it again when it was killed.

NVFlare ends a whole job when one party's process dies. Ours holds no state, so a new one takes its
place and the run does not notice more than a pause. A party runs one job only, ours, whatever the
coordinator sends.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

from nvflare.apis.app_deployer_spec import AppDeployerSpec
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.job_launcher_spec import (
    JobHandleSpec,
    JobLauncherSpec,
    JobProcessArgs,
    JobReturnCode,
    add_launcher,
)
from nvflare.apis.workspace import Workspace
from nvflare.app_common.storages.filesystem_storage import FilesystemStorage
from nvflare.lighter.tool_consts import NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE
from nvflare.utils.job_launcher_utils import (
    get_client_job_args,
    get_credential_env,
    get_server_job_args,
)

from hedgerow import clock
from hedgerow.engines.nvflare import doors
from hedgerow.engines.nvflare.hardening import JOB_FILES, SNAPSHOTS_FOLDER
from hedgerow.engines.nvflare.tether import start_tethered

_SIGNATURES = (NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE)
_PARTY_FILE = "config/config_fed_client.json"
_JOB_BYTES = 100_000  # beyond which nothing that is sent as a job is unpacked
RESTARTS = 50  # of one job's process, before the job is given up
PAUSE_SECONDS = 1.0
_META = ("job_id", "resource_spec", "launcher_spec", "scope", "study")  # compared at the start
_KNOWN_CODES = {0: JobReturnCode.SUCCESS, 9: JobReturnCode.ABORTED}


class JobDeployer(FLComponent, AppDeployerSpec):
    """Takes the job that `jobs.write_job` makes and no other; the party writes its part itself."""

    def deploy(
        self,
        workspace: Workspace,
        job_id: str,
        job_meta: dict[str, Any],
        app_name: str,
        app_data: bytes,
        fl_ctx: FLContext,
    ) -> str:
        """Returns what is wrong with the job; empty if nothing is."""
        if not is_our_job(app_data):
            return "this site runs no job but hedgerow's own"
        run, app = Path(workspace.get_run_dir(job_id)), Path(workspace.get_app_dir(job_id))
        meta = json.dumps({key: job_meta[key] for key in _META if key in job_meta})
        shutil.rmtree(run, ignore_errors=True)
        (app / "config").mkdir(mode=0o700, parents=True)
        (app / _PARTY_FILE).write_text(JOB_FILES[_PARTY_FILE], "utf-8")
        Path(workspace.get_job_meta_path(job_id)).write_text(meta, "utf-8")
        return ""


def is_our_job(data: bytes) -> bool:
    """Whether this archive holds the files of our job, to the letter, and no other but signatures.

    Signatures say that the coordinator's administrator made it, and are left aside.
    """
    if len(data) > _JOB_BYTES:
        return False
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if sum(entry.file_size for entry in entries) > _JOB_BYTES:
                return False
            entries = [e for e in entries if Path(e.filename).name not in _SIGNATURES]
            found = {entry.filename: archive.read(entry).decode("utf-8") for entry in entries}
    except (zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError, OSError):
        return False
    return len(found) == len(entries) and found == JOB_FILES


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
            clock.sleep(PAUSE_SECONDS)
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
            if name == JobProcessArgs.EXE_MODULE:
                flag, value = "-m", f"{doors.__name__} {value}"
            is_list = name in (JobProcessArgs.OPTIONS, JobProcessArgs.EXE_MODULE)
            words += [flag, *(value.split() if is_list else [str(value)])]
    return words
