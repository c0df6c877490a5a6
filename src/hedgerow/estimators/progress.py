"""What a fit with `verbose` prints: plain lines, alike in terminals, notebooks and log files."""

from __future__ import annotations

from collections.abc import Callable

from hedgerow import clock
from hedgerow.coordinator.gate import Progress
from hedgerow.coordinator.sessions import Reported
from hedgerow.errors import SettingsError
from hedgerow.kernels.compiling import say_when_compiling

LINES = 10  # of a fit with verbose=1; verbose=2 prints every step


def begin(verbose: int) -> None:
    """Refuse a `verbose` that means nothing, and say what takes time before the first step."""
    if not isinstance(verbose, int) or not 0 <= verbose <= 2:
        raise SettingsError(
            f"verbose is {verbose!r}; it is 0 (silent), 1 (some lines) or 2 (every step). Nothing "
            "was asked."
        )
    if verbose:
        say_when_compiling(say)


def say(words: str) -> None:
    """One line, at once, so that a notebook shows it while the fit runs."""
    print(f"[hedgerow] {words}", flush=True)


class FitProgress:
    """Counts what is done of a fit: steps, seconds, and nothing about rows."""

    def __init__(self, verbose: int, what: str, total: int) -> None:
        """`what` is counted up to `total`, which may turn out to be fewer."""
        self._verbose, self._what, self._total = verbose, what, total
        self._begun, self._done, self._printed = clock.monotonic(), 0, 0

    def released(self, progress: Progress) -> None:
        """For an observer of a gate."""
        self._total = progress.n_slots
        self._reach(progress.slot + 1)

    def reported(self, step: Reported) -> None:
        """For an observer of a session, whose parties report every tree."""
        self._reach(min(self._done + len(step.reports), self._total))

    def end(self, n_trees: int) -> None:
        """The fit is done."""
        if self._verbose:
            say(f"done: {n_trees:,} trees in {self._seconds}")

    def _reach(self, done: int) -> None:
        self._done = done
        share = LINES * done // max(self._total, 1)
        if self._verbose == 2 or (self._verbose and share > self._printed):
            self._printed = share
            say(f"{self._what} {done:,} of {self._total:,}, {self._seconds}")

    @property
    def _seconds(self) -> str:
        return f"{clock.monotonic() - self._begun:.1f} s"


def both(
    first: Callable[[Progress], None], second: Callable[[Progress], None] | None
) -> Callable[[Progress], None]:
    """Two observers of one gate."""

    def observe(progress: Progress) -> None:
        first(progress)
        if second is not None:
            second(progress)

    return observe
