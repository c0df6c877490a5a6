"""People decide at parties that are processes of their own: a plan waits, is rejected, changed,
approved and runs; a ledger that was rolled back with its notes is noticed, named and settled."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from hedgerow.cli.app import app
from hedgerow.data.schema import Schema
from hedgerow.deployment.limits_file import default_limits_text
from hedgerow.deployment.trial import Sites, hedgerow
from hedgerow.errors import HedgerowError
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from tests.slow import slow

SCHEMA = Schema.from_bounds({"age": (0, 100), "dose": (0, 1)}, classes=[0, 1])
NAMES = ("hospital-a", "hospital-b", "hospital-c")
SECRET = "the board has not met yet"
# Lines of the documents whose words stand for values; the test types each with values.
LINES = (
    "hedgerow ledger verify SITE/ledger.sqlite",
    "hedgerow party account add SITE NAME --role ROLE",
    "hedgerow party account link SITE NAME",
    'hedgerow party reject PARTY RUN --word rejected-purpose --reason "..."',
    'hedgerow party settle PARTY --name NAME --reason "..."',
    'hedgerow party withdraw PARTY RUN --reason "..."',
)
ASKING = default_limits_text().replace('approve = "none"', 'approve = "each plan"')


def table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    made = {"age": rng.uniform(0, 100, 400), "dose": rng.uniform(0, 1, 400)}
    return pa.table({**made, "label": (made["age"] > 50).astype(int)})


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Sites]:
    SCHEMA.write(tmp_path / "schema.toml")
    tables = {name: tmp_path / f"{name}.parquet" for name in NAMES}
    for seed, file in enumerate(tables.values()):
        parquet.write_table(table(seed), file)
    made = Sites.make(tmp_path, tables, tmp_path / "schema.toml")
    (made.by_name["hospital-a"].folder / "limits.toml").write_text(ASKING)
    with made:
        yield made


class People:
    """What is typed at the coordinator and at the sites."""

    def __init__(self, sites: Sites, folder: Path) -> None:
        self._sites, self._folder = sites, folder
        self.typed: list[tuple[str, ...]] = []

    def has_typed(self, line: str) -> bool:
        """Whether a command with the same verbs and at least these options was typed."""
        words = shlex.split(line)[1:]
        verbs = tuple(takewhile(str.islower, words))
        verbs = verbs[:-1] if verbs[-1].startswith("--") else verbs
        options = {word for word in words if word.startswith("--")}
        return any(t[: len(verbs)] == verbs and options <= {*t} for t in self.typed)

    def type(self, *words: str, apart: bool = False) -> tuple[int, str, str]:
        """A command, here or as a process of its own: its code, its result, and what it said."""
        self.typed.append(words)
        if apart:
            done = subprocess.run(hedgerow(words), capture_output=True, text=True, timeout=200)
            return done.returncode, done.stdout, done.stderr
        found = CliRunner().invoke(app, words)
        raised = found.exception if isinstance(found.exception, HedgerowError) else None
        code = raised.exit_code if raised else found.exit_code
        return code, found.stdout, f"{found.output}{raised or ''}"

    def site(self, name: str) -> str:
        return str(self._sites.by_name[name].path)

    def train(self, out: str, purpose: str, apart: bool = False) -> tuple[int, str, str]:
        return self.type(
            "train", "--site", self.site("coordinator"), "--schema",
            str(self._folder / "schema.toml"), "--method", "random-trees", "--trees", "3",
            "--epsilon", "1", "--delta", "1e-6", "--purpose", purpose, "--asker", "Dr. Bo Lind",
            "--ends", "2999-12-31", "--out", str(self._folder / out), "--json", apart=apart,
        )  # fmt: skip

    def party(self, name: str, *words: str) -> tuple[int, str, str]:
        return self.type("party", words[0], self.site(name), *words[1:])

    def asked(self, name: str, *words: str) -> Any:
        code, out, said = self.party(name, *words, "--json")
        assert code in (0, 5), said
        return json.loads(out)

    def account(self, name: str, *words: str) -> None:
        code, _, said = self.type("party", "account", words[0], self.site(name), *words[1:])
        assert code == 0, said


@slow  # the same story through the console always runs: deployment/console/test_story.py
def test_a_plan_is_rejected_changed_approved_and_runs(sites: Sites, tmp_path: Path) -> None:
    people = People(sites, tmp_path)
    people.account("hospital-a", "add", "Ada Koch", "--role", "privacy-officer")
    people.account("hospital-a", "add", "Rob Reader", "--role", "reader")
    planned = tmp_path / "model.hedge.plan.toml"
    b = sites.by_name["hospital-b"].folder
    shutil.copytree(b, tmp_path / "backup", ignore=shutil.ignore_patterns("*.sock"))

    code, _, said = people.train("model.hedge", "find out who smokes")
    assert (code, "hospital-a refused (not-approved)" in said) == (3, True)
    (waiting,) = people.asked("hospital-a", "plans")
    assert (waiting["purpose"], waiting["asker"]) == ("find out who smokes", "Dr. Bo Lind")
    assert waiting["ends"] == "2999-12-31"
    assert Plan.read(planned).hash == waiting["hash"]  # what was shown is what would run
    (run,) = json.loads(people.type("runs", people.site("coordinator"), "--json")[1])
    assert run["state"] == "waiting"

    rejecting = ("reject", waiting["run"], "--yes", "--reason", SECRET)
    word = ("--word", "rejected-purpose")
    for who, why in (((), "names the account"), (("--name", "Rob Reader"), "is reader here")):
        code, _, said = people.party("hospital-a", *rejecting, *word, *who)
        assert (code, why in said) == (3, True), said  # the process says so, not the client
    assert people.asked("hospital-a", "plans", "--decided") == []
    assert people.party("hospital-a", *rejecting, *word, "--name", "Ada Koch")[0] == 0
    code, _, said = people.train("model.hedge", "find out who smokes")
    assert (code, "refused (rejected-purpose)" in said) == (3, True)
    assert not planned.exists()
    with Ledger.open(sites.by_name["coordinator"].ledger_path) as ledger:
        bodies = b"".join(line.body for line in ledger.lines())
    assert b"rejected-purpose" in bodies
    assert SECRET.encode() not in bodies  # free text stays at the site

    code, _, said = people.train("model.hedge", "warn of overdoses", apart=True)
    assert (code, "not-approved" in said) == (3, True)
    (waiting,) = people.asked("hospital-a", "plans")
    approving = ("approve", waiting["run"], "--yes", "--name", "Ada Koch", "--reason", "study 12")
    assert people.party("hospital-a", *approving)[0] == 0
    assert people.party("hospital-a", *approving)[0] != 0  # one plan, one approval
    # The same command again, as the documents say.
    code, out, said = people.train("model.hedge", "warn of overdoses", apart=True)
    assert code == 0, said
    assert json.loads(out)["run"] == waiting["run"]
    with Ledger.open(sites.by_name["hospital-a"].ledger_path) as ledger:
        (reserved,) = ledger.lines("hospital-a", "reserve")
        (approved,) = ledger.lines("hospital-a", "approve")
    assert reserved.values["hash"] == approved.values["hash"] == waiting["hash"]
    assert (approved.values["name"], approved.values["reason"]) == ("Ada Koch", "study 12")
    over = ("withdraw", waiting["run"], "--yes", "--name", "Ada Koch", "--reason", "it is over")
    assert people.party("hospital-a", *over)[0] == 0
    people.account("hospital-a", "link", "Ada Koch")
    check_rolled_back(people, sites, tmp_path)
    assert [line for line in LINES if not people.has_typed(line)] == []


def check_rolled_back(people: People, sites: Sites, folder: Path) -> None:
    """Hospital b is restored as it was before its run: the ledger and its notes together."""
    b = sites.by_name["hospital-b"].folder
    found = json.loads(people.type("ledger", "verify", str(b / "ledger.sqlite"), "--json")[1])
    witnesses = found["witnesses"]["hospital-b"]
    assert witnesses["left"]["count"] == 1
    assert [kept["party"] for kept in witnesses["kept"]] == ["hospital-a", "hospital-c"]
    assert "nonce" not in witnesses["left"]
    stop(sites, "hospital-b")
    for file in (folder / "backup").iterdir():
        if file.is_file():
            shutil.copy(file, b / file.name)
    sites.start("hospital-b")
    sites.wait_for("hospital-b")
    said = approve_and_train(people, "second.hedge", 3)
    assert "hospital-b refused (rolled-back)" in said
    code, _, _ = people.party("hospital-b", "status")
    assert code == 5
    status = people.asked("hospital-b", "status")
    assert "has lost lines that hospital-a" in status["problem"]

    words = ("settle", "--yes", "--name", "Kim", "--reason", "backup of Monday")
    code, out, said = people.party("hospital-b", *words)
    assert code == 0, said
    assert "all of 10 in total" in out
    status = people.asked("hospital-b", "status")
    assert status["gaps"] == []
    used = {row["limit"]: row["used"] for row in status["limits"]}
    assert used["in total"] >= 10
    code, _, said = people.train("second.hedge", "the same again")
    assert (code, "hospital-b refused (over-limits)" in said) == (3, True)


def stop(sites: Sites, name: str) -> None:
    sites.processes[name].terminate()
    assert sites.processes[name].wait(60) == 0


def approve_and_train(people: People, out: str, code: int) -> str:
    assert people.train(out, "the same again")[0] == 3
    (waiting,) = people.asked("hospital-a", "plans")
    approving = ("approve", waiting["run"], "--yes", "--name", "Ada Koch", "--reason", "again")
    assert people.party("hospital-a", *approving)[0] == 0
    found, _, said = people.train(out, "the same again")
    assert found == code, said
    return said
