"""From empty folders at three machines to a trained model: ten commands, only public files."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from hedgerow.deployment.trial import free_port, hedgerow
from hedgerow.model.ensemble import Ensemble
from tests.deployment.test_sandbox import has_landlock
from tests.e2e.test_sites import SCHEMA, table

PARTIES = ("hospital-a", "hospital-b", "hospital-c")


class Machines:
    """A folder stands for a machine; what is sent from one to another is written down."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands: list[list[str]] = []
        self.crossed: list[str] = []
        self.running: list[subprocess.Popen[bytes]] = []

    def at(self, machine: str) -> Path:
        place = self.folder / machine
        place.mkdir(exist_ok=True)
        return place

    def run(self, machine: str, *words: str) -> dict[str, Any]:
        self.commands.append(list(words))
        command = hedgerow([*words, "--json"])
        done = subprocess.run(command, cwd=self.at(machine), stdout=subprocess.PIPE, timeout=800)
        assert done.returncode == 0, words
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def start(self, machine: str, *words: str) -> None:
        self.commands.append(list(words))
        with (self.at(machine) / "log").open("wb") as log:
            process = subprocess.Popen(
                hedgerow(words), cwd=self.at(machine), stdout=log, stderr=log
            )
        self.running.append(process)

    def send(self, file: Path, machine: str) -> None:
        self.crossed.append(file.name)
        shutil.copy(file, self.at(machine))


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    made = Machines(tmp_path)
    yield made
    for process in made.running:
        process.terminate()
    for process in made.running:
        assert process.wait(300) == 0


def test_ten_commands_and_public_files_make_a_model(machines: Machines) -> None:
    address = f"127.0.0.1:{free_port()}"
    shown = [machines.run("coordinator", "coordinator", "init", "site", "--listen", address)]
    for seed, name in enumerate(PARTIES):
        shown.append(machines.run(name, "party", "init", name))
        machines.send(machines.at(name) / name / f"{name}.card.toml", "coordinator")
        SCHEMA.write(machines.at(name) / "schema.toml")  # agreed on before, as the table was
        parquet.write_table(table(seed), machines.at(name) / "rows.parquet")
    SCHEMA.write(machines.at("coordinator") / "schema.toml")
    cards = [f"{name}.card.toml" for name in PARTIES]
    roster = machines.run("coordinator", "federation", "roster", *cards, "--site", "site", "--yes")
    machines.start("coordinator", "coordinator", "start", "site")
    for name in PARTIES:
        machines.send(machines.at("coordinator") / "roster.toml", name)
        data = ("--data", "rows.parquet", "--schema", "schema.toml")
        machines.start(name, "party", "start", name, "--roster", "roster.toml", "--yes", *data)
    promise = ("--epsilon", "1", "--delta", "1e-6")
    trained = machines.run(
        "coordinator", "train", "--site", "site", "--schema", "schema.toml", *promise,
        "--out", "model.hedge", "--wait-seconds", "90",
    )  # fmt: skip
    assert len(machines.commands) == 10
    model = Ensemble.load(machines.at("coordinator") / "model.hedge")
    assert model.statement.parties == PARTIES
    assert (model.statement.guarantee, model.statement.simulated) == ("epsilon-delta", False)
    assert trained["parties"] == list(PARTIES)
    assert machines.crossed == [*cards, "roster.toml", "roster.toml", "roster.toml"]
    for name in {*machines.crossed}:
        assert "PRIVATE" not in (machines.at("coordinator") / name).read_text()
    phrases = [one["phrase"] for one in (*shown, roster)]
    assert len({*phrases}) == 5
    check_statuses(machines)
    check_removal(machines, phrases[-1])


def check_statuses(machines: Machines) -> None:
    """Both sides know that they are connected, to whom, since when."""
    status = machines.run("coordinator", "coordinator", "status", "site")
    assert [party["connected"] for party in status["parties"]] == [True] * 3
    assert not any(party["problems"] for party in status["parties"])
    one = machines.run("hospital-a", "party", "status", "hospital-a")
    assert one["connection"]["connected"]
    assert one["roster"] == status["roster"]
    assert one["confined"] == has_landlock()


def check_removal(machines: Machines, before: str) -> None:
    """A party that is removed is disconnected and told why; nobody is started again."""
    cards = ["hospital-a.card.toml", "hospital-b.card.toml"]
    changed = machines.run(
        "coordinator", "federation", "roster", *cards, "--site", "site", "--yes",
        "--minimum-parties", "2",
    )  # fmt: skip
    assert changed["phrase"] != before
    assert "hospital-c is gone: its runs end." in changed["changes"]
    status = hedgerow(["party", "status", "hospital-c", "--json"])
    deadline = time.monotonic() + 300
    while True:
        found = subprocess.run(status, cwd=machines.at("hospital-c"), stdout=subprocess.PIPE)
        link = json.loads(found.stdout)["connection"]
        if "not in the roster any more" in link["words"]:
            break
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert found.returncode == 5
    assert not link["connected"]
