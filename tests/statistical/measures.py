"""Measurements of noise with stated chances of a false alarm (1e-7 a bound)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

FALSE_ALARM = 1e-7


def variance_fits(noise: NDArray[np.float64], sigma: float) -> bool:
    """Whether the sum of squares of this noise is one that N(0, sigma^2) gives."""
    square = float(np.sum((noise / sigma) ** 2))
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], len(noise))
    return bool(low < square < high)


def mean_fits(noise: NDArray[np.float64], sigma: float) -> bool:
    bound = stats.norm.isf(FALSE_ALARM / 2) * sigma / math.sqrt(len(noise))
    return bool(abs(float(np.mean(noise))) < bound)


def unrelated(one: NDArray[np.float64], two: NDArray[np.float64]) -> bool:
    """Whether two samples of normal noise have the correlation of independent ones."""
    r = float(np.corrcoef(one, two)[0, 1])
    # Fisher: atanh(r) is close to normal with variance 1 / (n - 3).
    return abs(math.atanh(min(max(r, -1 + 1e-15), 1 - 1e-15))) * math.sqrt(len(one) - 3) < (
        stats.norm.isf(FALSE_ALARM / 2)
    )


def looks_uniform(values: NDArray[np.uint64]) -> bool:
    """Whether every byte value is as frequent as every other, at each of the eight places."""
    table = values.view(np.uint8).reshape(-1, 8)  # (number, place)
    tail = FALSE_ALARM / 16  # eight places, two sides
    low, high = stats.chi2.ppf(tail, 255), stats.chi2.isf(tail, 255)
    for place in range(8):
        counts = np.bincount(table[:, place], minlength=256)
        square = float(np.sum((counts - len(table) / 256) ** 2) / (len(table) / 256))
        if not low < square < high:
            return False
    return len(np.unique(values)) == len(values)
