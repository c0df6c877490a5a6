"""The folder of the Flower app. What runs in Flower is tested where Flower is: test_stock.py."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hedgerow import __version__
from hedgerow.engines.flower.__main__ import write_app
from hedgerow.errors import SettingsError


def test_the_app_names_code_that_is_installed_and_brings_none(tmp_path: Path) -> None:
    write_app(tmp_path / "app", idle_seconds=30.0)
    assert {f.name for f in (tmp_path / "app").iterdir()} == {"pyproject.toml", "LICENSE"}
    project = tomllib.loads((tmp_path / "app" / "pyproject.toml").read_text("utf-8"))
    told = project["tool"]["flwr"]["app"]
    assert (told["fab-format-version"], told["config"]) == (1, {"idle-seconds": 30.0})
    assert f"hedgerow[flower]=={__version__}" in project["project"]["dependencies"]
    assert sorted(told["components"]) == ["clientapp", "serverapp"]
    for reference in told["components"].values():
        module, _, name = reference.partition(":")
        found = importlib.util.find_spec(module)
        assert found is not None
        assert found.origin is not None
        assert f"{name} = " in Path(found.origin).read_text("utf-8")


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="exists already"):
        write_app(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_extra_and_the_app_want_the_same_flower(tmp_path: Path) -> None:
    write_app(tmp_path / "app")
    app = tomllib.loads((tmp_path / "app" / "pyproject.toml").read_text("utf-8"))
    ours = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))
    (wanted,) = ours["project"]["optional-dependencies"]["flower"]
    assert wanted.replace("1.41,", "1.41.0,") in app["project"]["dependencies"]


def test_a_partys_end_loads_without_compiled_code() -> None:
    """Flower starts a process for every message."""
    code = (
        "import sys, hedgerow.engines.party_end\n"
        "sys.exit(any(m in sys.modules for m in ('numba', 'scipy', 'sklearn', 'pyarrow')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
