"""Three small tables with their schema, and a way to call a command in this process."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hedgerow.cli.app import app
from tests.conftest import MIXED, mixed_table

Call = Callable[..., Result]


def write_csv(path: Path, table: dict[str, list[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HEDGEROW_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with schema.toml and the tables a.csv, b.csv and c.csv."""
    MIXED.write(tmp_path / "schema.toml")
    for seed, name in enumerate("abc"):
        write_csv(tmp_path / f"{name}.csv", mixed_table(80, seed))
    return tmp_path


@pytest.fixture
def call(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Call a command inside the folder; errors raised on purpose come back as `exception`.

    The ledger lies in the folder too, unless a command names another one.
    """
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HEDGEROW_LEDGER", "m.hedge.ledger")
    monkeypatch.setenv("COLUMNS", "200")
    runner = CliRunner()
    return lambda *words: runner.invoke(app, [str(word) for word in words])


@pytest.fixture
def train(call: Call) -> Call:
    """`hedgerow train` on the three tables, small."""

    def command(*words: Any) -> Result:
        tables = ("--data", "a.csv", "--data", "b.csv", "--data", "c.csv")
        return call("train", "--schema", "schema.toml", *tables, "--out", "m.hedge", *words)

    return command
