"""The table of ten tasks beside other libraries: its figures, and that our snippets run."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SNIPPETS = ROOT / "benchmarks" / "tasks"
RESULT = ROOT / "benchmarks" / "results" / "tasks.json"
LIBRARIES = ("hedgerow", "interpret", "xgboost", "diffprivlib")


def results() -> dict[str, dict[str, dict[str, Any]]]:
    stored = json.loads(RESULT.read_text("utf-8"))["libraries"]
    return {library: stored[library]["tasks"] for library in LIBRARIES}


def test_the_page_has_the_figures_of_the_result_file() -> None:
    text = (ROOT / "docs" / "beside-others.md").read_text("utf-8")
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines()
            if line.startswith("| ")]  # fmt: skip
    assert rows[0] == ["task", *LIBRARIES]
    shown = {row[0].partition(":")[0]: row[1:] for row in rows[2:]}
    found = results()
    assert shown == {
        task: [str(found[library][task].get("lines", "-")) for library in LIBRARIES]
        for task in found["hedgerow"]
    }
    assert len(shown) == 10


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_result_file_is_of_these_snippets(library: str) -> None:
    reasons = tomllib.loads((SNIPPETS / "impossible.toml").read_text("utf-8"))[library]
    for task, result in results()[library].items():
        path = SNIPPETS / library / f"{task}.py"
        assert path.exists() is (task not in reasons)
        if path.exists():
            lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
            n_lines = len([line for line in lines if line and not line.startswith("#")])
            assert result["lines"] == n_lines, f"run benchmarks/tasks.py again: {path} has changed"
        else:
            assert result == {"impossible": reasons[task]}


def test_our_snippets_do_their_tasks(tmp_path: Path) -> None:
    out = tmp_path / "tasks.json"
    words = [sys.executable, "benchmarks/tasks.py", "--libraries", "hedgerow", "--out", str(out)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = json.loads(out.read_text("utf-8"))["libraries"]["hedgerow"]["tasks"]
    stored = results()["hedgerow"]
    assert {task: result["lines"] for task, result in ran.items()} == {
        task: result["lines"] for task, result in stored.items()
    }
