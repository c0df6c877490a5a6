"""Every command explains itself with an example, and asking for help loads nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import hedgerow
from hedgerow.cli import options
from hedgerow.cli.app import app
from hedgerow.methods.registry import METHODS, method_named

HEAVY = (
    "sklearn",
    "scipy",
    "pandas",
    "pyarrow",
    "numba",
    "dp_accounting",
    "dask",
    "distributed",
    "onnx",
    "treelite",
)
ASKED_FOR = {
    "demo", "plan", "train", "predict", "evaluate", "export", "statement", "methods",
    "schema check", "schema draft", "schema show", "ledger show", "ledger verify",
}  # fmt: skip


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command and group of the app."""
    yield path
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, (*path, name))


EVERY = list(commands(typer.main.get_command(app)))


def test_all_commands_are_there() -> None:
    assert {" ".join(path) for path in EVERY} >= ASKED_FOR


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_help_has_an_example(path: tuple[str, ...]) -> None:
    found = CliRunner().invoke(app, [*path, "--help"])
    assert found.exit_code == 0
    assert f"Example: hedgerow {' '.join(path)}".strip() in found.output


@pytest.mark.parametrize(
    ("command", "panels"),
    [
        ("train", (options.TABLES, options.PROMISE, options.METHOD, options.ENGINE)),
        ("plan", (options.TABLES, options.PROMISE, options.METHOD, options.SAMPLE)),
        ("advise", (options.TABLES, options.PROMISE, options.METHOD, options.SAMPLE)),
        ("evaluate", (options.TABLES, options.PROMISE, options.ENGINE)),
    ],
)
def test_help_shows_options_in_groups(command: str, panels: tuple[str, ...]) -> None:
    found = CliRunner().invoke(app, [command, "--help"]).output
    places = [found.index(f"─ {panel} ─") for panel in (*panels, options.OUTPUT)]
    assert places == sorted(places)


def test_every_option_of_a_group_reaches_the_command() -> None:
    seen: list[Any] = []

    def command(model: options.ModelFile, engine: options.EngineOptions) -> None:
        seen.append((model, engine))

    shell = typer.Typer()
    shell.command()(options.with_groups(command))
    words = ["a.hedge", "--engine", "dask", "--workers", "2", "--wait-seconds", "5"]
    assert CliRunner().invoke(shell, words).exit_code == 0
    expected = options.EngineOptions(engine="dask", workers=2, wait_seconds=5.0)
    assert seen == [(Path("a.hedge"), expected)]
    assert expected.used_flags() == ["--workers"]


def test_help_names_every_method_that_can_be_pure() -> None:
    found = " ".join(CliRunner().invoke(app, ["train", "--help"]).output.split())
    pure = [name for name in METHODS if method_named(name).can_be_pure]
    assert pure
    for name in pure:
        assert name in found


def test_version() -> None:
    found = CliRunner().invoke(app, ["--version"])
    assert found.output == f"hedgerow {hedgerow.__version__}\n"


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys, json\n"
        "from hedgerow.cli.app import main\n"
        f"sys.argv = ['hedgerow', *{words!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print('\\n' + json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}
    assert "typer" in loaded
    assert loaded & set(HEAVY) == set()
