"""Evenly spaced candidates between the public bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.binning import base_grid
from hedgerow.schema import Schema


def uniform(schema: Schema, n_bins: int) -> list[NDArray[np.float32]]:
    """For every ordered column the thresholds it may be cut at; nothing for categories."""
    return [
        grid.edges[grid.uniform_edges(n_bins)] if grid.ordered else np.zeros(0, np.float32)
        for grid in base_grid(schema)
    ]
