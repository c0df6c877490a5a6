"""One clock: waits and ledger lines follow it, so that days pass in a test at once."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from hedgerow import Ledger, clock
from hedgerow.errors import SumFailed
from hedgerow.testing import manual_clock
from tests.attacks.test_drop_outs import make

START = datetime(2031, 2, 3, 4, 5, tzinfo=UTC)


def test_outside_of_tests_the_clock_is_the_machines() -> None:
    before = time.time()
    now = clock.utc_now()
    assert now.tzinfo is UTC
    assert before - 1e-3 <= now.timestamp() <= time.time() + 1e-3
    first = clock.monotonic()
    clock.sleep(0.01)
    assert clock.monotonic() >= first + 0.01


def test_a_coordinator_waits_for_missing_parties_by_the_clock() -> None:
    federation, engine, plan = make(3)
    engine.gone = {"party-0", "party-1"}
    federation.wait_seconds = 180.0
    missing = r"missing: party-0 \(timed out\), party-1 \(timed out\)"
    with manual_clock(START) as moved, pytest.raises(SumFailed, match=missing):
        federation.open(plan)
    waited = moved.now - START
    assert timedelta(minutes=3) <= waited <= timedelta(minutes=7)


def test_ledger_lines_bear_the_time_of_the_clock() -> None:
    ledger = Ledger.in_memory()
    with manual_clock(START) as moved:
        ledger.append("a", "boot", values={"counter": 1})
        moved.move(days=2)
        ledger.append("a", "boot", values={"counter": 2})
    times = [datetime.fromisoformat(line.time) for line in ledger.lines("a", "boot")]
    assert times == [START, START + timedelta(days=2)]
