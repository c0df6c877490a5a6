"""What a Gaussian promise of total mu is worth: epsilon for a delta, and the best guess.

A Gaussian slot has a parameter mu = sensitivity / sigma. Slots compose, also when later questions
depend on earlier releases, to mu = sqrt(sum of mu_t^2) (Dong, Roth and Su 2022), and

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2).

The noise that is drawn is the discrete Gaussian. Per coordinate, its Kullback-Leibler divergence
from the rounded continuous Gaussian is at most 1/(576 sigma^4), for a sigma of 16 grid steps or
more, so over all coordinates the total variation distance is at most tau = sqrt(n / (1152 sigma^4))
by the chain rule and Pinsker, and delta grows by (1 + e^epsilon) tau. `mechanisms` never draws with
sigma below 2**FLOOR steps where this bound is used. Noise shares of the parties are narrower, but a
sum of discrete Gaussians of hundreds of steps or more differs from one of the summed variance by a
factor within 1 +- 10 exp(-pi^2 s^2), s the share's deviation (Kairouz, Liu and Steinke 2021), which
is far below anything counted here. The discrete Gaussian also satisfies the
concentrated bound rho = mu^2/2 exactly (Canonne, Kamath and Steinke 2020), without tau; that is
the "renyi" accounting, and the better of the two bounds where e^epsilon makes tau useless.

Whoever takes two neighbouring tables to be equally likely, and sees all that was released, is right
about which of them it was with probability at most (1 + d) / 2, where d is the total variation
distance of what is seen. docs/proofs/best-guess.md has the proof, and what d is at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

FLOOR = 26  # log2 of the least sigma in grid steps for which `exact` adds tau
EXACT_LIMIT = 4.0  # beyond this mu noise may be too narrow for FLOOR; Renyi counts from there on


def delta_of(epsilon: float, mu: float) -> float:
    """delta(epsilon) of a mu-Gaussian mechanism, in closed form."""
    from scipy.special import log_ndtr

    if mu <= 0:
        return 0.0
    first = float(log_ndtr(-epsilon / mu + mu / 2))
    second = epsilon + float(log_ndtr(-epsilon / mu - mu / 2))
    return max(0.0, -math.exp(first) * math.expm1(min(0.0, second - first)))


def tau_of(coordinates: int) -> float:
    """Distance between discrete and rounded continuous noise over all released coordinates."""
    return math.sqrt(coordinates / 1152) / 2.0 ** (2 * FLOOR)


def renyi_epsilon(mu: float, delta: float) -> float:
    """epsilon(delta) from the Renyi curve alpha mu^2 / 2 (best conversion over real alpha)."""
    if mu <= 0:
        return 0.0
    rho = mu * mu / 2

    def bound(log_alpha_less_one: float) -> float:
        alpha = 1 + math.exp(log_alpha_less_one)
        tail = (-math.log(delta) - math.log(alpha)) / (alpha - 1)
        return max(0.0, rho * alpha + tail + math.log1p(-1 / alpha))

    return bound(_argmin(bound, -30.0, 30.0))


@lru_cache(maxsize=256)  # planning, reserving and every party ask for the same
def epsilon_of(mu: float, delta: float, coordinates: int, accounting: str = "exact") -> float:
    """The epsilon spent by Gaussian slots of total mu that released so many coordinates."""
    renyi = renyi_epsilon(mu, delta)
    if accounting == "renyi" or mu <= 0 or mu > EXACT_LIMIT:
        return renyi

    def spent(epsilon: float) -> float:
        return exact_delta(epsilon, mu, coordinates)

    # delta_of falls and the tau term rises with epsilon: the smallest epsilon that fits lies in
    # the stretch where the sum still falls, left of its minimum.
    low, high = 0.0, _argmin(spent, 0.0, renyi)
    if spent(high) > delta:
        return renyi
    for _ in range(100):
        middle = (low + high) / 2
        if spent(middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def exact_delta(epsilon: float, mu: float, coordinates: int) -> float:
    """delta(epsilon) with what the discreteness of so many released coordinates adds."""
    grown = math.exp(epsilon) if epsilon < 700 else math.inf
    return delta_of(epsilon, mu) + (1 + grown) * tau_of(coordinates)


def gaussian_guess(mu: float, coordinates: int = 0, narrow: bool = False) -> float:
    """How often the best guess is right, at even odds, after Gaussian slots of total mu.

    Phi(mu / 2), and tau for the discreteness of so many coordinates. Noise of plans beyond
    EXACT_LIMIT may be too `narrow` for tau; there the divergence mu^2 / 2, which discrete Gaussians
    keep as they are, bounds the distance by sqrt(1 - exp(-mu^2 / 2)) (Bretagnolle and Huber 1979).

    >>> gaussian_guess(0.0), round(gaussian_guess(0.2367), 4)
    (0.5, 0.5471)
    """
    if narrow:
        return (1 + math.sqrt(-math.expm1(-mu * mu / 2))) / 2
    return min(1.0, math.erfc(-mu / math.sqrt(8)) / 2 + tau_of(coordinates))


def plain_guess(epsilon: float, delta: float = 0.0) -> float:
    """How often the best guess is right, at even odds, where epsilon and delta are all one knows.

    (e^epsilon + delta) / (1 + e^epsilon): randomised response attains it.

    >>> plain_guess(0.0), round(plain_guess(1.0), 4)
    (0.5, 0.7311)
    """
    other = math.exp(-epsilon)  # no overflow
    return min(1.0, (1 + delta * other) / (1 + other))


def group_delta(epsilon: float, delta: float, units: int) -> float:
    """The delta of so many units together at `units` times epsilon, where no more is known.

    delta (1 + e^epsilon + ... + e^((units - 1) epsilon)): one step between neighbours after another
    (Vadhan 2017).

    >>> group_delta(0.0, 1e-6, 3), group_delta(1.0, 0.0, 5)
    (3e-06, 0.0)
    """
    if epsilon * units > 700:
        return 1.0 if delta else 0.0
    whole = math.expm1(units * epsilon) / math.expm1(epsilon) if epsilon else float(units)
    return min(1.0, delta * whole)


def _argmin(function: Callable[[float], float], low: float, high: float) -> float:
    """Golden-section search for where a unimodal function is smallest."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = low, high
    c, d = b - ratio * (b - a), a + ratio * (b - a)
    fc, fd = function(c), function(d)
    for _ in range(120):
        if fc <= fd:
            b, d, fd = d, c, fc
            c = b - ratio * (b - a)
            fc = function(c)
        else:
            a, c, fc = c, d, fd
            d = a + ratio * (b - a)
            fd = function(d)
    return c if fc <= fd else d
