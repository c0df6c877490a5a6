"""The architecture is a test: import layers, and what `import hedgerow` may load."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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


def loaded_after(statement: str) -> set[str]:
    code = f"import sys, json; {statement}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_layers_and_forbidden_imports() -> None:
    command = Path(sys.executable).with_name("lint-imports")
    if not command.is_file():
        pytest.fail("lint-imports is missing; install the dev extra")
    done = subprocess.run(
        [command, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.mark.parametrize("statement", ["import hedgerow", "import hedgerow; dir(hedgerow)"])
def test_importing_hedgerow_loads_nothing_heavy(statement: str) -> None:
    assert loaded_after(statement) & set(HEAVY) == set()


def borrowed_privates(file: Path) -> list[str]:
    """Names with a leading underscore, or below a package called private, that are not our own."""
    found = []
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            names = [] if own else [node.attr]
        elif isinstance(node, ast.ImportFrom) and node.module not in (None, "__future__"):
            if not str(node.module).startswith("hedgerow"):
                names = [*str(node.module).split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for alias in node.names for part in alias.name.split(".")]
        private = [n for n in names if n == "private" or re.match(r"_[^_]", n)]
        found += [f"{file.name}:{getattr(node, 'lineno', 0)} {name}" for name in private]
    return found


def test_engines_between_sites_use_no_private_name_of_another_library() -> None:
    engines = ROOT / "src" / "hedgerow" / "engines"
    files = [f for f in sorted(engines.rglob("*.py")) if f.parent.name != "dask"]
    files.remove(engines / "local.py")  # calls its own base class by name
    assert len(files) > 20
    assert [name for file in files for name in borrowed_privates(file)] == []


def test_a_borrowed_private_name_is_found(tmp_path: Path) -> None:
    for line in (
        "import grpc._channel",
        "from nvflare.private.fed import client",
        "from flwr.server import _grid",
        "call._state.cancel()",
    ):
        (tmp_path / "a.py").write_text(line)
        assert len(borrowed_privates(tmp_path / "a.py")) == 1


def test_only_the_mechanisms_ask_for_noise() -> None:
    sources = {path: path.read_text("utf-8") for path in (ROOT / "src").glob("**/*.py")}
    for source in ("discrete_gaussian", "bernoulli"):
        asking = {
            p.name for p, text in sources.items() if re.search(rf"import.*\b{source}\b", text)
        }
        assert asking == {"mechanisms.py"}


def test_the_check_sees_heavy_imports() -> None:
    assert "numba" in loaded_after("import hedgerow; hedgerow.PrivateBoostingClassifier")
