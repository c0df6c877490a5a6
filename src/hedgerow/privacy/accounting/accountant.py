"""An accountant: what one owner has charged in a run so far, and what may still be charged.

The coordinator and every party each keep one, read from their own ledger. It refuses before a line
is written; `verify` asks it again about every line that was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.privacy.accounting.paths import Priced
from hedgerow.privacy.ledger.line import Line

if TYPE_CHECKING:
    from hedgerow.privacy.accounting.budget import PlanBudget


@dataclass(frozen=True)
class Price:
    """What one attempt at a slot offers to pay: mu for its numbers, or an epsilon a node."""

    mu: float = 0.0
    numbers: int = 0
    nodes: Priced | None = None

    @property
    def epsilon(self) -> float:
        """What the nodes cost any one row; 0 where a mu is paid."""
        return 0.0 if self.nodes is None else self.nodes.most


FIXED = Price()  # of a slot whose price the plan has fixed already


class Accountant(ABC):
    """Charges of a run so far, in order, with what later ones need to know of them."""

    def __init__(self, budget: PlanBudget, charges: Iterable[Line] = ()) -> None:
        self._budget = budget
        self.lines: list[Line] = []
        self._attempts: dict[int, list[Line]] = {}  # by slot
        for line in charges:
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
        self._attempts.setdefault(line.slot, []).append(line)

    def of_slot(self, slot: int) -> list[Line]:
        return self._attempts.get(slot, [])

    def last_attempt(self, slot: int) -> int:
        return max((line.attempt for line in self.of_slot(slot)), default=0)

    @abstractmethod
    def accept(self, slot: int, price: Price) -> dict[str, Any]:
        """What the line of a charge says that it costs; PlanError if the budget does not cover it.

        Whether an attempt is left is not asked here.
        """

    @abstractmethod
    def epsilon(self) -> float:
        """What these charges cost together."""

    def fault(self, line: Line) -> str:
        """What is wrong with a charge that a ledger has after these; "" if nothing is."""
        budget = self._budget
        if not 0 <= line.slot < budget.n_slots:
            return "charges a slot that was never reserved"
        if self.extra + bool(self.of_slot(line.slot)) > budget.privacy.spare:
            return "charges more attempts than the plan reserved"
        kind = line.values.get("kind")  # parties say what they were asked
        listed = line.slot < len(budget.slots)
        if kind and kind not in ({budget.slots[line.slot].kind} if listed else budget.kinds()):
            return "charges a question that its slot is not for"
        return self._fault_of_price(line)

    @abstractmethod
    def _fault_of_price(self, line: Line) -> str: ...
