"""What stands in an extra is named, with the line that installs it, where it is missing."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hedgerow import Schema

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "tests" / "golden" / "stored" / "models" / "auto.binary.hedge"
PACKAGES = (
    "dask", "distributed", "fpdf", "gmpy2", "grpc", "matplotlib", "onnx",
    "private_set_intersection", "starlette", "treelite", "uvicorn",
)  # fmt: skip
# Users bring frames of pandas and polars themselves, the demo goes on without its picture, relays
# run inside of NVFlare and Flower, and the rest is for the project's own work.
NOT_NEEDED = {
    "pandas", "polars", "plots", "nvflare", "flower", "docs", "benchmarks", "dev", "simulation",
}  # fmt: skip
COMMANDS = {
    "dask": ["train", "--schema", "schema.toml", "--data", "rows.csv", "--epsilon", "1", "--delta",
             "1e-6", "--engine", "dask", "--out", "model.hedge"],
    "grpc": ["federation", "try", "--schema", "schema.toml", "--data", "rows.csv", "--data",
             "rows.csv", "--data", "rows.csv", "--epsilon", "1", "--delta", "1e-6"],
    "console": ["console", "--socket", "console.sock", "--state", "state"],
    "export": ["export", str(MODEL), "--to", "onnx", "--out", "model.onnx"],
    "export, treelite": ["export", str(MODEL), "--to", "treelite", "--out", "model.treelite"],
    "vertical": ["vertical", "train", "--schema", "schema.toml", "--data", "a=x.csv", "--data",
                 "b=z.csv", "--id", "id", "--active", "a", "--out", "parts"],
}  # fmt: skip
SCRIPT = """
import contextlib, io, json, sys
packages, commands = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(packages))  # importing any of them fails from now on
from hedgerow.cli.app import main
answers = {}
for name, words in commands.items():
    sys.argv, text, code = ["hedgerow", *words], io.StringIO(), 0
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        try:
            main()
        except SystemExit as end:
            code = end.code
    answers[name] = [code, text.getvalue()]
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Exit code and output of each command in one process without any extra."""
    folder = tmp_path_factory.mktemp("bare")
    schema = Schema.from_bounds({"x": (0, 1), "z": (0, 1)}, classes=["no", "yes"], label="y")
    schema.write(folder / "schema.toml")
    (folder / "rows.csv").write_text("id,x,z,y\n1,0.5,0.1,no\n2,0.25,0.2,yes\n")
    (folder / "x.csv").write_text("id,x,y\n1,0.5,no\n2,0.25,yes\n")
    (folder / "z.csv").write_text("id,z\n1,0.5\n2,0.25\n")
    command = [sys.executable, "-c", SCRIPT, json.dumps([PACKAGES, COMMANDS])]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_missing_extra_is_named_with_the_line_that_installs_it(
    name: str, answers: dict[str, tuple[int, str]]
) -> None:
    code, output = answers[name]
    assert code not in (0, None)
    assert f"pip install 'hedgerow[{name.partition(',')[0]}]'" in " ".join(output.split())


def test_every_extra_is_tried() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    assert {name.partition(",")[0] for name in COMMANDS} | NOT_NEEDED == set(extras)
