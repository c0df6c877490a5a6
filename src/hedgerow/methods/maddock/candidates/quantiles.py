"""Quantiles: cuts at equal mass of noisy counts on the base grid, released once before any tree.

The base grid refines uniform and log-spaced edges at once, so heavy tails have fine cells too.
Everything after the release is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.gate import Gate
from hedgerow.errors import SlotSpent
from hedgerow.methods.maddock.candidates.base import Cuts
from hedgerow.queries import ColumnCounts

EMPTY_DEVIATIONS = 1.5  # a cell with less than so many deviations of its noise counts as empty


def quantiles(gate: Gate, cuts: Cuts, n_bins: int) -> Cuts:
    """Cuts at equal noisy mass; the given ones where nothing can be told, or the slot was lost."""
    query = ColumnCounts.for_cuts(gate.schema, n_bins)
    try:
        release = gate.release(query)
    except SlotSpent:
        return cuts
    fresh = list(cuts)
    parts = np.split(release.values, np.cumsum(query.n_codes)[:-1])
    for j, counts in zip(query.columns, parts, strict=True):
        # The last code is that of missing values, which no cut parts.
        fresh[j] = equal_mass(counts[:-1], release.unit, n_bins) or cuts[j]
    return fresh


@dataclass(frozen=True)
class _Stretch:
    """Neighbouring cells first .. last: one heavy cell, or those between heavy ones."""

    first: int
    last: int
    mass: float
    heavy: bool


def equal_mass(counts: NDArray[np.float64], deviation: float, n_bins: int) -> tuple[int, ...]:
    """At most n_bins - 1 edges that cut noisy counts (cell,) into bins of equal mass.

    Edge k lies between the cells k and k + 1. A cell that alone holds a bin's share is a bin of
    its own; the other bins go to the stretches between such cells by their mass. No edge at all
    means that the counts look like noise.

    >>> equal_mass(np.array([10.0, 10.0, 90.0, 10.0, 0.0, 10.0]), 0.1, 4)
    (0, 1, 2)
    """
    empty = counts < max(EMPTY_DEVIATIONS * deviation, 1e-9)
    mass = np.where(empty, 0.0, counts)  # (cell,)
    parts = _fewer(_stretches(mass, n_bins), n_bins)
    masses = np.array([0.0 if part.heavy else part.mass for part in parts])
    edges = [a.last if a.heavy else b.first - 1 for a, b in pairwise(parts)]
    for part, n_cuts in zip(parts, _shared(masses, n_bins - len(parts)), strict=True):
        inside = np.cumsum(mass[part.first : part.last + 1])
        levels = part.mass * np.arange(1, n_cuts + 1) / (n_cuts + 1)
        edges += (part.first + np.searchsorted(inside, levels * (1 - 1e-9))).tolist()
    return tuple(sorted({int(edge) for edge in edges if 0 <= edge < len(mass) - 1}))


def _stretches(held: NDArray[np.float64], n_bins: int) -> list[_Stretch]:
    """Heavy cells and the stretches between them that hold anything, from left to right."""
    share = held.sum() / n_bins
    heavy = [int(cell) for cell in np.flatnonzero((held >= share) & (held > 0))]
    stretches: list[_Stretch] = []
    for left, right in pairwise([-1, *heavy, len(held)]):
        mass = float(held[left + 1 : right].sum())
        if mass > 0:
            stretches.append(_Stretch(left + 1, right - 1, mass, heavy=False))
        if right < len(held):
            stretches.append(_Stretch(right, right, float(held[right]), heavy=True))
    return stretches


def _fewer(parts: list[_Stretch], n_bins: int) -> list[_Stretch]:
    """At most n_bins of them: the lightest joins a neighbour until they fit."""
    while len(parts) > n_bins:
        i = min(range(len(parts)), key=lambda k: parts[k].mass)
        i, j = (i, i + 1) if i == 0 else (i - 1, i)
        a, b = parts[i], parts[j]
        parts = [*parts[:i], _Stretch(a.first, b.last, a.mass + b.mass, True), *parts[j + 1 :]]
    return parts


def _shared(masses: NDArray[np.float64], n_spare: int) -> list[int]:
    """So many further cuts shared out by mass, the largest remainders first."""
    if n_spare <= 0 or masses.sum() <= 0:
        return [0] * len(masses)
    wanted = n_spare * masses / masses.sum()
    given = np.floor(wanted).astype(int)
    for k in np.argsort(given - wanted, kind="stable")[: n_spare - int(given.sum())]:
        given[k] += 1
    return [int(n) for n in given]
