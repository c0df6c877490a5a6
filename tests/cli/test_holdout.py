"""`train --holdout` and `evaluate --holdout`: rows kept back stay back, and evaluations say so."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from hedgerow.data.holdout import held_out
from hedgerow.data.tables import rows_of
from hedgerow.errors import PlanError, SettingsError
from hedgerow.model.ensemble import Ensemble
from hedgerow.testing import noise_off
from tests.cli.conftest import Call
from tests.conftest import MIXED

TABLES = ("--data", "a.csv", "--data", "b.csv", "--data", "c.csv")
SMALL = ("--epsilon", "2", "--delta", "1e-5", "--method", "random-trees", "--trees", "3")
HOLDOUT = ("--holdout", "0.3")


def split_files(folder: Path, names: str = "abc") -> None:
    """Write the two parts of every table as files of their own: train-a.csv, test-a.csv, ..."""
    for name in names:
        mask = held_out(rows_of(folder / f"{name}.csv", MIXED), MIXED, 0.3)
        with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            head, *lines = list(csv.reader(file))
        assert 0 < mask.sum() < len(lines) == len(mask)
        for part, held in (("train", False), ("test", True)):
            with (folder / f"{part}-{name}.csv").open("w", newline="", encoding="utf-8") as file:
                kept = (line for line, out in zip(lines, mask, strict=True) if out == held)
                csv.writer(file).writerows([head, *kept])


def parts(part: str) -> tuple[str, ...]:
    return tuple(word for name in "abc" for word in ("--data", f"{name}={part}-{name}.csv"))


def exact(call: Call, *words: str) -> dict[str, Any]:
    done = call("evaluate", "m.hedge", *words, "--json")
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_rows_held_out_never_enter_training(call: Call, train: Call, folder: Path) -> None:
    split_files(folder)
    with noise_off():
        assert train(*SMALL, "--seed", "5", *HOLDOUT).exit_code == 0
        alone = ("train", "--schema", "schema.toml", *parts("train"), "--out", "n.hedge")
        assert call(*alone, *SMALL, "--seed", "5").exit_code == 0
    held, without = (Ensemble.load(folder / f"{name}.hedge") for name in "mn")
    assert [t.to_bytes() for t in held.trees] == [t.to_bytes() for t in without.trees]


def test_an_evaluation_on_held_out_rows_is_of_these_alone(
    call: Call, train: Call, folder: Path
) -> None:
    done = train(*SMALL, *HOLDOUT)
    assert "a share of 0.3 of the rows of every table" in done.output
    split_files(folder)
    own = exact(call, *TABLES, "--holdout")
    other = exact(call, *parts("test"))
    assert (own.pop("rows_are"), other.pop("rows_are")) == ("held out", "other")
    assert own == other
    private = call("evaluate", "m.hedge", *TABLES, "--holdout", "--epsilon", "50")
    assert "the model was not trained on them" in private.stdout
    with noise_off():
        words = ("--epsilon", "50", "--json", "--out")
        first = call("evaluate", "m.hedge", *TABLES, "--holdout", *words, "h.json").stdout
        second = call("evaluate", "m.hedge", *parts("test"), *words, "t.json").stdout
    assert json.loads(first)["measures"] == json.loads(second)["measures"]


@pytest.mark.parametrize(
    ("words", "tables", "expected"),
    [
        ((), TABLES, "training"),
        (HOLDOUT, TABLES, "mostly training"),
        ((), ("--data", "new.csv"), "other"),
    ],
)
def test_evaluations_say_whether_training_saw_their_rows(
    call: Call, train: Call, folder: Path, words: Any, tables: Any, expected: str
) -> None:
    train(*SMALL, *words)
    (folder / "new.csv").write_bytes((folder / "a.csv").read_bytes())
    assert exact(call, *tables)["rows_are"] == expected
    trained = "better on" in call("evaluate", "m.hedge", *tables).stdout
    assert trained == (expected != "other")
    private = call("evaluate", "m.hedge", *tables, "--epsilon", "50", "--json")
    if tables == TABLES:
        assert json.loads(private.stdout)["rows_are"] == expected


def test_without_its_note_nothing_is_known(call: Call, train: Call, folder: Path) -> None:
    train(*SMALL)
    (folder / "m.hedge.tables.json").unlink()
    assert exact(call, *TABLES)["rows_are"] == "unknown"
    assert "is not known here" in call("evaluate", "m.hedge", *TABLES).stdout


def test_the_note_has_names_of_files_and_nothing_of_rows(train: Call, folder: Path) -> None:
    train(*SMALL, *HOLDOUT)
    note = json.loads((folder / "m.hedge.tables.json").read_text())
    assert note == {
        "format": 1,
        "holdout": 0.3,
        "tables": [str((folder / f"{name}.csv").resolve()) for name in "abc"],
    }


def test_a_run_goes_on_with_the_rows_it_had(call: Call, train: Call) -> None:
    assert train(*SMALL, *HOLDOUT).exit_code == 0
    assert train(*SMALL, *HOLDOUT).exit_code == 0  # all of it replayed
    for other in ((), ("--holdout", "0.5")):
        error = train(*SMALL, *other).exception
        assert isinstance(error, PlanError)
        assert "started with a held-out share of 0.3" in str(error)
    words = ("evaluate", "m.hedge", *TABLES, "--epsilon", "3")
    assert call(*words).exit_code == 0
    assert isinstance(call(*words, "--holdout").exception, PlanError)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--holdout", "0.2", "--trust", "nobody"), "does not go with trust in nobody"),
        (("--holdout", "0.2", "--set", "candidates=quantiles-not-private"), "the held-out ones"),
    ],
)
def test_what_a_held_out_part_does_not_go_with_is_refused(
    train: Call, folder: Path, words: Any, told: str
) -> None:
    error = train(*SMALL, *words).exception
    assert isinstance(error, SettingsError)
    assert told in str(error)
    assert "othing was spent" in str(error)
    assert not (folder / "m.hedge.tables.json").exists()
