"""Measurements of noise, each with the chance of a false alarm at most FALSE_ALARM, by an exact law
or a proved bound: never by an approximation that fails so far out in a tail.

No test checks a hundred bounds, so each fails by chance with a probability below 1e-9.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

FALSE_ALARM = 1e-11
UNNOTICED = 1e-11  # the same of a planted defect that is to be found
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def variance_fits(noise: Floats, sigma: float) -> bool:
    """Whether the sum of squares of this noise is one that N(0, sigma^2) gives: chi-square."""
    square = float(np.sum((noise / sigma) ** 2))
    low, high = _chi2(len(noise))
    return low < square < high


def variance_unnoticed(n: int, ratio: float) -> float:
    """Chance that n draws whose variance is `ratio` times the stated one pass `variance_fits`."""
    low, high = _chi2(n)
    if ratio == 0.0:
        return 0.0
    return float(min(stats.chi2.sf(low / ratio, n), stats.chi2.cdf(high / ratio, n)))


def _chi2(n: int) -> tuple[float, float]:
    return float(stats.chi2.ppf(FALSE_ALARM / 2, n)), float(stats.chi2.isf(FALSE_ALARM / 2, n))


def mean_fits(noise: Floats, sigma: float) -> bool:
    """Whether the mean of this noise is one that N(0, sigma^2) gives."""
    bound = stats.norm.isf(FALSE_ALARM / 2) * sigma / math.sqrt(len(noise))
    return bool(abs(float(np.mean(noise))) < bound)


def mean_within(values: Floats, mean: float, variance: float, largest: float) -> bool:
    """Whether values no further than `largest` from their mean have it: Bernstein's inequality.

    P(|average - mean| >= t) <= 2 exp(-n t^2 / (2 variance + 2 largest t / 3)), solved for t.
    """
    log, n = math.log(2 / FALSE_ALARM), len(values)
    half = largest * log / (3 * n)
    bound = half + math.sqrt(half**2 + 2 * variance * log / n)
    return bool(abs(float(np.mean(values)) - mean) < bound)


def unrelated(first: Floats, second: Floats) -> bool:
    """Whether two samples of normal noise have the correlation of independent ones.

    Then r sqrt((n - 2) / (1 - r^2)) has Student's distribution with n - 2 degrees, exactly.
    """
    degrees = len(first) - 2
    r = float(np.clip(np.corrcoef(first, second)[0, 1], -1 + 1e-15, 1 - 1e-15))
    return abs(r) * math.sqrt(degrees / (1 - r**2)) < stats.t.isf(FALSE_ALARM / 2, degrees)


def sizes_as_normals(noise: Floats, sigma: float) -> Floats:
    """What is normal if and only if the absolute value of the noise is that of N(0, sigma^2)."""
    return np.asarray(stats.norm.isf(2 * stats.norm.sf(np.abs(noise) / sigma)))


def counts_fit(seen: Ints, chances: Floats) -> bool:
    """Whether each cell is hit as often as its chance says: binomial, the alarm split over cells.

    Cells may be as rare as they like: nothing is approximated.
    """
    low, high = count_limits(int(seen.sum()), np.asarray(chances), len(seen))
    return bool(np.all((low <= seen) & (seen <= high)))


def count_limits(n: int, chances: Floats, cells: int = 1) -> tuple[Ints, Ints]:
    """Counts that n draws leave with a chance of FALSE_ALARM / cells at most, one cell alone."""
    tail = FALSE_ALARM / (2 * cells)
    low = stats.binom.ppf(tail, n, chances)
    return low.astype(np.int64), stats.binom.isf(tail, n, chances).astype(np.int64)


def counts_unnoticed(n: int, chances: Floats, true: Floats) -> float:
    """A bound on the chance that n draws with the `true` chances pass as ones with `chances`."""
    low, high = count_limits(n, chances, len(chances))
    inside = np.minimum(stats.binom.sf(low - 1, n, true), stats.binom.cdf(high, n, true))
    return float(np.min(inside))  # the cell that shows most


def hits_fit(hits: int, n: int, chance: float) -> bool:
    """Whether an event of this chance happens so often in n independent tries: binomial."""
    return counts_fit(np.array([hits, n - hits]), np.array([chance, 1 - chance]))


def samples_agree(first: Ints, second: Ints) -> bool:
    """Whether two tables of counts may come from one distribution, unknown to us.

    Given how often both hit a cell together, the first one's count is hypergeometric.
    """
    n, tail = int(first.sum()), FALSE_ALARM / (2 * len(first))
    together, everything = first + second, int((first + second).sum())
    law = stats.hypergeom(everything, together, n)
    return bool(np.all((law.cdf(first) > tail) & (law.sf(first - 1) > tail)))


def follows_normal(values: Floats) -> bool:
    """Whether the empirical distribution is that of N(0, 1): Dvoretzky, Kiefer, Wolfowitz, Massart.

    P(largest distance >= t) <= 2 exp(-2 n t^2).
    """
    n, chances = len(values), stats.norm.cdf(np.sort(values))
    steps = np.arange(n + 1) / n
    distance = max(np.max(steps[1:] - chances), np.max(chances - steps[:-1]))
    return bool(distance < math.sqrt(math.log(2 / FALSE_ALARM) / (2 * n)))


def looks_uniform(values: NDArray[np.uint64]) -> bool:
    """Whether every byte value is as frequent as every other, at each of the eight places.

    Among n words of 64 bits two are equal with a chance below n^2 / 2^65: 1e-11 for 20,000.
    """
    assert len(values) <= 20_000
    table = values.view(np.uint8).reshape(-1, 8)  # (number, place)
    counts = np.concatenate([np.bincount(table[:, place], minlength=256) for place in range(8)])
    low, high = count_limits(len(table), np.full(1, 1 / 256), len(counts))
    even = bool(np.all((low <= counts) & (counts <= high)))
    return even and len(np.unique(values)) == len(values)


def laplace_pmf(scale: float, top: int) -> Floats:
    """Chances of a discrete Laplace, from -top to top."""
    a = math.exp(-1 / scale)
    return (1 - a) / (1 + a) * a ** np.abs(np.arange(-top, top + 1))


def share_pmf(scale: float, shares: int, top: int) -> Floats:
    """NB(1/shares) less another, by adding up products."""
    side = stats.nbinom.pmf(np.arange(40 * top), 1 / shares, -math.expm1(-1 / scale))
    return np.array(
        [(side[abs(k) :] * side[: len(side) - abs(k)]).sum() for k in range(-top, top + 1)]
    )
