"""What an owner has reserved over all runs of a ledger, and the ceilings that it must stay under.

Ceilings are counted from reservations, not from charges: there are no refunds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hedgerow import clock
from hedgerow.errors import BudgetExceeded, LedgerError, PlanError, SettingsError
from hedgerow.model.tradeoff import epsilon_of
from hedgerow.privacy.accounting.gaussian import mu_of
from hedgerow.privacy.accounting.mixed import mixed_epsilon, mixed_mu
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.accounting.pure import pure_mu
from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.ledger.store import COORDINATOR, LineStore

MONTH = timedelta(days=31)
# Of a settled gap: more than any delta has room for, so that the Renyi bound counts instead.
UNKNOWN_COORDINATES = 2**120


@dataclass(frozen=True)
class Spending:
    """What an owner has reserved so far, over all runs of a ledger or those of a month."""

    mu: float  # of all runs; pure ones as what they book as
    coordinates: int
    runs: int
    pure: float = 0.0  # pure epsilons, added up
    gaussian: float | None = None  # mu of the runs that are not pure; None = all of it
    alone: tuple[float, float] | None = None  # (delta, epsilon) that the only run was reserved at
    composed: float = 0.0  # mu of pure runs that have a delta, and count beside others by it
    composed_pure: float = 0.0  # what these have in `pure`

    @property
    def sides(self) -> tuple[float, float]:
        """The two filters of a mixed ledger: mu of what counts by it, and pure epsilons.

        A run is on the side that its plan says: without a delta it is pure.
        """
        return math.hypot(self._others, self.composed), max(0.0, self.pure - self.composed_pure)

    @property
    def _others(self) -> float:
        return self.mu if self.gaussian is None else self.gaussian

    def epsilon(self, delta: float, accounting: str = "exact", as_gaussians: bool = False) -> float:
        """Gaussian runs by their mu, pure ones by their sum, the two composed.

        Runs are chosen after looking at earlier ones, so a bound must hold for every such choice.
        Gaussian parameters add up whatever is chosen, and so do pure epsilons; of both together see
        `accounting/mixed.py`. Where every run is pure the Gaussians that cover them are a bound as
        well, and the smaller one holds. With `as_gaussians` they are the bound wherever there is a
        Gaussian run: a budget without a share for pure runs is one filter, and counts so.
        """
        if delta == 0:
            return math.inf if self._others else self.pure
        gaussian, pure = self.sides
        if self._others and pure and not as_gaussians:
            return mixed_epsilon(gaussian, pure, delta, self.coordinates, accounting)
        bound = epsilon_of(self.mu, delta, self.coordinates, accounting)
        if self.alone is not None and delta >= self.alone[0]:
            bound = min(bound, self.alone[1])  # composed by itself, nothing to choose after it
        return min(bound, self.pure) if self.pure and not self._others else bound

    def with_plan(self, plan: Plan) -> Spending:
        budget = plan.budget
        return self.together(
            _of_one(budget.mu, budget.coordinates, budget.pure_epsilon, plan.privacy.delta,
                    plan.epsilon)
        )  # fmt: skip

    def together(self, other: Spending) -> Spending:
        """Both, one after the other."""
        return Spending(
            math.hypot(self.mu, other.mu),
            self.coordinates + other.coordinates,
            self.runs + other.runs,
            self.pure + other.pure,
            math.hypot(self._others, other._others),
            None if self.runs and other.runs else self.alone or other.alone,
            math.hypot(self.composed, other.composed),
            self.composed_pure + other.composed_pure,
        )

    def room(self, budget: Budget) -> float:
        """The epsilon of the dearest run that still fits, at the budget's own delta.

        Runs compose by the squares of their mu, so it is more than the difference of two epsilons.
        """
        if budget.pure is not None:
            return self._room_of_sides(budget, budget.pure)
        alone = self.pure > 0 and not self.gaussian  # so a further pure run simply adds up
        added = max(0.0, budget.epsilon - self.pure) if alone else 0.0
        if budget.delta == 0:
            return added if self.pure or self.mu else budget.epsilon
        ceiling = mu_of(budget.epsilon, budget.delta, self.coordinates)
        left = math.sqrt(max(0.0, ceiling**2 - self.mu**2))
        return max(added, epsilon_of(left, budget.delta, self.coordinates))

    def _room_of_sides(self, budget: Budget, share: float) -> float:
        """The same where pure runs have a share: the larger of what either kind has left."""
        (gaussian, pure), delta = self.sides, budget.delta
        ceiling = mixed_mu(budget.epsilon, share, delta, self.coordinates)
        if gaussian > ceiling:
            return 0.0
        left = math.sqrt(ceiling**2 - gaussian**2)
        return max(share - pure, epsilon_of(left, delta, self.coordinates))


def _of_one(mu: float, coordinates: int, pure: float, delta: float, epsilon: float) -> Spending:
    """What one run costs; a pure epsilon that is infinite means Gaussian noise."""
    alone = (delta, epsilon)
    if pure == math.inf:
        return Spending(mu, coordinates, 1, 0.0, mu, alone)
    by_mu = (mu, pure) if delta else (0.0, 0.0)
    return Spending(mu, coordinates, 1, pure, 0.0, alone, *by_mu)


@dataclass(frozen=True)
class Budget:
    """A ceiling over everything a ledger ever records for one owner.

    Parameters
    ----------
    epsilon, delta : what all runs together may cost
    pure : the share of it that runs of pure epsilon may add up to. With it these are a filter of
        their own, and Gaussian runs may take what the whole leaves beside all of the share. None:
        there is one filter, in which pure runs beside Gaussian ones count as Gaussians, which is
        dear.
    """

    epsilon: float
    delta: float
    pure: float | None = None

    def __post_init__(self) -> None:
        if self.pure is not None and not (0 < self.pure <= self.epsilon and self.delta > 0):
            raise SettingsError(
                f"a share of {self.pure:g} for pure runs, of a budget of epsilon = "
                f"{self.epsilon:g} at delta = {self.delta:g}, is none: it is above 0, at most the "
                "whole, and has a delta beside it. Nothing was spent."
            )

    @property
    def words(self) -> str:
        share = "" if self.pure is None else f", {self.pure:g} of it for pure runs"
        return f"epsilon = {self.epsilon:g} at delta = {self.delta:g}{share}"

    def whole(self, coordinates: int) -> float:
        """The squares of mu that all of it is worth, pure epsilons as what they book as."""
        if self.pure is None:
            return mu_of(self.epsilon, self.delta, coordinates) ** 2
        gaussian = mixed_mu(self.epsilon, self.pure, self.delta, coordinates)
        return gaussian**2 + pure_mu(self.pure) ** 2

    def counts(self, spent: Spending) -> float:
        """The epsilon of what was spent, by the same filters as `objection`."""
        return spent.epsilon(self.delta, as_gaussians=self.pure is None)

    def objection(self, before: Spending, after: Spending, of: str = "epsilon") -> str:
        """Why what was spent would exceed it; "" if it does not."""
        limit = f"the budget of {self.epsilon:g} at delta = {self.delta:g}"
        first, then, what = self.counts(before), self.counts(after), of
        if self.pure is not None:
            if after.sides[1] > self.pure * (1 + 1e-9):
                return (
                    f"take the pure epsilon from {before.sides[1]:.3f} to {after.sides[1]:.3f}, "
                    f"over the share of {self.pure:g} that {limit} has for pure runs"
                )
            first, then = (self._with_all_of_the_share(one) for one in (before, after))
            what = f"{of}, with the share of {self.pure:g} for pure runs,"
        if then > self.epsilon * (1 + 1e-9):
            return f"take {what} from {first:.3f} to {then:.3f}, over {limit}"
        return ""

    def _with_all_of_the_share(self, spent: Spending) -> float:
        """Gaussian runs beside all that pure ones may ever take: that is fixed, so it is a filter.

        What pure runs have taken so far is not: whoever saw a release could choose between them.
        """
        assert self.pure is not None
        return mixed_epsilon(spent.sides[0], self.pure, self.delta, spent.coordinates)


def counts_as_gaussians(budget: Budget | None) -> bool:
    """Whether a ledger of this budget counts pure runs beside Gaussian ones as Gaussians."""
    return budget is not None and budget.pure is None


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
        of = "the last 31 days' epsilon" if self.monthly else "epsilon"
        if objection := limit.objection(spent, spent.with_plan(plan), of):
            raise BudgetExceeded(
                f"The plan would {objection}. No party was asked and nothing was spent. Plan with "
                "a smaller epsilon, or end the use of these rows."
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
    by_mu = counts_as_gaussians(budget_of(ledger, owner))
    return [
        LedgerRun(
            run.run, run.time, method, run.epsilon, run.delta,
            added(runs[:place], [mu for seq, mu in gaps if seq < run.seq]).epsilon(
                delta, as_gaussians=by_mu
            ),
        )
        for place, (run, method) in enumerate(zip(runs, methods, strict=True), start=1)
    ]  # fmt: skip


def month_spending(ledger: LineStore, owner: str = COORDINATOR) -> Spending:
    """What an owner reserved in the last 31 days, and what gaps settled in them booked."""
    settled = of_month(ledger, owner, "settle")
    return _added(of_month(ledger, owner, "reserve"), settled, monthly=True)


def set_budget(ledger: LineStore, budget: Budget, owner: str = COORDINATOR) -> None:
    """Record an owner's ceiling. It can be set once; a ledger does not forget."""
    with ledger.transaction():  # another process may be setting it
        known = budget_of(ledger, owner)
        if known is None:
            values = {"epsilon": budget.epsilon, "delta": budget.delta}
            if budget.pure is not None:
                values["pure"] = budget.pure
            ledger.append(owner, "open", values=values)
    if known not in (None, budget):
        raise LedgerError(
            f"this ledger has a budget of {known.words}; "
            "it cannot be changed. Use another ledger only for other rows."
        )


