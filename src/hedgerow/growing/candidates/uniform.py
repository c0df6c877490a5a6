"""Cuts that need no question: evenly spaced, or log-spaced, between the public bounds."""

from __future__ import annotations

from hedgerow.binning import base_grid
from hedgerow.growing.candidates.base import Cuts
from hedgerow.schema import Schema


def uniform(schema: Schema, n_bins: int) -> Cuts:
    """Evenly spaced cuts of every ordered column."""
    return [
        tuple(int(k) for k in grid.uniform_edges(n_bins)) if grid.ordered else ()
        for grid in base_grid(schema)
    ]


def log(schema: Schema, n_bins: int) -> Cuts:
    """Cuts that get denser toward zero (or toward the nearer bound), for heavy tails."""
    return [
        tuple(int(k) for k in grid.log_edges(n_bins)) if grid.ordered else ()
        for grid in base_grid(schema)
    ]
