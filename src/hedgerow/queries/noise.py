"""How much noise a query gets from a slot: sigma = sensitivity / mu, on a grid fine enough."""

from __future__ import annotations

from dataclasses import dataclass

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


def noise_for(query: SumQuery, mu: float, plan: Plan, schema: Schema) -> Noise:
    """The noise that a slot of this mu prescribes; both sides compute it by themselves.

    A person has at most k rows in a party, and sums add up: k rows are at most k times as far as
    one (the triangle inequality). Under trust `nobody` counts are visible, so the guarantee is
    about replacing: two answers are each at most that long, hence at most twice that apart.
    """
    distance = query.sensitivity.l2 * schema.unit.at_most
    if plan.privacy.trust == "nobody":
        distance *= 2
    unit = distance / mu
    bits = mechanisms.bits_for(unit * min(block.weight for block in query.blocks))
    sigmas = tuple(unit * block.weight * 2.0**bits for block in query.blocks)
    mechanisms.check_sigma(min(sigmas), plan.floor)
    return Noise(mu, bits, sigmas)
