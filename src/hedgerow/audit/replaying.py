"""A model grown again from the releases on a coordinator's ledger; nobody is asked for anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Gate
from hedgerow.data.schema import Schema
from hedgerow.errors import SlotSpent, VerificationFailed
from hedgerow.methods.registry import METHODS
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.protocol.engine import Reply
from hedgerow.protocol.identity import Identity, Roster


@dataclass
class _Nobody:
    """An engine without parties: whatever is not on the ledger cannot be had.

    A slot that the run charged and lost is lost here too, and the method goes on without it, as it
    did then.
    """

    names: tuple[str, ...]
    simulated: bool
    plan: Plan
    ledger: Ledger
    gate: Gate | None = field(default=None, repr=False)

    def ask(self, names: Sequence[str], message: bytes, timeout_seconds: float) -> dict[str, Reply]:
        assert self.gate is not None
        slot = self.gate.slot - 1
        if self.ledger.lines(COORDINATOR, "charge", self.plan.run, slot):
            raise SlotSpent(f"slot {slot} was charged and its release was lost")
        raise VerificationFailed(
            f"the coordinator's ledger has no release for slot {slot} of run {self.plan.run}, "
            "which the model needs"
        )


def replayed_model(
    plan: Plan,
    schema: Schema,
    ledger: Ledger,
    names: tuple[str, ...],
    simulated: bool,
    start: Ensemble | None = None,
) -> Ensemble:
    """What the plan's method makes of the stored releases of a run over these parties.

    Their keys do not matter where nobody is asked: each gets a new one.
    """
    keys = tuple((name, Identity().public) for name in sorted(names))
    privacy, coordinator = plan.privacy, Identity()
    limits = (privacy.colluding, privacy.minimum_parties, privacy.trust)
    roster = Roster(keys, coordinator.public, *limits)
    engine = _Nobody(names, simulated, plan, ledger)
    gate = Gate(Federation(engine, schema, roster, coordinator), plan, ledger, start=start)
    engine.gate = gate
    return METHODS[plan.method].grow(gate)
