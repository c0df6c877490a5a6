"""Defects inside of functions, planted in a fork of a process that has imported all tests already.

The function gets the code of the changed module; whoever holds the function has the defect, by
whatever name. What modules and tests computed at import stays what it was. Compiled loops and
what runs at import cannot be planted so: `campaign` starts from nothing for these.
"""

from __future__ import annotations

import functools
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from tests.mutations.operators import Mutant, home, mutated
from tests.mutations.reach import Reach, file_of

Verdict = Callable[[Mutant, str, bool, float], None]  # by which test, whether it was noticed
LOADED = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
CPU_SECONDS = 60
NEEDS_IMPORT = 77  # exit code: the defect cannot be planted in a function that is there already


def plant(mutant: Mutant) -> None:
    """Give the function that a defect is in its changed code; LookupError if there is none."""
    source = file_of(mutant.module).read_text("utf-8")
    path = home(source, mutant)
    code = compile(mutated(source, mutant), str(file_of(mutant.module)), "exec")
    for name in path:
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
    _function(sys.modules[mutant.module], path).__code__ = code


def _function(module: ModuleType, path: Sequence[str]) -> FunctionType:
    found: Any = module
    for name in path:
        found = vars(found)[name]
    for _ in range(5):
        if isinstance(found, FunctionType) and not hasattr(found, "__wrapped__"):
            return found
        if isinstance(found, property):
            found = found.fget
        elif isinstance(found, functools.cached_property):
            found = found.func
        else:
            found = getattr(found, "__wrapped__", None) or getattr(found, "__func__", None)
    raise LookupError(f"{'.'.join(path)} of {module.__name__} is no plain function")


class _Loop:
    """In the place of pytest's own loop: for every defect a fork that runs some of the tests."""

    def __init__(
        self, mutants: Sequence[Mutant], reach: Reach, until: float, said: Verdict, stages: Any
    ) -> None:
        self._mutants, self._reach, self._until = mutants, reach, until
        self._said, self._stages, self.began = said, stages, False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.began = True
        items = {item.nodeid: item for item in session.items}
        for mutant in self._mutants:
            if time.monotonic() > self._until:
                break
            began = time.monotonic()
            for stage in self._stages(mutant, self._reach):
                code, by = _forked(session, [items[t] for t in stage if t in items], mutant)
                if code:
                    break
            else:
                code, by = 0, ""
            if code != NEEDS_IMPORT:
                self._said(mutant, by, code != 0, time.monotonic() - began)
        return True


def _forked(session: pytest.Session, items: list[pytest.Item], mutant: Mutant) -> tuple[int, str]:
    """The exit code of a fork with the defect, and which test turned red in it."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        with os.fdopen(reading) as pipe:
            by = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return status, by or f"ended by signal {-status}" if status else ""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    code = 0
    try:
        plant(mutant)
    except (LookupError, StopIteration, ValueError):
        os._exit(NEEDS_IMPORT)
    try:
        for place, item in enumerate(items):
            following = items[place + 1] if place + 1 < len(items) else None
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                os.write(writing, item.nodeid.encode())
                code = 1
                break
    except BaseException:  # the defect reached pytest itself
        traceback.print_exc()
        os.write(writing, b"the process died")
        code = 1
    os._exit(code)


def run(
    mutants: Sequence[Mutant], reach: Reach, until: float, said: Verdict, stages: Any, log: Path
) -> None:
    """In a fork of this process, which has not imported hedgerow: a verdict for every defect."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    shown = os.dup(1)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout = os.fdopen(shown, "w", buffering=1)
    try:
        tests = {test for one in mutants for stage in stages(one, reach) for test in stage}
        files = sorted({test.split("::")[0] for test in tests})
        words = ["-q", "-s", "--no-header", "-p", "no:cacheprovider", "-W", LOADED, *files]
        loop = _Loop(mutants, reach, until, said, stages)
        code = pytest.main(words, plugins=[loop])
        if not loop.began:
            raise RuntimeError(f"tests could not be collected: {code}")
    except BaseException:
        traceback.print_exc(file=sys.stdout)
    sys.stdout.flush()
    os._exit(0)
