"""`--quick` leaves out what tests/quick.py names, and takes everything else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.quick import FURTHER, LONG, ROOT


@pytest.mark.parametrize("name", LONG)
def test_what_is_left_out_exists(name: str) -> None:
    assert (ROOT / name).exists(), f"{name} has moved: mend LONG in tests/quick.py"


def collected(*words: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_quick_leaves_out_long_folders_and_takes_what_lies_beside() -> None:
    files = {name.partition("::")[0] for name in collected("--quick", "tests/engines")}
    beside = {str(path.relative_to(ROOT)) for path in (ROOT / "tests/engines").rglob("test_*.py")}
    assert files == {name for name in beside if not name.startswith(LONG)}
    assert files < beside


def test_quick_takes_one_of_what_is_tried_several_times() -> None:
    every, quick = collected(*FURTHER), collected("--quick", *FURTHER)
    left_out = set(every) - set(quick)
    for file, parts in FURTHER.items():
        assert {n for n in every if n.startswith(file) and any(p in n for p in parts)} <= left_out
        for part in parts:
            assert any(part in name for name in left_out), f"nothing is called {part} any more"
    assert all(any(p in n for p in FURTHER[n.partition("::")[0]]) for n in left_out)
    tests = [{name.partition("[")[0] for name in names} for names in (every, quick)]
    assert tests[0] == tests[1]  # nothing is left out altogether
