"""The architecture is a test: import layers, and what `import hedgerow` may load."""

from __future__ import annotations

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


def test_only_the_mechanisms_ask_for_noise() -> None:
    sources = {path: path.read_text("utf-8") for path in (ROOT / "src").glob("**/*.py")}
    for source in ("discrete_gaussian", "bernoulli"):
        asking = {
            p.name for p, text in sources.items() if re.search(rf"import.*\b{source}\b", text)
        }
        assert asking == {"mechanisms.py"}


def test_the_check_sees_heavy_imports() -> None:
    assert "numba" in loaded_after("import hedgerow; hedgerow.PrivateBoostingClassifier")
