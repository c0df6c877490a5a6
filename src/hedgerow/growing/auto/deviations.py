"""How noise in a column's sums moves its smoothed scores, to first order. Pure functions.

`smoothing` averages posterior means over kernels and sizes tau, weighted by their likelihood. Its
derivative has two parts: each mean is linear in the sums, and the weights move with them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.growing.auto.smoothing import TAUS, kernels_of, prior
from hedgerow.kernels import posterior

Floats = NDArray[np.float64]


def smooth_deviation(
    z: Floats, noise: Floats, hessian: Floats, ordered: bool, caution: float, variance: Floats
) -> Floats:
    """Deviations (bin,) of `smooth`, if the noise in z is independent, with `variance` (bin,).

    `noise` is what the smoothing takes for that variance, which is more where early rounds are
    trusted less than their noise alone would allow.
    """
    if not ordered or len(z) <= 3:
        return _levels_deviation(z, noise, hessian, caution, variance)
    return _curve_deviation(z, noise, hessian, kernels_of(len(z), True), caution, variance)


def _curve_deviation(
    z: Floats, noise: Floats, hessian: Floats, kernels: Floats, caution: float,
    variance: Floats,
) -> Floats:  # fmt: skip
    root = 1.0 / np.sqrt(noise)
    a = hessian * root
    level = a / np.linalg.norm(a)
    white = z * root
    white = white - level * (level @ white)
    moved = posterior.slope(kernels, a, level, white, TAUS, prior(caution, len(kernels)))
    moved = (moved - np.outer(moved @ level, level)) * root  # d score / d z: (bin, bin)
    moved -= hessian @ moved / hessian.sum()
    return np.asarray(np.sqrt(moved**2 @ variance))


def _levels_deviation(
    z: Floats, noise: Floats, hessian: Floats, caution: float, variance: Floats
) -> Floats:
    """The same for exchangeable bins: a diagonal and a few vectors, no matrix of bins."""
    square = hessian**2 / noise
    spread = TAUS[:, None] ** 2 * square + 1.0  # (tau, bin)
    trust = square / spread
    total = trust.sum(axis=1, keepdims=True)
    off = z / hessian - trust @ (z / hessian)[:, None] / total
    logs = prior(caution) - 0.5 * (
        np.log(spread).sum(axis=1) + np.log(total[:, 0]) + np.sum(trust * off**2, axis=1)
    )
    weights, means = _shares(logs), TAUS[:, None] ** 2 * trust * off
    # d score / d z = diag(own) + left' right
    own = (weights * TAUS**2) @ trust / hessian
    left = np.concatenate([-(weights * TAUS**2)[:, None] * trust, _moving_weights(weights, means)])
    right = np.concatenate([trust / total / hessian, -trust * off / hessian])
    # Less the common level: every column of it loses its mean, weighted by Hessians.
    share = hessian / hessian.sum()
    left = np.concatenate([left - (left @ share)[:, None], -np.ones((1, z.size))])
    right = np.concatenate([right, (share * own)[None, :]])
    mixed = (right * variance) @ right.T
    square = own**2 * variance + 2 * own * variance * np.sum(left * right, axis=0)
    return np.asarray(np.sqrt(np.maximum(square + np.sum(left * (mixed @ left), axis=0), 0.0)))


def _shares(logs: Floats) -> Floats:
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _moving_weights(weights: Floats, means: Floats) -> Floats:
    """What a small change of each log-likelihood does to the averaged mean: (model, bin)."""
    return np.asarray(weights[:, None] * (means - weights @ means))
