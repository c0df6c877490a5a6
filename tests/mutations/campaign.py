"""Plants one defect at a time in a forked process and runs the tests that should notice it.

The parent has loaded the libraries and none of hedgerow, so that a process starts with the planted
module in a tenth of a second. Tests that run the changed lines come first, the cheapest at the
beginning, and the first one that turns red is enough. Outcomes are written as they come, and the
same command goes on.
"""

from __future__ import annotations

import ast
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

from tests.mutations import warm
from tests.mutations.named import named_defects
from tests.mutations.operators import Mutant, extent, mutants, mutated
from tests.mutations.reach import Reach, file_of
from tests.mutations.targets import TARGETS

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
LIBRARIES = ("numpy", "scipy.special", "scipy.stats", "numba", "pyarrow", "pyarrow.compute",
             "hypothesis", "xdist", "pytest_timeout", "cryptography.hazmat.primitives.ciphers.aead",
             "sklearn.base", "typer", "rich.console")  # fmt: skip
# Open: some of its tests let it pass, and the campaign was ended before it met the others.
NOTICED, SURVIVED, EQUAL, OPEN = "noticed", "survived", "equivalent", "open"
NO_DEFECT = "none"
# Tests of one defect: few, then all that run the lines as far as these seconds go.
FIRST, FIRST_SECONDS, MOST_SECONDS = 24, 10.0, 60.0
AT_ONCE = 40  # defects whose tests one process imports
# One that makes tests hang is noticed too. On a busy machine the processor's seconds say more than
# the clock.
CPU_SECONDS, SECONDS = 120, 3600


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
        exec(compile(self._path.read_text("utf-8"), self._path, "exec"), module.__dict__)  # noqa: S102


def chosen(total: int) -> list[Mutant]:
    """Those that have names, and others over all targets: by a hash, so that nobody picks them."""
    by_module = []
    for module in TARGETS:
        found = {one.name: one for one in mutants(module, file_of(module).read_text("utf-8"))}
        order = sorted(found.values(), key=lambda one: hashlib.sha256(one.name.encode()).digest())
        by_module.append(order)
    taken = named_defects()
    for turn in range(max(map(len, by_module))):
        for order in by_module:
            if turn < len(order) and len(taken) < total:
                taken.append(order[turn])
    return taken


@dataclass
class Running:
    """A process that runs tests of one defect, and those that come after them."""

    mutant: Mutant
    pid: int
    since: float
    output: Path
    later: list[list[str]]

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


class _InOrder:
    """Runs tests in the order in which they were named, whatever the suite's own order is."""

    def __init__(self, names: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(names)}

    def pytest_collection_finish(self, session: Any) -> None:
        session.items.sort(key=lambda item: self._places.get(item.nodeid, len(self._places)))


def start(mutant: Mutant, folder: Path, stages: list[list[str]]) -> Running:
    """Fork a process that has the defect and runs the first stage of tests."""
    tests, *later = stages
    digest = hashlib.sha256(f"{mutant.name}{tests}".encode()).hexdigest()[:16]
    output = folder / f"{digest}.txt"
    pid = os.fork()
    if pid:
        return Running(mutant, pid, time.monotonic(), output, later)
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    with output.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if mutant.operator != NO_DEFECT:
        _plant(mutant, folder / digest)
    import pytest

    words = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-W", warm.LOADED]
    try:
        code = int(pytest.main([*words, *tests], plugins=[_InOrder(tests)]))
    except BaseException:  # the defect reached pytest itself
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code)


def _plant(mutant: Mutant, folder: Path) -> None:
    """Let this process import the changed module, from a file of its own.

    Numba keeps compiled loops by the file they stand in: those of this module alone are compiled.
    """
    path = folder / file_of(mutant.module).name
    folder.mkdir()
    source = file_of(mutant.module).read_text("utf-8")
    path.write_text(ast.unparse(mutated(source, mutant)), "utf-8")
    sys.meta_path.insert(0, _Planted(mutant, path))


def stages_of(mutant: Mutant, reach: Reach) -> list[list[str]]:
    """Few tests first, which notice most; then as many as MOST_SECONDS allow."""
    close, further = reach.tests(mutant)
    order, spent = [], 0.0
    for test in (*close, *further):
        spent += reach.seconds([test])
        if spent > MOST_SECONDS and len(order) >= FIRST:
            break
        order.append(test)
    first = [test for place, test in enumerate(order[:FIRST])
             if not place or reach.seconds(order[: place + 1]) < FIRST_SECONDS]  # fmt: skip
    return [stage for stage in (first, order[len(first) :]) if stage]


