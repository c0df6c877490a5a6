"""Who and what is turned away: other certificates, other classes, code in a job, a second run."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hedgerow.errors import HedgerowError, SettingsError
from hedgerow.federation.kit import Kit
from hedgerow.federation.nvflare.engine import NvflareEngine
from hedgerow.federation.nvflare.hardening import PARTY_CARRIER
from hedgerow.federation.nvflare.jobs import write_job
from hedgerow.federation.nvflare.processes import EngineProcess
from hedgerow.federation.nvflare.provision import new_federation
from tests.nvflare.houses import Houses, free_port


def hears(port: int, kit: Path | None) -> bool:
    """Whether the coordinator keeps a connection that shows the certificate of this kit."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if kit is not None:
        context.load_cert_chain(kit / "startup" / "client.crt", kit / "startup" / "client.key")
    with socket.create_connection(("127.0.0.1", port), 10.0) as plain:
        plain.settimeout(3.0)
        try:
            with context.wrap_socket(plain) as connection:
                return connection.recv(1) != b""
        except TimeoutError:
            return True  # it waits for us to speak
        except (ssl.SSLError, ConnectionError):
            return False


def test_a_certificate_of_another_root_is_turned_away(houses: Houses, tmp_path: Path) -> None:
    other = new_federation(tmp_path / "other", "trial", "localhost", houses.port, ["p0"])
    assert hears(houses.port, houses.kits["p0"].path)
    assert not hears(houses.port, other["p0"])
    assert not hears(houses.port, None)


def test_a_job_that_names_another_class_is_refused_by_the_party(
    houses: Houses, engine: NvflareEngine, tmp_path: Path
) -> None:
    other = "nvflare.app_common.np.np_trainer.NPTrainer"  # which NVFlare's own list allows
    write_job(tmp_path / "job", ["p0"])
    config = tmp_path / "job" / "carriers" / "config" / "config_fed_client.json"
    config.write_text(config.read_text().replace(PARTY_CARRIER, other))
    refusal = f"{other!r} at config path 'executors.#1.executor' is not in allow_list"
    with houses.jobs.session() as session:
        name = session.submit_job(str(tmp_path / "job"))
        deadline = time.monotonic() + 60.0
        while refusal not in houses.processes["p0"].log_path.read_text("utf-8", "replace"):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        session.abort_job(name)


def test_a_job_that_brings_code_is_refused(
    houses: Houses, engine: NvflareEngine, tmp_path: Path
) -> None:
    write_job(tmp_path / "job", ["p0"])
    (tmp_path / "job" / "carriers" / "custom").mkdir()
    (tmp_path / "job" / "carriers" / "custom" / "ours.py").write_text("print('here')")
    assert "BYOC not permitted" in outcome(houses, tmp_path / "job")


def outcome(houses: Houses, job: Path) -> str:
    """Submit a job as the coordinator's administrator can, and see how it ends."""
    with houses.jobs.session() as session:
        name = session.submit_job(str(job))
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline:
            status = houses.jobs.why(session, name)
            if status.startswith("FINISHED"):
                return status
            time.sleep(0.3)
        session.abort_job(name)
    raise AssertionError("the job runs")


def test_only_one_engine_uses_a_kit(houses: Houses, engine: NvflareEngine) -> None:
    with pytest.raises(HedgerowError, match="another run uses the kit"):
        houses.engine()


def test_a_taken_port_is_named(houses: Houses) -> None:
    with pytest.raises(HedgerowError, match=f"port {houses.port} .* cannot be used"):
        EngineProcess(houses.coordinator).start()


def test_a_coordinator_that_does_not_run_is_said_to_be_missing(folder: Path) -> None:
    made = new_federation(folder, "trial", "localhost", free_port(), ["a"])
    kit = Kit.open(made["coordinator"])
    with pytest.raises(HedgerowError, match=r"hedgerow coordinator start .*coordinator"):
        NvflareEngine(kit, ("a",))
    with pytest.raises(HedgerowError, match="hedgerow coordinator start"):  # and is not locked
        NvflareEngine(kit, ("a",))


def test_what_nvflare_writes_is_for_its_owner_only(houses: Houses, engine: NvflareEngine) -> None:
    for kit in houses.kits.values():
        written = [path for path in kit.path.rglob("*") if not path.is_socket()]
        assert (kit.path / "log.txt") in written
        assert [path for path in written if path.stat().st_mode & 0o077] == []


def test_a_party_cannot_drive_the_engine(houses: Houses) -> None:
    with pytest.raises(SettingsError, match="kit of p1"):
        NvflareEngine(houses.kits["p1"], ("p0",))


def test_a_child_dies_with_the_process_that_started_it() -> None:
    script = (
        "import os, time, sys, threading\n"
        "from hedgerow.federation.nvflare.tether import start_tethered\n"
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
    deadline = time.monotonic() + 10.0
    while is_alive(child):
        assert time.monotonic() < deadline, "the child outlived its parent"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
