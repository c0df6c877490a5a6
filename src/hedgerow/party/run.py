"""A run that a party has opened: its plan, the others' keys, and what its questions must be.

Nothing here trusts the coordinator: slot, set and noise of a question are compared with the plan
and the pinned roster, and every refusal comes before a charge.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from hedgerow.data.schema import Schema
from hedgerow.errors import LedgerError, LedgerWriteFailed, PlanError, SlotSpent
from hedgerow.privacy.accounting.accountant import Price
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.protocol.handshake import Opening
from hedgerow.protocol.identity import Roster
from hedgerow.protocol.joined import Joined, SumSet
from hedgerow.protocol.messages import Ask, Refusal
from hedgerow.queries import size_of
from hedgerow.queries.calibration import made_for, price_of

MOST_OPENED, MOST_JOINED = 8, 64  # runs that a party holds ready, before and after they are joined


class HasOpening(Protocol):
    """A run or a session that was opened."""

    opening: Opening


T = TypeVar("T", bound=HasOpening)


class Newest(Generic[T]):
    """What a party has opened, by run: those used last, so that opening fills no memory.

    One that has fallen out is unknown, as after a restart of the party: it is opened again, and the
    ledger has what was charged. Runs that were only opened cost whoever opens them nothing, and so
    have room of their own: they push out none that were joined.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, T] = OrderedDict()

    def get(self, run: Any) -> T | None:
        found = self._kept.get(run) if isinstance(run, str) else None
        if found is not None:
            self._kept.move_to_end(run)
        return found

    def keep(self, run: str, opened: T) -> None:
        self._kept[run] = opened
        self._kept.move_to_end(run)
        for joined, most in ((False, MOST_OPENED), (True, MOST_JOINED)):
            alike = [n for n, o in self._kept.items() if (o.opening.joined is not None) == joined]
            for name in alike[:-most]:
                del self._kept[name]


def check_agreed(plan: Plan, roster: Roster, schema: Schema) -> None:
    """Refuse a plan that was made for another schema, or another trust than the pinned one."""
    if not made_for(plan, schema):
        raise Refusal("other-schema")
    asked = plan.privacy
    agreed = (roster.trust, roster.colluding, roster.minimum)
    if (asked.trust, asked.colluding, asked.minimum_parties) != agreed:
        raise Refusal("other-roster")


@dataclass
class OpenedRun:
    """What a party remembers of a run while its process lives."""

    plan: Plan
    reservation: Reservation
    roster: Roster  # pinned when it was opened
    opening: Opening = field(default_factory=Opening)

    @property
    def is_joined(self) -> bool:
        return self.opening.joined is not None

    def opened_with(self) -> tuple[Joined, Roster]:
        """The announcements that it was joined with, and the roster; refused before that."""
        if self.opening.joined is None:
            raise Refusal("unknown-run")
        return self.opening.joined, self.roster

    def has_revoked(self, ask: Ask, pinned: Roster) -> bool:
        """Whether a party of this sum has another key by now than when the run was opened."""
        if pinned.keys is self.roster.keys:
            return False
        summed = self.roster.without(ask.absent)
        return any(pinned.keys.get(name) != self.roster.keys[name] for name in summed)

    def check(self, ask: Ask, party: str, schema: Schema) -> None:
        """Refuse a question that the plan does not have, or of another set, or of other noise."""
        plan, roster = self.plan, self.roster
        if not 0 <= ask.slot < plan.n_slots or not 1 <= ask.attempt <= 2**31:
            raise Refusal("not-in-plan")
        ask.check(schema)
        slot = plan.budget.slot(ask.slot, ask.query.kind, ask.noise.mu)
        if slot is None or size_of(ask.query) > slot.coordinates:
            raise Refusal("not-in-plan")
        if plan.measures and not self._is_of_the_plan(ask, schema):
            raise Refusal("not-in-plan")
        if not ask.is_within(roster) or party in ask.left_out:
            raise Refusal("unknown-party")
        if not ask.has_noise_of(slot.mu, plan, schema):
            raise Refusal("too-little-noise")
        if ask.colluding != roster.colluding:  # shares are drawn by it
            raise Refusal("too-little-noise")
        if plan.privacy.trusted.masked:
            if ask.n_parties(roster) < roster.least_set:
                raise Refusal("too-few-parties")
            self.summed(ask)

    def summed(self, ask: Ask) -> SumSet:
        """The set of a question with its keys; refused unless all have joined as this party has."""
        joined = self.opening.joined
        found = None
        if joined is not None and ask.joined == joined.hash:
            found = joined.without(ask.absent, self.roster)
        if found is None:
            raise Refusal("bad-announcement")
        return found

    def _is_of_the_plan(self, ask: Ask, schema: Schema) -> bool:
        """Whether an evaluation asks about the model that its plan names: a person approved it."""
        query, model = ask.query, self.plan.settings.model
        return query.ensemble.is_of(model, schema, query.averaged)

    def price(self, ask: Ask) -> Price:
        """What a question offers to pay."""
        return price_of(ask.query, self.plan, ask.noise.mu, ask.noise.part)

    def charge(self, ask: Ask, request: str) -> None:
        """Charge an attempt, or refuse it; on disk when this returns."""
        try:
            self.reservation.charge(ask.slot, request, ask.attempt, self.price(ask), ask.query.kind)
        except LedgerWriteFailed:
            raise  # a full disk is not a used attempt
        except PlanError as error:
            raise Refusal("not-in-plan") from error
        except SlotSpent as error:
            raise Refusal("no-attempts-left") from error
        except LedgerError as error:
            raise Refusal("old-attempt") from error
