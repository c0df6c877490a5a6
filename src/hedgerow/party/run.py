"""A run that a party has opened: its plan, the others' keys, and what its questions must be.

Nothing here trusts the coordinator: slot, set and noise of a question are compared with the plan
and the pinned roster, and every refusal comes before a charge.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hedgerow.data.schema import Schema
from hedgerow.errors import LedgerError, LedgerWriteFailed, PlanError, SlotSpent
from hedgerow.privacy.accounting.accountant import Price
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.protocol.handshake import Opening
from hedgerow.protocol.identity import Roster
from hedgerow.protocol.messages import Ask, Refusal
from hedgerow.queries import size_of
from hedgerow.queries.calibration import price_of


def check_agreed(plan: Plan, roster: Roster, schema: Schema) -> None:
    """Refuse a plan that was made for another schema, or another trust than the pinned one."""
    if plan.schema_hash != schema.hash or plan.unit != schema.unit.text:
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
    opening: Opening = field(default_factory=Opening)

    def check(self, ask: Ask, party: str, roster: Roster, schema: Schema) -> None:
        """Refuse a question that the plan does not have, or of another set, or of other noise."""
        plan = self.plan
        if not 0 <= ask.slot < plan.n_slots or not 1 <= ask.attempt <= 2**31:
            raise Refusal("not-in-plan")
        ask.check(schema)
        slot = plan.budget.slot(ask.slot, ask.query.kind, ask.noise.mu)
        if slot is None or size_of(ask.query) > slot.coordinates:
            raise Refusal("not-in-plan")
        if plan.measures and not self._is_of_the_plan(ask, schema):
            raise Refusal("not-in-plan")
        if not ask.is_ordered or party not in ask.names:
            raise Refusal("unknown-party")
        if not ask.is_within(roster):
            raise Refusal("unknown-party")
        if not ask.has_noise_of(slot.mu, plan, schema):
            raise Refusal("too-little-noise")
        if ask.colluding != roster.colluding:  # shares are drawn by it
            raise Refusal("too-little-noise")
        if plan.privacy.trusted.masked:
            if len(ask.parties) < roster.least_set:
                raise Refusal("too-few-parties")
            announced = self.opening.announcements
            if ask.joined != self.opening.joined or not set(ask.parties) <= set(announced):
                raise Refusal("bad-announcement")

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
