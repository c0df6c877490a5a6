"""Noisy counts made consistent, monotone and wide enough to say something. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Agreed:
    """Two noisy lists of values with one true total, after they have agreed on it."""

    first: Floats
    second: Floats
    total: float
    variance: float  # of the total


def agreed(first: Floats, variance: float, second: Floats, other_variance: float) -> Agreed:
    """Least squares: the total is the average by precision, and each list moves evenly to it.

    `variance` is that of the noise of each number. Among all unbiased linear estimates these have
    the least variance (Gauss and Markov); without noise in either list nothing moves.
    """
    totals = float(first.sum()), float(second.sum())
    noise = len(first) * variance, len(second) * other_variance
    if noise[0] + noise[1] <= 0:
        return Agreed(first, second, totals[0], 0.0)
    part = noise[1] / (noise[0] + noise[1])
    total = part * totals[0] + (1 - part) * totals[1]
    moved = first + (total - totals[0]) / len(first)
    other = second + (total - totals[1]) / len(second)
    return Agreed(moved, other, total, part * noise[0])


def variance_along(gradient: Floats, variance: float, of_total: float) -> float:
    """Variance of a weighted sum of an agreed list whose total has the variance `of_total`."""
    n, total = len(gradient), float(gradient.sum())
    apart = float(gradient @ gradient) - total**2 / n
    return max(0.0, variance * apart) + of_total * (total / n) ** 2


def rising(values: Floats, weights: Floats | None = None) -> Floats:
    """The nearest sequence that never falls, by weighted squares (pooling adjacent violators).

    >>> rising(np.array([1.0, 3.0, 2.0, 4.0])).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    pools: list[tuple[float, float, int]] = []  # mean, weight, length
    for i, value in enumerate(values):
        mean, weight, length = float(value), 1.0 if weights is None else float(weights[i]), 1
        while pools and pools[-1][0] > mean:
            before, its_weight, its_length = pools.pop()
            both = its_weight + weight
            mean, weight = (its_weight * before + weight * mean) / both, both
            length += its_length
        pools.append((mean, weight, length))
    return np.concatenate([np.full(length, mean) for mean, _, length in pools])


def joined_bins(counts: Floats, noise: float, times: float) -> list[slice]:
    """Neighbouring bins put together until each group holds `times` its own noise.

    What is left at the end goes to the group before it.

    >>> joined_bins(np.array([5.0, 50.0, 60.0, 2.0]), 1.0, 30.0)
    [slice(0, 2, None), slice(2, 4, None)]
    """
    groups: list[slice] = []
    start = 0
    for stop in range(1, len(counts) + 1):
        enough = times * noise * (stop - start) ** 0.5
        if counts[start:stop].sum() > max(enough, 0.0):
            groups.append(slice(start, stop))
            start = stop
    if start < len(counts) and groups:
        groups[-1] = slice(groups[-1].start, len(counts))
    return groups


def seen_range(counts: Floats, noise: float, share: float) -> tuple[int, int] | None:
    """First and last cell between which all but `share` of the counts at either end lie.

    A cell counts as seen once what is beyond it exceeds three deviations of its own noise. None
    where the whole is not seen.
    """
    spread = 3 * noise * np.sqrt(np.arange(1, len(counts) + 1))
    total = float(counts.sum())
    if total <= spread[-1]:
        return None

    def first_of(cells: Floats) -> int:
        seen = np.cumsum(cells) > np.maximum(share * total, spread)
        return int(np.argmax(seen)) if seen.any() else len(cells) - 1

    low, high = first_of(counts), len(counts) - 1 - first_of(counts[::-1])
    return min(low, high), max(low, high)


def group_means(
    counts: Floats, centres: Floats, places: NDArray[np.int64], defaults: Floats, noise: float
) -> Floats:
    """Mean of cell centres by bin, weighted by noisy counts; a bin's default where few are seen.

    `places` are the bins of the cells. The default weighs as much as twice the noise of a bin.
    """
    weights_of_bins = np.maximum(counts, 0.0)
    n = np.bincount(places, weights=weights_of_bins, minlength=len(defaults))
    total = np.bincount(places, weights=weights_of_bins * centres, minlength=len(defaults))
    cells = np.bincount(places, minlength=len(defaults))
    prior = 2 * noise * np.sqrt(np.maximum(cells, 1)) + 1e-9
    return np.asarray((total + prior * defaults) / (n + prior))