class Record:
    """What came of every defect so far, in a JSON file."""

    def __init__(self, path: Path, total: int) -> None:
        self.path, self.total = path, total
        self.known: dict[str, dict[str, Any]] = {}
        self.reasons: dict[str, str] = tomllib.loads(EQUIVALENT.read_text("utf-8"))["reasons"]
        self.read()

    def read(self) -> None:
        """What another process, or an earlier one, has written."""
        if self.path.exists():
            stored = json.loads(self.path.read_text("utf-8"))["mutants"]
            self.known = {one["name"]: one for one in stored}

    def add(self, mutant: Mutant, verdict: str, by: str, seconds: float) -> None:
        about = {"name": mutant.name, **asdict(mutant), "verdict": verdict}
        self.known[mutant.name] = {**about, "noticed_by": by, "seconds": round(seconds, 1)}
        self.write()

    def write(self) -> None:
        found = [self.judged(one) for one in self.known.values()]
        counts = Counter(one["verdict"] for one in found)
        told = counts[NOTICED] + counts[SURVIVED]
        result = {
            "command": f"python -m tests.mutations --total {self.total}",
            "chosen": self.total,
            "counts": {"mutants": len(found), **counts},
            "modules": len({one["module"] for one in found}),
            "survivors_share": counts[SURVIVED] / told if told else 0.0,
            "mutants": sorted(found, key=lambda one: str(one["name"])),
        }
        new = self.path.with_name(f"{self.path.name}.new")
        new.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
        new.replace(self.path)

    def judged(self, one: dict[str, Any]) -> dict[str, Any]:
        """A reason turns a survivor into an equivalent one; without it, it is a survivor again."""
        reason = self.reasons.get(one["name"])
        if one["verdict"] == NOTICED:
            return one
        if reason is None:
            verdict = OPEN if one["verdict"] == OPEN else SURVIVED
            return {key: one[key] for key in one if key != "reason"} | {"verdict": verdict}
        return {**one, "verdict": EQUAL, "reason": reason}


def wait_for(running: Running) -> int:
    while (code := running.ended()) is None:
        time.sleep(0.02)
    return code


def check_control(record: Record, folder: Path) -> None:
    """Every test that noticed a defect passes without one, run in the same way."""
    by = {one["noticed_by"] for one in record.known.values() if "::" in one["noticed_by"]}
    tests = sorted(by)
    if not tests:
        return
    running = start(Mutant("", 0, NO_DEFECT, "", "", -1), folder, [tests])
    if wait_for(running):
        said = running.output.read_text("utf-8", "replace")
        raise SystemExit(f"tests are red without a defect; mend them first:\n{said[-3000:]}")
    print(f"{len(tests)} tests noticed these defects; all of them pass without one")


def run(
    mutants_: Sequence[Mutant], record: Record, jobs: int, minutes: float, anew: bool = False
) -> None:
    """Run until every defect has a verdict, or no new one is begun after so many minutes."""
    reach, until = Reach(jobs, anew), time.monotonic() + 60 * minutes
    for name in LIBRARIES:
        importlib.import_module(name)
    running: list[Running] = []
    with tempfile.TemporaryDirectory(prefix="hedgerow-mutants-") as name:
        folder = Path(name)
        _run_warm(mutants_, record, reach, until, folder)
        waiting = [one for one in mutants_ if one.name not in record.known]
        while waiting or running:
            if time.monotonic() > until:
                waiting.clear()
            while waiting and len(running) < jobs:
                mutant = waiting.pop(0)
                if stages := stages_of(mutant, reach):
                    running.append(start(mutant, folder, stages))
                else:
                    _tell(record, mutant, SURVIVED, "no test runs it", 0.0)
            time.sleep(0.02)
            for one in [*running]:
                if (code := one.ended()) is None:
                    continue
                running.remove(one)
                seconds = time.monotonic() - one.since
                if code == 0 and one.later:
                    running.append(start(one.mutant, folder, one.later))
                elif code == 0:
                    _tell(record, one.mutant, SURVIVED, "", seconds)
                else:
                    by = noticed_by(one.output.read_text("utf-8", "replace"), code)
                    _tell(record, one.mutant, NOTICED, by, seconds)
        check_control(record, folder)


def _run_warm(
    mutants_: Sequence[Mutant], record: Record, reach: Reach, until: float, folder: Path
) -> None:
    """Those inside of functions first: many a minute."""
    inside = [
        one
        for one in mutants_
        if one.name not in record.known and extent(file_of(one.module).read_text("utf-8"), one)[2]
    ]

    def said(mutant: Mutant, by: str, noticed: bool, seconds: float) -> None:
        _tell(record, mutant, NOTICED if noticed else SURVIVED, by, seconds)

    inside.sort(key=lambda one: list(TARGETS).index(one.module))  # neighbours share their tests
    for first in range(0, len(inside), AT_ONCE):
        if time.monotonic() < until:
            some = inside[first : first + AT_ONCE]
            warm.run(some, reach, until, said, stages_of, folder / "warm.txt")
            record.read()


def _tell(record: Record, mutant: Mutant, verdict: str, by: str, seconds: float) -> None:
    record.add(mutant, verdict, by, seconds)
    print(f"{verdict:9} {mutant.name}  {by}", flush=True)


def noticed_by(output: str, code: int) -> str:
    """The test that turned red, if one did."""
    if code < 0:
        return f"ended by signal {-code}: it took too long, or the process died"
    if "ERROR: not found" in output and "Error" not in output.replace("ERROR", ""):
        raise SystemExit(f"tests have other names than when they were measured:\n{output[-2000:]}")
    red = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return red[0].split(" - ")[0].split(" ", 1)[1] if red else "nothing could be imported"
