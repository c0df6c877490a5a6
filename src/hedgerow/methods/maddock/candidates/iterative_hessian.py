"""Iterative Hessian: merge bins with little Hessian, halve those with much (Maddock et al. 2022).

The refinement is post-processing of a released histogram. Cuts stay edges of the base grid.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import ColumnGrid, base_grid
from hedgerow.data.schema import Numeric, Schema
from hedgerow.errors import SlotSpent
from hedgerow.methods.maddock.candidates.base import Cuts
from hedgerow.model.losses import loss_for
from hedgerow.privacy.settings import BoostingSettings
from hedgerow.queries import ColumnHessians


def refined_columns(schema: Schema) -> list[int]:
    """Numeric columns with a choice of edges; ordinals keep their few cuts."""
    grid = base_grid(schema)
    columns = enumerate(schema.columns)
    return [j for j, column in columns if isinstance(column, Numeric) and len(grid[j].edges)]


def refined(gate: Gate, cuts: Cuts) -> Cuts:
    """New cuts from one release of Hessian histograms; the old ones if its slot was lost."""
    schema, grid = gate.schema, base_grid(gate.schema)
    columns = refined_columns(schema)
    asked = tuple(cuts[j] for j in columns)
    query = ColumnHessians(tuple(columns), asked, loss_for(schema.label).name, gate.ensemble)
    try:
        release = gate.release(query)
    except SlotSpent:
        return cuts
    parts = np.split(release.values, np.cumsum([len(c) + 1 for c in asked])[:-1])
    fresh = list(cuts)
    for j, hessians in zip(columns, parts, strict=True):
        fresh[j] = refine(
            grid[j], cuts[j], hessians, BoostingSettings.of(gate.plan.settings).n_bins
        )
    return fresh


def refine(
    grid: ColumnGrid, cuts: tuple[int, ...], hessians: NDArray[np.float64], n_bins: int
) -> tuple[int, ...]:
    """New cuts of one column from the noisy Hessians of its bins: (len(cuts) + 1,)."""
    masses = np.maximum(hessians, 0.0)
    target = float(masses.sum()) / n_bins
    if target <= 0:
        return cuts
    n_edges = len(grid.edges)
    stretches = _merged([-1, *cuts, n_edges], masses, target)
    chosen = {right for _, right, _ in stretches if 0 <= right < n_edges}
    # Fill up to n_bins by halving, the heaviest bin first; a bin without an inner edge stays. Light
    # bins are not halved where heavy ones have no room: a tree that draws its cuts would draw them
    # where no row is.
    heavy = [stretch for stretch in stretches if stretch[2] >= target]
    waiting = sorted(heavy, key=lambda stretch: -stretch[2])
    while waiting and len(chosen) < n_bins - 1:
        left, right, mass = waiting.pop(0)
        middle = _middle(grid, left, right)
        if middle is None:
            continue
        chosen.add(middle)
        waiting += [(left, middle, mass / 2), (middle, right, mass / 2)]
        waiting.sort(key=lambda stretch: -stretch[2])
    return tuple(sorted(chosen))


def _merged(
    bounds: list[int], held: NDArray[np.float64], target: float
) -> list[tuple[int, int, float]]:
    """Bins (left edge, right edge, Hessian) after merging light neighbours.

    Bin q lies between the edges bounds[q] and bounds[q + 1], where -1 and the number of edges are
    outside. A group of light bins ends when it reaches the target, or before a bin that reaches
    it alone: merging the two would hide where the heavy one begins.
    """
    stretches: list[tuple[int, int, float]] = []
    left, mass = bounds[0], 0.0
    for q, hessian in enumerate(held.tolist()):
        if hessian >= target and left != bounds[q]:
            stretches.append((left, bounds[q], mass))
            left, mass = bounds[q], 0.0
        mass += hessian
        if mass >= target or q == len(held) - 1:
            stretches.append((left, bounds[q + 1], mass))
            left, mass = bounds[q + 1], 0.0
    return stretches


def _middle(grid: ColumnGrid, left: int, right: int) -> int | None:
    """The edge nearest to the middle of the bin between two edges, by value."""
    if right - left < 2:
        return None
    inner = np.arange(left + 1, right)
    low = float(grid.edges[left]) if left >= 0 else _outer(grid, -1)
    high = float(grid.edges[right]) if right < len(grid.edges) else _outer(grid, 1)
    return int(inner[np.argmin(np.abs(grid.edges[inner].astype(np.float64) - (low + high) / 2))])


def _outer(grid: ColumnGrid, side: int) -> float:
    """The bound of a column below (-1) or above (1) all edges; an ordinal counts places from 0."""
    column = grid.column
    if isinstance(column, Numeric):
        return float(column.lower if side < 0 else column.upper)
    return 0.0 if side < 0 else float(len(grid.edges) + 1)
