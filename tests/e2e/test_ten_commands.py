"""From empty folders at three machines to a trained model: ten commands, only public files.

Then the other commands that the pages about federations write, each as it stands there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import parquet

from hedgerow.deployment.warming import PARTY_METHODS, warm
from hedgerow.model.ensemble import Ensemble
from tests.deployment.test_sandbox import has_landlock
from tests.e2e.documented import Machines
from tests.e2e.test_sites import SCHEMA, table

PARTIES = ("hospital-a", "hospital-b", "hospital-c")
INIT_COORDINATOR = "hedgerow coordinator init COORDINATOR --listen ADDRESS"
INIT_PARTY = "hedgerow party init PARTY"
ROSTER = "hedgerow federation roster *.card.toml --site COORDINATOR"
START_COORDINATOR = "hedgerow coordinator start COORDINATOR"
START_PARTY = (
    "hedgerow party start PARTY --roster roster.toml --data rows.parquet --schema schema.toml"
)
TRAIN = (
    "hedgerow train --site COORDINATOR --schema schema.toml --epsilon 1 --delta 1e-6 "
    "--out model.hedge"
)
LOOK = ("hedgerow party status PARTY", "hedgerow party log PARTY", "hedgerow party plans PARTY")
CHECK = "hedgerow schema check schema.toml --data rows.parquet"
RUNS, STATUS = "hedgerow runs COORDINATOR", "hedgerow coordinator status COORDINATOR"
EVALUATE = "hedgerow evaluate model.hedge --site COORDINATOR --epsilon 0.2"
LIMITS, RESTART = "hedgerow party limits PARTY --write", "hedgerow party start PARTY"
APPROVE = 'hedgerow party approve PARTY RUN --name "Dr. Ada Koch" --reason "study 12"'
PIN = "hedgerow party pin PARTY roster.toml"
VERIFY = "hedgerow ledger verify PARTY/ledger.sqlite"
COMMANDS = {
    INIT_COORDINATOR, INIT_PARTY, ROSTER, START_COORDINATOR, START_PARTY, TRAIN, *LOOK, CHECK, RUNS,
    STATUS, EVALUATE, LIMITS, RESTART, APPROVE, PIN, VERIFY,
}  # fmt: skip


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    warm(PARTY_METHODS, ("binary",))  # or three confined processes compile it, each for itself
    made = Machines(tmp_path, ("coordinator", *PARTIES))
    try:
        yield made
    finally:
        made.close()


def test_ten_commands_and_public_files_make_a_model(machines: Machines) -> None:
    shown = [machines.json("coordinator", INIT_COORDINATOR)]
    for seed, name in enumerate(PARTIES):
        shown.append(machines.json(name, INIT_PARTY))
        machines.send(machines.at(name) / name / f"{name}.card.toml", "coordinator")
        SCHEMA.write(machines.at(name) / "schema.toml")  # agreed on before, as the table was
        parquet.write_table(table(seed), machines.at(name) / "rows.parquet")
    SCHEMA.write(machines.at("coordinator") / "schema.toml")
    roster = machines.json("coordinator", ROSTER, "--yes")
    machines.start("coordinator", START_COORDINATOR)
    for name in PARTIES:
        machines.send(machines.at("coordinator") / "roster.toml", name)
        machines.start(name, START_PARTY, "--yes")
    trained = machines.json("coordinator", TRAIN, "--wait-seconds", "90")
    assert len(machines.commands) == 10
    model = Ensemble.load(machines.at("coordinator") / "model.hedge")
    assert model.statement.parties == PARTIES
    assert (model.statement.guarantee, model.statement.simulated) == ("epsilon-delta", False)
    assert trained["parties"] == list(PARTIES)
    cards = [f"{name}.card.toml" for name in PARTIES]
    assert machines.crossed == [*cards, "roster.toml", "roster.toml", "roster.toml"]
    for name in {*machines.crossed}:
        assert "PRIVATE" not in (machines.at("coordinator") / name).read_text()
    phrases = [one["phrase"] for one in (*shown, roster)]
    assert len({*phrases}) == 5
    check_looking(machines)
    check_approval(machines)
    check_removal(machines, phrases[-1])
    assert {*machines.commands} == COMMANDS  # test_documented_commands compares with the pages


def check_looking(machines: Machines) -> None:
    """Both sides know that they are connected, to whom, since when; and what was asked."""
    status = machines.json("coordinator", STATUS)
    assert [party["connected"] for party in status["parties"]] == [True] * 3
    assert not any(party["problems"] for party in status["parties"])
    one = machines.json("hospital-a", LOOK[0])
    assert one["connection"]["connected"]
    assert one["roster"] == status["roster"]
    assert one["confined"] == has_landlock()
    assert "charged" in machines.run("hospital-a", LOOK[1])
    assert "finished" in machines.run("coordinator", RUNS)
    assert "rows" in machines.run("hospital-a", CHECK)
    machines.run("coordinator", EVALUATE)


def check_approval(machines: Machines) -> None:
    """A party that wants to see every plan first; its process is started again without words."""
    machines.run("hospital-b", LIMITS)
    limits = machines.at("hospital-b") / "hospital-b" / "limits.toml"
    limits.write_text(limits.read_text().replace('approve = "none"', 'approve = "each plan"'))
    machines.stop("hospital-b")
    machines.run("hospital-b", VERIFY)
    machines.start("hospital-b", RESTART)
    waiting = ("--method", "random-trees", "--trees", "3", "--wait-seconds", "90")
    second = (*waiting, "--out", "second.hedge")
    machines.run("coordinator", TRAIN, *second, code=3)
    assert "random-trees" in machines.run("hospital-b", LOOK[2])
    (plan,) = json.loads(machines.run("hospital-b", LOOK[2], "--json"))
    approve = APPROVE.replace("RUN", plan["run"])
    machines.run("hospital-b", approve, "--yes")
    machines.commands[-1] = APPROVE
    machines.run("coordinator", TRAIN, *second)
    assert Ensemble.load(machines.at("coordinator") / "second.hedge").statement.parties == PARTIES


def check_removal(machines: Machines, before: str) -> None:
    """A party that is removed is disconnected and told why; nobody is started again."""
    (machines.at("coordinator") / "hospital-c.card.toml").unlink()
    changed = machines.json("coordinator", ROSTER, "--yes", "--minimum-parties", "2")
    assert changed["phrase"] != before
    assert "hospital-c is gone: its runs end." in changed["changes"]
    machines.send(machines.at("coordinator") / "roster.toml", "hospital-a")
    assert machines.json("hospital-a", PIN, "--yes")["phrase"] == changed["phrase"]
    deadline = time.monotonic() + 60
    while True:
        link = machines.json("hospital-c", LOOK[0], code=5)["connection"]
        if "not in the roster any more" in link["words"]:
            break
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert not link["connected"]
