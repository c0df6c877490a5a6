"""Loops are compiled before they are needed, once, by made-up rows that charge nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hedgerow.data.schema import Label
from hedgerow.deployment.warming import TASKS, method_names, task_of, warm
from hedgerow.errors import SettingsError


def command(*arguments: str, folder: Path) -> dict[str, object]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "hedgerow", *arguments], capture_output=True, text=True, check=True,
        timeout=800, env=environment, cwd=folder,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def test_the_command_compiles_once_and_leaves_nothing_but_compiled_loops(tmp_path: Path) -> None:
    first = command("warm", "--method", "dp-tr-newton", "--json", folder=tmp_path)
    assert first["methods"] == ["dp-tr-newton"]
    assert isinstance(first["compiled"], int)
    assert first["compiled"] > 0
    assert command("warm", "--method", "dp-tr-newton", "--json", folder=tmp_path)["compiled"] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


@pytest.mark.parametrize("task", TASKS)
def test_every_method_is_fitted_in_every_task_that_it_has(task: str) -> None:
    assert warm((), (task,)).methods == method_names()


def test_an_unknown_method_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(SettingsError, match="no method 'magic'; choose among auto"):
        warm(["magic"])


def test_the_task_follows_from_the_label() -> None:
    labels = (Label("y", (0, 1)), Label("y", (0, 1, 2)), Label("y", lower=0.0, upper=1.0))
    assert tuple(task_of(label) for label in labels) == TASKS
