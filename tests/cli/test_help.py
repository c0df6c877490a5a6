"""Every command explains itself with an example, and asking for help loads nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import hedgerow
from hedgerow.cli.app import app
from hedgerow.methods.registry import METHODS, method_named

HEAVY = (
    "sklearn",
    "scipy",
    "pandas",
    "pyarrow",
    "numba",
    "opendp",
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
