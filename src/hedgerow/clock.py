"""One clock. Whatever reads the time or sleeps asks here, so that time can be simulated.

Processor seconds of a profile are neither a time of day nor a time-out: they are read in place.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What time it is, and how to wait."""

    def timestamp(self) -> float:
        """Seconds since 1970, UTC; an operator may set this clock back."""
        ...

    def monotonic(self) -> float:
        """Seconds since some start; never falls. For time-outs."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        ...


class SystemClock:
    """The machine's own clock."""

    def timestamp(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


_CLOCK: ContextVar[Clock] = ContextVar("clock", default=SystemClock())  # noqa: B039


def timestamp() -> float:
    """Seconds since 1970, UTC."""
    return _CLOCK.get().timestamp()


def utc_now() -> datetime:
    """The time of day, in UTC."""
    return datetime.fromtimestamp(timestamp(), UTC)


def monotonic() -> float:
    """Seconds that never run backwards, for time-outs."""
    return _CLOCK.get().monotonic()


def sleep(seconds: float) -> None:
    """Wait so many seconds of this clock."""
    _CLOCK.get().sleep(seconds)


@contextmanager
def clock_from(clock: Clock) -> Iterator[None]:
    """Ask another clock inside the block. For `hedgerow.testing` only."""
    token = _CLOCK.set(clock)
    try:
        yield
    finally:
        _CLOCK.reset(token)
