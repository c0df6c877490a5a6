"""A decimal-comma file in a Windows encoding, through every command to a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from hedgerow import Categorical, Label, Numeric, Schema
from hedgerow.data.csv_format import PLAIN, CsvFormat
from hedgerow.errors import TableError
from tests.cli.conftest import Call
from tests.data.test_csv_format import write

GERMAN = CsvFormat(";", ",", ".", "cp1252")
AS_ENGLISH = ("--separator", ",", "--decimal", ".", "--thousands", "", "--encoding", "utf-8")


def write_both(folder: Path) -> None:
    """One table as a German and as an English file."""
    rng = np.random.default_rng(3)
    english, german = [["größe", "ort", "krank"]], [["größe", "ort", "krank"]]
    for _ in range(200):
        size = rng.uniform(0, 2000)
        ill = "ja" if size > 900 else "nein"
        english.append([f"{size:.2f}", "Köln", ill])
        german.append([f"{size:,.2f}".translate({44: 46, 46: 44}), "Köln", ill])
    write(folder / "de.csv", german, GERMAN)
    write(folder / "en.csv", english, PLAIN)


def test_a_decimal_comma_file_goes_through_to_a_model_and_its_predictions(
    call: Call, folder: Path
) -> None:
    write_both(folder)
    columns = (Numeric("größe", 0, 2000), Categorical("ort", ("Köln", "Ulm")))
    Schema(columns, Label("krank", ("nein", "ja")), csv=GERMAN).write(folder / "de.toml")
    train = ("train", "--schema", "de.toml", "--data", "de.csv", "--out", "de.hedge")
    for words in (
        ("schema", "check", "de.toml", "--data", "de.csv"),
        (*train, "--epsilon", "5", "--delta", "1e-5", "--method", "random-trees", "--trees", "4"),
        ("predict", "de.hedge", "--data", "de.csv", "--out", "p.csv"),
        ("predict", "de.hedge", "--data", "en.csv", "--out", "q.csv", *AS_ENGLISH),
    ):
        assert call(*words).exit_code == 0, words
    assert (folder / "q.csv").read_bytes() == (folder / "p.csv").read_bytes()
    evaluate = ("evaluate", "de.hedge", "--json", "--data")
    same, other = (
        json.loads(call(*evaluate, *words).stdout)
        for words in (("de.csv",), ("en.csv", *AS_ENGLISH))
    )
    assert (same.pop("rows_are"), other.pop("rows_are")) == ("training", "other")
    assert same == other
    private = ("evaluate", "de.hedge", "--epsilon", "1", "--out", "e.json", *AS_ENGLISH)
    assert call(*private, "--data", "en.csv").exit_code == 0
    wrong = call("predict", "de.hedge", "--data", "en.csv", "--out", "-").exception
    assert isinstance(wrong, TableError)
    assert "seems to be separated by commas" in str(wrong)
