"""What a run has charged so far, line by line, and what later charges need to know of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from hedgerow.privacy.accounting.plan import LEAST_MU, Plan, Rest
from hedgerow.privacy.ledger.ledger import Line


@dataclass(frozen=True)
class Drawn:
    """What the slots priced during a run have taken so far, first attempts only."""

    mu: float
    numbers: int

    def fits_with(self, mu: float, numbers: int, rest: Rest) -> bool:
        return (
            mu >= LEAST_MU
            and 1 <= numbers <= rest.coordinates - self.numbers
            and math.hypot(self.mu, mu) <= rest.mu
        )


class Charges:
    """Charges of a run so far, in order, with what later ones need to know of them."""

    def __init__(self, plan: Plan, lines: Iterable[Line] = ()) -> None:
        self._listed = len(plan.slots)
        self.lines: list[Line] = []
        self._attempts: dict[int, list[Line]] = {}  # by slot
        self._squares, self._numbers = list[float](), 0  # of mu; of first attempts beyond listed
        for line in lines:
            self.add(line)

    @property
    def newest(self) -> int:
        """Number of the last line, 0 if there is none."""
        return self.lines[-1].seq if self.lines else 0

    @property
    def extra(self) -> int:
        """Attempts beyond a slot's first."""
        return len(self.lines) - len(self._attempts)

    def add(self, line: Line) -> None:
        self.lines.append(line)
        attempts = self._attempts.setdefault(line.slot, [])
        attempts.append(line)
        if line.slot >= self._listed and len(attempts) == 1:
            values = line.values
            self._squares.append(float(values["mu"]) ** 2)
            self._numbers += int(values["numbers"])

    def of_slot(self, slot: int) -> list[Line]:
        return self._attempts.get(slot, [])

    def last_attempt(self, slot: int) -> int:
        return max((line.attempt for line in self.of_slot(slot)), default=0)

    def drawn_from_rest(self) -> Drawn:
        """Adds up the first attempt at every slot beyond the listed ones; retries are spares."""
        return Drawn(math.sqrt(math.fsum(self._squares)), self._numbers)
