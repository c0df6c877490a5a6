"""Pure epsilon in formulas: what it books as, what sampling saves, and how rounds compose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

LEAST_PRICE = 1e-7  # of a node for a column; less is no answer
MOST_PRICE = 1e7
LEAST_RATE = 1e-6
MOST_ROUNDS = 200_000
MOST_KINDS = 8  # of rounds that differ: each takes a while to compose, and methods have three
_LOSSES = 1 << 13  # values of a sum of privacy losses
_PAIRS = 1 << 20  # of two of them that are added


def pure_mu(epsilon: float) -> float:
    """The Gaussian parameter that a pure epsilon books as: mu = 2 Phi^-1(e^eps / (1 + e^eps)).

    An epsilon-private mechanism is mu-Gaussian private for this mu: its trade-off curve lies above
    that of randomised response, which the Gaussian one touches (Dong, Roth and Su 2022).

    >>> round(pure_mu(1.0), 4)
    1.232
    """
    from scipy.optimize import brentq
    from scipy.special import log_ndtr

    if epsilon <= 0:
        return 0.0
    # Phi(-mu / 2) = 1 / (1 + e^eps), in logarithms so that a large epsilon does not overflow.
    log_tail = -float(np.logaddexp(0.0, epsilon))
    high = 2.0
    while float(log_ndtr(-high / 2)) > log_tail:
        high *= 2
    root = float(brentq(lambda mu: float(log_ndtr(-mu / 2)) - log_tail, 0.0, high, xtol=1e-14))
    return root * (1 + 1e-12)


def amplified(epsilon: float, rate: float) -> float:
    """What an epsilon-private question costs when every row takes part with probability `rate`.

    Rows are drawn one by one (Poisson sampling), in secret. Let M be the question on the
    rows taken, p its probability of an outcome on D and q on D + x. With x left out (1 - rate) the
    two tables give the same p; with x taken the outcome has at most e^epsilon and at least
    e^-epsilon times the probability it has on the same rows without x. So q / p lies between
    1 - rate (1 - e^-epsilon) and 1 + rate (e^epsilon - 1), and the latter is further from 1 in
    logarithms: log(1 + rate (e^epsilon - 1)). It does not hold for samples of a fixed size, where
    adding x pushes another row out.

    >>> round(amplified(1.0, 0.1), 4), amplified(1.0, 1.0)
    (0.1586, 1.0)
    """
    return epsilon if rate == 1 else math.log1p(rate * math.expm1(epsilon))


def before_sampling(cost: float, rate: float) -> float:
    """The inverse of `amplified`: what a question on a sample may be if it costs so much."""
    return cost if rate == 1 else math.log1p(math.expm1(cost) / rate)


def composed_delta(costs: Sequence[tuple[float, int]], epsilon: float) -> float:
    """The smallest delta at which rounds of these costs are (epsilon, delta)-private together.

    Rounds that are e_i-private, each chosen with sight of the ones before it, are together no worse
    than independent randomised responses, which answer a bit truthfully with probability
    e^e_i / (1 + e^e_i) (Kairouz, Oh and Viswanath 2015; Murtagh and Vadhan 2016), and that is
    attained: no better bound exists that knows the e_i alone. There the privacy loss L is a sum of
    e_i times signs, and delta(epsilon) the mean of max(0, 1 - e^(epsilon - L)). Where there would
    be too many values of L, they are rounded up, which only adds to delta.
    """
    return _excess(*_losses_of(costs), epsilon)


def composed(costs: Sequence[tuple[float, int]], delta: float) -> float:
    """The smallest epsilon for a delta, by `composed_delta`; their sum if there is no delta.

    Plans that were composed last are kept: one is read several times.

    >>> round(composed([(0.01, 100)], 1e-6), 3), composed([(0.5, 2)], 1e-6) <= 1.0
    (0.392, True)
    """
    return _composed(tuple(costs), delta)


@lru_cache(maxsize=64)
def _composed(costs: tuple[tuple[float, int], ...], delta: float) -> float:
    low, high = 0.0, math.fsum(cost * n for cost, n in costs)
    if delta == 0:
        return high
    losses, chances = _losses_of(costs)
    for _ in range(60):
        middle = (low + high) / 2
        if _excess(losses, chances, middle) <= delta:
            high = middle
        else:
            low = middle
            above = losses > low  # all others are too small to count from here on
            losses, chances = losses[above], chances[above]
    return high


def _losses_of(costs: Sequence[tuple[float, int]]) -> tuple[Any, Any]:
    """Privacy losses of the randomised responses, and how likely they are."""
    losses, chances = np.zeros(1), np.ones(1)
    for cost, n in costs:
        truths = np.arange(n + 1)
        logs = _log_binomial(n, truths) + truths * cost - n * float(np.logaddexp(0.0, cost))
        fresh, likely = _merged(cost * (2.0 * truths - n), np.exp(logs), _LOSSES)
        losses, chances = _merged(losses, chances, min(_LOSSES, _PAIRS // len(fresh)))
        losses = np.add.outer(losses, fresh).ravel()
        chances = np.multiply.outer(chances, likely).ravel()
    return losses, chances * (1 + 1e-7)  # rounding errors above: 1e-9 with a million rounds


def _excess(losses: Any, chances: Any, epsilon: float) -> float:
    above = losses > epsilon
    return float(chances[above] @ -np.expm1(epsilon - losses[above]))


def _log_binomial(n: int, k: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
    from scipy.special import gammaln

    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _merged(losses: Any, chances: Any, most: int) -> tuple[Any, Any]:
    """At most so many values: rounded up to a grid, chances of equal ones added.

    The grid lies where nearly all of the chance is: 15 deviations around the mean. What lies below
    is rounded up to its start, and what lies above (less than 1e-48) to the largest value of all.
    """
    if len(losses) <= most:
        return losses, chances
    mean = float(chances @ losses) / float(chances.sum())
    wide = 15 * math.sqrt(float(chances @ (losses - mean) ** 2) / float(chances.sum()))
    top = float(losses.max())
    low, high = max(float(losses.min()), mean - wide), min(top, mean + wide)
    step = max((high - low) / (most - 2), 1e-300)
    cells = np.ceil(np.clip((losses - low) / step, 0, most - 2)).astype(np.int64)
    cells[losses > high] = most - 1
    together = np.bincount(cells, weights=chances, minlength=most)
    values = low + step * np.arange(most)
    values[most - 2 :] = high, top
    held = np.flatnonzero(together)
    return values[held], together[held]
