"""A trial on one machine that goes wrong leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from hedgerow import Label, PrivateSurvivalBoosting, Schema, load
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
    with (
        pytest.raises(HedgerowError, match=r"party-2 did not start: it ended(.|\n)*columns"),
        sites,
    ):
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


@slow
@pytest.mark.parametrize("method", ["auto", "random-trees"])
def test_a_made_up_cohort_is_trained_between_sites(tmp_path: Path, method: str) -> None:
    """Times to an event whose effects change, over processes of their own with certificates."""
    label = Label("days", event="back", cuts=(30, 60, 90, 180, 365), change_at=90)
    schema = Schema.from_bounds({"age": (0, 100), "dose": (0, 5)}, time_to_event=label)
    schema.write(tmp_path / "schema.toml")
    files = []
    for seed, name in enumerate(NAMES):
        rng, n = np.random.default_rng(seed), 2000
        age, dose = rng.uniform(0, 100, n), rng.uniform(0, 5, n)
        time, seen = rng.exponential(200 * np.exp((50 - age) / 25)), rng.uniform(20, 500, n)
        table = {"age": age, "dose": dose, "days": np.minimum(time, seen), "back": time <= seen}
        columns = {key: values.astype(float).tolist() for key, values in table.items()}
        write_csv(
            tmp_path / f"{name}.csv", {**columns, "back": (time <= seen).astype(int).tolist()}
        )
        files.append(str(tmp_path / f"{name}.csv"))
    out = tmp_path / "model.hedge"
    Trial(tmp_path / "schema.toml", files, 0, 1.0, 1e-5, method, tmp_path / "trial", out).run(print)
    model = load(out)
    assert isinstance(model, PrivateSurvivalBoosting)
    assert model.statement_.trust == "parties"
    ages = {"age": [20.0, 50.0, 80.0], "dose": [2.0] * 3}
    assert np.all(np.diff(model.predict(ages)) > 0.2)
    assert running_from(tmp_path) == []
