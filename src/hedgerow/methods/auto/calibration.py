"""Slope and intercept of the scores from noisy counts by class and score. Pure functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import cells

Floats = NDArray[np.float64]
SCORE_EDGES = tuple(float(e) for e in np.linspace(-4.0, 4.0, 15))
_CENTRES = np.concatenate([[-4.5], (np.array(SCORE_EDGES[1:]) + SCORE_EDGES[:-1]) / 2, [4.5]])
PRIOR_SLOPE, PRIOR_SHIFT = 0.15, 1.0  # how far a slope from 1 and a shift from 0 are expected


def recalibrate(ones: Floats, zeros: Floats, noise: float) -> tuple[float, float]:
    """Shift and slope, most likely given noisy counts (score bin,) of the two classes."""
    return cells.recalibrate(ones, zeros, noise, _CENTRES, PRIOR_SHIFT, PRIOR_SLOPE)
