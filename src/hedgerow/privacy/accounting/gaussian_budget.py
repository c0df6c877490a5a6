"""Budgets of Gaussian noise: listed slots with a mu each, then slots priced during the run.

A slot fixes its mu, not its sigma: what is asked may depend on earlier releases, what it may cost
may not. Spare attempts are inside the calibration.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hedgerow.errors import PlanError
from hedgerow.model.tradeoff import EXACT_LIMIT, epsilon_of
from hedgerow.privacy.accounting.accountant import Accountant, Price
from hedgerow.privacy.accounting.budget import (
    LEAST_MU,
    MAX_NUMBERS,
    AdaptiveSlots,
    DeclaredQuery,
    PlanBudget,
    Question,
    Slot,
)
from hedgerow.privacy.accounting.gaussian import mu_of
from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.settings import Privacy


@dataclass(frozen=True)
class AdaptiveQueries:
    """What a method settles during the run: its part of mu^2, the most that a retry may take."""

    share: float = 0.0
    retry: float = 0.0
    coordinates: int = 0
    slots: int = 0
    kinds: tuple[str, ...] = ()

    def budget(self, declared: Sequence[DeclaredQuery], privacy: Privacy) -> GaussianBudget:
        """Give each query its mu so that all slots and spares cost exactly (epsilon, delta)."""
        asked = [q for q in declared if q.share > 0 for _ in range(q.repeat)]
        if not asked and not self.slots:
            raise PlanError("the method asks nothing; there is nothing to plan")
        sizes = [*(query.coordinates for query in asked), self.coordinates]
        shares = [*(query.share for query in asked), self.share]
        retries = [*(query.share for query in asked), self.retry]
        coordinates = sum(sizes) + privacy.spare * max(sizes)
        total = mu_of(privacy.epsilon, privacy.delta, coordinates, privacy.accounting)
        whole = math.fsum(shares) + privacy.spare * max(retries)

        def mu(share: float) -> float:
            return total * math.sqrt(share / whole) * (1 - 1e-12)

        slots = tuple(Slot(q.name, q.kind, mu(q.share), q.coordinates) for q in asked)
        kinds = tuple(sorted(self.kinds))
        prices = (mu(self.share), mu(self.retry))
        adaptive = AdaptiveSlots(*prices, self.coordinates, self.slots, kinds)
        return GaussianBudget(slots, privacy, adaptive)


@dataclass(frozen=True)
class GaussianBudget(PlanBudget):
    """Squares of mu add up over listed slots, adaptive ones and spares."""

    mechanism = "gaussian"
    mu_means = "mu (Gaussian privacy parameter)"

    def _check(self) -> None:
        if self.privacy.accounting == "pure":
            raise PlanError(
                "pure accounting goes with rounds of pure questions, and Renyi's with Gaussian "
                "ones. Nothing was asked. Make the plan again."
            )
        for slot, _ in self.repeated:
            if not LEAST_MU <= slot.mu < math.inf:
                raise PlanError(
                    f"slot {slot.name!r} has mu = {slot.mu}; it must be at least {LEAST_MU:g}. "
                    "Nothing was asked. Raise epsilon or plan fewer trees."
                )

    @cached_property
    def mu(self) -> float:
        mus = [slot.mu for slot in self.slots]
        dearest = max([*mus, self.adaptive.retry])  # what a spare attempt may cost
        squares = math.fsum(mu**2 for mu in [*mus, self.adaptive.mu])
        return math.sqrt(squares + self.privacy.spare * dearest**2)

    @cached_property
    def coordinates(self) -> int:
        sizes = [*(slot.coordinates for slot in self.slots), self.adaptive.coordinates]
        return sum(sizes) + self.privacy.spare * max(sizes)

    @property
    def released(self) -> int:
        return self.coordinates

    def _epsilon(self) -> float:
        return self.epsilon_of_mu(self.mu)

    def epsilon_of_mu(self, mu: float) -> float:
        """What charges of this total mu cost, at the plan's delta.

        Noise of a plan beyond EXACT_LIMIT may be too narrow for tau, whatever part is charged.
        """
        accounting = self.privacy.accounting if self.mu <= EXACT_LIMIT else "renyi"
        return epsilon_of(mu, self.privacy.delta, self.coordinates, accounting)

    def epsilon_at(self, delta: float) -> float:
        return math.inf if delta == 0 else epsilon_of(self.mu, delta, self.coordinates)

    @property
    def pure_epsilon(self) -> float:
        return math.inf

    def epsilon_of_less_noise(self, ratio: float) -> float:
        return self.epsilon_of_mu(ratio * self.mu)

    def slot(self, index: int, kind: str, mu: float) -> Slot | None:
        if index < len(self.slots):
            return self.slots[index] if self.slots[index].kind == kind else None
        if kind not in self.adaptive.kinds or not LEAST_MU <= mu <= self.adaptive.mu:
            return None
        return Slot("later", kind, mu, min(self.adaptive.coordinates, MAX_NUMBERS))

    def nodes(self, question: Question, part: float = 1.0) -> None:
        return None

    def retry(self, index: int, mu: float, question: Question) -> tuple[float, float]:
        """A listed slot costs the same again, one priced during the run at most its `retry`."""
        return (mu if index < len(self.slots) else min(mu, self.adaptive.retry)), 1.0

    def accountant(self, charges: Iterable[Line] = ()) -> GaussianAccountant:
        return GaussianAccountant(self, charges)

    def price_words(self, price: Price) -> str:
        return f"mu = {price.mu:.4f}"

    def each_in_words(self, group: dict[str, Any]) -> str:
        return f", mu = {group['mu']:.4f} each"

    def price_of_each(self, group: dict[str, Any]) -> tuple[str, str]:
        part = group["repeat"] * group["mu"] ** 2 / self.mu**2
        return f"{group['mu']:.4f}", f"{100 * part:.1f} %"


@dataclass(frozen=True)
class Drawn:
    """What the slots priced during a run have taken so far, first attempts only."""

    mu: float
    numbers: int

    def fits_with(self, mu: float, numbers: int, adaptive: AdaptiveSlots) -> bool:
        return (
            mu >= LEAST_MU
            and 1 <= numbers <= adaptive.coordinates - self.numbers
            and math.hypot(self.mu, mu) <= adaptive.mu
        )


class GaussianAccountant(Accountant):
    """The Gaussian privacy filter: slots priced during the run stop at what they have together."""

    _budget: GaussianBudget

    def __init__(self, budget: GaussianBudget, charges: Iterable[Line] = ()) -> None:
        self._squares, self._numbers = list[float](), 0  # of first attempts beyond the listed slots
        self._spent, self._counted = 0.0, 0  # squares of mu of so many attempts, all of them
        super().__init__(budget, charges)

    def add(self, line: Line) -> None:
        super().add(line)
        if line.slot >= len(self._budget.slots) and len(self.of_slot(line.slot)) == 1:
            self._squares.append(float(line.values["mu"]) ** 2)
            self._numbers += int(line.values["numbers"])

    def drawn(self) -> Drawn:
        """Adds up the first attempt at every slot beyond the listed ones; retries are spares."""
        return Drawn(math.sqrt(math.fsum(self._squares)), self._numbers)

    def epsilon(self) -> float:
        for line in self.lines[self._counted :]:
            self._spent += float(line.values["mu"]) ** 2
        self._counted = len(self.lines)
        return self._budget.epsilon_of_mu(math.sqrt(self._spent))

    def accept(self, slot: int, price: Price) -> dict[str, Any]:
        """A listed slot has its price; one priced during the run must fit into what is left."""
        listed, adaptive = self._budget.slots, self._budget.adaptive
        if price.nodes is not None:
            raise PlanError(f"slot {slot} has a mu, and no node pays for it; nothing was asked")
        if 0 <= slot < len(listed):
            return {"mu": float(listed[slot].mu)}
        if not len(listed) <= slot < self._budget.n_slots:
            raise PlanError(f"the plan has no slot {slot}; nothing was asked")
        if not self._fits(slot, price.mu, price.numbers):
            before = self.drawn()
            raise PlanError(
                f"slot {slot} asks for mu = {price.mu:.6g} and {price.numbers} numbers, and the "
                f"part of the plan that is priced during the run has mu = {adaptive.mu:.6g} and "
                f"{adaptive.coordinates} numbers, of which mu = {before.mu:.6g} and "
                f"{before.numbers} are drawn. Nothing was asked."
            )
        return {"mu": float(price.mu), "numbers": int(price.numbers)}

    def _fits(self, slot: int, mu: float, numbers: int) -> bool:
        adaptive = self._budget.adaptive
        if self.of_slot(slot):
            return LEAST_MU <= mu <= adaptive.retry and 1 <= numbers <= adaptive.coordinates
        return self.drawn().fits_with(mu, numbers, adaptive)

    def _fault_of_price(self, line: Line) -> str:
        if "prices" in line.arrays:
            return "charges nodes of a tree, and its plan has no prices of nodes"
        mu, listed = float(line.values["mu"]), self._budget.slots
        if line.slot < len(listed):
            same = math.isclose(mu, listed[line.slot].mu, rel_tol=1e-12)
            return "" if same else "charges another price than its slot's"
        numbers = line.values.get("numbers")
        if not isinstance(numbers, int):
            return "does not say how many numbers it released"
        if not self._fits(line.slot, mu, numbers):
            return "charges more than is left of the part priced during the run"
        return ""
