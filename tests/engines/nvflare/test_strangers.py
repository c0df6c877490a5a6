"""Who and what is turned away: other certificates, other jobs, hostile messages, a second run."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import psutil
import pytest

from hedgerow.engines.nvflare.engine import NvflareEngine
from hedgerow.engines.nvflare.hardening import JOB_FILES, PARTY_CARRIER
from hedgerow.engines.nvflare.jobs import write_job
from hedgerow.engines.nvflare.processes import EngineProcess
from hedgerow.engines.nvflare.provision import new_federation
from hedgerow.engines.nvflare.room import make_room
from hedgerow.engines.site import Site
from hedgerow.errors import HedgerowError, SettingsError
from tests.engines.nvflare import strangers
from tests.engines.nvflare.sites import Sites, free_port, is_alive

SECRET = "alice,41,1"  # a row of p0's, in a file that its account can read
JOB = "0f6c7e0a-3c5b-4c0e-9f0b-1d2e3f405162"


def hears(port: int, site: Path | None, seconds: float = 60.0) -> bool:
    """Whether the coordinator keeps a connection with the certificate of this site so long."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if site is not None:
        context.load_cert_chain(site / "startup" / "client.crt", site / "startup" / "client.key")
    with socket.create_connection(("127.0.0.1", port), 10.0) as plain:
        plain.settimeout(seconds)
        try:
            with context.wrap_socket(plain) as connection:
                return connection.recv(1) != b""
        except TimeoutError:
            return True  # it waits for us to speak
        except (ssl.SSLError, ConnectionError):
            return False


def test_a_certificate_of_another_root_is_turned_away(sites: Sites, tmp_path: Path) -> None:
    other = new_federation(tmp_path / "other", "trial", "localhost", sites.port, ["p0"])
    assert hears(sites.port, sites.by_name["p0"].path, 2.0)
    assert not hears(sites.port, other["p0"])
    assert not hears(sites.port, None)


def test_a_job_that_names_another_class_is_refused_by_the_party(
    sites: Sites, engine: NvflareEngine, tmp_path: Path
) -> None:
    other = "nvflare.app_common.np.np_trainer.NPTrainer"  # which NVFlare's own list allows
    write_job(tmp_path / "job", ["p0"])
    config = tmp_path / "job" / "carriers" / "config" / "config_fed_client.json"
    config.write_text(config.read_text().replace(PARTY_CARRIER, other))
    await_refusal(sites, tmp_path / "job", "this site runs no job but hedgerow's own")


def test_a_job_that_brings_code_is_refused(
    sites: Sites, engine: NvflareEngine, tmp_path: Path
) -> None:
    write_job(tmp_path / "job", ["p0"])
    (tmp_path / "job" / "carriers" / "custom").mkdir()
    (tmp_path / "job" / "carriers" / "custom" / "ours.py").write_text("print('here')")
    await_refusal(sites, tmp_path / "job", "BYOC not permitted")


def await_refusal(sites: Sites, job: Path, reason: str) -> None:
    """Submit a job as the coordinator's administrator can, and see that it ends for this reason.

    NVFlare stores that a job failed before it stores why, so an end without a reason is not yet
    all that it says.
    """
    with sites.jobs.session() as session:
        name = session.submit_job(str(job))
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline:
            status = sites.jobs.why(session, name)
            if status.startswith("FINISHED") and reason in status:
                return
            time.sleep(0.3)
        session.abort_job(name)
    raise AssertionError(f"the job was not refused because {reason!r}: {status}")


def hostile_messages(site: Site) -> dict[str, dict[str, Any]]:
    """Requests that NVFlare as it comes would answer, for this site."""
    rows = site.path.parent / "rows.csv"
    rows.write_text(SECRET)
    parent = {"channel": "admin", "target": site.name}
    network = {"channel": "_net_manager", "target": site.name, "topic": ""}
    local = {"job_id": "local"}
    return {
        "read": {**parent, "topic": "sys.shell", "body": f"cat '{rows}'"},
        "read ours": {**parent, "topic": "sys.shell", "body": "cat local/hedgerow/kit.toml"},
        "delete": {**parent, "topic": "train.delete_run", "headers": local},
        "report": {**parent, "topic": "sys.report_env"},
        "shut down": {**parent, "topic": "train.shutdown"},
        "stop": {**network, "cell_topic": "stop_cell"},
    }


