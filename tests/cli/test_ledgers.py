"""One ledger for each data set, found by its files; `ledger list`, `show`, `verify` find it too."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from hedgerow.cli import data_sets
from hedgerow.errors import HedgerowError, LedgerError, PlanError, SettingsError
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import spending
from tests.cli.conftest import Call
from tests.cli.test_train import refused

SMALL = (
    "--schema", "schema.toml", "--method", "random-trees", "--trees", "2", "--depth", "2",
    "--epsilon", "1", "--delta", "1e-5",
)  # fmt: skip


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> Path:
    """Where ledgers go that are not named."""
    monkeypatch.delenv("HEDGEROW_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "hedgerow" / "ledgers"


@pytest.fixture
def fit(call: Call, state: Path) -> Call:
    def command(out: str, *words: Any) -> Any:
        return call("train", *SMALL, "--out", f"{out}.hedge", *words)

    return command


def told(result: Any) -> Any:
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def ledgers(state: Path) -> dict[str, int]:
    """Runs of the ledgers of the state folder, by their names without the hash."""
    found = {}
    for path in sorted(state.glob("*.ledger")):
        with Ledger.open(path, create=False) as ledger:
            found[path.stem.rpartition("-")[0] or path.stem] = spending(ledger).runs
    return found


def test_three_trainings_on_one_file_are_one_total_wherever_they_start(
    fit: Call, state: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = told(fit("x", "--data", "a.csv", "--json"))
    assert first["ledger_runs"] == 1
    monkeypatch.chdir(state)
    os.symlink(folder / "a.csv", "link.csv")
    for data in ("../../../a.csv", "link.csv"):
        out = folder / data.rpartition("/")[2]
        last = told(
            fit(str(out), "--schema", folder / "schema.toml", "--data", f"a={data}", "--json")
        )
    assert last["ledger"] == first["ledger"]
    assert last["ledger_runs"] == 3
    assert last["ledger_epsilon"] > 1.4
    assert ledgers(state) == {"a": 3}
    assert not list(folder.glob("*.ledger"))
    assert state.stat().st_mode & 0o077 == 0
    words = Ensemble.load(f"{out}.hedge").statement.words()
    assert "3 runs on these rows with this model: together epsilon = 1.8" in words


def test_files_that_were_ever_used_together_are_counted_together(fit: Call, state: Path) -> None:
    assert fit("x", "--data", "a.csv", "--data", "b.csv", "--minimum-parties", 2).exit_code == 0
    assert fit("y", "--data", "b.csv").exit_code == 0
    assert fit("z", "--data", "b.csv", "--data", "c.csv", "--minimum-parties", 2).exit_code == 0
    assert list(ledgers(state).values()) == [3]
    assert fit("w", "--data", "c.csv", "--trust", "coordinator").exit_code == 0
    assert list(ledgers(state).values()) == [4]


def test_files_of_two_ledgers_need_a_decision(fit: Call, state: Path) -> None:
    for name in ("a", "b"):
        assert fit(name, "--data", f"{name}.csv").exit_code == 0
    both = ("--data", "a.csv", "--data", "b.csv", "--minimum-parties", 2)
    refused(fit("x", *both), LedgerError, "elsewhere: a-.* counts .*a.csv; b-.*--ledger")
    assert ledgers(state) == {"a": 1, "b": 1}
    assert fit("x", *both, "--ledger", "both.ledger").exit_code == 0


def test_a_copy_under_another_name_is_not_noticed(fit: Call, state: Path, folder: Path) -> None:
    """As documented: nothing reads rows to find out."""
    shutil.copy(folder / "a.csv", folder / "copy.csv")
    for name in ("a", "copy"):
        assert fit(name, "--data", f"{name}.csv").exit_code == 0
    assert ledgers(state) == {"a": 1, "copy": 1}


def test_a_data_set_can_be_named(fit: Call, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = told(fit("x", "--data", "a.csv", "--data-name", "patients", "--json"))
    assert named["ledger"] == str(state / "patients.ledger")
    assert told(fit("y", "--data", "a.csv", "--json"))["ledger"] == named["ledger"]
    monkeypatch.setenv("HEDGEROW_DATA_NAME", "patients")
    assert told(fit("z", "--data", "b.csv", "--json"))["ledger"] == named["ledger"]
    monkeypatch.setenv("HEDGEROW_DATA_NAME", "others")
    refused(fit("w", "--data", "a.csv"), LedgerError, "patients counts .*a.csv")
    refused(fit("w", "--data", "a.csv", "--data-name", "../x"), SettingsError, "no name of a data")
    both = ("--data-name", "patients", "--ledger", "x.ledger")
    refused(fit("w", "--data", "a.csv", *both), SettingsError, "both name a ledger")
    assert ledgers(state) == {"patients": 3}


def test_a_flag_comes_before_the_environment_and_that_before_the_default(
    fit: Call, state: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEDGEROW_LEDGER", "env.ledger")
    assert told(fit("x", "--data", "a.csv", "--json"))["ledger"] == "env.ledger"
    flag = fit("y", "--data", "a.csv", "--ledger", "flag.ledger", "--json")
    assert told(flag)["ledger"] == "flag.ledger"
    named = fit("z", "--data", "a.csv", "--data-name", "rows", "--json")
    assert told(named)["ledger"] == str(state / "rows.ledger")


def test_the_same_command_resumes_and_pays_once(fit: Call, state: Path, call: Call) -> None:
    first = told(fit("x", "--data", "a.csv", "--json"))
    again = told(fit("x", "--data", "a.csv", "--json", "--resume"))
    assert (again["releases_asked"], again["releases_replayed"]) == (0, first["releases_asked"])
    assert ledgers(state) == {"a": 1}
    measure = ("evaluate", "x.hedge", "--data", "a.csv", "--epsilon", "1", "--json")
    assert told(call(*measure))["ledger_runs"] == 2  # the same rows, so the same ledger
    assert told(call(*measure))["ledger_runs"] == 2


def test_a_run_is_not_paid_again_where_its_files_or_its_ledger_moved(
    fit: Call, state: Path, folder: Path
) -> None:
    assert fit("x", "--data", "a=a.csv").exit_code == 0
    (folder / "a.csv").rename(folder / "moved.csv")
    moved = ("--data", "a=moved.csv")
    refused(fit("x", *moved), PlanError, "was started on the ledger a-.* counts .*a.csv")
    (ledger,) = state.glob("a-*.ledger")
    again = told(fit("x", *moved, "--ledger", str(ledger), "--json"))
    assert again["releases_asked"] == 0
    ledger.rename(folder / "kept")
    refused(fit("x", *moved), LedgerError, "has no line of its run .*Put the ledger back")
    (folder / "kept").rename(ledger)
    assert fit("x", *moved, "--ledger", str(ledger)).exit_code == 0


def test_a_ledger_beside_the_model_from_before_is_not_overlooked(
    fit: Call, state: Path, call: Call
) -> None:
    old = ("--ledger", "x.hedge.ledger")
    assert fit("x", "--data", "a.csv", *old).exit_code == 0
    refused(fit("x", "--data", "a.csv"), LedgerError, "Give --ledger x.hedge.ledger to go on")
    measure = ("evaluate", "x.hedge", "--data", "a.csv", "--epsilon", "1")
    refused(call(*measure), LedgerError, "Give --ledger x.hedge.ledger to go on")
    assert call(*measure, *old).exit_code == 0
    assert told(fit("x", "--data", "a.csv", *old, "--json"))["releases_asked"] == 0
    assert ledgers(state) == {}


def test_first_trainings_at_the_same_time_find_each_other(
    state: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One on both files, one on the second alone: without a lock each makes a ledger."""
    from hedgerow.cli.options import LedgerOptions
    from hedgerow.cli.parties import TablesHere

    barrier, paths = threading.Barrier(2), []

    def choose(*files: str) -> None:
        parties = TablesHere([str(folder / file) for file in files])
        barrier.wait(300)
        ledger = data_sets.open_ledger(LedgerOptions(), parties)
        paths.append(ledger.path)
        ledger.close()

    threads = [threading.Thread(target=choose, args=f) for f in (("a.csv", "b.csv"), ("b.csv",))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(paths)) == 1


