"""What an owner has reserved over all runs of a ledger, and the ceilings that it must stay under.

Ceilings are counted from reservations, not from charges: there are no refunds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hedgerow import clock
from hedgerow.errors import BudgetExceeded, LedgerError, PlanError
from hedgerow.model.tradeoff import epsilon_of
from hedgerow.privacy.accounting.gaussian import mu_of
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.ledger.store import COORDINATOR, LineStore

MONTH = timedelta(days=31)
# Of a settled gap: more than any delta has room for, so that the Renyi bound counts instead.
UNKNOWN_COORDINATES = 2**120


@dataclass(frozen=True)
class Budget:
    """A ceiling over everything a ledger ever records for one owner."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Spending:
    """What an owner has reserved so far, over all runs of a ledger or those of a month."""

    mu: float  # of all runs; pure ones as what they book as
    coordinates: int
    runs: int
    pure: float = 0.0  # pure epsilons, added up
    gaussian: float | None = None  # mu of the runs that are not pure; None = all of it
    alone: tuple[float, float] | None = None  # (delta, epsilon) that the only run was reserved at

    def epsilon(self, delta: float, accounting: str = "exact") -> float:
        """All as Gaussians; where every run is pure, also the plain sum, if it is smaller.

        Runs are chosen after looking at earlier ones, so a bound must hold for every such choice.
        Gaussian parameters add up whatever is chosen. A sum of pure epsilons does as well: below
        it nothing can go wrong at all. Pure epsilons on top of Gaussian runs do not: whoever saw
        a lucky Gaussian release could take whichever of two bounds is worse then.
        """
        others = self.mu if self.gaussian is None else self.gaussian
        if delta == 0:
            return math.inf if others else self.pure
        bound = epsilon_of(self.mu, delta, self.coordinates, accounting)
        if self.alone is not None and delta >= self.alone[0]:
            bound = min(bound, self.alone[1])  # composed by itself, nothing to choose after it
        return min(bound, self.pure) if self.pure and not others else bound

    def with_plan(self, plan: Plan) -> Spending:
        mu, others = (
            math.hypot(self.mu, plan.mu),
            self.mu if self.gaussian is None else self.gaussian,
        )
        budget = plan.budget
        pure = budget.pure_epsilon
        if pure == math.inf:  # as `_added` reads it from a ledger
            others, pure = math.hypot(others, budget.mu), 0.0
        sizes = self.coordinates + budget.coordinates
        alone = None if self.runs else (plan.privacy.delta, plan.epsilon)
        return Spending(mu, sizes, self.runs + 1, self.pure + pure, others, alone)

    def room(self, budget: Budget) -> float:
        """The epsilon of the dearest run that still fits, at the budget's own delta.

        Runs compose by the squares of their mu, so it is more than the difference of two epsilons.
        """
        alone = self.pure > 0 and not self.gaussian  # so a further pure run simply adds up
        added = max(0.0, budget.epsilon - self.pure) if alone else 0.0
        if budget.delta == 0:
            return added if self.pure or self.mu else budget.epsilon
        ceiling = mu_of(budget.epsilon, budget.delta, self.coordinates)
        left = math.sqrt(max(0.0, ceiling**2 - self.mu**2))
        return max(added, epsilon_of(left, budget.delta, self.coordinates))


@dataclass(frozen=True)
class LedgerRun:
    """A run that a ledger has counted."""

    run: str
    time: str  # when it was reserved, UTC
    method: str
    epsilon: float
    delta: float
    total: float  # epsilon of the ledger with this run, at the delta that was asked for


