"""What a settled gap books is never less than what was lost, whatever was reserved under limits."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest

from hedgerow.errors import BudgetExceeded, LedgerError
from hedgerow.privacy.accounting.pure import pure_mu
from hedgerow.privacy.ledger.gaps import Ceilings, settle
from hedgerow.privacy.ledger.labels import label_spending
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.spending import (
    Budget,
    month_spending,
    spending,
)
from hedgerow.privacy.ledger.witnesses import (
    Gap,
    gaps_of,
    has_head,
    leave_head,
    note_gap,
    now_text,
    open_gaps,
)
from hedgerow.testing.clock import ManualClock, manual_clock
from tests.privacy.ledger.test_ledger import a_plan

KEY = "0" * 64
TOTAL, MONTH = Budget(10.0, 1e-5), Budget(4.0, 1e-5)
EPSILONS = (0.25, 0.5, 1.0, 1.9)


def reserved(ledger: Ledger, clock: ManualClock, rng: np.random.Generator, n: int) -> None:
    """Runs of chosen sizes at chosen times, as far as the limits allow, each with its head."""
    for _ in range(n):
        clock.move(days=float(rng.choice([0.01, 3, 12, 40])))
        plan = a_plan(float(rng.choice(EPSILONS)), run=f"run-{clock.now.timestamp()}")
        try:
            Reservation(ledger, plan, "a", TOTAL, per_month=MONTH)
        except BudgetExceeded:
            continue
        leave_head(ledger, "a", plan.run, (), KEY)


def copied(ledger: Ledger) -> Ledger:
    """The same lines in another ledger: what a backup of this moment has."""
    copy = Ledger.in_memory()
    copy._connection.executemany(
        "INSERT INTO line VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", ledger.lines()
    )
    copy.verify()
    return copy


def found_gap(backup: Ledger, true: Ledger) -> None:
    """What others show of the true ledger: its last head."""
    last = true.lines("a", "head")[-1]
    assert not has_head(backup, "a", last.run)
    note_gap(backup, "a", Gap(last.run, int(last.values["count"]), last.time, "b", now_text()))


@pytest.mark.parametrize("gaussian_only", [True, False])
def test_the_booked_amount_is_an_upper_bound(gaussian_only: bool) -> None:
    ceilings = Ceilings(None, MONTH, TOTAL, gaussian_only)
    rng, tried = np.random.default_rng(5), 0
    for _ in range(40):
        with manual_clock(datetime(2026, 1, 1, tzinfo=UTC)) as clock:
            true = Ledger.in_memory()
            true.append("a", "boot", values={"boot": 1})
            reserved(true, clock, rng, int(rng.integers(0, 4)))
            backup, kept = copied(true), len(true.lines("a", "reserve"))
            reserved(true, clock, rng, int(rng.integers(1, 9)))
            clock.move(days=float(rng.choice([0, 5, 60])))
            if len(true.lines("a", "reserve")) == kept:
                continue
            tried += 1
            found_gap(backup, true)
            settle(backup, "a", ceilings, "Ada Koch", "restored")
            assert open_gaps(backup, "a") == []
            for counted in (spending, month_spending):
                was, now = counted(true, "a"), counted(backup, "a")
                assert now.mu >= was.mu
                for delta in (1e-5, 1e-9):
                    assert now.epsilon(delta) >= was.epsilon(delta)
                plan = a_plan(1.0, run="next")  # and with whatever comes after it
                assert now.with_plan(plan).epsilon(1e-5) >= was.with_plan(plan).epsilon(1e-5)
    assert tried > 30


def test_where_only_gaussian_runs_are_possible_the_31_days_leave_something() -> None:
    with manual_clock(datetime(2026, 1, 1, tzinfo=UTC)) as clock:
        true = Ledger.in_memory()
        Reservation(true, a_plan(1.0, run="first"), "a", TOTAL, per_month=MONTH)
        leave_head(true, "a", "first", (), KEY)
        backup = copied(true)
        clock.move(days=1)
        Reservation(true, a_plan(1.0, run="second"), "a", TOTAL, per_month=MONTH)
        leave_head(true, "a", "second", (), KEY)
        clock.move(days=1)
        found_gap(backup, true)
        settled = settle(backup, "a", Ceilings(None, MONTH, TOTAL, True), "Ada Koch", "restored")
        assert settled.bound == "1 x 4 in 31 days"
        assert 4 < spending(backup, "a").epsilon(1e-5) < 7
        assert month_spending(backup, "a").epsilon(1e-5) >= 4
        clock.move(days=32)
        assert month_spending(backup, "a").epsilon(1e-5) == 0
        assert gaps_of(backup, "a")[0].settled


def test_a_ledger_that_has_only_a_settled_gap_does_not_start_from_nothing() -> None:
    ledger = Ledger.in_memory()
    note_gap(ledger, "a", Gap("c" * 64, 3, now_text(), "b", now_text()))
    settle(ledger, "a", Ceilings(total=TOTAL), "Ada Koch", "disk died")
    with pytest.raises(BudgetExceeded):  # a first run is counted by itself, and this is none
        Reservation(ledger, a_plan(1.0), "a", TOTAL)


def test_without_a_ceiling_the_witnessed_runs_are_booked_and_without_any_nothing_is() -> None:
    ledger = Ledger.in_memory()
    note_gap(ledger, "a", Gap("c" * 64, 3, now_text(), "b", now_text()))
    with pytest.raises(LedgerError, match="no limit bounds what the lost lines may have spent"):
        settle(ledger, "a", Ceilings(), "Ada Koch", "disk died")
    per_run = Ceilings(per_run=Budget(1.0, 1e-5), gaussian_only=True)
    settled = settle(ledger, "a", per_run, "Ada Koch", "disk died", runs=4)
    assert settled.bound.startswith("4 runs of 1 each")
    assert settled.mu**2 == pytest.approx(4 * a_plan(1.0).mu ** 2, rel=1e-4)


def test_what_labels_may_have_paid_is_booked_too() -> None:
    ledger = Ledger.in_memory()
    note_gap(ledger, "a", Gap("c" * 64, 3, now_text(), "b", now_text()))
    settle(ledger, "a", Ceilings(total=TOTAL, labels=True), "Ada Koch", "disk died")
    assert label_spending(ledger, "a") == label_spending(ledger, "a", monthly=True) == 10.0


def test_one_pure_run_books_more_than_several_of_the_same_sum() -> None:
    """What the bound in `gaps` takes for granted, on a grid."""
    grid = np.geomspace(1e-3, 60, 400)
    ratios = [pure_mu(float(epsilon)) ** 2 / epsilon for epsilon in grid]
    assert all(later > earlier for earlier, later in pairwise(ratios))
    for first, second in ((0.1, 0.1), (1.0, 3.0), (5.0, 25.0)):
        both = math.hypot(pure_mu(first), pure_mu(second))
        assert pure_mu(first + second) > both


@pytest.mark.parametrize(("count", "boot", "known"), [(2, 0, True), (3, 0, False), (0, 9, False)])
def test_runs_beyond_those_that_were_booked_are_a_gap_again(
    count: int, boot: int, known: bool
) -> None:
    """Where runs were counted, a later witness may know of more than the ones who had shown."""
    ledger, early = Ledger.in_memory(), now_text()
    note_gap(ledger, "a", Gap("c" * 64, 2, early, "b", now_text()))
    per_run = Ceilings(per_run=Budget(1.0, 1e-5), gaussian_only=True)
    assert settle(ledger, "a", per_run, "Ada Koch", "disk died").bound.startswith("2 runs of 1")
    note_gap(ledger, "a", Gap("" if boot else "d" * 64, count, early, "c", now_text(), boot=boot))
    assert bool(open_gaps(ledger, "a")) != known
    if not known:
        settle(ledger, "a", per_run, "Ada Koch", "one more witness came", runs=3)
        assert spending(ledger, "a").mu ** 2 >= 3 * a_plan(1.0).mu ** 2 * (1 - 1e-6)
    assert open_gaps(ledger, "a") == []


def test_a_lost_start_alone_says_nothing_of_how_many_runs_were_lost() -> None:
    ledger = Ledger.in_memory()
    note_gap(ledger, "a", Gap("", 0, now_text(), "b", now_text(), boot=3))
    per_run = Ceilings(per_run=Budget(1.0, 1e-5), gaussian_only=True)
    with pytest.raises(LedgerError, match="how many there may have been at most"):
        settle(ledger, "a", per_run, "Ada Koch", "disk died")
    settle(ledger, "a", per_run, "Ada Koch", "disk died", runs=1)
    assert open_gaps(ledger, "a") == []