@contextmanager
def stranger(messages: dict[str, Any], folder: Path, *words: str) -> Iterator[dict[str, str]]:
    """Let a hostile program run and send these; gives what it was answered."""
    answers = folder / "answers.json"
    command = [sys.executable, "-P", strangers.__file__, *words]
    pipe = subprocess.PIPE
    with (
        open(folder / "log", "wb") as log,
        subprocess.Popen(command, stdin=pipe, stdout=log, stderr=log) as process,
    ):
        assert process.stdin is not None
        process.stdin.write(json.dumps({"messages": messages, "answers": str(answers)}).encode())
        process.stdin.close()
        try:
            deadline = time.monotonic() + 60.0
            while not answers.exists():
                assert time.monotonic() < deadline, (folder / "log").read_text()
                time.sleep(0.1)
            yield json.loads(answers.read_text("utf-8"))
        finally:
            process.kill()


def check_unharmed(process: EngineProcess, pid: int | None, answers: dict[str, str]) -> None:
    site, told = process.kit, " ".join(answers.values())
    assert SECRET not in told
    assert "address = " not in told
    assert '"workspace"' not in told
    assert "'cn__return_code': 'ok'" not in answers["stop"]
    assert (site.folder / "kit.toml").exists()
    time.sleep(1.0)
    assert process.pid == pid is not None
    port = int(site.address.rpartition(":")[2])
    ends = [c.raddr for c in psutil.Process(pid).net_connections() if c.status == "ESTABLISHED"]
    assert port in [end.port for end in ends]


def loopback_port(process: EngineProcess) -> str:
    found = psutil.Process(process.pid).net_connections()
    (port,) = [c.laddr.port for c in found if c.status == "LISTEN"]
    return str(port)


@pytest.mark.parametrize("who", ["local", "neighbour", "party"])
def test_strangers_get_nothing_from_a_party(
    sites: Sites, engine: NvflareEngine, tmp_path: Path, who: str
) -> None:
    process, pid = sites.processes["p0"], sites.processes["p0"].pid
    words = {
        "local": lambda: [loopback_port(process)],
        "neighbour": lambda: [loopback_port(process), str(sites.stranger.path)],
        "party": lambda: [str(make_room(sites.stranger))],
    }[who]()
    with stranger(hostile_messages(process.kit), tmp_path, who, *words) as answers:
        check_unharmed(process, pid, answers)
    refused = {"neighbour": "p0", "party": "coordinator"}.get(who)
    if refused is not None:  # others do not get as far as to a message
        said = sites.processes[refused].log_path.read_text("utf-8", "replace")
        assert "refused a message of mallory (mallory)" in said
    assert engine.ask(("p0",), b"x", 60.0)["p0"].body == b"echo x"


def test_a_party_gets_nothing_from_the_coordinator(
    sites: Sites, engine: NvflareEngine, tmp_path: Path
) -> None:
    job = f"server.{engine._job}"
    network = {"channel": "_net_manager", "topic": ""}
    messages = {
        "look": {**network, "target": "server", "cell_topic": "process_info"},
        "stop job": {**network, "target": job, "cell_topic": "stop_cell"},
        "abort": {"channel": "server_command", "target": job, "topic": "", "cell_topic": "abort"},
        "who": {
            "channel": "server_parent_listener",
            "target": "server",
            "topic": "",
            "cell_topic": "get_clients",
            "cell_headers": {"job_id": engine._job},
        },
        "command": {
            "channel": "hci_channel",
            "target": "server",
            "topic": "",
            "cell_topic": "command",
        },
    }
    pids = [sites.processes["coordinator"].pid, sites.job_process("coordinator")]
    room = str(make_room(sites.stranger))
    with stranger(messages, tmp_path, "party", room) as answers:
        assert [name for name, told in answers.items() if "timeout" not in told] == []
    assert engine.ask(("p0",), b"x", 60.0)["p0"].body == b"echo x"
    assert [sites.processes["coordinator"].pid, sites.job_process("coordinator")] == pids


