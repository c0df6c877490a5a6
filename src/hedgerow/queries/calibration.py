"""How much noise a query gets from a slot: sigma = sensitivity / mu, on a grid fine enough.

In a pure plan a query says itself what each node of its tree pays, and gets the scales for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from hedgerow.data.schema import Schema
from hedgerow.errors import PlanError
from hedgerow.model.trust import Trust
from hedgerow.privacy.accounting.accountant import Price
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.noise import mechanisms
from hedgerow.queries.base import Choice, SumQuery, size_of


@dataclass(frozen=True)
class Noise:
    """The noise of one sum: what each block gets, in grid steps, before shares."""

    mu: float  # 0 in a pure plan
    bits: int
    sigmas: tuple[float, ...]  # deviations of Gaussians, scales of Laplaces
    mechanism: str = "gaussian"
    part: float = 1.0  # of what its nodes offer to pay, if a further attempt may not cost as much


def price_of(query: SumQuery, plan: Plan, mu: float, part: float = 1.0) -> Price:
    """What an attempt at a slot offers to pay for a query, at a part of what its nodes pay."""
    return Price(mu, size_of(query), plan.budget.nodes(query, part))


def made_for(plan: Plan, schema: Schema) -> bool:
    """Whether a plan belongs to a schema, and says the same of whom and how often it counts."""
    told = (plan.unit, plan.max_weight) == (schema.unit.text, schema.max_weight)
    return plan.schema_hash == schema.hash and told


def reach_of(query: SumQuery, schema: Schema) -> float:
    """How many times its sensitivity one row can move a query's answer.

    A row of weight w adds w times its vector v, each coordinate truncated toward zero onto the
    grid: |trunc(w v_i)| <= w |v_i| <= W |v_i| for the cap W. Norms grow with the sizes of
    coordinates, so every bound on v, joint ones of gradients and Hessians too, holds W times over.
    """
    if schema.weight is None or query.row_weights == "ignore":
        return 1.0
    if query.row_weights == "refuse":
        raise PlanError(
            f"{query.kind} cannot be asked of rows with weights. Nothing was asked. Take [weight] "
            "out of the schema, or choose a method with Gaussian noise, such as auto."
        )
    return schema.max_weight


def check_unit(trust: Trust, schema: Schema) -> None:
    """Refuse what cannot be promised: under `nobody` the number of a person's rows is visible."""
    if trust.local and schema.unit.at_most > 1:
        raise PlanError(
            f"trust in nobody shows row counts, so a person with up to {schema.unit.at_most} rows "
            "cannot be hidden. Nothing was asked. Keep one row a person (at_most = 1), or trust "
            "the parties or the coordinator."
        )


def noise_for(query: SumQuery, mu: float, plan: Plan, schema: Schema, part: float = 1.0) -> Noise:
    """The noise that a slot of this mu prescribes; both sides compute it by themselves.

    A person has at most k rows in a party, and sums add up: k rows are at most k times as far as
    one (the triangle inequality), and k W times where each can have the weight W. Under trust
    `nobody` counts are visible, so the guarantee is about replacing: two answers are each at most
    that long, hence at most twice that apart.
    """
    check_unit(plan.privacy.trusted, schema)
    return CALIBRATIONS[plan.budget.mechanism](query, mu, plan, schema, part)


def _gaussian_for(query: SumQuery, mu: float, plan: Plan, schema: Schema, part: float) -> Noise:
    """sigma = what one unit can move the sum by, over mu."""
    if query.needs_exact_sums:  # Gaussian noise on sums would not be noise on what becomes of them
        raise PlanError(f"only a pure plan has noise for {query.kind}. Nothing was asked.")
    of_unit = schema.unit.at_most * reach_of(query, schema)
    unit = query.sensitivity.l2 * of_unit * plan.privacy.trusted.distance / mu
    bits = mechanisms.bits_for(unit * min(block.weight for block in query.blocks))
    sigmas = tuple(unit * block.weight * 2.0**bits for block in query.blocks)
    mechanisms.check_sigma(min(sigmas), plan.budget.floor)
    mechanisms.check_sigma(max(sigmas), plan.budget.floor)
    return Noise(mu, bits, sigmas)


def _choice_for(choice: Choice, bits: int, schema: Schema, part: float) -> Noise:
    """Scale = what a unit can move utilities apart by, over what a leaf pays, in whole steps.

    Rounded up from the exact quotient: a float of it may be a whole number that is too small.
    """
    paid = choice.price * part  # as it is charged
    scale = math.ceil(schema.unit.at_most * choice.utility_range / Fraction(paid)) if paid else 0
    if not 1 <= scale <= mechanisms.WIDEST_CHOICE:
        raise PlanError(
            f"a choice of scale {scale:.3g} cannot be drawn. Nothing was asked. epsilon is too "
            "small for this plan."
        )
    return Noise(0.0, bits, (float(scale),), choice.selector, part)


def _laplace_for(query: SumQuery, mu: float, plan: Plan, schema: Schema, part: float) -> Noise:
    """The noise whose scale is how far a unit moves a coordinate, over what its node pays for it.

    A block's weight is 1 / price: a row moves each of its coordinates by at most 1, and those of
    one node by so much that price times movement adds up to what the node pays (the query's own
    sensitivity, in units of the weights). Counts stay on the unit grid, where the discrete
    Laplace is exactly private. Scales are floats, off by less than 2^-50 of themselves; prices are
    planned 1e-12 below what a round may cost (`PathQueries`), which is far more.
    """
    trust = plan.privacy.trusted
    plan.budget.nodes(query)  # refuses what is not priced by node
    if schema.weight is not None:
        # Counts are drawn for on the grid of whole numbers, and what becomes of exact sums is
        # bounded for rows that count once.
        raise PlanError(
            "a pure plan has no noise for rows with weights. Nothing was asked. Take [weight] out "
            "of the schema, or choose a method with Gaussian noise, such as auto."
        )
    if not 0 < part <= 1:
        raise PlanError("a question pays a part of its price above 0 and at most 1")
    if trust.local:
        raise PlanError(
            "no row has Laplace noise of its own. Nothing was asked. Trust the parties."
        )
    if query.needs_exact_sums and not trust.exact_sums:
        raise PlanError(
            f"{query.kind} are drawn from exact sums, and trust is in {trust.name}. Nothing was "
            "asked. Trust the coordinator, or choose another method."
        )
    if query.choice is not None:
        return _choice_for(query.choice, query.fine_bits or 0, schema, part)
    scales = [schema.unit.at_most * block.weight / part for block in query.released_blocks]
    bits = 0 if query.counts else mechanisms.laplace_bits(min(scales))
    bits = bits if query.fine_bits is None else query.fine_bits
    steps = tuple(scale * 2.0**bits for scale in scales)
    widest = mechanisms.WIDEST_SHARE if trust.masked else mechanisms.WIDEST_LAPLACE
    if min(steps) < mechanisms.LEAST_SCALE or max(steps) > widest:
        raise PlanError(
            f"the noise would have scales from {min(scales):.3g} to {max(steps):.3g} grid steps; "
            f"from {mechanisms.LEAST_SCALE:g} to {widest:.3g} can be drawn. Nothing was asked. "
            "epsilon is too large or too small for this plan."
        )
    return Noise(0.0, bits, steps, "laplace", part)


# How a slot's price becomes noise, by the mechanism that a plan's budget pays for.
CALIBRATIONS: dict[str, Callable[[SumQuery, float, Plan, Schema, float], Noise]] = {
    "gaussian": _gaussian_for,
    "laplace": _laplace_for,
}
