"""How sure an attack's success makes one of a least mu or epsilon; docs/audit.md has the proofs.

Three bounds, each with what it takes for granted:

- `gaussian_bound`: a release is a sum plus Gaussian noise. Its size is measured, not believed.
- `any_mechanism_bound`: nothing but independent fair coins (Steinke, Nasr and Jagielski 2023).
- `repeated_bound`: many independent runs with one canary each (Clopper and Pearson 1934).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hedgerow.model.tradeoff import delta_of

Floats = NDArray[np.float64]
MOST_MU = 64.0  # searches end here: nothing is hidden at such a mu
_EPSILONS = np.concatenate([np.linspace(0.01, 1.0, 25), np.geomspace(1.1, 40.0, 35)])


@dataclass(frozen=True, eq=False)
class BlockNoise:
    """What one block of one release says: its noise, measured, and what canaries add to it."""

    name: str
    size: int
    energy: float  # sum of squares of (release - made-up sums), in units of the stated variance
    squares: Floats  # (canary,): squared length of what each adds, in units of the stated noise


def gaussian_bound(blocks: Sequence[BlockNoise], alpha: float) -> float:
    """A mu that some canary exceeds, wrongly so with probability at most `alpha`.

    energy / s^2 of a block is chi-squared if its noise is Gaussian of s times the stated
    deviation. Once for all blocks together, once for each block with its part of alpha; the better
    of the two, at half of alpha each. A block without any noise gives infinity.
    """
    return max(_together(blocks, alpha / 2), _one_by_one(blocks, alpha / 2))


def _together(blocks: Sequence[BlockNoise], alpha: float) -> float:
    energy, size = math.fsum(b.energy for b in blocks), sum(b.size for b in blocks)
    squares = np.sum([b.squares for b in blocks], axis=0)
    if _is_silent(energy, size):
        return math.inf if squares.any() else 0.0
    return math.sqrt(float(squares.max(initial=0.0)) * float(stats.chi2.ppf(alpha, size)) / energy)


def _one_by_one(blocks: Sequence[BlockNoise], alpha: float) -> float:
    """Sums of squares of the mu of each block, which the noise of that block alone bounds."""
    total = np.zeros_like(blocks[0].squares)
    for block in blocks:
        least = float(stats.chi2.ppf(alpha / len(blocks), block.size))
        if _is_silent(block.energy, block.size):
            if block.squares.any():
                return math.inf
            continue
        total += block.squares * least / block.energy
    return math.sqrt(float(total.max(initial=0.0)))


def _is_silent(energy: float, size: int) -> bool:
    """Whether there is no noise at all: what rounding leaves of a difference is no noise."""
    return energy <= 1e-12 * size


def silent_block(blocks: Sequence[BlockNoise], alpha: float) -> str:
    """The block whose noise is most surely narrower than stated, or nothing if none surely is."""
    chances = [float(stats.chi2.cdf(b.energy, b.size)) for b in blocks]
    least = int(np.argmin(chances))
    return blocks[least].name if chances[least] < alpha / len(blocks) else ""


def any_mechanism_bound(n_canaries: int, n_guesses: int, n_right: int, alpha: float) -> float:
    """The largest mu at which so many right guesses are improbable, whatever the mechanism is.

    A mu-Gaussian guarantee is (epsilon, delta(epsilon)) for every epsilon. Of r guesses made from
    the output alone, v or more are right with probability at most f(v) + 2 m delta max_i
    (f(v - i) - f(v)) / i, where f are tails of a binomial of r and e^epsilon / (1 + e^epsilon)
    (Steinke, Nasr and Jagielski 2023, theorem 5.2).
    """
    tails = _binomial_tails(n_guesses, n_right)

    def improbable(mu: float) -> bool:
        least = (tail + 2 * n_canaries * delta_of(e, mu) * slope for e, tail, slope in tails)
        return min(least) <= alpha

    return _largest(improbable)


def pure_bound(n_guesses: int, n_right: int, alpha: float) -> float:
    """The largest epsilon at which so many right guesses are improbable, without any delta."""
    low = clopper_pearson(n_right, n_guesses, alpha)[0]
    return max(0.0, math.log(low) - math.log1p(-low)) if 0 < low < 1 else 0.0


def _binomial_tails(r: int, v: int) -> list[tuple[float, float, float]]:
    """For many epsilons: epsilon, f(v), and the largest (f(v - i) - f(v)) / i."""
    below = np.arange(v, -1, -1) - 1  # so that f[i] = P(at least v - i)
    tails = []
    for epsilon in _EPSILONS.tolist():
        f = stats.binom.sf(below, r, 1 / (1 + math.exp(-epsilon)))
        slope = float(np.max((f[1:] - f[0]) / np.arange(1, len(f)), initial=0.0))
        tails.append((epsilon, float(f[0]), slope))
    return tails


def clopper_pearson(hits: int, tries: int, alpha: float) -> tuple[float, float]:
    """An exact two-sided interval for a probability: alpha / 2 on either side is `alpha` here.

    >>> low, high = clopper_pearson(0, 20, 0.05)
    >>> low, round(high, 3)
    (0.0, 0.139)
    """
    low = 0.0 if hits == 0 else float(stats.beta.ppf(alpha, hits, tries - hits + 1))
    high = 1.0 if hits == tries else float(stats.beta.ppf(1 - alpha, hits + 1, tries - hits))
    return low, high


def repeated_bound(inside: Floats, outside: Floats, threshold: float, alpha: float) -> float:
    """A mu from scores of independent runs with the canary and without: "in" above a threshold.

    A guarantee of mu means Phi^-1(true positives) - Phi^-1(false positives) <= mu. Each of the two
    rates is bounded with half of alpha. The threshold may not come from these scores.
    """
    true, false = int(np.sum(inside > threshold)), int(np.sum(outside > threshold))
    least = clopper_pearson(true, len(inside), alpha / 2)[0]
    most = clopper_pearson(false, len(outside), alpha / 2)[1]
    if least <= 0 or most >= 1:
        return 0.0
    return max(0.0, float(stats.norm.ppf(least) - stats.norm.ppf(most)))


def _largest(improbable: Callable[[float], bool]) -> float:
    """The largest mu that is rejected, by halving; what is improbable grows likelier with mu."""
    low, high = 0.0, MOST_MU
    if not improbable(1e-6):
        return 0.0
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if improbable(middle) else (low, middle)
    return low


def separation(scores: Floats, coins: NDArray[np.bool_]) -> float:
    """How many deviations the scores of canaries that are in lie above those that are not."""
    inside, outside = scores[coins], scores[~coins]
    if len(inside) < 2 or len(outside) < 2:
        return 0.0
    spread = math.sqrt((inside.var(ddof=1) + outside.var(ddof=1)) / 2)
    apart = float(inside.mean() - outside.mean())
    return apart / spread if spread > 0 else (math.inf if apart > 0 else 0.0)
