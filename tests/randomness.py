"""Randomness that repeats: what Python asks the operating system for follows a test's own stream.

The stream's seed is a hash of the test's name and of HEDGEROW_TEST_SEED (0 if it is not set), so a
test draws the same noise, keys and run names whatever ran before it. Samplers stay those of
production; only their random bytes are replaced. tests/statistical and processes that tests start
keep the real ones. conftest.py registers this module as a plugin.
"""

from __future__ import annotations

import functools
import hashlib
import os
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

SEED = int(os.environ.get("HEDGEROW_TEST_SEED", "0"))
REAL = "tests/statistical/"  # false alarms there have derived chances, for the real source
NOISE, PROCESSES = "noise", "processes"  # what a test's record says that it used
_STARTS = ("subprocess.Popen", "os.fork", "os.posix_spawn")  # Python's audit events
Made = TypeVar("Made")

_real_bytes = os.urandom


class Stream:
    """Random bytes of one test, fixture or cached value, and what was used while it was current.

    Bytes depend on how many were asked for and on how often so many were, not on other requests.
    Where parties draw shares of one noise in threads of one process, the shares may swap their
    owners, and their sum stays the same.
    """

    def __init__(self, label: str) -> None:
        self.used: set[str] = set()
        self._label, self._lock, self._asked = label, threading.Lock(), Counter[int]()

    def bytes(self, size: int) -> bytes:
        with self._lock:
            self._asked[size] += 1
            request = f"{SEED}\0{self._label}\0{size}\0{self._asked[size]}"
        key = hashlib.sha256(request.encode()).digest()
        return Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(size))


class RealStream(Stream):
    """The operating system's own random bytes."""

    def bytes(self, size: int) -> bytes:
        return _real_bytes(size)


_streams: list[Stream] = [RealStream("")]  # threads that a test started share the test's stream


@contextmanager
def stream_of(label: str) -> Iterator[Stream]:
    """Random bytes follow this label's stream inside the block."""
    stream = (RealStream if label.startswith(REAL) else Stream)(label)
    _streams.append(stream)
    try:
        yield stream
    finally:
        _streams.pop()


def cached(make: Callable[..., Made]) -> Callable[..., Made]:
    """Like functools.cache, for what several tests share: whichever comes first, it is the same."""

    @functools.cache
    def made(*args: Any, **settings: Any) -> tuple[Made, set[str]]:
        with stream_of(f"{make.__module__}.{make.__qualname__}{args}{settings}") as stream:
            return make(*args, **settings), stream.used

    @functools.wraps(make)
    def value(*args: Any, **settings: Any) -> Made:
        found, used = made(*args, **settings)
        _streams[-1].used |= used
        return found

    return value


def _random_bytes(size: int) -> bytes:
    stream = _streams[-1]
    if NOISE not in stream.used and _asked_by_noise():
        stream.used.add(NOISE)
    return stream.bytes(size)


def _asked_by_noise() -> bool:
    """Whether the nearest caller of the package is a sampler, or draws a seed for questions."""
    frame = sys._getframe(2)
    while frame is not None and not frame.f_globals.get("__name__", "").startswith("hedgerow."):
        frame = frame.f_back  # type: ignore[assignment]
    name = "" if frame is None else frame.f_globals["__name__"]
    return name.startswith(("hedgerow.privacy.noise.", "hedgerow.data.rng"))


def _note_processes(event: str, _: Any) -> None:
    if event in _STARTS:
        _streams[-1].used.add(PROCESSES)


def install() -> None:
    """From now on this process draws from the current stream."""
    os.urandom = random._urandom = _random_bytes  # type: ignore[attr-defined]
    sys.addaudithook(_note_processes)


_of_fixtures: dict[str, set[str]] = {}  # what fixtures that tests share used when they were made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with stream_of(item.nodeid):
        return (yield)  # type: ignore[return-value]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[None]:
    """A fixture that several tests share has a stream of its own: any of them may come first."""
    if fixturedef.scope == "function":
        return (yield)  # type: ignore[return-value]
    label = f"{fixturedef.baseid}::{fixturedef.argname}[{request.param_index}]"
    with stream_of(label) as stream:
        _of_fixtures[fixturedef.argname] = stream.used
        return (yield)  # type: ignore[return-value]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> None:
    """Reports say what a test used, so that `tests.flaky` knows which ones draw noise."""
    if call.when == "teardown":
        shared = (_of_fixtures.get(name, set()) for name in getattr(item, "fixturenames", ()))
        used = _streams[-1].used.union(*shared)
        item.user_properties.append(("used", ",".join(sorted(used))))
