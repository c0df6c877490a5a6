"""Which tests run which lines of the targets, measured: a defect meets only tests that can see it.

As a pytest plugin (where HEDGEROW_REACH names a folder) it writes what the tests of one process
ran, line by line. `Reach` measures the files of tests that changed and keeps the others.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import coverage
import pytest

from tests.mutations.operators import Mutant, extent
from tests.mutations.targets import TARGETS, WIDE

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".mutants-reach.json"
FOLDER = os.environ.get("HEDGEROW_REACH")


def file_of(module: str) -> Path:
    return ROOT / "src" / Path(*module.split(".")).with_suffix(".py")


class _Recorder:
    """What each test of this process ran and how long it took."""

    def __init__(self) -> None:
        files = [str(file_of(module)) for module in TARGETS]
        self._coverage = coverage.Coverage(data_file=None, config_file=False, include=files)
        self._seconds: dict[str, float] = {}
        self._red: set[str] = set()
        self._coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seconds = self._seconds.get(report.nodeid, 0.0)
        self._seconds[report.nodeid] = seconds + report.duration
        if not report.passed:  # one that is skipped notices nothing either
            self._red.add(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._coverage.stop()
        data = self._coverage.get_data()
        lines: dict[str, dict[str, int]] = {name: {} for name in self._seconds}
        for module in TARGETS:
            for line, names in data.contexts_by_lineno(str(file_of(module))).items():
                for name in filter(None, names):
                    lines[name][module] = lines[name].get(module, 0) | 1 << line
        found = {
            name: {"seconds": round(seconds, 3), "lines": {m: hex(b) for m, b in ran.items()}}
            for name, ran in lines.items()
            if name not in self._red and (seconds := self._seconds[name]) >= 0
        }
        assert FOLDER is not None
        Path(FOLDER, f"{os.getpid()}.json").write_text(json.dumps(found), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    # With xdist the tests run in its workers, and the process that hands them out has none.
    alone = not getattr(config.option, "numprocesses", None)
    if FOLDER is not None and (alone or hasattr(config, "workerinput")):
        config.pluginmanager.register(_Recorder(), "reach of tests")


def _files() -> list[Path]:
    """Every file of tests that may notice a defect."""
    named = {ROOT / test for tests in (*TARGETS.values(), WIDE) for test in tests}
    found = {path for name in named for path in ([name] if name.is_file() else name.rglob("*.py"))}
    return sorted(path for path in found if path.name.startswith("test_"))


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Reach:
    """Tests by the lines of targets that they run; measured again where files of tests changed.

    Where the source changed since, lines may lie elsewhere: then a defect meets other tests than it
    could, and may survive that would not. `anew` measures everything.
    """

    def __init__(self, jobs: int, anew: bool = False, kept: Path = KEPT) -> None:
        known = json.loads(kept.read_text("utf-8")) if kept.exists() and not anew else {}
        files = {str(path.relative_to(ROOT)): _hash(path) for path in _files()}
        self._files = {name: of for name, of in known.items() if files.get(name) == of["hash"]}
        missing = [name for name in files if name not in self._files]
        if missing:
            print(f"measuring what the tests of {len(missing)} files run", flush=True)
            measured = _measured(missing, jobs)
            for name in missing:
                tests = {t: of for t, of in measured.items() if t.split("::")[0] == name}
                self._files[name] = {"hash": files[name], "tests": tests}
            kept.write_text(json.dumps(self._files), "utf-8")

    def tests(self, mutant: Mutant) -> tuple[list[str], list[str]]:
        """Tests that run the place of a defect, best ones first; and further ones of their files.

        Of what runs at import all that run anything of the module may notice. What a fixture
        computed for the first test of a file is used by the others, hence the further ones.
        """
        first, last, runs_later = extent(_source(mutant.module), mutant)
        place = sum(1 << line for line in range(first, last + 1)) if runs_later else -1
        close, files = {}, set()
        for name, of in self._files.items():
            for test, about in of["tests"].items():
                if int(about["lines"].get(mutant.module, "0x0"), 16) & place:
                    close[test] = about["seconds"]
                    files.add(name)
        near = {
            name
            for name in self._files
            if any(name == t or name.startswith(f"{t}/") for t in TARGETS[mutant.module])
        }
        further = {
            test: about["seconds"]
            for name in files | near
            for test, about in self._files[name]["tests"].items()
            if test not in close
        }
        return _ordered(close, near), _ordered(further, near)

    def seconds(self, tests: Sequence[str]) -> float:
        return sum(self._files[t.split("::")[0]]["tests"][t]["seconds"] for t in tests)


def _ordered(tests: dict[str, float], near: set[str]) -> list[str]:
    """Of every function of tests the cheapest case first, then the second cheapest, and so on.

    In every round those beside the module come first, then the cheap ones.
    """
    rounds: dict[str, int] = {}
    order = []
    for test in sorted(tests, key=lambda t: (tests[t], t)):
        function = test.split("[")[0]
        rounds[function] = rounds.get(function, -1) + 1
        order.append((rounds[function], test.split("::")[0] not in near, tests[test], test))
    return [test for *_, test in sorted(order)]


@cache
def _source(module: str) -> str:
    return file_of(module).read_text("utf-8")


def _measured(files: Sequence[str], jobs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="hedgerow-reach-") as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutations.reach", *files]
        if jobs > 1:
            command += ["-n", str(jobs)]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "HEDGEROW_REACH": folder}, check=False)
        found: dict[str, Any] = {}
        for path in Path(folder).iterdir():
            found.update(json.loads(path.read_text("utf-8")))
    return found
