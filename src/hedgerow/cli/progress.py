"""Progress on stderr: bars, and for a run Ctrl-C that ends it between two releases."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hedgerow.cli.screen import messages
from hedgerow.errors import Interrupted

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from hedgerow.coordinator.gate import Progress

log = logging.getLogger(__name__)
FEW, LONG_SECONDS = 4, 8.0  # releases in which all loops are compiled; warm, they take less
_STOPPING = b"\nStopping after the current release. Press Ctrl-C again to stop at once.\n"


class Watch:
    """Sees every release: counts them, moves the bar, and stops the run when asked to."""

    def __init__(self, bar: Bar, stored_in: str) -> None:
        self.asked = self.replayed = 0
        self._bar, self._stored_in = bar, stored_in
        self._task = bar.add_task("releases", total=None)
        self._stop = False

    def stop(self, *_: object) -> None:
        """First Ctrl-C; the second one is the usual KeyboardInterrupt."""
        self._stop = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.write(2, _STOPPING)

    def observe(self, progress: Progress) -> None:
        """Called by the gate when a release is stored, so stopping here loses nothing."""
        self.replayed += progress.replayed
        self.asked += not progress.replayed
        done = progress.slot + 1
        verb = "replayed" if progress.replayed else "released"
        log.debug("%s slot %d of %d: %s", verb, done, progress.n_slots, progress.name)
        self._bar.update(self._task, completed=done, total=progress.n_slots)
        if self._stop and done < progress.n_slots:
            raise Interrupted(
                f"Stopped after slot {done} of {progress.n_slots}. Its releases are stored in "
                f"{self._stored_in} and stay charged. Run the same command again to go on from "
                "there; nothing is paid twice."
            )


class Counter:
    """A bar that counts what is done."""

    def __init__(self, bar: Bar, what: str, total: int | None) -> None:
        self._bar, self._task = bar, bar.add_task(what, total=total)

    def advance(self) -> None:
        """One more is done."""
        self._bar.advance(self._task)

    def reached(self, done: int, total: int) -> None:
        """So many of so many are done."""
        self._bar.update(self._task, completed=done, total=total)


@contextmanager
def counting(what: str, total: int | None = None) -> Iterator[Counter]:
    """A bar for as long as the block lasts."""
    with _bar() as bar:
        yield Counter(bar, what, total)


@contextmanager
def watching(stored_in: str) -> Iterator[Watch]:
    """A watch with its bar, and the handler of Ctrl-C, for as long as the block lasts."""
    bar = _bar(_first_run)
    watch = Watch(bar, stored_in)
    with _on_interrupt(watch.stop), bar:
        yield watch


def _first_run(task: Any) -> str:
    """What a bar says that stands still at its beginning, as it does while loops are compiled."""
    waits = task.completed < FEW and (task.elapsed or 0) > LONG_SECONDS and not task.finished
    return "the first run on a machine compiles loops: a minute or so" if waits else ""


def _bar(further: Callable[[Any], str] | None = None) -> Bar:
    """Silent where stderr is no terminal; `further` says more about a task."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.text import Text

    class Words(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text(further(task) if further else "", style="dim")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = messages()
    return Progress(
        *columns, TimeElapsedColumn(), Words(), console=console, disable=not console.is_terminal
    )


@contextmanager
def _on_interrupt(handler: Callable[..., None]) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
