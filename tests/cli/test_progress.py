"""The bar of a run says why it stands still on a machine where nothing is compiled yet."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from hedgerow.cli import progress
from hedgerow.coordinator.gate import Progress

WORDS = "the first run on a machine compiles loops"


@pytest.mark.parametrize(
    ("seconds", "slot", "told"), [(60.0, 1, True), (1.0, 1, False), (60.0, 9, False)]
)
def test_a_bar_that_stands_still_at_its_beginning_says_why(
    seconds: float, slot: int, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=140, get_time=lambda: now[0])
    monkeypatch.setattr(progress, "messages", lambda: console)
    now = [0.0]
    with progress.watching("a ledger") as watch:
        watch.observe(_released(slot))
        now[0] = seconds
        watch._bar.refresh()
        assert (WORDS in shown.getvalue()) is told
        watch.observe(_released(15))
        shown.truncate(0)
        watch._bar.refresh()
        assert WORDS not in shown.getvalue()


def _released(slot: int) -> Any:
    return Progress(slot=slot, n_slots=16, name="sums", replayed=False)
