"""The newcomer of `tests.newcomer` in this process: no fault, no column lost without a word."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hedgerow
from hedgerow.cli.app import app
from tests import newcomer


def test_a_messy_file_comes_to_a_report_in_six_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    newcomer.write_messy_file(tmp_path / newcomer.FILE, 900)
    assert 1 + len(newcomer.TYPED) <= newcomer.MOST_COMMANDS
    said = []
    for typed in newcomer.TYPED:
        done = CliRunner().invoke(app, shlex.split(typed)[1:])
        assert done.exit_code == 0, f"{typed}\n{done.output}{done.exception}"
        assert not newcomer.unexplained(done.output)
        said.append(" ".join(done.stderr.split()))
    assert newcomer.columns_without_a_word(tmp_path / "schema.toml", said[0]) == []
    model = hedgerow.load("model.hedge")
    schema = model.model_.schema
    assert set(schema.names) == newcomer.DESCRIBED
    assert schema.unit.column == "Patienten-Nr"
    assert schema.csv.missing == ("?", "k.A.")
    assert "drafted from rows, confirmed by nobody" in said[2]
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    for name in newcomer.DESCRIBED:
        assert name in report
    assert "Köln" in report
    assert "Gewicht" in (tmp_path / "picture.svg").read_text(encoding="utf-8")


def test_the_recorded_run_is_of_these_commands() -> None:
    result = Path(__file__).parents[1] / "benchmarks" / "results" / "newcomer.json"
    stored = json.loads(result.read_text("utf-8"))
    commands = stored["commands"]
    assert [one["command"] for one in commands] == [newcomer.INSTALL, *newcomer.TYPED]
    assert len(commands) <= newcomer.MOST_COMMANDS
    assert stored["columns"] == len(newcomer.COLUMNS) >= 12
    assert not newcomer.unexplained("\n".join(line for one in commands for line in one["said"]))


def test_a_column_left_out_without_a_word_is_found(tmp_path: Path) -> None:
    newcomer.write_messy_file(tmp_path / newcomer.FILE, 300)
    schema = hedgerow.Schema.draft(tmp_path / newcomer.FILE, label=newcomer.LABEL)
    schema.write(tmp_path / "schema.toml")
    said = "\n".join(note for note in schema.notes if "'PLZ'" not in note)
    assert newcomer.columns_without_a_word(tmp_path / "schema.toml", said) == ["PLZ"]
    assert newcomer.unexplained("RuntimeWarning: overflow\nfine") == ["RuntimeWarning: overflow"]
