"""How much noise a query gets from a slot: sigma = sensitivity / mu, on a grid fine enough."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.errors import PlanError
from hedgerow.privacy import mechanisms
from hedgerow.privacy.plan import Plan
from hedgerow.queries.base import SumQuery
from hedgerow.schema import Schema


@dataclass(frozen=True)
class Noise:
    """The noise of one sum: what each block gets, in grid steps, before shares."""

    mu: float
    bits: int
    sigmas: tuple[float, ...]
    mechanism: str = "gaussian"


def check_unit(trust: str, schema: Schema) -> None:
    """Refuse what cannot be promised: under `nobody` the number of a person's rows is visible."""
    if trust == "nobody" and schema.unit.at_most > 1:
        raise PlanError(
            f"trust in nobody shows row counts, so a person with up to {schema.unit.at_most} rows "
            "cannot be hidden. Nothing was asked. Keep one row a person (at_most = 1), or trust "
            "the parties or the coordinator."
        )


def noise_for(query: SumQuery, mu: float, plan: Plan, schema: Schema) -> Noise:
    """The noise that a slot of this mu prescribes; both sides compute it by themselves.

    A person has at most k rows in a party, and sums add up: k rows are at most k times as far as
    one (the triangle inequality). Under trust `nobody` counts are visible, so the guarantee is
    about replacing: two answers are each at most that long, hence at most twice that apart.
    """
    check_unit(plan.privacy.trust, schema)
    distance = query.sensitivity.l2 * schema.unit.at_most
    if plan.privacy.trust == "nobody":
        distance *= 2
    unit = distance / mu
    bits = mechanisms.bits_for(unit * min(block.weight for block in query.blocks))
    sigmas = tuple(unit * block.weight * 2.0**bits for block in query.blocks)
    mechanisms.check_sigma(min(sigmas), plan.floor)
    mechanisms.check_sigma(max(sigmas), plan.floor)
    return Noise(mu, bits, sigmas)
