"""Leaf values from noisy sums: pure functions of releases."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def newton(
    gradients: NDArray[np.float64],
    hessians: NDArray[np.float64],
    reg_lambda: float,
    clip: float,
) -> NDArray[np.float64]:
    """-G / (H + lambda), a noisy H held at zero or above, the weight clipped to +-clip."""
    denominator = np.maximum(hessians, 0.0) + reg_lambda
    weights = np.divide(
        -gradients, denominator, out=np.zeros_like(gradients), where=denominator > 0
    )
    return np.clip(weights, -clip, clip)
