"""The installed command in real processes: a whole run, Ctrl-C, and exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MIXED, mixed_table
from tests.slow import slow

COMMAND = Path(sys.executable).with_name("hedgerow")
PROMISE = ("--epsilon", "2", "--delta", "1e-5", "--method", "random-trees")
SMALL = (*PROMISE, "--trees", "5", "--depth", "2")


class Shell:
    """Runs `hedgerow` in a folder that holds a schema and three tables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {k: v for k, v in os.environ.items() if not k.startswith("HEDGEROW_")}
        self.environment = {**kept, "PYTHONWARNINGS": "error", "NUMBA_NUM_THREADS": "1"}

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(COMMAND), *words], cwd=self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *words: str) -> tuple[int, str, str]:
        process = self.start(*words)
        stdout, stderr = process.communicate(timeout=600)
        return process.returncode, stdout, stderr

    def json(self, *words: str) -> Any:
        code, stdout, stderr = self.run(*words, "--json")
        assert code == 0, stderr
        return json.loads(stdout)

    def train(self, out: str, *words: str) -> tuple[str, ...]:
        tables = ("--data", "north=a.csv", "--data", "b.csv", "--data", "c.parquet")
        placed = ("--out", out, "--ledger", f"{out}.ledger")
        return ("train", "--schema", "schema.toml", *tables, *placed, *words)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    import pyarrow as pa
    from pyarrow import csv, parquet

    folder = tmp_path_factory.mktemp("run")
    MIXED.write(folder / "schema.toml")
    for seed, name in enumerate(("a.csv", "b.csv", "c.parquet")):
        table = pa.table(mixed_table(200, seed))
        write = parquet.write_table if name.endswith("parquet") else csv.write_csv
        write(table, folder / name)
    return Shell(folder)


@pytest.fixture(scope="module")
def model(shell: Shell) -> str:
    """A trained model; the tests after it read it."""
    told = shell.json(*shell.train("m.hedge", *SMALL))
    assert told["parties"] == ["b", "c", "north"]
    assert told["epsilon"] == pytest.approx(2, rel=1e-6)
    return "m.hedge"


def test_a_model_predicts_and_is_measured(shell: Shell, model: str) -> None:
    told = shell.json("predict", model, "--data", "c.parquet", "--out", "p.csv")
    assert told["rows"] == 200
    assert len((shell.folder / "p.csv").read_text().splitlines()) == 201
    measured = shell.json("evaluate", model, "--data", "b.csv")
    assert measured["private"] is False
    assert 0 <= measured["auc"] <= 1


def test_statement_and_ledger(shell: Shell, model: str) -> None:
    assert shell.json("statement", model)["epsilon"] == 2
    told = shell.json("ledger", "show", f"{model}.ledger")
    assert {run["charged"] for run in told["runs"]} == {6}
    assert shell.json("ledger", "verify", f"{model}.ledger")["verified"] is True


def test_ctrl_c_stops_between_releases_and_the_same_command_resumes(shell: Shell) -> None:
    words = shell.train("stopped.hedge", *PROMISE, "--trees", "80")
    process = shell.start(*words, "--verbose")
    assert process.stderr is not None
    for line in process.stderr:
        if "released slot 3 of" in line:
            process.send_signal(signal.SIGINT)
            break
    stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 5, stderr
    assert "Run the same command again" in stderr
    assert stdout == ""
    assert not (shell.folder / "stopped.hedge").exists()
    before = shell.json("ledger", "show", "stopped.hedge.ledger")["runs"][0]
    assert before["charged"] == before["released"] >= 3
    told = shell.json(*words)
    assert told["releases_replayed"] == before["released"]
    assert told["releases_replayed"] + told["releases_asked"] == 81
    after = shell.json("ledger", "show", "stopped.hedge.ledger")
    assert after["runs"][0]["charged"] == 81
    assert after["totals"][0]["runs"] == 1


@slow
def test_a_killed_run_loses_one_slot_and_says_so(shell: Shell) -> None:
    words = shell.train("killed.hedge", *SMALL)
    shell.environment["HEDGEROW_FAIL_AT"] = "store@3"
    code, stdout, _ = shell.run(*words)
    del shell.environment["HEDGEROW_FAIL_AT"]
    assert (code, stdout) == (-signal.SIGKILL, "")
    told = shell.json(*words)
    assert (told["releases_replayed"], told["slots_lost"], told["releases_asked"]) == (2, 1, 3)
    assert shell.json("ledger", "verify", "killed.hedge.ledger")["verified"] is True


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("train", "--schema", "schema.toml"), 2, "Missing option"),
        (("no-such-command",), 2, "No such command"),
        (("schema", "check", "missing.toml"), 2, "no schema file at missing.toml"),
        (("statement", "missing.hedge"), 2, "no model at missing.hedge"),
        (("predict", "m.hedge", "--data", "missing.csv", "--out", "-"), 2, "no table at missing"),
    ],
)
def test_errors_are_one_message_on_stderr(
    shell: Shell, model: str, words: tuple[str, ...], code: int, message: str
) -> None:
    found, stdout, stderr = shell.run(*words)
    assert found == code
    assert stdout == ""
    assert message in stderr
    assert "Traceback" not in stderr


def test_a_contradiction_is_a_usage_error(shell: Shell, model: str) -> None:
    code, _, stderr = shell.run(*shell.train(model, "--epsilon", "9"))
    assert code == 2
    assert "--epsilon is 9.0, the plan has 2.0" in stderr


def test_a_budget_that_is_spent_has_its_own_code(shell: Shell) -> None:
    words = (*SMALL, "--budget-epsilon", "1", "--budget-delta", "1e-5")
    code, _, stderr = shell.run(*shell.train("over.hedge", *words))
    assert code == 4
    assert "No party was asked and nothing was spent" in stderr
    assert not (shell.folder / "over.hedge").exists()
