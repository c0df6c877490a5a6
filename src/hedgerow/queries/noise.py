"""How much noise a query gets from a slot: sigma = sensitivity / mu, on a grid fine enough."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.privacy import mechanisms
from hedgerow.queries.base import SumQuery


@dataclass(frozen=True)
class Noise:
    """The noise of one sum: what each block gets, in grid steps, before shares."""

    mu: float
    bits: int
    sigmas: tuple[float, ...]
    mechanism: str = "gaussian"


def noise_for(query: SumQuery, mu: float, floor: int, trust: str = "coordinator") -> Noise:
    """The noise that a slot of this mu prescribes; both sides compute it by themselves.

    Under trust `nobody` counts are visible, so the guarantee is about replacing a row. Two rows'
    answers are each at most l2 long, hence at most 2 l2 apart.
    """
    distance = query.sensitivity.l2 * (2 if trust == "nobody" else 1)
    unit = distance / mu
    bits = mechanisms.bits_for(unit * min(block.weight for block in query.blocks))
    sigmas = tuple(unit * block.weight * 2.0**bits for block in query.blocks)
    mechanisms.check_sigma(min(sigmas), floor)
    return Noise(mu, bits, sigmas)
