"""What a party's ledger says of its budget: over time, by run, asker and purpose; what still fits.

Everything here was fixed before anybody was asked: plans, reservations and limits, never a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

from hedgerow import clock
from hedgerow.deployment.status import limits_used, own_delta
from hedgerow.errors import HedgerowError
from hedgerow.model.tradeoff import epsilon_of
from hedgerow.party.limits import Limits
from hedgerow.privacy.accounting.gaussian import mu_of
from hedgerow.privacy.ledger.ledger import USUAL_DELTA, Ledger
from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.ledger.spending import (
    MONTH,
    UNKNOWN_COORDINATES,
    Budget,
    Ceiling,
    Reserved,
    Spending,
    added,
    counts_as_gaussians,
    spending,
)

MOST_SHOWN = 200  # runs on a page, the newest
MOST_FITTING = 1000  # runs that the calculator counts to
MOST_POINTS = 150  # of a curve
UNSAID = "not said"
T = TypeVar("T")
_KINDS = ("reserve", "settle")


@dataclass(frozen=True)
class Run:
    """One run with what its plan says of itself; or a settled gap, as what it booked."""

    reserved: Reserved
    method: str
    asker: str
    purpose: str
    in_month: Reserved  # what counts in the 31 days after it; of a gap it may be another amount


class Runs:
    """All runs that a party reserved, read once each, and gaps that people settled."""

    def __init__(self, ledger: Callable[[], Ledger], owner: str) -> None:
        self._ledger, self._owner = ledger, owner
        self._known: list[Run] = []

    def all(self) -> list[Run]:
        after = self._known[-1].reserved.seq if self._known else 0
        kinds = (self._ledger().lines(self._owner, kind, after=after) for kind in _KINDS)
        for line in sorted((line for lines in kinds for line in lines), key=lambda one: one.seq):
            self._known.append(_gap(line) if line.kind == "settle" else _run(line))
        return self._known

    def newest(self) -> Run | None:
        """The run that was reserved last; a settled gap is none."""
        return next((run for run in reversed(self.all()) if run.reserved.run), None)


def _run(line: Line) -> Run:
    plan, reserved = line.values["plan"], Reserved.of(line)
    asker, purpose = (str(plan.get(key, "")) for key in ("asker", "purpose"))
    return Run(reserved, str(plan["method"]), asker, purpose, reserved)


def _gap(line: Line) -> Run:
    told = line.values
    delta, many = USUAL_DELTA, UNKNOWN_COORDINATES
    booked, in_month = (
        Reserved(line.seq, line.time, "", epsilon_of(mu, delta, many), delta, mu, many, math.inf)
        for mu in (float(told["mu"]), float(told["month_mu"]))
    )
    return Run(booked, "settled gap", str(told["name"]), str(told["reason"]), in_month)


def budget_facts(runs: Sequence[Run], ledger: Ledger, owner: str, limits: Limits) -> dict[str, Any]:
    """Limits, curves, groups and runs, at the party's own delta."""
    delta = own_delta(limits) or USUAL_DELTA
    used = limits_used(ledger, owner, limits)
    by_mu = counts_as_gaussians(limits.budget)
    return {
        "delta": delta,
        "limits": used,
        "total": _epsilon(spending(ledger, owner), delta, by_mu) if runs else 0.0,
        "returns": _returns(runs, limits),
        "curve": _curve(runs, delta, by_mu),
        "month_curve": _month_curve(runs, delta, counts_as_gaussians(limits.per_month)),
        "by_asker": _groups(runs, delta, by_mu, lambda run: run.asker),
        "by_purpose": _groups(runs, delta, by_mu, lambda run: run.purpose),
        "runs": [_shown(run) for run in reversed(runs[-MOST_SHOWN:])],
        "n_runs": len(runs),
    }


def calculated(
    runs: Sequence[Run],
    ledger: Ledger,
    owner: str,
    limits: Limits,
    epsilon: float | None,
    delta: float | None,
) -> dict[str, Any]:
    """What a further run costs and whether it fits: one like the last, or of these numbers."""
    own = own_delta(limits) or USUAL_DELTA
    asked = [run.reserved for run in runs if run.reserved.run]
    if epsilon is None and not asked:
        return {"known": False}
    if epsilon is None:
        last = asked[-1]
        like = f"the last one ({last.run})"
    else:
        delta = own if delta is None else delta
        if not 0 < epsilon <= 1e6 or not 0 < delta < 1:
            raise HedgerowError(
                f"epsilon is {epsilon:g} and delta {delta:g}: epsilon is above 0, and delta lies "
                "between 0 and 1. Nothing was spent."
            )
        coordinates = asked[-1].coordinates if asked else 0
        mu = mu_of(epsilon, delta, coordinates)
        last = Reserved(0, "", "", epsilon, delta, mu, coordinates, math.inf)
        like = f"epsilon = {epsilon:g} at delta = {delta:g}"
    rows = [_verdict(label, budget, spent, last) for label, budget, spent in _ceilings(
        ledger, owner, limits)]  # fmt: skip
    return {
        "known": True,
        "like": like,
        "cost": last.spending.epsilon(own),
        "delta": own,
        "after": added(run.reserved for run in runs)
        .together(last.spending)
        .epsilon(own, as_gaussians=counts_as_gaussians(limits.budget)),
        "limits": rows,
        "fits": all(row["fits"] for row in rows),
    }


