"""What a release consists of: one version, a wheel and an archive of the source."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
from email import message_from_string
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

import hedgerow

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the archive of the source."""
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> ZipFile:
    (path,) = built.glob("*.whl")
    return ZipFile(path)


def test_the_wheel_of_one_commit_has_the_same_bytes_whenever_it_is_built(
    built: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    environment = {**os.environ, "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"}
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
    ((again,), (first,)) = (list(folder.glob("*.whl")) for folder in (tmp_path, built))
    assert again.read_bytes() == first.read_bytes()


def metadata(wheel: ZipFile) -> str:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return wheel.read(name).decode()


def test_the_wheel_has_the_source_its_types_and_templates_and_nothing_beside(
    wheel: ZipFile,
) -> None:
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    files = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == files
    assert "hedgerow/py.typed" in packed, "without it users' type checkers see Any"
    assert "hedgerow/inspection/report/templates/page.html" in packed


def test_the_archive_of_the_source_has_what_tests_read_and_no_other_results(built: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("only a clone says which files are the project's")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    tracked = {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    results = {name for name in tracked if name.startswith("benchmarks/results/")}
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()} - {"PKG-INFO"}
    assert names - results == tracked - results
    readers = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.py")]
    read = "".join(path.read_text(encoding="utf-8") for path in readers)
    linked = re.findall(r"\(\.\./(benchmarks/results/[\w/.]+)\)", read)
    opened = re.findall(r'"benchmarks" / "results" / "([\w.]+)"', read)
    needed = {*linked, *(f"benchmarks/results/{name}" for name in opened)}
    assert names & results == needed, "pyproject.toml lists the results that are packed"


def test_the_version_has_one_source(wheel: ZipFile) -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    assert "version" not in project
    assert message_from_string(metadata(wheel))["Version"] == hedgerow.__version__


def test_changelog_and_citation_have_the_version_of_the_package() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (\d+\.\d+\.\d+) \((unreleased|\d{4}-\d\d-\d\d)\)$", text, re.M)
    assert len(versions) == len(re.findall(r"^## ", text, re.M)), "a heading of another form"
    newest, date = versions[0]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert newest == hedgerow.__version__ == citation["version"]
    released = citation.get("date-released")
    assert date == ("unreleased" if released is None else str(released))


def test_every_version_of_the_changelog_speaks_of_privacy() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        assert "### Privacy" in section, section.partition("\n")[0]


def test_python_versions_are_claimed_where_tests_ran() -> None:
    """The workflow tries more; a classifier is a claim, and comes after the first green run."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8"))
    tried = workflow["jobs"]["tests"]["strategy"]["matrix"]["python"]
    with (ROOT / "pyproject.toml").open("rb") as file:
        classifiers = tomllib.load(file)["project"]["classifiers"]
    claimed = [c.rpartition(" ")[2] for c in classifiers if ":: Python :: 3." in c]
    assert claimed
    assert set(claimed) <= set(tried)
    for page in ("README.md", "docs/index.md"):
        said = set(re.findall(r"Python (3\.\d+)", (ROOT / page).read_text("utf-8")))
        assert said == set(claimed), page


def test_the_workflow_runs_what_a_contributor_runs() -> None:
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    ran = re.findall(r"run: make (\w+)", text)
    assert {"check", "test"} <= set(ran)
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert set(ran) <= set(targets)


def test_hooks_before_a_commit_are_local_and_use_the_environment_of_the_project() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
    checks = (ROOT / "Makefile").read_text(encoding="utf-8")
    for hook in config["repos"][0]["hooks"]:
        assert hook["language"] == "system"
        program = hook["entry"].split()[0].removeprefix(".venv/bin/")
        assert f"$(BIN)/{program} " in checks or f"$(BIN)/{program}\n" in checks, program
