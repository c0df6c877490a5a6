"""`--quick` leaves out what tests/quick.py names, and takes everything else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.quick import LONG, ROOT


@pytest.mark.parametrize("name", LONG)
def test_what_is_left_out_exists(name: str) -> None:
    assert (ROOT / name).exists(), f"{name} has moved: mend LONG in tests/quick.py"


def test_quick_leaves_out_long_folders_and_takes_what_lies_beside() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--quick", "tests/engines"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    files = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    beside = {str(path.relative_to(ROOT)) for path in (ROOT / "tests/engines").rglob("test_*.py")}
    assert files == {name for name in beside if not name.startswith(LONG)}
    assert files < beside