@dataclass(frozen=True)
class Ceiling:
    """A budget over every run of a ledger, or over those reserved in the last 31 days."""

    budget: Budget
    monthly: bool = False

    def spent(self, ledger: LineStore, owner: str) -> Spending:
        return month_spending(ledger, owner) if self.monthly else spending(ledger, owner)

    def check(self, ledger: LineStore, plan: Plan, owner: str) -> None:
        """Raise BudgetExceeded if the plan does not fit beside what is reserved already."""
        limit, spent = self.budget, self.spent(ledger, owner)
        before, after = spent.epsilon(limit.delta), spent.with_plan(plan).epsilon(limit.delta)
        if after > limit.epsilon * (1 + 1e-9):
            of = "the last 31 days' epsilon" if self.monthly else "epsilon"
            raise BudgetExceeded(
                f"The plan would take {of} from {before:.3f} to {after:.3f}, over the budget of "
                f"{limit.epsilon:g} at delta = {limit.delta:g}. No party was asked and nothing was "
                "spent. Plan with a smaller epsilon, or end the use of these rows."
            )


def spending(ledger: LineStore, owner: str = COORDINATOR) -> Spending:
    """Everything an owner has reserved: ceilings, not refunds; and what settled gaps booked."""
    return _added(ledger.lines(owner, "reserve"), ledger.lines(owner, "settle"))


def spending_before(ledger: LineStore, owner: str, line: int) -> Spending:
    """The same up to a line of the ledger."""
    kinds = (ledger.lines(owner, kind) for kind in ("reserve", "settle"))
    reserved, settled = ([one for one in lines if one.seq <= line] for lines in kinds)
    return _added(reserved, settled)


def spending_until(ledger: LineStore, run: str, owner: str = COORDINATOR) -> Spending:
    """What an owner had reserved with a run and before it; whoever resumes it finds the same."""
    reserved = ledger.lines(owner, "reserve")
    places = [place for place, line in enumerate(reserved, start=1) if line.run == run]
    return _added(reserved[: places[0]] if places else reserved)


def history_of(ledger: LineStore, delta: float, owner: str = COORDINATOR) -> list[LedgerRun]:
    """Every run that an owner reserved, in order, with the total after it."""
    lines, settled = ledger.lines(owner, "reserve"), ledger.lines(owner, "settle")
    runs = [Reserved.of(line) for line in lines]
    methods = [str(line.values["plan"]["method"]) for line in lines]
    gaps = [(line.seq, float(line.values["mu"])) for line in settled]
    return [
        LedgerRun(
            run.run, run.time, method, run.epsilon, run.delta,
            added(runs[:place], [mu for seq, mu in gaps if seq < run.seq]).epsilon(delta),
        )
        for place, (run, method) in enumerate(zip(runs, methods, strict=True), start=1)
    ]  # fmt: skip


def month_spending(ledger: LineStore, owner: str = COORDINATOR) -> Spending:
    """What an owner reserved in the last 31 days, and what gaps settled in them booked."""
    settled = _of_month(ledger, owner, "settle")
    return _added(_of_month(ledger, owner, "reserve"), settled, monthly=True)


def label_spending(ledger: LineStore, owner: str, monthly: bool = False) -> float:
    """Pure epsilons that an owner's labels have paid in agreements, which simply add up.

    They protect a label where one is replaced, so they are counted beside other runs, not with
    them. The coordinator has no labels: for it those of all parties are added up, because one
    label may have been in several parties' hands.
    """
    agreed, settled = (
        _of_month(ledger, owner, kind) if monthly else ledger.lines(owner, kind)
        for kind in ("disclose", "settle")
    )
    return _labels(agreed, settled, owner)


def label_spending_until(ledger: LineStore, owner: str, line: int) -> float:
    """The same up to a line of the ledger."""
    kinds = (ledger.lines(owner, kind) for kind in ("disclose", "settle"))
    agreed, settled = ([one for one in lines if one.seq <= line] for lines in kinds)
    return _labels(agreed, settled, owner)


def _labels(agreed: Sequence[Line], settled: Sequence[Line], owner: str) -> float:
    paid = [
        float(epsilon)
        for line in agreed
        for party, epsilon in line.values["agreement"].get("spends", {}).items()
        if owner in (party, COORDINATOR)
    ]
    return math.fsum([*paid, *(float(line.values["labels"]) for line in settled)])


