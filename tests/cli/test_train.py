"""`hedgerow train` in this process: names, resuming, refusals before anything is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hedgerow.cli.files import held
from hedgerow.cli.parties import party_sources
from hedgerow.data.tables import read_table
from hedgerow.errors import (
    BudgetExceeded,
    HedgerowError,
    LedgerError,
    PlanError,
    SettingsError,
    TableError,
)
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.ledger.ledger import Ledger
from tests.cli.conftest import Call

SMALL = (
    "--epsilon", 2, "--delta", "1e-5", "--method", "random-trees", "--trees", 3, "--depth", 2,
)  # fmt: skip


def refused(found: Any, kind: type[HedgerowError], message: str) -> None:
    with pytest.raises(kind, match=message):
        raise found.exception or AssertionError(f"it was accepted: {found.output}")


def test_a_model_with_its_plan_and_ledger(train: Call, folder: Path) -> None:
    told = json.loads(train(*SMALL, "--json").stdout)
    model = Ensemble.load(folder / "m.hedge")
    assert len(model.trees) == 4
    assert told["statement"] == model.statement.to_dict()
    assert told["parties"] == ["a", "b", "c"]
    assert (told["releases_asked"], told["releases_replayed"], told["rounds"]) == (4, 0, 4)
    assert told["ledger_epsilon"] == pytest.approx(2, rel=1e-6)
    with Ledger.open(folder / "m.hedge.ledger", create=False) as ledger:
        assert ledger.verify() > 0


def test_the_end_of_a_run_is_told_in_words(train: Call) -> None:
    done = train(*SMALL)
    assert "learns about one row of any other party no more than epsilon = 2" in done.stdout
    assert "2 at delta = 1e-05" in done.stdout
    assert "sent by a party" in done.stdout
    assert "Model written to m.hedge" in done.stderr


def test_the_same_command_replays_and_pays_once(train: Call, folder: Path) -> None:
    train(*SMALL)
    first = Ensemble.load(folder / "m.hedge")
    (folder / "m.hedge").unlink()
    again = json.loads(train(*SMALL, "--json").stdout)
    assert (again["releases_asked"], again["releases_replayed"]) == (0, 4)
    assert again["ledger_runs"] == 1
    assert Ensemble.load(folder / "m.hedge") == first


def test_resume_goes_on_and_never_starts(train: Call, folder: Path) -> None:
    refused(train(*SMALL, "--resume"), PlanError, "no run to resume: no plan at m.hedge.plan.toml")
    assert not list(folder.glob("m.hedge*"))
    assert train(*SMALL).exit_code == 0
    again = json.loads(train("--resume", "--json").stdout)
    assert (again["releases_asked"], again["releases_replayed"]) == (0, 4)
    refused(train("--resume", "--ledger", "no.ledger"), PlanError, "no ledger at no.ledger")
    Ledger.open(folder / "empty.ledger").close()
    empty = ("--resume", "--ledger", "empty.ledger")
    refused(train(*empty), LedgerError, "empty.ledger has no line of its run")
    (folder / "m.hedge").unlink()  # so there is only a plan, as after a crash before the first line
    refused(train(*empty), PlanError, "empty.ledger has 0 lines of")


def test_privacy_settings_have_flags(train: Call) -> None:
    words = ("--spare", 1, "--minimum-parties", 3, "--colluding", 1, "--accounting", "renyi")
    done = json.loads(train(*SMALL, *words, "--json").stdout)
    assert done["statement"]["accounting"] == "renyi"
    again = ("--set", "spare=1", "--set", "accounting=renyi", "--set", "minimum_parties=3")
    assert json.loads(train(*again, "--json").stdout)["releases_replayed"] == 4
    refused(train("--spare", 2), PlanError, "--spare is 2, the plan has 1")
    refused(train("--spare", 1, "--set", "spare=1"), SettingsError, "'spare' is given twice")


@pytest.mark.parametrize(
    ("words", "difference"),
    [
        (("--epsilon", 3, "--delta", "1e-5"), "--epsilon is 3.0, the plan has 2.0"),
        (("--trees", 4, "--depth", 2), "--trees is 4, the plan has 3"),
        (("--set", "batch_size=2"), "--set batch_size is 2, the plan has 1"),
        (("--trust", "coordinator"), "--trust is coordinator, the plan has parties"),
    ],
)
def test_a_contradiction_to_the_plan_of_the_model(
    train: Call, folder: Path, words: tuple[object, ...], difference: str
) -> None:
    train(*SMALL)
    before = (folder / "m.hedge.ledger").read_bytes()
    refused(train(*words), PlanError, f"{difference}.*Nothing was asked. Choose another --out")
    assert (folder / "m.hedge.ledger").read_bytes() == before


def test_a_run_keeps_its_parties(call: Call, train: Call) -> None:
    train(*SMALL)
    tables = ("--data", "a.csv", "--data", "b.csv", "--data", "other=c.csv")
    found = call("train", "--schema", "schema.toml", *tables, "--out", "m.hedge")
    refused(found, PlanError, "started by the parties a, b, c.*there are a, b, other")


def test_a_bad_table_is_found_before_anything_is_reserved(train: Call, folder: Path) -> None:
    table = folder / "c.csv"
    table.write_text(table.read_text().replace("yes", "perhaps"))
    refused(train(*SMALL), TableError, "c.csv: label 'sick'")
    assert not list(folder.glob("m.hedge*"))


def test_a_folder_that_does_not_exist(train: Call, folder: Path) -> None:
    refused(train(*SMALL, "--out", "no/m.hedge"), HedgerowError, "no does not exist.*Nothing was")
    refused(train(*SMALL, "--out", folder), HedgerowError, "is a folder")
    assert not list(folder.glob("*.ledger"))


def test_a_budget_stops_the_run_that_exceeds_it(train: Call, folder: Path) -> None:
    ceiling = ("--ledger", "all.ledger", "--budget-epsilon", 2.5)
    assert train(*SMALL, *ceiling).exit_code == 0
    second = ("--out", "second.hedge")
    refused(train(*SMALL, *ceiling, *second), BudgetExceeded, "over the budget of 2.5 at delta")
    assert not (folder / "second.hedge").exists()
    other = ("--ledger", "all.ledger", "--budget-epsilon", 9, "--out", "third.hedge")
    refused(train(*SMALL, *other), LedgerError, "cannot be changed")
    refused(train(*SMALL, "--out", "d.hedge", "--budget-delta", 0.1), SettingsError, "--budget-eps")


def test_a_share_for_pure_runs_is_kept_for_them(train: Call, call: Call) -> None:
    ceiling = ("--ledger", "all.ledger", "--budget-epsilon", 4, "--budget-pure", 1.5)
    assert train(*SMALL, *ceiling).exit_code == 0
    shown = call("ledger", "show", "all.ledger", "--json").stdout
    total = json.loads(shown)["totals"][0]
    assert (total["budget_epsilon"], total["budget_pure"]) == (4.0, 1.5)
    assert "4 (1.5 pure) at" in call("ledger", "show", "all.ledger").stdout
    second = (*SMALL, *ceiling, "--out", "second.hedge")
    refused(train(*second), BudgetExceeded, "with the share of 1.5 for pure runs, from 3.*over")
    alone = ("--ledger", "all.ledger", "--budget-epsilon", 4, "--out", "third.hedge")
    refused(train(*SMALL, *alone), LedgerError, "1.5 of it for pure runs; it cannot be changed")
    refused(train(*SMALL, "--out", "d.hedge", "--budget-pure", 1), SettingsError, "--budget-pure n")


def test_a_run_that_another_process_drives_is_refused(train: Call, folder: Path) -> None:
    assert train(*SMALL).exit_code == 0
    with held(folder / "m.hedge.plan.toml", "run"):
        refused(train(*SMALL), PlanError, "another process is at work on run")
    with Ledger.open(folder / "m.hedge.ledger"):  # which does not keep anybody from it
        assert train(*SMALL).exit_code == 0


def test_party_names() -> None:
    assert list(party_sources(["North Gate_1.csv", "b=x/y.csv"])) == ["north-gate-1", "b"]
    with pytest.raises(SettingsError, match="two tables belong to the party 'a'"):
        party_sources(["x/a.csv", "y/A.parquet"])
    with pytest.raises(SettingsError, match="'B!' is not a party name"):
        party_sources(["B!=a.csv"])


def test_a_file_name_may_hold_an_equals_sign(folder: Path) -> None:
    file = folder / "k=1.csv"
    file.touch()
    assert party_sources([str(file)]) == {"k-1": file}


def test_parquet_and_csv_give_the_same_check(call: Call, folder: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(read_table(folder / "a.csv"), folder / "a.parquet")
    words = ("schema", "check", "schema.toml", "--data", "a.csv", "--data", "a.parquet", "--json")
    told = json.loads(call(*words).stdout)
    assert [entry["rows"] for entry in told["tables"]] == [80, 80]
