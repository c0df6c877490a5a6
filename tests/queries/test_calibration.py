"""How much noise a slot prescribes: never less than what the accounting covers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow import Ledger, local_federation
from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema, Unit
from hedgerow.data.weights import Weight
from hedgerow.errors import PlanError
from hedgerow.methods.registry import plan_for
from hedgerow.model.trust import InParties
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.noise import mechanisms
from hedgerow.privacy.settings import Privacy
from hedgerow.queries import (
    NO_TREES,
    ClassOutcomes,
    ColumnCounts,
    ColumnSums,
    DevianceSums,
    ErrorSums,
    n_bins_of,
)
from hedgerow.queries.calibration import noise_for
from tests.attacks.rig import SCHEMA, some_rows
from tests.attacks.test_choice_lies import choices
from tests.attacks.test_choice_lies import plan_of as pure_plan

CUTS = ((10, 20), ())
N_BINS = tuple(n_bins_of(g, c) for g, c in zip(base_grid(SCHEMA), CUTS, strict=True))
LEAST_CLIP = 2.0**-12


def default_plan() -> Plan:
    return plan_for(SCHEMA, Privacy(1.0, 1e-6, "coordinator"), "auto", seed=1)


def column_sums(clip: float, *weights: float) -> ColumnSums:
    return ColumnSums((0, 1), CUTS, N_BINS, weights, "logistic", NO_TREES, "slope", clip)


def noise_in_units(
    query: ColumnSums, mu: float, plan: Plan, schema: Schema = SCHEMA
) -> list[float]:
    noise = noise_for(query, mu, plan, schema)
    return [sigma / 2.0**noise.bits for sigma in noise.sigmas]


@pytest.mark.parametrize("weights", [(1.0, 1.0), (1e-3, 1e3), (1e3, 1e-3)])
def test_noise_narrower_than_the_floor_is_refused(weights: tuple[float, float]) -> None:
    """Of all blocks or of one: tau, which is added to delta, holds from the floor on.

    No grid is finer than 2**-31, and the least clip makes sums that are small even there.
    """
    plan = default_plan()
    mu = 0.5 * plan.budget.adaptive.mu
    assert plan.budget.floor == 26
    noise_for(column_sums(math.inf, *weights), mu, plan, SCHEMA)
    query = column_sums(LEAST_CLIP, *weights)
    query.check(SCHEMA)  # a question that may be asked
    with pytest.raises(PlanError, match=r"at least 6\.71e"):
        noise_for(query, mu, plan, SCHEMA)


def test_a_gate_refuses_it_before_anything_is_reserved() -> None:
    ledger, plan = Ledger.in_memory(), default_plan()
    federation = local_federation({"a": some_rows(50, 1)}, SCHEMA, ledger)
    gate = Gate(federation, plan, ledger)
    for _ in plan.slots:
        gate.pass_over()
    with pytest.raises(PlanError, match=r"at least 6\.71e"):
        gate.release(column_sums(LEAST_CLIP, 1e-3, 1e3), 0.5 * plan.budget.adaptive.mu)
    assert ledger.lines(kind="reserve") == ledger.lines(kind="charge") == []


@pytest.mark.parametrize("steps", [0.0, -1.0, math.nan, 2.0**26 * (1 - 1e-9)])
def test_the_floor_itself_is_the_least(steps: float) -> None:
    mechanisms.check_sigma(2.0**26, 26)
    with pytest.raises(PlanError, match="at least"):
        mechanisms.check_sigma(steps, 26)


def test_noise_grows_with_the_rows_of_a_person_and_with_what_is_promised() -> None:
    """Exactly: k rows are k times as far, of weight W k W times, a replaced one twice as far."""
    plan, persons = default_plan(), replace(SCHEMA, unit=Unit("person", "patient", 3))
    weighted, heavy = (replace(one, weight=Weight("w", 4.0)) for one in (SCHEMA, persons))
    query, mu = column_sums(math.inf, 1.0, 2.0), 0.5 * plan.budget.adaptive.mu
    assert noise_in_units(query, mu, plan, SCHEMA) == [
        pytest.approx(query.sensitivity.l2 / mu / weight, rel=1e-12) for weight in (1, 2)
    ]
    for schema, trust, times in (
        (persons, "coordinator", 3), (SCHEMA, "nobody", 2), (weighted, "coordinator", 4),
        (weighted, "nobody", 8), (heavy, "coordinator", 12),
    ):  # fmt: skip
        budget = replace(plan.budget, privacy=replace(plan.privacy, trust=trust))
        wide = noise_in_units(query, mu, replace(plan, budget=budget), schema)
        assert wide == [pytest.approx(times * one) for one in noise_in_units(query, mu, plan)]


@pytest.mark.parametrize("part", [1.0, 0.25])
@pytest.mark.parametrize("at_most", [1, 3])
def test_a_pure_price_buys_no_less_noise_than_it_pays_for(at_most: int, part: float) -> None:
    """Compared as fractions: what a unit moves, over the scale, is at most the price."""
    schema = replace(SCHEMA, unit=Unit("person", "patient", at_most)) if at_most > 1 else SCHEMA
    plan = pure_plan()
    for price in (0.1, 0.3, 1 / 7, 2.7):
        choice = choices(price)
        (scale,) = noise_for(choice, 0.0, plan, schema, part).sigmas
        moved = Fraction(at_most * choice.utility_range)
        paid = Fraction(price * part)
        assert moved / Fraction(scale) <= paid < moved / Fraction(scale - 1)
        noise = noise_for(
            counted := ColumnCounts.for_cuts(SCHEMA, 6, price), 0.0, plan, schema, part
        )
        assert noise.bits == 0
        for sigma, block in zip(noise.sigmas, counted.blocks, strict=True):
            assert sigma == pytest.approx(at_most * block.weight / part, rel=1e-12)
    for wrong in (0.0, -0.5, 1.5):
        with pytest.raises(PlanError, match="part of its price"):
            noise_for(choices(0.1), 0.0, plan, schema, wrong)


class Widths:
    """A source of noise that keeps which deviations it was asked for, and draws nothing."""

    name = "widths"

    def __init__(self) -> None:
        self.asked: list[float] = []

    def gaussian(self, size: int, sigma: Any) -> NDArray[np.int64]:
        self.asked += np.broadcast_to(sigma, size).tolist()
        return np.zeros(size, np.int64)


@pytest.mark.parametrize("honest", [2, 3, 7, 20, 999])
def test_shares_of_honest_parties_never_add_up_to_less_than_sigma(honest: int) -> None:
    """Where sigma / sqrt(honest) is a hair above whole steps, its float is below, or just them."""
    rng, source = np.random.default_rng(honest), Widths()
    sigmas = []
    for whole in rng.integers(2**20, 2**46, 200).tolist():
        sigma = math.isqrt(whole**2 * honest * 2**40) / 2**20
        while Fraction(sigma) ** 2 <= whole**2 * honest:
            sigma = math.nextafter(sigma, math.inf)
        sigmas.append(sigma)
    share = InParties().share(honest, n_rows=5)
    with mechanisms.noise_from(source):  # type: ignore[arg-type]
        mechanisms.add_gaussian(np.zeros(200, np.uint64), [1] * 200, sigmas, share)
    for sigma, width in zip(sigmas, source.asked, strict=True):
        assert honest * math.ceil(width) ** 2 >= Fraction(sigma) ** 2  # as they are drawn


def test_a_pure_plan_has_no_noise_for_weights_whatever_its_query_says() -> None:
    query = replace(ColumnCounts.of(SCHEMA), price=0.1)
    plan = pure_plan()
    assert noise_for(query, 0.0, plan, SCHEMA).mechanism == "laplace"
    with pytest.raises(PlanError, match="no noise for rows with weights"):
        noise_for(query, 0.0, plan, replace(SCHEMA, weight=Weight("w", 2.0)))


LIGHT, EVEN, HEAVY = (0.01, 0.02, 0.05), (1.0, 1.0, 1.0), (20.0, 50.0, 100.0)


@pytest.mark.parametrize("weights", [LIGHT, EVEN, HEAVY, (0.01, 1.0, 100.0)])
def test_blocks_of_any_weight_add_up_to_the_bound_that_the_proofs_have(
    weights: tuple[float, float, float],
) -> None:
    """The root of 1/w^2 over all numbers that one row can make as large as 1, reached by that row.

    Blocks of evaluations have weights that follow from earlier releases: light ones too.
    """
    whole = [1 / w**2 for w in weights]
    outcomes = ClassOutcomes(2, (0.5,), 1e-3, weights, NO_TREES)
    assert outcomes.sensitivity.l2 == pytest.approx(math.sqrt(sum(whole)), rel=1e-12)
    four = (*weights, 0.3)
    first, second, third, fourth = (1 / w**2 for w in four)
    errors = ErrorSums((0.5,), 0.1, 0.0, 1.0, four, NO_TREES)
    bound = math.sqrt(first + second + 2 * third + 2 * fourth)
    assert errors.sensitivity.l2 == pytest.approx(bound, rel=1e-12)
    deviances = DevianceSums((0.5,), 1.0, 1.0, 0.5, four, NO_TREES)
    bound = math.sqrt(first + second + third + 2 * fourth)
    assert deviances.sensitivity.l2 == pytest.approx(bound, rel=1e-12)


class Deviations:
    """A source that draws nothing and keeps the deviations that it was asked for."""

    name = "kept"

    def gaussian(self, size: int, sigma: Any) -> NDArray[np.int64]:
        self.asked = np.broadcast_to(sigma, size)
        return np.zeros(size, np.int64)


@pytest.mark.parametrize("honest", [2, 3, 5, 7, 11, 50])
def test_honest_shares_have_all_of_the_variance_in_exact_numbers(honest: int) -> None:
    """Also where the share is a whole number of steps but for what floats lose."""
    source, wholes = Deviations(), np.random.default_rng(honest).integers(2**20, 2**40, 300)
    sigmas = [float(n * math.sqrt(honest)) for n in wholes.tolist()]
    sigmas += [math.nextafter(s, math.inf) for s in sigmas]
    blocks = [1] * len(sigmas)
    with mechanisms.noise_from(source):  # type: ignore[arg-type]
        mechanisms.add_gaussian(np.zeros(len(sigmas), np.uint64), blocks, sigmas, 1 / honest)
    for sigma, asked in zip(sigmas, source.asked.tolist(), strict=True):
        assert math.ceil(asked) ** 2 * honest >= Fraction(sigma) ** 2
