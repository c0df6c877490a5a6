"""Budgets of pure epsilon: rounds of queries, each about one tree, priced on its paths.

What a slot costs is settled during the run, node by node; `paths.py` has the filter and its proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hedgerow.errors import PlanError
from hedgerow.privacy.accounting.accountant import Accountant, Price
from hedgerow.privacy.accounting.budget import (
    NO_ADAPTIVE_SLOTS,
    DeclaredQuery,
    PlanBudget,
    Question,
    Slot,
)
from hedgerow.privacy.accounting.paths import (
    Paths,
    Priced,
    further_attempts,
    path_costs,
    priced_of,
)
from hedgerow.privacy.accounting.pure import (
    amplified,
    before_sampling,
    composed,
    composed_delta,
    pure_mu,
)
from hedgerow.privacy.accounting.rounds import Branches, Draw, Round
from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.settings import Privacy


@dataclass(frozen=True)
class PathQueries:
    """What a method says of pure queries: their rounds, and what a retry may take.

    Each round is (slots, its part of what all cost, rate of its sample); a further attempt may take
    the part `retry` of the whole.
    """

    retry: float
    rounds: tuple[tuple[int, float, float], ...]
    kinds: tuple[str, ...] = ()  # of slots beyond the listed ones; there are none

    def budget(self, declared: Sequence[DeclaredQuery], privacy: Privacy) -> PathBudget:
        """The dearest rounds that cost no more than the promise."""
        slots = tuple(
            Slot(q.name, q.kind, 0.0, q.coordinates) for q in declared for _ in range(q.repeat)
        )
        return PathBudget(slots, privacy, branches=self._dearest(privacy))

    def branches(self, unit: float) -> Branches:
        """With so much to spend on a part of 1."""
        whole = math.fsum(part for _, part, _ in self.rounds)
        rounds = tuple(
            Round(slots, before_sampling(unit * part, rate) * (1 - 1e-12), rate)
            for slots, part, rate in self.rounds
        )
        return Branches(unit * whole * self.retry, rounds)

    def _dearest(self, privacy: Privacy) -> Branches:
        whole = math.fsum(part for _, part, _ in self.rounds)
        low = privacy.epsilon / (whole * (1 + privacy.spare * self.retry)) * (1 - 1e-12)
        if privacy.accounting == "pure":
            return self.branches(low)

        def fits(unit: float) -> bool:
            tried = self.branches(unit)
            again = privacy.spare * tried.retry
            left = privacy.epsilon - again
            spent = composed_delta(tried.costs(), left) * math.exp(again)
            return left > 0 and spent <= privacy.delta * (1 - 1e-9)

        high = 2 * low
        while fits(high) and high < 1e6:
            low, high = high, 2 * high
        for _ in range(24):  # to a ten-millionth
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return self.branches(low)


@dataclass(frozen=True)
class PathBudget(PlanBudget):
    """Rounds cost the dearest path of their tree; rounds and spare attempts add up or compose."""

    branches: Branches = field(kw_only=True)

    mechanism = "laplace"
    mu_means = "mu that it books as beside Gaussian runs"

    def _check(self) -> None:
        if self.privacy.accounting == "renyi":
            raise PlanError(
                "pure accounting goes with rounds of pure questions, and Renyi's with Gaussian "
                "ones. Nothing was asked. Make the plan again."
            )
        if self.privacy.trusted.local:  # however it is counted: see `Privacy`
            raise PlanError(
                "pure questions are asked where the coordinator or the parties are trusted, "
                "and the plan trusts nobody. Nothing was asked. Make the plan again."
            )
        self.branches.check(len(self.slots))
        if self.adaptive != NO_ADAPTIVE_SLOTS or any(slot.mu != 0 for slot, _ in self.repeated):
            raise PlanError("a slot of pure questions has no mu. Nothing was asked.")

    @cached_property
    def mu(self) -> float:
        """As one pure epsilon; or, where nothing is asked again, round by round if that is less."""
        whole = pure_mu(self.pure_epsilon)
        if self.privacy.spare:
            return whole
        rounds = math.fsum(n * pure_mu(cost) ** 2 for cost, n in self.branches.costs())
        return min(whole, math.sqrt(rounds))

    @property
    def coordinates(self) -> int:
        """None: discrete Laplace noise is exactly private."""
        return 0

    @property
    def released(self) -> int:
        return sum(slot.coordinates for slot in self.slots)

    def _epsilon(self) -> float:
        return self.epsilon_at(self.privacy.delta)

    def epsilon_at(self, delta: float) -> float:
        # Further attempts cost at most r together and may come anywhere. Let them alone be answered
        # from the other table: that changes every chance by a factor of e^r at most, and what is
        # left are the rounds. So epsilon grows by r, and delta by the factor e^r.
        again = self.privacy.spare * self.branches.retry
        return composed(self.branches.costs(), delta * math.exp(-again)) + again

    @property
    def pure_epsilon(self) -> float:
        return self.branches.epsilon(self.privacy.spare)

    def epsilon_of_less_noise(self, ratio: float) -> float:
        """Noise is divided by a pure epsilon."""
        return ratio * self.privacy.epsilon

    def slot(self, index: int, kind: str, mu: float) -> Slot | None:
        fits = index < len(self.slots) and self.slots[index].kind == kind
        return self.slots[index] if fits else None

    def nodes(self, question: Question, part: float = 1.0) -> Priced:
        return self._priced(question).scaled(part)

    def retry(self, index: int, mu: float, question: Question) -> tuple[float, float]:
        """Spares are paid in advance, up to `branches.retry`."""
        return mu, min(1.0, self.branches.retry / self._priced(question).most * (1 - 1e-12))

    @staticmethod
    def _priced(question: Question) -> Priced:
        priced = question.priced()
        if priced is None:
            raise PlanError(f"a pure plan has no {question.kind} questions; nothing was asked")
        return priced

    def accountant(self, charges: Iterable[Line] = ()) -> PathAccountant:
        return PathAccountant(self, charges)

    @property
    def sampled(self) -> bool:
        return any(round_.rate < 1 for round_, _ in self.branches.repeated)

    def draw_of(self, slot: int) -> Draw | None:
        return self.branches.draw_of(slot)

    def path_costs(self, charges: Iterable[Line]) -> dict[int, float]:
        return path_costs(list(charges)) if len(self.branches.rounds) == 1 else {}

    def reserved(self) -> dict[str, Any]:
        return {**super().reserved(), "pure": self.pure_epsilon}

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "branches": self.branches.to_dict()}

    def price_words(self, price: Price) -> str:
        return f"epsilon = {price.epsilon:.4f}"

    def price_of_each(self, group: dict[str, Any]) -> tuple[str, str]:
        return "by node", ""

    def notes(self) -> list[str]:
        return self.branches.words(self.privacy.spare)


class PathAccountant(Accountant):
    """The filter of `paths.py`: no path of a round's tree goes beyond the round's epsilon."""

    _budget: PathBudget

    def accept(self, slot: int, price: Price) -> dict[str, Any]:
        """What a question costs any row; refuses what no path has left."""
        if price.nodes is None or not 0 <= slot < len(self._budget.slots):
            raise PlanError(
                f"slot {slot} of a pure plan says what each node pays; nothing was sent"
            )
        if reason := self._objection(slot, price.nodes):
            raise PlanError(f"slot {slot} cannot be charged: {reason}. Nothing was asked.")
        return {"epsilon": float(price.nodes.most)}

    def _objection(self, slot: int, priced: Priced) -> str:
        branches, again = self._budget.branches, bool(self.of_slot(slot))
        paths = Paths.of(branches.of_round(slot, self.lines))
        ceiling = branches.round_of(slot)[1].epsilon
        return paths.objection(priced, ceiling, branches.retry if again else None)

    def epsilon(self) -> float:
        """Every round its dearest path, every further attempt on top."""
        branches = self._budget.branches
        rounds: dict[int, list[Line]] = {}
        for line in self.lines:
            rounds.setdefault(branches.round_of(line.slot)[0], []).append(line)
        costs = [
            amplified(Paths.of(lines).most(), branches.rounds[number].rate)
            for number, lines in rounds.items()
        ]
        return math.fsum([*costs, *further_attempts(self.lines)])

    def _fault_of_price(self, line: Line) -> str:
        priced = priced_of(line)
        if not math.isclose(float(line.values["epsilon"]), priced.most, rel_tol=1e-12):
            return "charges another price than its nodes pay"
        reason = self._objection(line.slot, priced)
        return f"charges what it may not: {reason}" if reason else ""
