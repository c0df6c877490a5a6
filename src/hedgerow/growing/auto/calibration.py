"""Slope and intercept of the scores from noisy counts by class and score. Pure functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SCORE_EDGES = tuple(float(e) for e in np.linspace(-4.0, 4.0, 15))
_CENTRES = np.concatenate([[-4.5], (np.array(SCORE_EDGES[1:]) + SCORE_EDGES[:-1]) / 2, [4.5]])
PRIOR_SLOPE, PRIOR_SHIFT = 0.15, 1.0  # how far a slope from 1 and a shift from 0 are expected


def recalibrate(ones: Floats, zeros: Floats, noise: float) -> tuple[float, float]:
    """Shift and slope, most likely given noisy counts (score bin,) of the two classes."""
    n, shift, slope = np.maximum(ones + zeros, 0.0), 0.0, 1.0
    for _ in range(30):
        p = 1 / (1 + np.exp(-(shift + slope * _CENTRES)))
        off = ones - (ones + zeros) * p
        w = n * p * (1 - p)
        trust = w / np.maximum(noise**2 * ((1 - p) ** 2 + p**2) + w, 1e-9)
        gradient = np.array(
            [trust @ off - shift / PRIOR_SHIFT**2,
             (trust * _CENTRES) @ off - (slope - 1) / PRIOR_SLOPE**2]
        )  # fmt: skip
        mixed = (trust * _CENTRES) @ w
        hessian = np.array([[trust @ w, mixed], [mixed, (trust * _CENTRES**2) @ w]])
        hessian += np.diag([1 / PRIOR_SHIFT**2, 1 / PRIOR_SLOPE**2])
        step = np.linalg.solve(hessian, gradient)
        shift += float(np.clip(step[0], -1, 1))
        slope = float(np.clip(slope + np.clip(step[1], -0.3, 0.3), 0.4, 2.5))
    return shift, slope
