"""A clock that stands still until a test moves it: time-outs and months pass in no time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from hedgerow.clock import clock_from


class ManualClock:
    """Stands at `start` (UTC) and goes on by `move` and by every `sleep`."""

    def __init__(self, start: datetime) -> None:
        self.now = start.astimezone(UTC)
        self._passed = 0.0  # seconds, for the clock that cannot be set back

    def timestamp(self) -> float:
        return self.now.timestamp()

    def monotonic(self) -> float:
        return self._passed

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self._passed += seconds

    def move(self, **by: float) -> None:
        """Set the time of day on or back, e.g. ``move(days=31, seconds=-1)``."""
        self.now += timedelta(**by)


@contextmanager
def manual_clock(start: datetime) -> Iterator[ManualClock]:
    """Everything inside the block that reads the time or sleeps uses this clock."""
    clock = ManualClock(start)
    with clock_from(clock):
        yield clock
