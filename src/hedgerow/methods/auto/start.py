"""What the first questions say: how many rows, the label, bins and denominators. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.methods.auto.bins import EMPTY, Bins

Floats = NDArray[np.float64]
SURE = 2.0  # noise deviations by which a class must be more frequent in a bin, to be believed
BY_CHANCE = 0.5  # a guess: the part of a label's variance that columns do not explain


@dataclass(frozen=True, eq=False)
class Known:
    """Per column the counts of its bins, denominators and first sums z with their noise."""

    counts: list[Floats]  # (bin,)
    hessians: list[Floats]  # (output, bin)
    z: list[Floats]  # (output, bin), sums of label minus base rate
    z_noise: Floats  # (output,) variance of z in one cell
    sampling: list[Floats]  # (output, bin) variance of later sums over samples of rows


def even_counts(
    n_cells: Sequence[int], n_rows: float, rates: Sequence[float] | None, n_classes: int
) -> list[Floats]:
    """What stands in for counts that were lost: a (noisy) row count, the same in every cell.

    By class (class, cell); for regression sums of gradients, all nothing, and rows: (2, cell).
    """
    if n_classes:
        shares = np.full(n_classes, 1 / n_classes) if rates is None else np.asarray(rates)
    else:
        shares = np.array([0.0, 1.0])
    return [np.repeat(n_rows * shares[:, None] / n, n, axis=1) for n in n_cells]


@dataclass(frozen=True, eq=False)
class Counted:
    """Rows by class (class,), with the variance of their noise."""

    rows: Floats
    variance: float


def class_rates(counts: Sequence[Counted], least: float = 0.005) -> Floats:
    """Shares of the classes from several noisy counts of the same rows: (class,)."""
    weight = np.array([1.0 / one.variance for one in counts])
    total = sum(w * one.rows for w, one in zip(weight, counts, strict=True)) / weight.sum()
    rates = np.maximum(total, 0.0) / max(float(np.maximum(total, 0.0).sum()), 1.0)
    rates = np.maximum(rates, least)
    return np.asarray(rates / rates.sum())


def counted_by_columns(cells: Sequence[Floats], noise: float) -> list[Counted]:
    """Counts (class, cell) of every column, added up: the fewer cells, the less noise."""
    spread = max(noise, 1e-9) ** 2  # where nothing has noise, all columns say the same
    return [Counted(of.sum(axis=1), spread * of.shape[1]) for of in cells]


def known_classes(
    cells: list[Floats],
    bins: list[Bins],
    rates: Floats,
    noise: float,
    floor: float,
    clip: float,
    steep: bool = False,
) -> Known:
    """Counts by class and cell to denominators n p (1 - p), with p the base rate in every bin.

    A bin's own rate is a ratio of two noisy counts: where a class is rare it is mostly noise, and
    denominators several times too large or too small followed from it. `steep` looks at it all the
    same, where it is surely far above the base rate.

    A gradient clamped to +-clip is min(p, clip) or -min(1 - p, clip), with chances 1 - p and p: its
    variance is p (1 - p) times the square of how far these are apart.
    """
    outputs = slice(1, 2) if len(rates) == 2 else slice(None)
    base = rates[outputs, None]
    apart = np.minimum(base, clip) + np.minimum(1 - base, clip)
    counts, hessians, z, sampling = [], [], [], []
    for of_cells, column in zip(cells, bins, strict=True):
        by_class = column.add_up(of_cells)  # (class, bin)
        chosen, total = by_class[outputs], by_class.sum(axis=0)
        n = np.maximum(total, floor * noise)
        counts.append(n)
        hessians.append(n * base * (1 - base))
        sampling.append(hessians[-1] * apart**2)
        if steep:
            sure = (chosen - SURE * noise * np.sqrt(column.n_cells)) / np.maximum(n, 1.0)
            hessians[-1] = np.maximum(hessians[-1], n * chord(base, sure))
        z.append(chosen - base * total)
    r = rates[outputs]
    z_noise = noise**2 * ((1 - r) ** 2 + (len(rates) - 1) * r**2)
    return Known(counts, hessians, z, z_noise, sampling)


def chord(base: Floats, rate: Floats) -> Floats:
    """The mean slope of a probability over its log-odds from `base` up to `rate`; 0 below `base`.

    A class that is rare, and frequent in one bin, has a slope of base (1 - base) at the base rate
    and a far larger one on the way: a step by the former overshoots many times, again and again.
    """
    base, high = np.broadcast_arrays(base, np.clip(rate, base, np.maximum(base, 0.98)))
    above = high > 1.001 * base
    apart = np.log(high / (1 - high)) - np.log(base / (1 - base))
    return np.asarray(np.where(above, (high - base) / np.where(above, apart, 1.0), 0.0))


def known_for_regression(
    cells: list[Floats],
    bins: list[Bins],
    noise: float,
    count_noise: float,
    spread: float,
    clip: float,
) -> Known:
    """Sums of gradients and rows by cell, for regression: every row has Hessian 1.

    Noisy counts are pulled toward equal shares by how noisy they are. `clip` is in deviations of
    the label.
    """
    counts, z = [], []
    sums = [column.add_up(of) for of, column in zip(cells, bins, strict=True)]  # (g.. | n, bin)
    weight = np.array([1.0 / of.shape[1] for of in cells])
    totals = np.array([of[-1].sum() for of in sums])
    n_rows = max(float(totals @ weight / weight.sum()), 1.0)
    for of, column in zip(sums, bins, strict=True):
        share = n_rows / column.n_bins
        trust = share**2 / (share**2 + count_noise**2 * column.n_cells)
        calm = trust * of[-1] + (1 - trust) * share
        counts.append(np.maximum(calm, min(count_noise, share)))
        z.append(-of[:-1] / spread)
    hessians = [n[None, :] for n in counts]
    by_chance = BY_CHANCE * clamped_variance(clip)
    return Known(counts, hessians, z, np.array([noise**2]), [by_chance * h for h in hessians])


def clamped_variance(clip: float) -> float:
    """The variance of a standard normal number that is clamped to +-clip.

    >>> round(clamped_variance(1.0), 3), round(clamped_variance(9.0), 3)
    (0.516, 1.0)
    """
    beyond = math.erfc(clip / math.sqrt(2))
    density = math.exp(-(clip**2) / 2) / math.sqrt(2 * math.pi)
    return 1 - beyond - 2 * clip * density + clip**2 * beyond


def centre_and_spread(histogram: Floats, noise: float) -> tuple[float, float]:
    """Mean and deviation of a label between 0 and 1 from its noisy histogram, cells even."""
    mass = np.where(histogram < EMPTY * noise, 0.0, histogram)
    place = (np.arange(mass.size) + 0.5) / mass.size
    total = float(mass.sum())
    if total <= 0:
        return 0.5, 0.25
    mean = float(mass @ place) / total
    spread = max(float(mass @ (place - mean) ** 2) / total, 0.05**2) ** 0.5
    trust = total**2 / (total**2 + (3 * noise) ** 2)  # little is known: a wide guess
    return trust * mean + (1 - trust) * 0.5, trust * spread + (1 - trust) * 0.2
