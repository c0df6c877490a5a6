"""Plants one defect at a time in a forked process and runs the tests that should notice it.

The parent has loaded the libraries and none of hedgerow, so that a process starts with the planted
module in a tenth of a second. Outcomes are written as they come, and the same command goes on.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.abc
import importlib.util
import json
import os
import resource
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.mutations.operators import Mutant, mutants, mutated
from tests.mutations.targets import TARGETS, WIDE

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
LIBRARIES = ("numpy", "scipy.special", "scipy.stats", "numba", "pyarrow", "pyarrow.compute",
             "hypothesis", "xdist", "pytest_timeout", "cryptography.hazmat.primitives.ciphers.aead",
             "sklearn.base", "typer", "rich.console")  # fmt: skip
LOADED = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
NOTICED, SURVIVED, EQUAL = "noticed", "survived", "equivalent"
WIDEST = "hedgerow.privacy.noise.poisson_sampling"  # fewest tests of its own: WIDE has the rest
# For the tests of one defect; one that makes them hang is noticed too. On a busy machine the
# processor's seconds say more than the clock.
CPU_SECONDS, SECONDS = 400, 3600


class _Planted(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from changed source, and leaves all others to Python."""

    def __init__(self, mutant: Mutant, path: Path) -> None:
        self._mutant, self._path = mutant, path

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._mutant.module:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=self)

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        tree = mutated(self._path.read_text("utf-8"), self._mutant)
        exec(compile(tree, str(self._path), "exec"), module.__dict__)  # noqa: S102


def file_of(module: str) -> Path:
    return ROOT / "src" / Path(*module.split(".")).with_suffix(".py")


def chosen(total: int) -> list[Mutant]:
    """So many defects over all targets, spread evenly: by a hash, so that nobody picks them."""
    by_module = []
    for module in TARGETS:
        found = {one.name: one for one in mutants(module, file_of(module).read_text("utf-8"))}
        order = sorted(found.values(), key=lambda one: hashlib.sha256(one.name.encode()).digest())
        by_module.append(order)
    taken: list[Mutant] = []
    for turn in range(max(map(len, by_module))):
        for order in by_module:
            if turn < len(order) and len(taken) < total:
                taken.append(order[turn])
    return taken


@dataclass
class Running:
    """A process that runs the tests of one defect."""

    mutant: Mutant
    pid: int
    since: float
    output: Path
    wide: bool

    def ended(self) -> int | None:
        """Its exit code, once there is one; what hangs is ended and counts as noticed."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() - self.since > SECONDS:
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            return -signal.SIGKILL
        return None


def start(mutant: Mutant, folder: Path, wide: bool) -> Running:
    """Fork a process that has the defect and runs the tests beside it, or all that guard it."""
    output = folder / f"{abs(hash((mutant, wide)))}.txt"
    pid = os.fork()
    if pid:
        return Running(mutant, pid, time.monotonic(), output, wide)
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    with output.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    path = file_of(mutant.module)
    if "compiled" in path.read_text("utf-8"):  # Numba's cache does not see a changed constant
        os.environ["NUMBA_CACHE_DIR"] = str(folder / str(os.getpid()))
    sys.meta_path.insert(0, _Planted(mutant, path))
    import pytest

    words = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-W", LOADED]
    near = TARGETS[mutant.module]
    tests = [test for test in WIDE if test not in near] if wide else near
    try:
        code = int(pytest.main([*words, *tests]))
    except BaseException:  # the defect reached pytest itself
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code)


class Record:
    """What came of every defect so far, in a JSON file."""

    def __init__(self, path: Path, total: int) -> None:
        self.path, self.total = path, total
        self.known: dict[str, dict[str, Any]] = {}
        self.reasons: dict[str, str] = tomllib.loads(EQUIVALENT.read_text("utf-8"))["reasons"]
        if path.exists():
            stored = json.loads(path.read_text("utf-8"))["mutants"]
            self.known = {one["name"]: one for one in stored}

    def add(self, mutant: Mutant, verdict: str, by: str, seconds: float) -> None:
        about = {"name": mutant.name, **asdict(mutant), "verdict": verdict}
        self.known[mutant.name] = {**about, "noticed_by": by, "seconds": round(seconds, 1)}
        self.write()

    def write(self) -> None:
        found = [self._with_reason(one) for one in self.known.values()]
        counts = Counter(one["verdict"] for one in found)
        told = len(found) - counts[EQUAL]
        result = {
            "command": f"python -m tests.mutations --total {self.total}",
            "counts": {"mutants": len(found), **counts},
            "survivors_share": counts[SURVIVED] / told if told else 0.0,
            "mutants": sorted(found, key=lambda one: str(one["name"])),
        }
        new = self.path.with_name(f"{self.path.name}.new")
        new.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
        new.replace(self.path)

    def _with_reason(self, one: dict[str, Any]) -> dict[str, Any]:
        reason = self.reasons.get(one["name"])
        if one["verdict"] == NOTICED or reason is None:
            return one
        return {**one, "verdict": EQUAL, "reason": reason}


def check_control() -> None:
    """Without a defect every test passes, or no verdict would mean anything."""
    sets = {tests: module for module, tests in TARGETS.items()}
    with tempfile.TemporaryDirectory(prefix="hedgerow-mutants-") as folder:
        for module in (*sets.values(), WIDEST):
            one = start(Mutant(module, 0, "none", "", "", -1), Path(folder), module is WIDEST)
            while (code := one.ended()) is None:
                time.sleep(0.05)
            if code:
                raise SystemExit(
                    f"tests of {module} are red without a defect; mend them first:\n"
                    + one.output.read_text("utf-8", "replace")[-2000:]
                )


def run(mutants_: Sequence[Mutant], record: Record, jobs: int) -> None:
    """Run until every defect has a verdict."""
    for name in LIBRARIES:
        importlib.import_module(name)
    check_control()
    waiting = [one for one in mutants_ if one.name not in record.known]
    running: list[Running] = []
    with tempfile.TemporaryDirectory(prefix="hedgerow-mutants-") as folder:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(start(waiting.pop(0), Path(folder), wide=False))
            time.sleep(0.05)
            for one in [*running]:
                if (code := one.ended()) is None:
                    continue
                running.remove(one)
                if code == 0 and not one.wide:
                    running.append(start(one.mutant, Path(folder), wide=True))
                    continue
                verdict = SURVIVED if code == 0 else NOTICED
                by = noticed_by(one.output.read_text("utf-8", "replace"), code)
                record.add(one.mutant, verdict, by, time.monotonic() - one.since)
                print(f"{verdict:9} {one.mutant.name}  {by}", flush=True)


def noticed_by(output: str, code: int) -> str:
    """The test that turned red, if one did."""
    if code < 0:
        return f"ended by signal {-code}: it took too long, or the process died"
    red = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return red[0].split(" - ")[0].split(" ", 1)[1] if red else ""
