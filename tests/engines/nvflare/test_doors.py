"""Which messages are taken, which jobs, and what a process behind the fence can open."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import nvflare
import pytest
from nvflare.apis.workspace import Workspace
from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey as Header

from hedgerow.engines.nvflare import doors, room
from hedgerow.engines.nvflare.doors import refusal
from hedgerow.engines.nvflare.fence import Fence, enclose
from hedgerow.engines.nvflare.hardening import ADMIN, JOB_FILES
from hedgerow.engines.nvflare.launcher import JobDeployer, is_our_job
from hedgerow.engines.nvflare.provision import new_federation
from hedgerow.engines.nvflare.tether import start_tethered
from hedgerow.engines.site import Site
from hedgerow.errors import HedgerowError, SettingsError
from tests.engines.nvflare.sites import free_port

JOB = "0f6c7e0a-3c5b-4c0e-9f0b-1d2e3f405162"
CONSOLE = f"_admin_{JOB}"
HOST = "coordinator.example"


def why(
    me: str, peer: str, certified: str, origin: Any, route: str, target: str = "", **more: Any
) -> str:
    """The refusal of one request, `route` being channel/topic."""
    channel, _, topic = route.partition("/")
    headers = {
        Header.ORIGIN: origin,
        Header.DESTINATION: target or me,
        Header.CHANNEL: channel,
        Header.TOPIC: topic,
        Header.MSG_TYPE: "req",
        **more,
    }
    return refusal(me, peer, certified, headers.get)


def stream(channel: str, topic: str) -> dict[str, str]:
    return {"sm__ch": channel, "sm__tp": topic}


DATA = "sm__STREAM/sm__DATA"


def test_what_carrying_bytes_needs_is_taken() -> None:
    job, ours = f"p0.{JOB}", f"server.{JOB}"
    carried = stream("aux_communication", "hedgerow")
    assert not why("p0", "server", HOST, "server", "admin/admin")
    assert not why(job, "server", HOST, ours, DATA, **carried)
    assert not why("server", "server." + JOB, HOST, ours, DATA, job, **carried)
    assert not why(ours, "server", HOST, job, DATA, **stream("server_command", "get_task"))
    assert not why("server", "p0", "p0", "p0", "task/heart_beat")
    assert not why("server", CONSOLE, ADMIN, CONSOLE, DATA, **stream("hci_channel", "command"))


@pytest.mark.parametrize("me", ["server", f"server.{JOB}", "p0", f"p0.{JOB}"])
@pytest.mark.parametrize(
    "route",
    [
        *("_net_manager/stop", "_net_manager/stop_cell", "_net_manager/change_root"),
        *("cellnet.channel/bulk", "credential_manager/key_exchange", "/", "admin/sys.shell"),
        *("aux_communication/fed.event", "aux_communication/__do_task__"),
    ],
)
def test_other_requests_are_refused_even_from_the_coordinator(me: str, route: str) -> None:
    peer = "p0" if me == "server" else "server"
    certified = "p0" if me == "server" else HOST
    assert "not answered here" in why(me, peer, certified, peer, route)
    channel, _, topic = route.partition("/")
    assert "not answered here" in why(me, peer, certified, peer, DATA, **stream(channel, topic))


def test_a_sender_is_who_its_connection_says() -> None:
    assert "not who it says" in why("server", "p1", "p1", "p0", "task/heart_beat")
    assert "not who it says" in why("server", "p1", "p1", "server", "task/heart_beat")
    assert "not who it says" in why("p0", "server", HOST, "p0", "admin/train.notify_job_status")
    assert "another party" in why("p0", "p1", "p1", "p1", "admin/admin")
    assert "another party" in why(f"p0.{JOB}", "p0", "p0", "p1", "client_command/abort")
    assert "without a certificate" in why("p0", f"p0.{JOB}", "", f"p0.{JOB}", "cellnet.channel/bye")
    assert "poses as" in why("server", CONSOLE, "p1", CONSOLE, "hci_channel/command")
    assert "from whom" in why("p0", "server", HOST, ["server"], "admin/admin")


def test_the_coordinator_relays_nothing_between_parties() -> None:
    assert "for another party" in why("server", "p1", "p1", "p1", "admin/admin", "p0")
    assert "for another party" in why("server", "p1", "p1", "p1", "x/y", f"p0.{JOB}")
    reply = {Header.MSG_TYPE: "reply"}
    assert "for another party" in why("server", "p1", "p1", "p1", "x/y", "p0", **reply)
    assert "coordinator only" in why("server", CONSOLE, ADMIN, CONSOLE, "x/y", f"server.{JOB}")


def test_a_party_neither_redirects_nor_ends_the_coordinators_job() -> None:
    url = {Header.CONN_URL: "tcp://elsewhere:1"}
    assert "another address" in why("server", "p1", "p1", "p1", "task/heart_beat", **url)
    job, error = f"server.{JOB}", "sm__STREAM/sm__ERROR"
    assert not why(job, "server", HOST, f"p1.{JOB}", error)
    assert "would end" in why(job, "server", HOST, f"p1.{JOB}", error, sm__et="BlobSizeError")


def archive(files: dict[str, str]) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
    return stream.getvalue()


def test_a_party_takes_one_job_only(tmp_path: Path) -> None:
    for folder in ("startup", "local"):
        (tmp_path / folder).mkdir()
    workspace = Workspace(str(tmp_path), "p0")
    one = next(iter(JOB_FILES))
    others = [
        b"no archive",
        archive({**JOB_FILES, "custom/more.py": "print()"}),
        archive({**JOB_FILES, one: JOB_FILES[one] + " "}),
        archive({one: JOB_FILES[one]}),
        archive({**JOB_FILES, "long": "0" * 200_000}),
    ]
    for data in others:
        assert not is_our_job(data)
        assert JobDeployer().deploy(workspace, JOB, {}, "x", data, None) != ""
    assert not (tmp_path / JOB).exists()
    meta = {"scope": "s", "byoc": True}
    assert JobDeployer().deploy(workspace, JOB, meta, "x", archive(JOB_FILES), None) == ""
    written = sorted(path.name for path in (tmp_path / JOB).rglob("*") if path.is_file())
    assert written == ["config_fed_client.json", "meta.json"]
    assert "byoc" not in Path(workspace.get_job_meta_path(JOB)).read_text()


def test_another_nvflare_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(nvflare, "__version__", "2.10.0")
        with pytest.raises(HedgerowError, match=r"NVFlare 2\.10\.0 is not the one"):
            doors.close_doors()
    monkeypatch.delattr(CoreCell, "_process_received_msg")
    with pytest.raises(HedgerowError, match="Nothing was started"):
        doors.close_doors()


def test_jobs_have_no_other_names(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from hedgerow.engines.nvflare import doors\n"
        "from nvflare.apis.workspace import Workspace\n"
        "doors.close_doors()\n"
        "print(Workspace._check_job_id(sys.argv[1]))\n"
    )
    found = {}
    for name in (JOB, "local"):
        words = [sys.executable, "-c", script, name]
        found[name] = subprocess.run(words, capture_output=True, text=True, check=False)
    assert found[JOB].stdout.strip() == JOB
    assert "not the name of a job" in found["local"].stderr


def test_nvflare_reads_nothing_else_of_a_site(folder: Path) -> None:
    site = Site.open(new_federation(folder, "trial", "localhost", free_port(), ["p0"])["p0"])
    (site.path / "local" / "custom").mkdir()
    (site.path / "local" / "log_config.json").write_text("{}")
    (site.path / "startup" / "fed_client.json").write_text("{}")
    (site.path / "engine").mkdir()
    (site.path / "engine" / "left.py").write_text("")
    made = room.make_room(site)
    names = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
    certificates = {f"startup/{name}" for name in ("rootCA.pem", "client.crt", "client.key")}
    settings = {"resources", "authorization", "comm_config", "log_config"}
    ours = {f"local/{name}.json" for name in settings} | {"startup/fed_client.json"}
    assert names == certificates | ours
    assert (made / "startup" / "fed_client.json").read_text() != "{}"


def has_landlock() -> bool:
    child = os.fork()
    if not child:
        os._exit(0 if enclose(Fence((), ())) else 1)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not has_landlock(), reason="this kernel has no Landlock")
def test_behind_the_fence_other_files_are_closed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "rows").write_text("1")
    (outside / "kit.toml").write_text("2")
    script = (
        "import sys, hashlib, subprocess, pathlib\n"
        "def opens(name):\n"
        "    try: return pathlib.Path(name).read_text()\n"
        "    except OSError: return 'closed'\n"
        "found = [opens(name) for name in sys.argv[2:]]\n"
        "pathlib.Path(sys.argv[1]).write_text(' '.join(found))\n"
    )
    fence = Fence((str(inside),), (str(outside / "kit.toml"),), (str(outside),))
    files = [inside / "answer", inside / "rows", outside / "rows", outside / "kit.toml"]
    words = ["-c", script, *(str(file) for file in files)]
    assert start_tethered(words, os.environ, str(inside), fence=fence).wait(30) == 0
    assert (inside / "answer").read_text() == "1 closed 2"


def test_an_unpacked_site_is_closed_to_others(folder: Path, tmp_path: Path) -> None:
    new_federation(folder, "trial", "localhost", free_port(), ["p0"])
    before = os.umask(0o022)
    try:
        with zipfile.ZipFile(folder / "p0.zip") as packed:
            packed.extractall(tmp_path / "at")
    finally:
        os.umask(before)
    site = Site.open(tmp_path / "at" / "p0")
    kept = [site.path, site.folder, site.path / "startup", site.path / "startup" / "client.key"]
    assert [path for path in kept if path.stat().st_mode & 0o077] == []


def test_a_site_of_somebody_else_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = new_federation(folder, "trial", "localhost", free_port(), ["p0"])["p0"]
    monkeypatch.setattr(os, "geteuid", lambda: made.stat().st_uid + 1)
    with pytest.raises(SettingsError, match="belongs to another account"):
        Site.open(made)
