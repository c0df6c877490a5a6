"""Cuts that need no question: evenly spaced, or log-spaced, between the public bounds."""

from __future__ import annotations

from hedgerow.data.binning import ColumnGrid, base_grid
from hedgerow.data.schema import Numeric, Schema
from hedgerow.methods.maddock.candidates.base import Cuts


def uniform(schema: Schema, n_bins: int) -> Cuts:
    """At most n_bins - 1 evenly spaced cuts of every ordered column.

    Those of a numeric column begin just above its lower bound (Maddock et al. 2022: at
    a + q (b - a) / (Q - 1), q from 0), so that rows at the bound itself, often many, can be parted
    from the others.

    >>> schema = Schema.from_bounds({"children": (0, 16)}, classes=[0, 1])
    >>> base_grid(schema)[0].edges[list(uniform(schema, 5)[0])].round(3).tolist()
    [0.0, 4.0, 8.0, 12.0]
    """
    return [_evenly(grid, n_bins) if grid.ordered else () for grid in base_grid(schema)]


def _evenly(grid: ColumnGrid, n_bins: int) -> tuple[int, ...]:
    if isinstance(grid.column, Numeric) and n_bins > 2 and len(grid.edges):
        return tuple(sorted({0, *(int(k) for k in grid.uniform_edges(n_bins - 1))}))
    return tuple(int(k) for k in grid.uniform_edges(n_bins))  # one cut is best in the middle


def log(schema: Schema, n_bins: int) -> Cuts:
    """Cuts that get denser toward zero (or toward the nearer bound), for heavy tails."""
    return [
        tuple(int(k) for k in grid.log_edges(n_bins)) if grid.ordered else ()
        for grid in base_grid(schema)
    ]