# Looking at ledgers


def test_ledgers_are_listed_and_found_by_name_file_and_data(
    fit: Call, state: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(call("ledger", "list", "--json"))["ledgers"] == []
    assert isinstance(call("ledger", "show").exception, LedgerError)
    assert fit("x", "--data", "a.csv", "--budget-epsilon", 3).exit_code == 0
    assert told(call("ledger", "show", "--json"))["totals"][0]["runs"] == 1  # the only one
    assert fit("y", "--data", "b.csv", "--data-name", "bees").exit_code == 0
    listed = {
        one["name"].partition("-")[0]: one
        for one in told(call("ledger", "list", "--json"))["ledgers"]
    }
    assert (listed["a"]["budget_epsilon"], listed["bees"]["budget_epsilon"]) == (3.0, None)
    assert listed["a"]["files"][0].endswith("/a.csv")
    shown = call("ledger", "list").stdout
    assert "bees" in shown
    assert "a.csv" in shown
    for words in (("bees",), (str(state / "bees.ledger"),), ("--data", "b.csv")):
        assert told(call("ledger", "show", *words, "--json"))["ledger"] == str(
            state / "bees.ledger"
        )
        assert told(call("ledger", "verify", *words, "--json"))["verified"]
    monkeypatch.setenv("HEDGEROW_LEDGER", "bees")
    assert told(call("ledger", "show", "--json"))["ledger"] == str(state / "bees.ledger")
    monkeypatch.delenv("HEDGEROW_LEDGER")
    for words, message in (
        ((), "there are 2 ledgers"),
        (("--data", "c.csv"), "0 ledgers count"),
        (("bees", "--data", "b.csv"), "keep one"),
        (("wasps",), "no ledger at wasps"),
    ):
        refused(call("ledger", "show", *words), HedgerowError, message)


def test_a_damaged_ledger_does_not_hide_the_others(fit: Call, state: Path, call: Call) -> None:
    assert fit("x", "--data", "a.csv").exit_code == 0
    (state / "broken.ledger").write_bytes(b"no database" * 100)
    found = {one["name"]: one for one in told(call("ledger", "list", "--json"))["ledgers"]}
    assert "not a hedgerow ledger" in found["broken"]["problem"]
    assert "damaged" in call("ledger", "list").stdout
    assert fit("y", "--data", "a.csv").exit_code == 0  # these rows are known to be counted


@pytest.mark.parametrize("how", ["damaged", "held"])
def test_rows_that_an_unreadable_ledger_may_count_get_no_new_one(
    how: str, fit: Call, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they have cost would be forgotten: it counts two files, and one comes alone."""
    both = ("--data", "a.csv", "--data", "b.csv", "--trust", "coordinator")
    assert fit("x", *both).exit_code == 0
    (ledger,) = state.glob("*.ledger")
    good = ledger.read_bytes()
    monkeypatch.setattr(data_sets, "WAIT_SECONDS", 0.1)
    holder = sqlite3.connect(ledger, isolation_level=None)
    if how == "held":
        holder.execute("BEGIN EXCLUSIVE")  # as a process that was stopped while it commits
    else:
        ledger.write_bytes(b"no database" * 100)
    for words in (("--data", "a.csv"), ("--data", "b.csv", "--data-name", "other")):
        refused(fit("y", *words), LedgerError, "cannot be read.*may count.*Nothing was asked")
    assert list(state.glob("*.ledger")) == [ledger]
    holder.close()
    ledger.write_bytes(good)
    assert fit("y", "--data", "a.csv").exit_code == 0
    assert list(ledgers(state).values()) == [2]


def test_a_report_finds_the_ledger_of_its_run(fit: Call, state: Path, call: Call) -> None:
    for name in ("x", "y"):
        assert fit(name, "--data", "a.csv").exit_code == 0
    assert told(call("report", "x.hedge", "--json"))["facts"]["account"]["runs"] == 2


def test_no_home_to_write_to_is_said_before_anything_is_asked(
    fit: Call, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    (folder / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "file"))
    refused(fit("x", "--data", "a.csv"), LedgerError, "cannot open a ledger in .*Nothing was asked")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")  # as the standard says, it is ignored
    monkeypatch.setenv("HOME", str(folder))
    assert data_sets.ledgers_folder() == folder / ".local" / "state" / "hedgerow" / "ledgers"
