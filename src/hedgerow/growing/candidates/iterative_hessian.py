"""Iterative Hessian: merge bins with little Hessian, halve those with much (Maddock et al. 2022).

The refinement is post-processing of a released histogram. Cuts stay edges of the base grid.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.binning import ColumnGrid


def refine(
    grid: ColumnGrid, cuts: tuple[int, ...], hessians: NDArray[np.float64], n_bins: int
) -> tuple[int, ...]:
    """New cuts of one column from the noisy Hessians of its bins: (len(cuts) + 1,)."""
    held = np.maximum(hessians, 0.0)
    target = held.sum() / n_bins
    if target <= 0:
        return cuts
    n_edges = len(grid.edges)
    # The bin q lies between the edges bounds[q] and bounds[q + 1]; -1 and n_edges are outside.
    bounds = [-1, *cuts, n_edges]
    kept: list[tuple[int, int, float]] = []  # (left, right, hessian) after merging
    left, mass = bounds[0], 0.0
    for q, hessian in enumerate(held):
        mass += float(hessian)
        if mass >= target or q == len(held) - 1:
            kept.append((left, bounds[q + 1], mass))
            left, mass = bounds[q + 1], 0.0
    chosen = {edge for _, right, _ in kept for edge in (right,) if 0 <= edge < n_edges}
    # Fill up to n_bins by halving, the heaviest bin first; a bin without an inner edge stays.
    waiting = sorted(kept, key=lambda one: -one[2])
    while waiting and len(chosen) < n_bins - 1:
        left, right, mass = waiting.pop(0)
        middle = _middle(grid, left, right)
        if middle is None:
            continue
        chosen.add(middle)
        waiting += [(left, middle, mass / 2), (middle, right, mass / 2)]
        waiting.sort(key=lambda one: -one[2])
    return tuple(sorted(chosen))


def _middle(grid: ColumnGrid, left: int, right: int) -> int | None:
    """The edge nearest to the middle of the bin between two edges, by value."""
    if right - left < 2:
        return None
    inner = np.arange(left + 1, right)
    low = float(grid.edges[left]) if left >= 0 else _outer(grid, -1)
    high = float(grid.edges[right]) if right < len(grid.edges) else _outer(grid, 1)
    return int(inner[np.argmin(np.abs(grid.edges[inner].astype(np.float64) - (low + high) / 2))])


def _outer(grid: ColumnGrid, side: int) -> float:
    column = grid.column
    if side < 0:
        return float(getattr(column, "lower", 0.0))
    return float(getattr(column, "upper", len(grid.edges) + 1))
