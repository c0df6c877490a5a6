"""A trial on one machine that goes wrong leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hedgerow.deployment.hold import PORT_FILE
from hedgerow.deployment.trial import Sites, Trial, hedgerow
from hedgerow.errors import HedgerowError
from tests.cli.conftest import write_csv
from tests.conftest import MIXED, mixed_table
from tests.slow import slow

NAMES = ("party-1", "party-2", "party-3")


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    MIXED.write(tmp_path / "schema.toml")
    for i, name in enumerate(NAMES):
        write_csv(tmp_path / f"{name}.csv", mixed_table(60, i))
    return {name: tmp_path / f"{name}.csv" for name in NAMES}


def running_from(folder: Path) -> list[str]:
    """Command lines of processes that name something in this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                words = (entry / "cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue  # it has ended
            if any(str(folder) in word for word in words):
                found.append(" ".join(words))
    return found


@slow
def test_sites_that_did_start_are_ended_when_one_does_not(
    tmp_path: Path, tables: dict[str, Path]
) -> None:
    tables["party-2"].write_text("not,the,columns\n1,2,3\n")
    sites = Sites.make(tmp_path, tables, tmp_path / "schema.toml")
    with pytest.raises(HedgerowError, match=r"party-2 did not start; what it said is in"), sites:
        raise AssertionError("all of them run")
    assert set(sites.processes) == {"coordinator", *NAMES}
    assert running_from(tmp_path) == []
    assert (tmp_path / "party-2.log").read_text()


def test_sites_are_ended_when_somebody_interrupts_their_start(
    tmp_path: Path, tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Sites, name: str) -> None:
        assert running_from(tmp_path)
        raise KeyboardInterrupt

    monkeypatch.setattr(Sites, "wait_for", interrupted)
    sites = Sites.make(tmp_path, tables, tmp_path / "schema.toml")
    with pytest.raises(KeyboardInterrupt), sites:
        raise AssertionError("all of them run")
    assert running_from(tmp_path) == []


def test_sites_are_ended_when_training_fails(tmp_path: Path, tables: dict[str, Path]) -> None:
    out = tmp_path / "no such folder" / "model.hedge"
    files = [str(file) for file in tables.values()]
    trial = Trial(
        tmp_path / "schema.toml", files, 0, 1.0, 1e-6, "no-such-method", tmp_path / "trial", out
    )
    told: list[str] = []
    with pytest.raises(HedgerowError, match="training ended with code"):
        trial.run(told.append)
    assert any("every party is connected" in text for text in told)
    assert running_from(tmp_path) == []


def test_sites_are_ended_when_the_trial_is_terminated(
    tmp_path: Path, tables: dict[str, Path]
) -> None:
    """As a service manager or a time limit does it: by SIGTERM, to this one process."""
    words = ["federation", "try", "--schema", str(tmp_path / "schema.toml"), "--delta", "1e-6"]
    words += ["--out", str(tmp_path / "model.hedge"), "--folder", str(tmp_path / "trial")]
    for file in tables.values():
        words += ["--data", str(file)]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(hedgerow(words), stdout=log, stderr=log)
    try:
        held = tmp_path / "trial" / "sites" / "coordinator" / PORT_FILE
        deadline = time.monotonic() + 120
        while not held.exists():  # the coordinator runs
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 128 + signal.SIGTERM
        assert running_from(tmp_path) == []
    finally:
        process.kill()
        process.wait()
