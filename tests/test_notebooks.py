"""Notebooks of the examples run as they are, in a real kernel, and show what they promise."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import hedgerow
from hedgerow.cli.app import app
from hedgerow.cli.demo_notebook import notebook_text
from hedgerow.errors import SettingsError

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))
# Another process, because a kernel's client leaves sockets and event loops behind.
RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], 4)
nbformat.validate(notebook)
NotebookClient(notebook, timeout=800, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[1])
"""


def executed(path: Path) -> list[dict[str, Any]]:
    """Run a notebook where it lies; its cells with their outputs."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path)],
        cwd=path.parent, capture_output=True, text=True, timeout=800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    cells: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    return cells


def outputs(cells: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for cell in cells:
        yield from cell.get("outputs", [])


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(notebook: Path, tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    copy = tmp_path / notebook.name
    shutil.copy(notebook, copy)
    shown = list(outputs(executed(copy)))
    assert not [o for o in shown if o["output_type"] == "error" or o.get("name") == "stderr"]
    kinds = {kind for output in shown for kind in output.get("data", {})}
    assert {"text/plain", "text/html", "image/svg+xml"} <= kinds
    plain = ["".join(o["data"]["text/plain"]) for o in shown if "data" in o]
    assert all(len(text.splitlines()) <= 10 for text in plain)
    html = "".join("".join(o["data"].get("text/html", "")) for o in shown if "data" in o)
    assert "The best guess" in html  # the statement of a fitted model
    assert "<script" not in html
    printed = "".join("".join(o["text"]) for o in shown if o["output_type"] == "stream")
    assert re.search(r"\[hedgerow\] done: [\d,]+ trees", printed)
    (model,) = tmp_path.glob("*.hedge")
    assert hedgerow.load(model).statement_.epsilon == 1.0


def test_pyplot_shows_every_plot_of_a_cell_once(tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    code = """
import matplotlib.pyplot as plt
import numpy as np
from hedgerow import PrivateBoostingClassifier
X = np.linspace(0, 1, 2000).reshape(-1, 2)
model = PrivateBoostingClassifier(bounds=(0, 1), classes=[0, 1])
explanation = model.fit(X, (X[:, 0] > 0.5).astype(int)).explain()
explanation.plot("x0")
explanation.plot("x1")
"""
    path = tmp_path / "plots.ipynb"
    path.write_text(notebook_text([("code", code)]), "utf-8")
    shown = [sorted(o["data"]) for o in outputs(executed(path))]
    # The last value of the cell is shown by itself, the other one as a figure of pyplot.
    assert sorted(shown) == [["image/png", "text/plain"], ["image/svg+xml", "text/plain"]]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs_and_imports_public_names(notebook: Path) -> None:
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    assert not list(outputs(cells))
    for cell in cells:
        source = "".join(cell["source"])
        assert not re.search(r"(from|import) hedgerow\.", source), source


def test_the_demonstration_writes_the_notebook_of_the_examples(tmp_path: Path) -> None:
    target = tmp_path / "demo.ipynb"
    done = CliRunner().invoke(app, ["demo", "--notebook", str(target)])
    assert done.exit_code == 0, done.output
    example = ROOT / "examples" / "notebooks" / "three_hospitals.ipynb"
    assert target.read_text("utf-8") == example.read_text("utf-8")
    assert list(tmp_path.iterdir()) == [target]
    for name, message in (("demo.ipynb", "exists and was not changed"), ("a.py", "ends in .ipynb")):
        again = CliRunner().invoke(app, ["demo", "--notebook", str(tmp_path / name)])
        assert isinstance(again.exception, SettingsError)
        assert message in str(again.exception)