def _ceilings(
    ledger: Ledger, owner: str, limits: Limits
) -> Iterable[tuple[str, Budget, Spending | None]]:
    if limits.per_run is not None:
        yield "per run", limits.per_run, None
    if limits.per_month is not None:
        month = Ceiling(limits.per_month, True).spent(ledger, owner)
        yield "in the last 31 days", limits.per_month, month
    if limits.budget is not None:
        yield "in total", limits.budget, Ceiling(limits.budget).spent(ledger, owner)


def _verdict(label: str, budget: Budget, spent: Spending | None, run: Reserved) -> dict[str, Any]:
    """Whether one more run fits under a ceiling, and how many of them would."""
    now = spent or Spending(0.0, 0, 0)
    after = now.together(run.spending)
    fits = not budget.objection(now, after)
    many = None if spent is None else _how_many(now, run, budget) if fits else 0
    return {
        "limit": label,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "after": budget.counts(after),
        "fits": fits,
        "runs": many,
    }


def _how_many(spent: Spending, run: Reserved, budget: Budget) -> int:
    """How often a run that fits fits one after the other, by halving."""
    low, high = 1, MOST_FITTING
    while low < high:
        middle = (low + high + 1) // 2
        if budget.objection(spent, spent.together(added([run] * middle))):
            high = middle - 1
        else:
            low = middle
    return low


@lru_cache(maxsize=8192)  # what was spent before stays as it was, page after page
def _epsilon(spent: Spending, delta: float, by_mu: bool) -> float:
    return spent.epsilon(delta, as_gaussians=by_mu) if spent.runs else 0.0


def _curve(runs: Sequence[Run], delta: float, by_mu: bool) -> list[tuple[str, float]]:
    """Epsilon of all runs so far, after each of them."""
    spent, steps = Spending(0.0, 0, 0, 0.0, 0.0), list[tuple[str, Spending]]()
    for run in runs:
        spent = spent.together(run.reserved.spending)
        steps.append((run.reserved.time, spent))
    return [(time, _epsilon(spent, delta, by_mu)) for time, spent in thinned(steps)]


def _month_curve(runs: Sequence[Run], delta: float, by_mu: bool) -> list[tuple[str, float]]:
    """Epsilon of the 31 days before, wherever it rises or falls until now."""
    now = clock.utc_now()
    times = _counted_times(runs, now)
    moments = sorted({*times, *(time + MONTH for time in times if time + MONTH <= now), now})
    points, first, last = list[tuple[str, float]](), 0, 0
    for moment in thinned(moments):
        while last < len(runs) and times[last] <= moment:
            last += 1
        while first < last and times[first] <= moment - MONTH:
            first += 1
        spent = added(run.in_month for run in runs[first:last])
        points.append((moment.isoformat(timespec="milliseconds"), _epsilon(spent, delta, by_mu)))
    return points


def thinned(points: Sequence[T]) -> list[T]:
    """At most so many of them, the last among them: a picture shows no more.

    >>> thinned([1, 2, 3]), len(thinned(range(1000))), thinned(range(1000))[-1]
    ([1, 2, 3], 143, 999)
    """
    step = -(-len(points) // MOST_POINTS) or 1
    return list(points[len(points) - 1 :: -step][::-1]) if points else []


def _counted_times(runs: Sequence[Run], now: datetime) -> list[datetime]:
    """When each run counts from: a clock that was set back makes no room."""
    times, reached = list[datetime](), datetime.min.replace(tzinfo=now.tzinfo)
    for run in runs:
        reached = max(reached, min(datetime.fromisoformat(run.reserved.time), now))
        times.append(reached)
    return times


def _returns(runs: Sequence[Run], limits: Limits) -> list[dict[str, Any]]:
    """When runs leave the window of 31 days, and what is used of the month's limit then."""
    if limits.per_month is None:
        return []
    now, budget = clock.utc_now(), limits.per_month
    times = _counted_times(runs, now)
    inside = [i for i, time in enumerate(times) if time > now - MONTH]
    found = []
    for i in inside[:10]:
        rest = added(run.in_month for run in runs[i + 1 :])
        then = (times[i] + MONTH + timedelta(seconds=1)).isoformat(timespec="seconds")
        used = _epsilon(rest, budget.delta, counts_as_gaussians(budget))
        found.append({"time": then, "used": used})
    return found


def _groups(runs: Sequence[Run], delta: float, by_mu: bool, key: Any) -> list[dict[str, Any]]:
    """Runs that have something in common, each group composed by itself; the dearest first."""
    groups: dict[str, list[Reserved]] = {}
    for run in runs:
        groups.setdefault(key(run) or UNSAID, []).append(run.reserved)
    rows = [
        {"name": name, "runs": len(group), "epsilon": _epsilon(added(group), delta, by_mu)}
        for name, group in groups.items()
    ]
    return sorted(rows, key=lambda row: -float(str(row["epsilon"])))[:50]


def _shown(run: Run) -> dict[str, Any]:
    reserved = run.reserved
    return {
        "run": reserved.run,
        "time": reserved.time,
        "epsilon": reserved.epsilon,
        "delta": reserved.delta,
        "method": run.method,
        "asker": run.asker,
        "purpose": run.purpose,
    }
