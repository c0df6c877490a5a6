"""Calibration of Gaussian noise: the largest mu for a budget, and how fine the grid must be.

What a mu costs, and why, is in `hedgerow.model.tradeoff`.
"""

from __future__ import annotations

from functools import lru_cache

from hedgerow.errors import PlanError
from hedgerow.model.tradeoff import EXACT_LIMIT, FLOOR, exact_delta, renyi_epsilon


@lru_cache(maxsize=256)
def mu_of(epsilon: float, delta: float, coordinates: int, accounting: str = "exact") -> float:
    """The largest total mu whose releases cost at most (epsilon, delta)."""
    low, high = 0.0, 1.0
    while _fits(high, epsilon, delta, coordinates, accounting):
        low, high = high, 2 * high
        if high > 1e8:
            raise PlanError(f"epsilon = {epsilon:g} is too large to plan for")
    for _ in range(100):
        middle = (low + high) / 2
        if _fits(middle, epsilon, delta, coordinates, accounting):
            low = middle
        else:
            high = middle
    if low < 1e-9:
        raise PlanError(
            f"epsilon = {epsilon:g} at delta = {delta:g} leaves no budget for {coordinates} "
            "released values. Nothing was asked. Raise epsilon or plan fewer trees."
        )
    return low


def sigma_floor(mu: float) -> int:
    """log2 of the least sigma, in grid steps, that is drawn for a plan of this mu.

    It does not depend on the accounting: a ledger may add up plans of both kinds.
    """
    return FLOOR if mu <= EXACT_LIMIT else 8


def _fits(mu: float, epsilon: float, delta: float, coordinates: int, accounting: str) -> bool:
    exact = accounting == "exact" and mu <= EXACT_LIMIT
    if exact and exact_delta(epsilon, mu, coordinates) <= delta:
        return True
    return renyi_epsilon(mu, delta) <= epsilon
