"""What the first questions say: how many rows, the label, bins and denominators. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.growing.auto.bins import EMPTY, Bins

Floats = NDArray[np.float64]
LABEL_CELLS = 64


@dataclass(frozen=True, eq=False)
class Known:
    """Per column the counts of its bins, denominators and first sums z with their noise."""

    counts: list[Floats]  # (bin,)
    hessians: list[Floats]  # (output, bin)
    z: list[Floats]  # (output, bin), sums of label minus base rate
    z_noise: Floats  # (output,) variance of z in one cell


def class_rates(counts: list[Floats], least: float = 0.005) -> Floats:
    """Shares of the classes from noisy counts (class, cell) of every column: (class,).

    Every column counts the same rows; the fewer cells it has, the less noise its total carries.
    """
    weight = np.array([1.0 / c.shape[1] for c in counts])
    total = sum(w * c.sum(axis=1) for w, c in zip(weight, counts, strict=True)) / weight.sum()
    rates = np.maximum(total, 0.0) / max(float(np.maximum(total, 0.0).sum()), 1.0)
    rates = np.maximum(rates, least)
    return np.asarray(rates / rates.sum())


def known_classes(
    cells: list[Floats], bins: list[Bins], rates: Floats, noise: float, floor: float
) -> Known:
    """Counts by class and cell to denominators n p (1 - p), p shrunk to the base rate."""
    outputs = slice(1, 2) if len(rates) == 2 else slice(None)
    base = rates[outputs, None]
    counts, hessians, z = [], [], []
    for of_cells, column in zip(cells, bins, strict=True):
        by_class = column.add_up(of_cells)  # (class, bin)
        chosen, total = by_class[outputs], by_class.sum(axis=0)
        n = np.maximum(total, floor * noise)
        p = (np.maximum(chosen, 0.0) + base * 3 * noise) / (n + 3 * noise + 1e-9)
        p = np.clip(p, 0.2 * base, 1 - 0.2 * (1 - base))
        counts.append(n)
        hessians.append(n * p * (1 - p))
        z.append(chosen - base * total)
    r = rates[outputs]
    return Known(counts, hessians, z, noise**2 * ((1 - r) ** 2 + (len(rates) - 1) * r**2))


def known_rows(cells: list[Floats], bins: list[Bins], noise: float, floor: float) -> Known:
    """Counts of rows by cell, for numbers: every row has Hessian 1 and nothing is known of z."""
    counts = [np.maximum(b.add_up(c)[0], floor * noise) for c, b in zip(cells, bins, strict=True)]
    zeros = [np.zeros((1, n.size)) for n in counts]
    return Known(counts, [n[None, :] for n in counts], zeros, np.array([np.inf]))


def centre_and_spread(histogram: Floats, noise: float) -> tuple[float, float]:
    """Mean and deviation of a label between 0 and 1 from its noisy histogram, cells even."""
    mass = np.where(histogram < EMPTY * noise, 0.0, histogram)
    place = (np.arange(mass.size) + 0.5) / mass.size
    total = float(mass.sum())
    if total <= 0:
        return 0.5, 0.25
    mean = float(mass @ place) / total
    spread = float(np.sqrt(mass @ (place - mean) ** 2 / total))
    return mean, min(max(spread, 1.0 / mass.size), 0.5)
