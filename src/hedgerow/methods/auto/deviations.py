"""How noise in a column's sums moves its smoothed scores, to first order. Pure functions.

`smoothing` averages posterior means over kernels and sizes tau, weighted by their likelihood. Its
derivative has two parts: each mean is linear in the sums, and the weights move with them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import posterior
from hedgerow.methods.auto.evidence import Evidence
from hedgerow.methods.auto.priors import TAUS, kernels_of, prior

Floats = NDArray[np.float64]


def smooth_deviation(
    evidence: Evidence,
    hessian: Floats,
    ordered: bool,
    caution: float,
    apart: tuple[int, ...] = (),
) -> Floats:
    """Deviations (bin,) of `smooth` by the noise that the evidence has.

    That is less than its precision takes it for where early rounds are trusted less than their
    noise alone would allow.
    """
    if evidence.precision.ndim == 1:
        noise = 1 / evidence.precision
        variance = noise**2 * evidence.variance
        return _levels_deviation(noise * evidence.moment, noise, hessian, caution, variance)
    kernels = kernels_of(hessian.size, ordered, apart)
    weights = prior(caution, len(kernels))
    moved = posterior.slope(
        kernels, evidence.precision, evidence.moment, hessian, TAUS, weights
    )  # d score / d moment: (bin, bin)
    return np.asarray(np.sqrt(np.maximum(np.sum(moved @ evidence.variance * moved, axis=1), 0.0)))


def _levels_deviation(
    z: Floats, noise: Floats, hessian: Floats, caution: float, variance: Floats
) -> Floats:
    """For `smoothed_levels`: a diagonal and a few vectors, no matrix of bins."""
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
    diagonal = (weights * TAUS**2) @ trust / hessian
    left = np.concatenate([-(weights * TAUS**2)[:, None] * trust, _moving_weights(weights, means)])
    right = np.concatenate([trust / total / hessian, -trust * off / hessian])
    # Less the common level: every column of it loses its mean, weighted by Hessians.
    share = hessian / hessian.sum()
    left = np.concatenate([left - (left @ share)[:, None], -np.ones((1, z.size))])
    right = np.concatenate([right, (share * diagonal)[None, :]])
    middle = (right * variance) @ right.T
    square = diagonal**2 * variance + 2 * diagonal * variance * np.sum(left * right, axis=0)
    return np.asarray(np.sqrt(np.maximum(square + np.sum(left * (middle @ left), axis=0), 0.0)))


def _shares(logs: Floats) -> Floats:
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _moving_weights(weights: Floats, means: Floats) -> Floats:
    """What a small change of each log-likelihood does to the averaged mean: (model, bin)."""
    return np.asarray(weights[:, None] * (means - weights @ means))