def set_budget(ledger: LineStore, budget: Budget, owner: str = COORDINATOR) -> None:
    """Record an owner's ceiling. It can be set once; a ledger does not forget."""
    with ledger.transaction():  # another process may be setting it
        known = budget_of(ledger, owner)
        if known is None:
            values = {"epsilon": budget.epsilon, "delta": budget.delta}
            ledger.append(owner, "open", values=values)
    if known not in (None, budget):
        raise LedgerError(
            f"this ledger has a budget of epsilon = {known.epsilon:g} at delta = {known.delta:g}; "
            "it cannot be changed. Use another ledger only for other rows."
        )


def budget_of(ledger: LineStore, owner: str = COORDINATOR) -> Budget | None:
    lines = ledger.lines(owner, "open")
    if not lines:
        return None
    values = lines[0].values
    return Budget(float(values["epsilon"]), float(values["delta"]))


def unit_of(plan: Plan) -> str:
    """What a run's epsilon counts: adding or removing one unit, or replacing one."""
    return f"{plan.privacy.trusted.change} one {plan.unit}"


def check_unit(ledger: LineStore, plan: Plan, owner: str) -> None:
    """Epsilons of different units do not add up; refuse to pretend that they do."""
    for line in ledger.lines(owner, "reserve"):
        if line.values["unit"] != unit_of(plan):
            raise PlanError(
                f"this ledger counts what it costs to {line.values['unit']!r} and the plan what it "
                f"costs to {unit_of(plan)!r}; the two do not add up. Nothing was asked. Plan for "
                "the same unit and trust, or keep a ledger of its own for each, knowing that "
                "neither speaks for both."
            )


def _added(lines: Sequence[Line], settled: Sequence[Line] = (), monthly: bool = False) -> Spending:
    """Reservations added up, and beside them what settled gaps booked."""
    booked = [float(line.values["month_mu" if monthly else "mu"]) for line in settled]
    return added((Reserved.of(line) for line in lines), booked)


@dataclass(frozen=True)
class Reserved:
    """What one run reserved, without its plan: many of them are kept in memory."""

    seq: int
    time: str  # UTC
    run: str
    epsilon: float
    delta: float
    mu: float
    coordinates: int
    pure: float  # what it costs without any delta; infinite where its noise is Gaussian

    @classmethod
    def of(cls, line: Line) -> Reserved:
        values = line.values
        return cls(
            line.seq, line.time, line.run, float(values["epsilon"]), float(values["delta"]),
            float(values["mu"]), int(values["coordinates"]), float(values.get("pure", math.inf)),
        )  # fmt: skip


def added(reserved: Iterable[Reserved], booked: Sequence[float] = ()) -> Spending:
    """Any runs of one owner, composed; the mu of settled gaps count as Gaussian runs."""
    runs = list(reserved)
    mu = math.sqrt(math.fsum(mu**2 for mu in (*(run.mu for run in runs), *booked)))
    noisy = (run.mu for run in runs if run.pure == math.inf)
    gaussian = math.sqrt(math.fsum(mu**2 for mu in (*noisy, *booked)))
    pure = math.fsum(run.pure for run in runs if run.pure < math.inf)
    alone = (runs[0].delta, runs[0].epsilon) if len(runs) == 1 and not booked else None
    numbers = sum(run.coordinates for run in runs) + UNKNOWN_COORDINATES * bool(booked)
    # A gap counts as a run: whatever comes after it is not alone.
    return Spending(mu, numbers, len(runs) + len(booked), pure, gaussian, alone)


def _of_month(ledger: LineStore, owner: str, kind: str) -> list[Line]:
    """An owner's lines of a kind of the last 31 days, by the times of the ledger (UTC).

    A time in the future counts, and a line is no older than one before it: a clock that was set
    back makes no room, neither then nor when it is right again.
    """
    now = clock.utc_now()
    since = reached = now - MONTH
    found = []
    lines = [*ledger.lines(owner, "boot"), *ledger.lines(owner, kind)]
    for line in sorted(lines, key=lambda line: line.seq):
        time = datetime.fromisoformat(line.time)
        if time <= now:  # else the clock was ahead, and says nothing of later lines
            reached = max(reached, time)
        if line.kind == kind and max(time, reached) > since:
            found.append(line)
    return found
