"""Named places where a process may be killed on purpose, to prove that nothing is lost.

``HEDGEROW_FAIL_AT=store@3`` kills this process (SIGKILL) the third time it passes "store".
Without the variable a fail point does nothing; a simulation is told of each that is passed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

FAIL_POINTS = (
    "reserve",
    "charge",
    "sync",
    "ask",
    "answer",
    "noise",
    "store",
    "write-model",
)
_passed: dict[str, int] = {}
_wanted = os.environ.get("HEDGEROW_FAIL_AT", "")  # as it was when the process began
_told: Callable[[str], None] | None = None


def fail_point(name: str) -> None:
    """Die here if the environment says so."""
    if _told is not None:
        _told(name)
    if not _wanted:
        return
    place, _, number = _wanted.partition("@")
    if place == name:
        _passed[name] = _passed.get(name, 0) + 1
        if _passed[name] == int(number or 1):
            os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def uncounted() -> Iterator[None]:
    """What is passed inside is no part of what the process is for, as the fits that warm it up."""
    global _wanted
    before, _wanted = _wanted, ""
    try:
        yield
    finally:
        _wanted = before


@contextmanager
def fail_points_told(told: Callable[[str], None]) -> Iterator[None]:
    """Call this with every fail point that is passed. For `hedgerow.testing` only."""
    global _told
    before, _told = _told, told
    try:
        yield
    finally:
        _told = before
