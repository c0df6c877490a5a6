"""Documents stay true: blocks run, links lead somewhere, maps match the source."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import pytest

from hedgerow.schema import Schema

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "hedgerow"
RUNNABLE = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DOCUMENTS = sorted(
    path
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/**/README.md")]
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
)
EXAMPLES = sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir())
ONE_THREAD = {"NUMBA_NUM_THREADS": "1"}  # tests run side by side; waiting threads would starve
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def blocks(path: Path) -> list[tuple[str, str, int]]:
    """Fenced blocks of a document: language, text, and the line before the first of them."""
    text = path.read_text(encoding="utf-8")
    found = _BLOCK.finditer(text)
    return [(m[1], m[2], text.count("\n", 0, m.start()) + 1) for m in found]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of this environment, with warnings as errors."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONWARNINGS": "error", **ONE_THREAD}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("path", RUNNABLE, ids=lambda path: path.name)
def test_the_blocks_of_a_document_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__document__"}
    for language, text, line in blocks(path):
        if language == "python":
            code = compile("\n" * line + text, str(path), "exec")
            exec(code, namespace)  # noqa: S102
        elif language in ("console", "bash"):
            for command in re.findall(r"^\$ (hedgerow .*)$", text, re.MULTILINE):
                done = run(shlex.split(command), tmp_path)
                assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    if path.name == "README.md":
        quoted = re.findall(r"^> (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        words = namespace["model"].statement_.words()
        assert " ".join(quoted).split() == words.split()


def test_the_readme_runs_python_and_commands() -> None:
    languages = [language for language, _, _ in blocks(ROOT / "README.md")]
    assert languages.count("python") >= 2
    commands = re.findall(r"^\$ hedgerow (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {"plan", "train", "predict", "evaluate", "statement", "ledger"} <= set(commands)


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_alone(folder: Path, tmp_path: Path) -> None:
    script = folder / "run.py"
    command = [sys.executable, str(script)]
    if not script.exists():
        command = ["bash", str(folder / "run.sh"), str(tmp_path / "out")]
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "epsilon = 1" in " ".join(done.stdout.split())


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_local_links_lead_somewhere(path: Path) -> None:
    for link in _LINK.findall(path.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f"{path.name} links to {link}, which does not exist"
        assert not anchor or anchor in anchors(target), f"{path.name}: no heading for {link}"


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_schemas_shown_in_documents_are_complete() -> None:
    shown = [text for lang, text, _ in blocks(ROOT / "docs" / "schema.md") if lang == "toml"]
    assert shown
    for text in shown:
        assert Schema.from_dict(tomllib.loads(text)).columns


def test_the_architecture_has_the_layers_of_the_import_contract() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    layers = [layer.replace("hedgerow.", "") for layer in contracts[0]["layers"]]
    shown = [text for lang, text, _ in blocks(ROOT / "ARCHITECTURE.md") if lang == "text"]
    assert shown[0].split("\n")[:-1] == layers


def test_the_architecture_names_every_module_and_no_other() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.split("| file in `src/hedgerow` |")[1].split("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    named = {name.rstrip("/") for row in rows for name in re.findall(r"`([^`]+)`", row)}
    real = {
        path.name
        for path in SOURCE.iterdir()
        if path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists())
    }
    assert named == real


def test_the_changelog_knows_this_version() -> None:
    from hedgerow import __version__

    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {re.escape(__version__)}\b.*?(?=^## |\Z)", text, re.M | re.S)
    assert section
    assert "### Privacy" in section[0]
