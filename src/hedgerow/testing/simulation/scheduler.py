"""Simulated time: events in order, and programs that wait for them, all in one thread.

A program, as the coordinator's command is one, runs in a greenlet of its own: where real code would
block, it hands over to the scheduler, which goes on with whatever is due next.
"""

from __future__ import annotations

import contextvars
import heapq
import itertools
from collections.abc import Callable
from typing import Any

import greenlet

Action = Callable[[], None]
START = 1_800_000_000.0  # seconds since 1970 at which every history begins


class Scheduler:
    """What happens when; equal times in the order in which they were asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        self.steps = 0
        self._events: list[tuple[float, int, Action]] = []
        self._order = itertools.count()
        self._hub = greenlet.getcurrent()

    def after(self, seconds: float, action: Action) -> None:
        heapq.heappush(self._events, (self.now + max(0.0, seconds), next(self._order), action))

    def run(self, until: Callable[[], bool], most_steps: int, most_seconds: float) -> bool:
        """Let events happen until the condition holds; False if it does not within bounds."""
        limit_steps, limit_seconds = self.steps + most_steps, self.now + most_seconds
        while not until():
            if not self._events or self.steps >= limit_steps:
                return False
            if self._events[0][0] > limit_seconds:
                self.now = limit_seconds
                return False
            self.now, _, action = heapq.heappop(self._events)
            self.steps += 1
            action()
        return True

    def program(self, main: Action) -> Program:
        return Program(self._hub, main)

    @property
    def in_program(self) -> bool:
        return greenlet.getcurrent() is not self._hub


class Program:
    """Something that runs until it waits; whoever has what it waits for lets it go on."""

    def __init__(self, hub: greenlet.greenlet, main: Action) -> None:
        self._hub = hub
        self._greenlet = greenlet.greenlet(lambda _: main(), parent=hub)
        self._greenlet.gr_context = contextvars.copy_context()

    @property
    def done(self) -> bool:
        return bool(self._greenlet.dead)

    def go_on(self, value: Any = None) -> None:
        if not self.done:
            self._greenlet.switch(value)

    def throw(self, error: BaseException) -> None:
        if not self.done:
            self._greenlet.throw(error)

    def wait(self) -> Any:
        """Called inside of the program: hand over until somebody calls `go_on`."""
        return self._hub.switch()


class MachineClock:
    """A machine's clock: simulated time, and by how much its time of day is wrong."""

    def __init__(self, scheduler: Scheduler, sleep: Callable[[float], None]) -> None:
        self._scheduler, self._sleep = scheduler, sleep
        self.wrong_by = 0.0

    def timestamp(self) -> float:
        return START + self._scheduler.now + self.wrong_by

    def monotonic(self) -> float:
        return self._scheduler.now

    def sleep(self, seconds: float) -> None:
        self._sleep(seconds)
