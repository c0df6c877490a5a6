"""Health and metrics need a token and say nothing of rows; logs are dated, rotated and go on."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path

from hedgerow.deployment.console.metrics import exposition, read_token
from hedgerow.deployment.logs import MOST_BYTES, OLDER_FILES, SiteLog, recent
from tests.deployment.console.rig import N_ROWS, Rig


def asked(rig: Rig, path: str, token: str) -> tuple[int, str]:
    reply = rig.request("GET", path, headers={"authorization": f"Bearer {token}"})
    return reply.status, reply.text


def test_monitoring_needs_its_token(shown: Rig) -> None:
    for path in ("/healthz", "/metrics"):
        for token in ("", "wrong", shown.sign_in("Olga Operator").partition("=")[2]):
            status, text = asked(shown, path, token)
            assert status == 401
            assert "hedgerow_" not in text


def test_metrics_have_connection_budget_refusals_and_no_rows(shown: Rig) -> None:
    token = read_token(shown.site.folder / "console")
    status, text = asked(shown, "/metrics", token)
    assert status == 200
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert samples["hedgerow_up"] == "1"
    assert samples["hedgerow_connected"] == "1"
    assert samples['hedgerow_epsilon_limit{limit="in total"}'] == "10"
    assert float(samples['hedgerow_epsilon_left{limit="in total"}']) < 10
    assert samples['hedgerow_refusals_total{word="over-limits"}'] == "5"
    assert samples["hedgerow_rounds_total"] == "20"
    assert str(N_ROWS) not in text
    assert not re.search(r"\brows?\b", text)
    assert (shown.site.folder / "console" / "metrics-token").stat().st_mode & 0o077 == 0


def test_a_party_that_lost_its_connection_is_not_healthy(rig: Rig) -> None:
    token = read_token(rig.site.folder / "console")
    status, text = asked(rig, "/healthz", token)
    assert (status, json.loads(text)["healthy"]) == (200, True)
    rig.facts["connection"] = {**rig.facts["connection"], "connected": False, "words": "no route"}
    status, text = asked(rig, "/healthz", token)
    assert (status, json.loads(text)["why"]) == (503, "not connected")
    assert "not connected" in rig.get("/", "Rita Reader").text
    assert "no route" in rig.get("/", "Rita Reader").text
    rig.facts |= {"connection": None, "problem": "the ledger cannot be written"}
    assert asked(rig, "/healthz", token)[0] == 503


def test_without_the_process_only_that_it_is_down_is_said() -> None:
    text = "".join(exposition(None))
    assert [line for line in text.splitlines() if line[0] != "#"] == ["hedgerow_up 0"]


def test_logs_are_dated_json_lines_that_survive_restarts(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "party.log"
    for start in ("first", "second"):
        log = SiteLog(file)
        with log.following():
            log.say(f"{start} start", about="connection")
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    assert [entry["text"] for entry in entries] == ["first start", "second start"]
    assert all(datetime.fromisoformat(entry["time"]).utcoffset() is not None for entry in entries)
    assert [entry["text"] for entry in recent(file, "connection")] == [
        "second start", "first start",
    ]  # fmt: skip
    assert file.stat().st_mode & 0o077 == 0


def test_logs_are_rotated_and_never_fill_a_disk(tmp_path: Path) -> None:
    log = SiteLog(tmp_path / "party.log")
    log.maxBytes = 2000
    for number in range(600):
        log.say(f"line {number} " + "x" * 60, about="connection")
    log.close()
    files = list(tmp_path.iterdir())
    assert len(files) == OLDER_FILES + 1
    assert sum(file.stat().st_size for file in files) < 2200 * (OLDER_FILES + 1)
    assert recent(tmp_path / "party.log", "connection", 30)[29]["text"].startswith("line 570 ")
    assert MOST_BYTES * (OLDER_FILES + 1) < 50_000_000
