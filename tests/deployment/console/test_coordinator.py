"""The pages of a coordinator: sites, runs, models; stopping and resuming only after a word."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hedgerow.deployment.accounts import Accounts
from hedgerow.deployment.console.coordinator_questions import CoordinatorQuestions
from hedgerow.deployment.console.metrics import read_token
from hedgerow.deployment.logs import SiteLog
from hedgerow.deployment.runs import Command, RunRecord, list_runs, recorded, resume_run, stop_run
from hedgerow.deployment.runs import _born as born
from hedgerow.deployment.runs import _write as write_record
from hedgerow.deployment.site_service import SiteService
from hedgerow.engines.cards import PinnedRoster
from hedgerow.engines.site import Site
from hedgerow.engines.sockets import Listener
from hedgerow.errors import Refused, SettingsError
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.protocol.identity import Roster
from tests.deployment.console.rig import Rig, asked_plan, console_before
from tests.deployment.console.test_hostile import ATTACKS, FORMS, OFFICER, OPEN, routes

LEAD, READER = "Jo Lead", "Rita Reader"
PAGES = ("/", "/runs", "/runs/run-0001", "/budget", "/ledger", "/standing", "/refusals")
ABSENT = "it has not connected since the coordinator was started"


def party(name: str, connected: bool) -> dict[str, Any]:
    return {
        "name": name, "connected": connected, "since": 1_790_000_000.0, "address": "10.0.0.7",
        "boot": 3, "software": "0.1.0", "remarks": "", "why": "" if connected else ABSENT,
        "problems": [] if connected else [ABSENT],
    }  # fmt: skip


def make_coordinator(folder: Path) -> Site:
    site = Site.create(folder / "coordinator", "coordinator", "train.example.org:8002")
    others = [Site.create(folder / name, name) for name in ("hospital-a", "hospital-b")]
    keys = tuple(sorted((one.name, one.identity().public) for one in others))
    roster = Roster(keys, site.identity().public, 1, 2, "parties")
    site.pin(PinnedRoster("Heart Study", roster, site.address, site.certificate()[1]))
    Accounts(site).put(LEAD, "operator")
    Accounts(site).put(READER, "reader")
    Accounts(site).put(OFFICER, "privacy-officer")
    plan = asked_plan("run-0001", 0.5, purpose="Readmission", asker="Prof. Weber")
    with Ledger.open(site.ledger_path) as ledger:
        reservation = Reservation(ledger, plan)
        reservation.charge(0, "request", 1)
    with pytest.raises(Refused), recorded(site, plan, Command(("train", "--again"), "/")):
        raise Refused("hospital-b refused (rejected-cost)")
    return site


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    site = make_coordinator(tmp_path)
    status = {
        "running": True, "federation": "Heart Study", "address": site.address, "roster": "ab",
        "phrase": "one two three", "strangers": 4,
        "parties": [party("hospital-a", True), party("hospital-b", False)],
    }  # fmt: skip
    with ExitStack() as stack:
        log = SiteLog(tmp_path / "log")
        stack.callback(log.close)
        questions = CoordinatorQuestions(site, lambda: status, log)
        stack.callback(questions.close)
        service = SiteService(site, questions.questions(), questions.health)
        stack.enter_context(Listener(site.console_socket, service.handle_console))
        yield stack.enter_context(console_before(site, Ledger.in_memory(), status))


@pytest.mark.parametrize("name", [LEAD, READER])
def test_every_page_opens(rig: Rig, name: str) -> None:
    for path in PAGES:
        reply = rig.get(path, name)
        assert reply.status == 200, (path, reply.text)
    sites = rig.get("/", name).text
    assert "hospital-a" in sites
    assert ABSENT in sites
    assert "4 connections of strangers" in sites
    run = rig.get("/runs/run-0001", name).text
    assert "Readmission" in run
    assert "rejected-cost" in run
    assert rig.get("/ledger.pdf", name).content.startswith(b"%PDF")
    assert rig.get("/runs/run-0001/model", name).status == 409  # there is none
    assert rig.get("/runs/nothing", name).status == 409


def test_a_ledger_that_is_verified_counts_releases(rig: Rig) -> None:
    assert "1 charges" in rig.post("/ledger/verify", {}, READER).text


def test_nothing_is_resumed_without_a_word_or_by_another_role(rig: Rig) -> None:
    path = "/runs/run-0001"
    assert rig.post(path, {"what": "resume"}, LEAD).status == 400
    assert rig.post(path, {"what": "resume", "sure": "yes"}, READER).status == 403
    assert rig.post(path, {"what": "delete", "sure": "yes"}, LEAD).status == 400
    assert rig.post(path, {"what": "stop", "sure": "yes"}, LEAD).status == 409  # it does not run
    assert not (rig.site.folder / "logs" / "runs.log").exists()


def test_a_run_is_resumed_by_its_own_command(rig: Rig) -> None:
    (rig.site.folder / "logs").mkdir(exist_ok=True)
    assert rig.post("/runs/run-0001", {"what": "resume", "sure": "yes"}, LEAD).status == 303
    log = rig.site.folder / "logs" / "runs.log"
    deadline = time.monotonic() + 60
    while "--again" not in log.read_text():  # no such option: the command line was given again
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_run_is_stopped_by_the_signal_of_ctrl_c(tmp_path: Path) -> None:
    site = make_coordinator(tmp_path)
    (record,) = list_runs(site)
    words = "import signal, time; signal.signal(2, lambda *_: exit(7)); print(1, flush=True)"
    child = subprocess.Popen(
        [sys.executable, "-c", f"{words}; time.sleep(60)"], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    running = replace(record, state="running", process=child.pid, born=born(child.pid))
    write_record(site, replace(running, born=1))  # another process has got its number
    from hedgerow.deployment.hold import holding

    with holding(site, "train"):  # else it counts as a run whose process died
        with pytest.raises(SettingsError, match="does not run"):
            stop_run(site, "run-0001")
        write_record(site, running)
        stop_run(site, "run-0001")
        assert child.wait(30) == 7
        with pytest.raises(SettingsError, match="another run is under way"):
            resume_run(site, "run-0001", tmp_path / "log")
    child.stdout.close()
    assert signal.SIGINT == 2


def test_records_of_earlier_versions_are_still_listed(tmp_path: Path) -> None:
    site = make_coordinator(tmp_path)
    file = site.folder / "runs" / "old.toml"
    file.write_text(
        'run = "old"\nmethod = "auto"\nepsilon = 1.0\ndelta = 1e-6\nstate = "finished"\n'
        'started = "2026-01-01T00:00:00+00:00"\nchanged = "2026-01-01T00:00:00+00:00"\n'
    )
    old = RunRecord("old", "auto", 1.0, 1e-6, "finished", *["2026-01-01T00:00:00+00:00"] * 2)
    assert list_runs(site)[0] == old


def test_monitoring_names_parties_that_are_away(rig: Rig) -> None:
    token = read_token(rig.site.folder / "console")
    headers = {"authorization": f"Bearer {token}"}
    text = rig.request("GET", "/metrics", headers=headers).text
    assert "hedgerow_parties 2\n" in text
    assert "hedgerow_parties_connected 1\n" in text
    assert "hedgerow_strangers_total 4\n" in text
    health = rig.request("GET", "/healthz", headers=headers)
    assert health.status == 503
    assert "hospital-b" in health.text


def test_hostile_requests_get_nothing_from_any_route(rig: Rig) -> None:
    secrets = ("Heart Study", "hospital-a", "Readmission", "Prof. Weber", "rejected-cost")
    for kind, attack in {**ATTACKS, **FORMS}.items():
        for method, path in routes(rig):
            if kind in FORMS and (method != "POST" or path == "/enter"):
                continue
            reply = attack(rig, method, path)
            if path in OPEN and reply.status in (200, 401):
                continue
            about = (kind, method, path, reply.status)
            assert reply.status >= 400 or reply.headers.get("location") == "/enter", about
            assert not any(secret in reply.text for secret in secrets), about
    assert [run.state for run in list_runs(rig.site)] == ["refused"]  # nothing was resumed
