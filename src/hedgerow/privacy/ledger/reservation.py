"""A plan entered into a ledger: the ceiling is reserved once, then slots are charged one by one.

The coordinator and every party each keep one for a run; the rules are the same for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import LedgerError, PlanError, SlotSpent
from hedgerow.failpoints import fail_point
from hedgerow.packing import pack
from hedgerow.privacy.accounting.accountant import FIXED, Accountant, Price
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.line import Line
from hedgerow.privacy.ledger.spending import Budget, Ceiling, budget_of, check_unit, unit_of
from hedgerow.privacy.ledger.store import COORDINATOR


@dataclass(frozen=True, eq=False)
class Release:
    """A noisy sum that anyone may see: integer totals on a grid, and the noise they carry."""

    total: NDArray[np.int64]  # (coordinate,) in steps of 2**-bits
    bits: int
    sigmas: tuple[float, ...]  # noise deviation of each block, in units of the answer
    unit: float  # of a block of weight 1
    source: str  # where the noise came from; "secure" unless a test switched it

    @property
    def values(self) -> NDArray[np.float64]:
        return self.total.astype(np.float64) / 2.0**self.bits


@lru_cache(maxsize=64)
def _packed(values: tuple[tuple[str, Any], ...]) -> bytes:
    """What a charge says; parties of one process all write the same."""
    return pack(dict(values))


def reserved_facts(plan: Plan) -> dict[str, Any]:
    """What a reservation says of its plan and of the cost."""
    facts = {"hash": plan.hash, "plan": plan.table, "unit": unit_of(plan)}
    return {**facts, **plan.budget.reserved()}


def _entry(plan: Plan) -> bytes:
    """The same, packed; parties of one process all write the same."""
    kept: dict[str, Any] = vars(plan)  # frozen: packed once, as a cached property would be
    if "_entry" not in kept:
        kept["_entry"] = pack(reserved_facts(plan))
    entry: bytes = kept["_entry"]
    return entry


class Reservation:
    """One owner's hold on a plan. Creating it reserves the ceiling, or finds it reserved.

    With `at_once=False` the plan is only checked; `reserve` enters it later, and until then
    nothing can be charged.
    """

    def __init__(
        self,
        ledger: Ledger,
        plan: Plan,
        owner: str = COORDINATOR,
        budget: Budget | None = None,
        at_once: bool = True,
        per_month: Budget | None = None,
        federation: Mapping[str, Any] | None = None,
    ) -> None:
        self.ledger, self.plan, self.owner = ledger, plan, owner
        self._federation = dict(federation or {})  # who takes part, for whoever verifies the run
        self._budget, self._per_month = budget, per_month
        self._reserved_at = -1  # the ledger's `rolled_back` when this plan was seen reserved
        self._known = (-1, plan.budget.accountant())  # the same, and charges so far
        # The same, the last release's line, and slots that are released.
        self._released: tuple[int, int, frozenset[int]] = (-1, 0, frozenset())
        if at_once:
            self.reserve()
        else:
            with ledger.transaction():
                if not self._is_reserved():
                    self._check()

    def reserve(self) -> None:
        """Enter the plan's ceiling into the ledger, unless it stands there already."""
        with self.ledger.transaction():  # what is checked and what is reserved belong together
            if not self._is_reserved():
                self._check()
                self._enter()
        fail_point("reserve")

    def _is_reserved(self) -> bool:
        reserved = self.ledger.lines(self.owner, "reserve", self.plan.run)
        if reserved and reserved[0].values["hash"] != self.plan.hash:
            raise PlanError(
                f"run {self.plan.run} was reserved with another plan. Nothing was asked. "
                "Use the plan it was started with, or make a new one."
            )
        return bool(reserved)

    def _check(self) -> None:
        """Refuse a plan that does not add up with the ledger, or exceeds a budget."""
        check_unit(self.ledger, self.plan, self.owner)
        for limit in (self._budget, budget_of(self.ledger, self.owner)):
            if limit is not None:
                Ceiling(limit).check(self.ledger, self.plan, self.owner)
        if self._per_month is not None:
            Ceiling(self._per_month, monthly=True).check(self.ledger, self.plan, self.owner)

    def _enter(self) -> None:
        told = self._federation
        body = pack({**reserved_facts(self.plan), **told}) if told else _entry(self.plan)
        self.ledger.append(self.owner, "reserve", self.plan.run, body=body)

    def last_attempt(self, slot: int) -> int:
        """Number of the last attempt charged for a slot, 0 if it was never charged."""
        return self._charges().last_attempt(slot)

    def charged(self, slot: int, attempt: int) -> Line | None:
        """The charge of one attempt at a slot, if there is one."""
        of_slot = self._charges().of_slot(slot)
        return next((line for line in of_slot if line.attempt == attempt), None)

    def _charges(self) -> Accountant:
        """All charges of the run so far, read from the ledger.

        What was read before stays as it was, unless a transaction was rolled back since; newer
        lines, if the ledger has any, are read.
        """
        at, (known_at, known) = self.ledger.rolled_back, self._known
        if known_at != at:
            known = self.plan.budget.accountant()
        owner, run = self.owner, self.plan.run
        if self.ledger.newest(owner, "charge", run) != known.newest:
            for line in self.ledger.lines(owner, "charge", run, after=known.newest):
                known.add(line)
        self._known = (at, known)
        return known

    def charge(
        self,
        slot: int,
        request: str,
        attempt: int | None = None,
        price: Price = FIXED,
        kind: str = "",
    ) -> int:
        """Charge one attempt at a slot and return its number; refuse when none is left.

        The first attempt is the slot's own; each further one draws a spare. What the plan's budget
        does not fix by itself, the `price` says. `kind`, that of the query, is for whoever reads
        the ledger.
        """
        # Two threads that both saw the last spare would both draw it: check and charge at once.
        with self.ledger.transaction():
            self._check_reserved(slot)
            charges = self._charges()
            last = charges.last_attempt(slot)
            number = last + 1 if attempt is None else attempt
            if number <= last:
                raise LedgerError(f"attempt {number} of slot {slot} is not above the last, {last}")
            self._check_spare(slot, last, charges)
            # Asked anew every time, over all that the ledger has: a party that was restarted
            # knows as much as before.
            values = {"request": request, **charges.accept(slot, price)}
            if kind:
                values["kind"] = kind
            fail_point("charge")
            arrays = None if price.nodes is None else price.nodes.arrays()
            body = pack(values, arrays) if arrays else _packed(tuple(values.items()))
            run = self.plan.run
            charges.add(self.ledger.append(self.owner, "charge", run, slot, number, body=body))
        fail_point("sync")
        return number

    def _check_reserved(self, slot: int) -> None:
        if self._reserved_at == self.ledger.rolled_back:  # seen, and no line has gone since
            return
        if not self.ledger.has_reserved(self.owner, self.plan.run):
            raise LedgerError(
                f"run {self.plan.run} is not reserved by {self.owner}, so slot {slot} cannot be "
                "charged. Nothing was asked. Reserve the plan first."
            )
        self._is_reserved()  # with this very plan
        self._reserved_at = self.ledger.rolled_back

    def _check_spare(self, slot: int, last: int, charges: Accountant) -> None:
        spare, extra = self.plan.privacy.spare, charges.extra
        if last and extra >= spare:
            raise SlotSpent(
                f"slot {slot} was charged without a stored release and no spare attempt is left "
                f"({extra} of {spare} used)"
            )

    def released(self, slot: int, request: str) -> Release | None:
        """The stored release of a slot: a resumed run replays, it does not ask again."""
        if slot not in self._released_slots():
            return None
        lines = self.ledger.lines(self.owner, "release", self.plan.run, slot)
        charges = self.ledger.lines(self.owner, "charge", self.plan.run, slot)
        asked = {line.attempt: line.values["request"] for line in charges}
        if asked.get(lines[0].attempt) != request:
            raise LedgerError(
                f"slot {slot} of run {self.plan.run} was released for another question than the "
                "one asked now. Nothing was asked. Resume with the version that started the run."
            )
        values, arrays = lines[0].values, lines[0].arrays
        sigmas = tuple(float(sigma) for sigma in values["sigmas"])
        return Release(
            arrays["total"],
            int(values["bits"]),
            sigmas,
            float(values["unit"]),
            str(values["source"]),
        )

    def _released_slots(self) -> frozenset[int]:
        """Slots that have a stored release; what was read or stored before is not read again."""
        at, newest = self.ledger.rolled_back, self.ledger.newest(*self._releases)
        if self._released[:2] != (at, newest):
            where = "owner = ? AND kind = ? AND run = ?"  # not their lines: these hold all sums
            slots = frozenset(slot for (slot,) in self.ledger.select("slot", where, self._releases))
            self._released = (at, newest, slots)
        return self._released[2]

    @property
    def _releases(self) -> tuple[str, str, str]:
        return self.owner, "release", self.plan.run

    def store(
        self,
        slot: int,
        attempt: int,
        release: Release,
        receipts: Mapping[str, str] | None = None,
        absent: Sequence[str] = (),
    ) -> Release:
        """Store a release; from here on the slot is answered from the ledger.

        `absent` are parties of the run that are not in the sum.
        """
        values: dict[str, Any] = {
            "bits": release.bits,
            "sigmas": list(release.sigmas),
            "unit": release.unit,
            "source": release.source,
            "receipts": dict(receipts or {}),
            "absent": sorted(absent),
        }
        fail_point("store")
        arrays = {"total": release.total}
        with self.ledger.transaction():  # nobody else's release comes between
            slots = self._released_slots()
            line = self.ledger.append(*self._releases, slot, attempt, values, arrays)
            self._released = (self._released[0], line.seq, slots | {slot})
        return release
