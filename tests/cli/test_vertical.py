"""`hedgerow vertical`: parts and predictions, and what newcomers get wrong."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow.errors import SettingsError, TableError
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.model.ensemble import Ensemble
from tests.cli.conftest import Call, write_csv
from tests.methods.fedxgboost.tables import OWNERS, schema_of, whole

TABLES = tuple(word for party in ("bank", "phone", "shop") for word in ("--data", f"{party}.csv"))
TRAIN = ("vertical", "train", "--schema", "schema.toml")
QUICK = ("--trees", "2", "--depth", "2", "--protection", "none")


@pytest.fixture
def shared(folder: Path) -> dict[str, Any]:
    """Columns of 90 people in three tables, each in an order of its own; the bank has labels."""
    table = whole(90)
    schema_of().write(folder / "schema.toml")
    for seed, party in enumerate(("bank", "phone", "shop")):
        names = ["id", *(name for name, owner in OWNERS.items() if owner == party)]
        names += ["label"] if party == "bank" else []
        order = np.random.default_rng(seed).permutation(90)
        columns = {name: [_cell(table[name][i]) for i in order] for name in names}
        write_csv(folder / f"{party}.csv", columns)
    return table


def _cell(value: Any) -> Any:
    return "" if value is None or value != value else value


@pytest.fixture
def train(call: Call, shared: dict[str, Any]) -> Call:
    """`hedgerow vertical train` on the three tables, small."""
    return lambda *words: call(*TRAIN, *TABLES, *QUICK, *words)


def told(found: Any) -> str:
    assert isinstance(found.exception, SettingsError), found.output
    return str(found.exception)


def test_parts_merge_and_predict_alike(
    train: Call, call: Call, shared: dict[str, Any], folder: Path
) -> None:
    done = train("--id", "id", "--out", "model", "--merge", "merged.hedge")
    assert done.exit_code == 0, done.output
    assert "the gradient of every row" in " ".join(done.stdout.split())
    assert "NOT PRIVATE" in done.stdout
    assert "Shown without an epsilon" not in done.stdout  # the table above it says the same
    predicted = call("vertical", "predict", "model", *TABLES, "--id", "id", "--out", "p.csv")
    assert predicted.exit_code == 0, predicted.output
    assert "90 predictions written to p.csv" in predicted.output
    with (folder / "p.csv").open(newline="") as file:
        found = {row["id"]: float(row["probability_1"]) for row in csv.DictReader(file)}
    model = Ensemble.load(folder / "merged.hedge")
    assert model.statement.simulated
    expected = model.predict(shared)[:, 1].tolist()
    assert found == pytest.approx(dict(zip(shared["id"], expected, strict=True)), rel=1e-8)


def test_json_has_settings_statement_and_disclosures(train: Call, call: Call) -> None:
    done = train("--id", "id", "--out", "m", "--protection", "ldp", "--epsilon", "2", "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert (facts["statement"]["guarantee"], facts["statement"]["epsilon"]) == ("label", 2.0)
    assert facts["settings"]["active"] == "bank"
    assert facts["settings"]["owners"] == OWNERS
    assert facts["disclosures"] == facts["statement"]["disclosures"]
    more = call("vertical", "predict", "m", *TABLES, "--id", "id", "--out", "p.csv", "--json")
    found = json.loads(more.stdout)
    assert (found["rows"], found["out"], found["model"]) == (90, "p.csv", facts["run"])


def test_rows_are_never_put_together_by_chance(
    train: Call, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The three tables have the same number of rows, in different orders."""
    message = told(train("--out", "m"))
    assert "--id" in message
    assert "--agreed-ids" in message
    assert not (folder / "m").exists()
    other = train("--out", "m", "--id", "id", "--agreed-ids").exception
    assert isinstance(other, TableError)  # and not a refusal in one word: one owner is here
    assert "phone has the same ids in another order" in str(other)
    assert re.search("party bank ends run .* in another order", caplog.text)  # at its own site


