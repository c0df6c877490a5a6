"""What could have been spent in lines that a ledger has lost, from the limits that held then.

Let the chain have everything up to the head at `since` and lack what came between it and `until`.
The party's ceilings were checked at every reservation, those of the lost lines too. As long as the
limits were not raised in the meantime:

- *total*: kept and lost runs together stayed within (E, d), so their squared mu is at most
  M(E, d)^2, and that of the lost ones at most M(E, d)^2 less what is kept up to `since`.
- *31 days*: cut the time from `since` to `until` into W = ceil(length / 31 days) windows. At the
  last reservation of each window the party counted all of that window, so each has at most M^2, and
  all of them W M^2.

M(E, d) is the largest mu of a spending that costs at most E at d. More released coordinates only
lower it, so none are assumed. For Gaussian runs it is `mu_of`. Runs of pure epsilon may also add up
to E, and the sum of squares of what they book as is then at most that of one run of E (pure_mu^2
grows faster than its argument); that can be so only where no Gaussian run is kept. Where pure runs
have a share, either filter had at most what its limit leaves above the kept runs, and both are
booked. In a window of
its own a pure run is counted by its composed epsilon, which bounds no mu: where pure methods are
allowed, the 31 days are not used, and with nothing kept before a single lost run of that kind is
not covered. The lost lines' coordinates are unknown; `spending` counts a settled gap by the Renyi
bound, which needs none. So what is booked is at least what was lost, in mu; the sum with what
follows is then at least the true one, because every bound on epsilon grows with mu.

Without a ceiling in total or, for Gaussian methods, over 31 days nothing bounds the number of runs.
Then as many as the witnesses count, or a person names, are booked at the ceiling of a run. A
witness that comes later and knows of a further head or start shows a gap that is not paid for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from hedgerow.errors import LedgerError
from hedgerow.privacy.accounting.gaussian import mu_of
from hedgerow.privacy.accounting.mixed import mixed_mu
from hedgerow.privacy.accounting.pure import pure_mu
from hedgerow.privacy.ledger.labels import label_spending_until
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import (
    MONTH,
    Budget,
    Spending,
    spending_before,
)
from hedgerow.privacy.ledger.witnesses import (
    Settlement,
    enter_settlement,
    now_text,
    open_gaps,
    own_heads,
)


@dataclass(frozen=True)
class Ceilings:
    """What bounds lost lines: the limits that held while they were written."""

    per_run: Budget | None = None
    per_month: Budget | None = None
    total: Budget | None = None
    gaussian_only: bool = False  # whether no method of pure epsilon is allowed
    labels: bool = False  # whether labels may pay an epsilon in sessions


@dataclass(frozen=True)
class _Bound:
    squared: float  # mu^2
    labels: float
    words: str
    runs: int = 0  # how many it pays for; 0: all that there may have been


def settle(
    ledger: Ledger,
    owner: str,
    ceilings: Ceilings,
    name: str,
    reason: str,
    role: str = "",
    runs: int = 0,
) -> Settlement:
    """Book what the open gaps may have cost, and let the party go on; LedgerError if none is open.

    `runs` is how many lost runs the person knows of, where no limit bounds them.
    """
    with ledger.transaction():
        booked = settlement_for(ledger, owner, ceilings, name, reason, role, runs)
        starts = max((gap.boot for gap in open_gaps(ledger, owner)), default=0)
        enter_settlement(ledger, owner, booked)
        # Others refuse a start with a lower number than they have seen.
        for number in range(len(ledger.lines(owner, "boot")), starts):
            ledger.append(owner, "boot", values={"boot": number + 1, "lost": True})
    return booked


def settlement_for(
    ledger: Ledger,
    owner: str,
    ceilings: Ceilings,
    name: str = "",
    reason: str = "",
    role: str = "",
    runs: int = 0,
) -> Settlement:
    """What settling the open gaps now would book."""
    gaps = open_gaps(ledger, owner)
    if not gaps:
        raise LedgerError("there is no gap to settle: the ledger has every head that others show")
    first = min(gap.time for gap in gaps)
    before = [head for head in own_heads(ledger, owner) if head.time < first]
    since, kept_lines = (before[-1].time, before[-1].line) if before else ("", 0)
    until = now_text()
    kept = before[-1].count if before else 0
    lost = max(gap.count for gap in gaps) - kept
    bound = _least(ledger, owner, ceilings, since, until, kept_lines, max(lost, runs))
    mu = math.sqrt(bound.squared)
    month = mu
    if ceilings.per_month is not None and ceilings.gaussian_only:  # then the share is unused
        month = min(mu, _most(ceilings.per_month, pure=False))
    counted = (kept + bound.runs, max(gap.boot for gap in gaps)) if bound.runs else (0, 0)
    booked = (mu, month, bound.labels, bound.words)
    return Settlement(name, reason, role, since, until, *booked, *counted)


def _least(
    ledger: Ledger,
    owner: str,
    ceilings: Ceilings,
    since: str,
    until: str,
    kept_lines: int,
    runs: int,
) -> _Bound:
    kept = spending_before(ledger, owner, kept_lines)
    labels = label_spending_until(ledger, owner, kept_lines)
    found = []
    if (total := ceilings.total) is not None:
        found.append(_of_total(total, ceilings, kept, labels))
    if (month := ceilings.per_month) is not None and ceilings.gaussian_only and since:
        windows = _windows(since, until)
        words = f"{windows} x {month.epsilon:g} in 31 days"
        paid = windows * month.epsilon if ceilings.labels else 0.0
        found.append(_Bound(windows * _most(month, pure=False) ** 2, paid, words))
    if not found and (run := ceilings.per_run) is not None:
        if runs < 1:  # others saw a later start of this party, and nobody counted its runs
            raise LedgerError(
                "the only limit is one for each run, and no witness says how many runs were lost "
                "with the lines. Nothing was booked. Say how many there may have been at most: "
                "--runs N, at least 1."
            )
        words = f"{runs} runs of {run.epsilon:g} each, by what the witnesses count or a person says"
        paid = runs * run.epsilon if ceilings.labels else 0.0
        squared = runs * _most(run, not ceilings.gaussian_only) ** 2
        found.append(_Bound(squared, paid, words, runs))
    if not found:
        raise LedgerError(
            "no limit bounds what the lost lines may have spent: neither per run, nor per month, "
            "nor in total. Nothing was booked. Put the newest ledger back, or end the use of these "
            "rows."
        )
    return min(found, key=lambda bound: bound.squared)


def _of_total(total: Budget, ceilings: Ceilings, kept: Spending, labels: float) -> _Bound:
    pure = not (ceilings.gaussian_only or kept.gaussian)
    squared = max(0.0, _most(total, pure) ** 2 - kept.mu**2)
    if total.pure is not None:
        squared = _of_sides(total, kept)
    paid = max(0.0, total.epsilon - labels) if ceilings.labels else 0.0
    return _Bound(squared, paid, f"all of {total.epsilon:g} in total")


def _of_sides(total: Budget, kept: Spending) -> float:
    """Squared mu of lost runs where pure ones have a share: what either filter had left."""
    assert total.pure is not None
    gaussian, pure = kept.sides
    ceiling = mixed_mu(total.epsilon * (1 + 1e-8), total.pure, total.delta, 0) * (1 + 1e-9)
    left = max(0.0, total.pure * (1 + 1e-8) - pure)
    return max(0.0, ceiling**2 - gaussian**2) + pure_mu(left) ** 2


def _most(budget: Budget, pure: bool) -> float:
    """The largest mu of runs that stay within a budget; ceilings are checked with some slack."""
    epsilon = budget.epsilon * (1 + 1e-8)
    gaussian = mu_of(epsilon, budget.delta, 0) * (1 + 1e-9) if budget.delta else 0.0
    return max(gaussian, pure_mu(epsilon)) if pure or not budget.delta else gaussian


def _windows(since: str, until: str) -> int:
    """How many windows of 31 days cover a time; a millisecond more, as lines are dated to one."""
    length = datetime.fromisoformat(until) - datetime.fromisoformat(since)
    return max(1, math.ceil((length + timedelta(milliseconds=1)) / MONTH))
