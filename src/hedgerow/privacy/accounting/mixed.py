"""Gaussian and pure runs of one ledger together: two filters, each with a limit of its own.

docs/proofs/mixed-ledgers.md proves that whoever asks both in any order, choosing every query with
sight of all answers, learns no more than one Gaussian of mu and one randomised response of epsilon
show together, as long as squares of mu never exceed mu^2 and pure epsilons never add up to more.
"""

from __future__ import annotations

import math
from functools import lru_cache

from hedgerow.model.tradeoff import EXACT_LIMIT, delta_of, epsilon_of, tau_of


def mixed_delta(epsilon: float, mu: float, pure: float) -> float:
    """delta(epsilon) of a Gaussian of mu beside a randomised response of `pure`.

    The response is true with chance p = e^pure / (1 + e^pure). It changes the ratio of chances by
    e^pure where it is true and by e^-pure where it is not, so epsilon shifts by as much.
    """
    truth = 1 / (1 + math.exp(-pure))
    other = math.exp(-pure) * truth  # 1 - truth, without cancellation
    return truth * delta_of(epsilon - pure, mu) + other * delta_of(epsilon + pure, mu)


@lru_cache(maxsize=1024)
def mixed_epsilon(
    mu: float, pure: float, delta: float, coordinates: int, accounting: str = "exact"
) -> float:
    """The epsilon of Gaussian runs of total mu and pure ones that add up to `pure`.

    It is never more than the sum of the two. That sum holds for every bound on the Gaussian runs;
    what is better than it needs their curve, which noise of too few grid steps does not have.

    >>> round(mixed_epsilon(0.2367, 1.0, 1e-6, 0), 3)
    1.989
    """
    gaussian = epsilon_of(mu, delta, coordinates, accounting)
    if not pure or not mu:
        return gaussian + pure
    if accounting == "renyi" or mu > EXACT_LIMIT:
        return gaussian + pure
    tau = tau_of(coordinates)
    low, high = 0.0, gaussian + pure
    if mixed_delta(high, mu, pure) + (1 + math.exp(min(high, 700.0))) * tau > delta:
        return high
    # As a function of e^epsilon the first term is convex and that of tau is linear, so what fits is
    # an interval, and `high` is in it.
    for _ in range(100):
        middle = (low + high) / 2
        if mixed_delta(middle, mu, pure) + (1 + math.exp(min(middle, 700.0))) * tau <= delta:
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=256)
def mixed_mu(epsilon: float, pure: float, delta: float, coordinates: int) -> float:
    """The largest mu of Gaussian runs that fits beside `pure`; 0 if none does."""
    low, high = 0.0, 1.0
    while mixed_epsilon(high, pure, delta, coordinates) <= epsilon:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        if mixed_epsilon(middle, pure, delta, coordinates) <= epsilon:
            low = middle
        else:
            high = middle
    return low