MISTAKES = {
    "no folder": (("--id", "id"), ("--out is missing", "folder")),
    "unsafe": (
        ("--id", "id", "--out", "m", "--protection", "smm-1"),
        ("smm-1", "does not protect", "98 % at 0.5", "paillier", "allow_unsafe"),
    ),
    "an epsilon without ldp": (
        ("--id", "id", "--out", "m", "--epsilon", "1"),
        ("--epsilon belongs to --protection ldp", "none"),
    ),
    "unknown owner": (
        ("--id", "id", "--out", "m", "--owner", "bnk=age"),
        ("bnk=age", "bank, phone, shop"),
    ),
    "unknown active": (("--id", "id", "--out", "m", "--active", "me"), ("--active is 'me'",)),
    "a site folder": (
        ("--id", "id", "--out", "m", "--site", "k"),
        ("--data has no place with --site",),
    ),
    "two ways": (
        ("--id", "id", "--out", "m", "--set", "n_trees=3"),
        ("'n_trees=3'", "an option of its own"),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_and_leaves_nothing(train: Call, folder: Path, name: str) -> None:
    words, pieces = MISTAKES[name]
    message = told(train(*words))
    for piece in (*pieces, "Nothing was"):
        assert piece in message
    assert not (folder / "m").exists()


def test_every_column_and_the_labels_have_one_owner(
    call: Call, shared: dict[str, Any], folder: Path
) -> None:
    def run(*tables: str) -> str:
        data = [word for table in tables for word in ("--data", table)]
        return told(call(*TRAIN, *data, *QUICK, "--id", "id", "--out", "m"))

    assert "column 'town' has no owner" in run("bank.csv", "phone.csv")
    message = run("phone.csv", "shop.csv")
    assert "no table has the label column 'label'" in message
    text = (folder / "bank.csv").read_text()
    (folder / "copy.csv").write_text(text.replace("id,age,job,label", "id,age,x,y"))
    message = run("bank.csv", "phone.csv", "shop.csv", "copy.csv")
    assert "column 'age' is in the tables of bank and copy" in message
    assert "--owner copy=age" in message
    (folder / "copy.csv").write_text(text.replace("id,age,job,label", "id,x,y,label"))
    message = run("bank.csv", "phone.csv", "shop.csv", "copy.csv")
    assert "bank and copy have the label column 'label'" in message


def test_a_prediction_needs_a_model_and_a_file(call: Call, train: Call, folder: Path) -> None:
    words = ("--id", "id", "--out", "p.csv")
    nothing = call("vertical", "predict", "nowhere", *TABLES, *words).exception
    assert "nowhere is no folder of a vertical model" in str(nothing)
    assert not (folder / "nowhere").exists()
    assert train("--id", "id", "--out", "m").exit_code == 0
    assert "--out is missing" in told(call("vertical", "predict", "m", *TABLES, "--id", "id"))
    assert "--agreed-ids" in told(call("vertical", "predict", "m", *TABLES, "--out", "p.csv"))
    site = call("vertical", "collect", "m", "run", "--out", "p.csv").exception
    assert "m is no site folder" in str(site)
    assert not (folder / "p.csv").exists()


def test_a_run_of_nobody_is_not_found_in_a_site(tmp_path: Path) -> None:
    """What `collect` says where a site folder has no such run."""
    from hedgerow.cli.vertical import _write_predictions
    from hedgerow.protocol.roles import MemoryStore

    with pytest.raises(SettingsError, match="no predictions of a run 'r' are kept here"):
        _write_predictions(MemoryStore(), "r", tmp_path / "p.csv")
    assert not (tmp_path / "p.csv").exists()


def test_no_share_of_vectors_is_called_safe() -> None:
    for protection in ("smm-1", "smm-2"):
        for share in (0.1, 0.95, 1.0):
            with pytest.raises(SettingsError, match="does not protect"):
                VerticalSettings(protection=protection, kernel_share=share)
            VerticalSettings(protection=protection, kernel_share=share, allow_unsafe=True)


def test_the_time_of_paillier_is_told_before_anything_is_sent(train: Call, folder: Path) -> None:
    words = ("--id", "id", "--out", "m", "--protection", "paillier", "--set", "key_bits=1024")
    found = train(*words, "--estimate")
    assert found.exit_code == 0, found.output
    text = " ".join(found.stderr.split())
    assert "Paillier will take about" in text
    assert "trees over 90 rows" in text
    assert "Nothing was sent yet" in text
    assert not (folder / "m").exists()
    told_as_json = json.loads(train(*words, "--estimate", "--json").stdout)
    assert told_as_json["rows"] == 90
    done = train(*words, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["estimate"]["trees"] == 2


def test_an_estimate_of_another_protection_is_refused(train: Call) -> None:
    assert "--estimate is about paillier" in told(train("--id", "id", "--out", "m", "--estimate"))
