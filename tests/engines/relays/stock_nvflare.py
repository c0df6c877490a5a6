"""A stock NVFlare deployment on this machine: its own provisioning tool, its own start scripts.

What is ours is what a site's administrator would do: two lines of `local/resources.json` and one
file that names a socket.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hedgerow.engines.party_end import FILE
from tests.engines.relays.processes import end_processes, free_port, start_process

LEAD = "lead@hedgerow.example"
ALLOWED = "hedgerow.engines.nvflare."
_PROJECT = """\
api_version: 3
name: stock
description: a deployment for tests
participants:
  - {{name: localhost, type: server, org: hedgerow, fed_learn_port: {port}}}
{clients}
  - {{name: {lead}, type: admin, org: hedgerow, role: lead}}
builders:
  - path: nvflare.lighter.impl.workspace.WorkspaceBuilder
    args: {{template_file: [master_template.yml]}}
  - path: nvflare.lighter.impl.static_file.StaticFileBuilder
    args: {{config_folder: config}}
  - path: nvflare.lighter.impl.cert.CertBuilder
  - path: nvflare.lighter.impl.signature.SignatureBuilder
"""


class StockNvflare:
    """Server and sites as processes, from provisioning to the end. Use it in `with`.

    Parameters
    ----------
    folder : is filled
    parties : names of parties; site-1 stands for the first of them, and so on
    sockets : where each party's process listens
    """

    def __init__(self, folder: Path, parties: Sequence[str], sockets: dict[str, Path]) -> None:
        self.folder, self.port = folder, free_port()
        self.socket = folder / "relay.sock"
        self.sites = {f"site-{i + 1}": party for i, party in enumerate(parties)}
        self._processes: list[subprocess.Popen[bytes]] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._provision()
        self._configure("localhost", f"socket = {json.dumps(str(self.socket))}\n")
        for site, party in self.sites.items():
            place = json.dumps(str(sockets[party]))
            self._configure(site, f'party = "{party}"\nsocket = {place}\n')

    def forbid(self, name: str) -> None:
        """An administrator who has not allowed the relay's classes."""
        file = self.kit(name) / "local" / "resources.json"
        resources: dict[str, Any] = json.loads(file.read_text("utf-8"))
        resources["class_allow_list"].remove(ALLOWED)
        file.write_text(json.dumps(resources), "utf-8")

    def kit(self, name: str) -> Path:
        return self.folder / "workspace" / "stock" / "prod_00" / name

    def _provision(self) -> None:
        clients = "\n".join(f"  - {{name: {s}, type: client, org: hedgerow}}" for s in self.sites)
        project = self.folder / "project.yml"
        project.write_text(_PROJECT.format(port=self.port, clients=clients, lead=LEAD), "utf-8")
        command = ["nvflare", "provision", "-p", str(project), "-w", str(self.folder / "workspace")]
        subprocess.run([*command, "--force"], check=True, env=_environment(), capture_output=True)

    def _configure(self, name: str, text: str) -> None:
        """What docs/runtimes.md asks of an administrator."""
        local = self.kit(name) / "local"
        shutil.copy(local / "resources.json.default", local / "resources.json")
        resources: dict[str, Any] = json.loads((local / "resources.json").read_text("utf-8"))
        resources["class_allow_list"].append(ALLOWED)
        resources["allow_log_streaming"] = False
        # By default all deployments of a machine share folders under /tmp/nvflare.
        shared, own = "/tmp/nvflare", str(self.folder / "nvflare")
        changed = json.dumps(resources, indent=2).replace(shared, own)
        (local / "resources.json").write_text(changed, "utf-8")
        (local / FILE).write_text("format = 1\n" + text, "utf-8")

    def __enter__(self) -> StockNvflare:
        try:
            for name in ("localhost", *self.sites):
                self._start(name)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, name: str) -> None:
        script = self.kit(name) / "startup" / "sub_start.sh"
        command = ["bash", str(script), "--once"]
        log = self.folder / f"{name}.log"
        self._processes.append(start_process(command, log, _environment()))

    def stop(self) -> None:
        end_processes(self._processes)

    def submit(self, idle_seconds: float = 600.0, wait_seconds: float = 120.0) -> str:
        """The lead submits the recipe's job; returns its id once the relay listens."""
        code = (
            "import sys; from hedgerow.engines.nvflare import HedgerowRecipe\n"
            "from nvflare.recipe import ProdEnv\n"
            f"recipe = HedgerowRecipe('hedgerow', {len(self.sites)}, {idle_seconds})\n"
            "env = ProdEnv(sys.argv[1], username=sys.argv[2], login_timeout=30.0)\n"
            "print('job', recipe.execute(env).get_job_id())\n"
        )
        deadline, said = time.monotonic() + wait_seconds, ""
        command = [sys.executable, "-c", code, str(self.kit(LEAD)), LEAD]
        job = ""
        while not job:  # the server or a site may still be starting
            assert time.monotonic() < deadline, f"the job was not taken: {said}"
            found = subprocess.run(command, env=_environment(), capture_output=True, text=True)
            said = found.stdout + found.stderr
            job = next((x[4:] for x in found.stdout.splitlines() if x.startswith("job ")), "")
            if not job:
                time.sleep(1.0)
        while not self.socket.exists():
            assert time.monotonic() < deadline, f"the relay does not listen: {self.logs()}"
            time.sleep(0.2)
        return job

    def logs(self) -> str:
        texts = [f.read_text("utf-8", "replace")[-4000:] for f in self.folder.glob("*.log")]
        return "\n".join(texts)


def _environment() -> dict[str, str]:
    binaries = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": binaries + os.pathsep + os.environ["PATH"]}