def budget_of(ledger: LineStore, owner: str = COORDINATOR) -> Budget | None:
    lines = ledger.lines(owner, "open")
    if not lines:
        return None
    values = lines[0].values
    pure = values.get("pure")
    return Budget(
        float(values["epsilon"]), float(values["delta"]), None if pure is None else float(pure)
    )


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

    @property
    def spending(self) -> Spending:
        """What it costs by itself."""
        return _of_one(self.mu, self.coordinates, self.pure, self.delta, self.epsilon)


def added(reserved: Iterable[Reserved], booked: Sequence[float] = ()) -> Spending:
    """Any runs of one owner, composed; the mu of settled gaps count as Gaussian runs."""
    runs = list(reserved)
    mu = math.sqrt(math.fsum(mu**2 for mu in (*(run.mu for run in runs), *booked)))
    noisy = (run.mu for run in runs if run.pure == math.inf)
    gaussian = math.sqrt(math.fsum(mu**2 for mu in (*noisy, *booked)))
    pure = math.fsum(run.pure for run in runs if run.pure < math.inf)
    alone = (runs[0].delta, runs[0].epsilon) if len(runs) == 1 and not booked else None
    numbers = sum(run.coordinates for run in runs) + UNKNOWN_COORDINATES * bool(booked)
    composed = [run for run in runs if run.pure < math.inf and run.delta > 0]
    by_mu = math.sqrt(math.fsum(run.mu**2 for run in composed))
    by_mu_pure = math.fsum(run.pure for run in composed)
    # A gap counts as a run: whatever comes after it is not alone.
    n_runs = len(runs) + len(booked)
    return Spending(mu, numbers, n_runs, pure, gaussian, alone, by_mu, by_mu_pure)


def of_month(ledger: LineStore, owner: str, kind: str) -> list[Line]:
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