def archive(**files: str) -> str:
    stream = BytesIO()
    with ZipFile(stream, "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
    return stream.getvalue().hex()


def test_a_hostile_coordinator_gets_nothing_from_a_party(folder: Path, tmp_path: Path) -> None:
    made = new_federation(folder, "trial", "localhost", free_port(), ["p0"])
    sites = {name: Site.open(path) for name, path in made.items()}
    deploy = {"channel": "admin", "target": "p0", "topic": "train.deploy"}
    code = {"hex": archive(**{**JOB_FILES, "custom/evil.py": "print('here')"})}
    meta = {"app_name": "carriers", "job_meta": {"name": "x"}}
    messages = {
        **hostile_messages(sites["p0"]),
        "bring code": {**deploy, **code, "headers": {**meta, "job_id": JOB}},
        "overwrite": {
            **deploy,
            "hex": archive(**JOB_FILES),
            "headers": {**meta, "job_id": "local"},
        },
    }
    with EngineProcess(sites["p0"]) as process:
        pid = process.pid
        words = ("coordinator", str(make_room(sites["coordinator"])))
        with stranger(messages, tmp_path, *words) as answers:
            check_unharmed(process, pid, answers)
            assert "deployed" not in answers["bring code"] + answers["overwrite"]
            assert not list(sites["p0"].path.rglob("evil.py"))


def test_only_one_engine_uses_a_site(sites: Sites, engine: NvflareEngine) -> None:
    with pytest.raises(HedgerowError, match="another run uses the site folder"):
        sites.engine()


def test_a_taken_port_is_named(sites: Sites) -> None:
    with pytest.raises(HedgerowError, match=f"port {sites.port} .* cannot be used"):
        EngineProcess(sites.coordinator).start()


def test_a_coordinator_that_does_not_run_is_said_to_be_missing(folder: Path) -> None:
    made = new_federation(folder, "trial", "localhost", free_port(), ["a"])
    site = Site.open(made["coordinator"])
    with pytest.raises(HedgerowError, match=r"hedgerow coordinator start .*coordinator"):
        NvflareEngine(site, ("a",))
    with pytest.raises(HedgerowError, match="hedgerow coordinator start"):  # and is not locked
        NvflareEngine(site, ("a",))


def test_what_nvflare_writes_is_for_its_owner_only(sites: Sites, engine: NvflareEngine) -> None:
    for site in sites.by_name.values():
        written = [path for path in site.path.rglob("*") if not path.is_socket()]
        assert (site.path / "engine" / "audit.log") in written
        assert [path for path in written if path.stat().st_mode & 0o077] == []


def test_a_party_cannot_drive_the_engine(sites: Sites) -> None:
    with pytest.raises(SettingsError, match="site folder of p1"):
        NvflareEngine(sites.by_name["p1"], ("p0",))


def test_a_child_dies_with_the_process_that_started_it() -> None:
    script = (
        "import os, time, sys, threading\n"
        "from hedgerow.engines.nvflare.tether import start_tethered\n"
        "words = ['-c', 'import time; time.sleep(60)']\n"
        "def start(): print(start_tethered(words, os.environ).pid)\n"
        "t = threading.Thread(target=start); t.start(); t.join()\n"
        "sys.stdout.flush(); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(0.5)
        os.kill(child, 0)  # lives on although the thread that started it is over
        parent.kill()
    deadline = time.monotonic() + 60.0
    while is_alive(child):
        assert time.monotonic() < deadline, "the child outlived its parent"
        time.sleep(0.05)
