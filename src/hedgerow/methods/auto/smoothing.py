"""Empirical Bayes: noisy sums of a column's bins to scores that shrink, smooth and select.

Pure functions of released values. With z ~ N(H theta, noise) and theta ~ N(0, tau^2 K), the mean
of theta given z is averaged over kernels K and sizes tau by their marginal likelihood. tau = 0 is
among them, so a column that is all noise gets scores of nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import posterior
from hedgerow.methods.auto.evidence import Evidence
from hedgerow.methods.auto.priors import TAUS, kernels_of, prior

Floats = NDArray[np.float64]


def smoothed(evidence: Evidence, hessian: Floats, kernels: Floats, caution: float = 0.0) -> Floats:
    """Posterior mean of one column's scores (bin,), averaged over kernels and tau.

    Scores are counted from their level (the intercept has it), weighted by Hessians, in the prior
    as well. A bin with most of the rows is always near the level; it does not speak against
    effects of the others.
    """
    weights = prior(caution, len(kernels))
    mean = posterior.mean(kernels, evidence.precision, evidence.moment, hessian, TAUS, weights)
    return np.asarray(mean)


def smoothed_levels(z: Floats, noise: Floats, hessian: Floats, caution: float = 0.0) -> Floats:
    """The same for exchangeable bins with independent noise, without matrices.

    For columns of hundreds of categories. Their level is free here: z says nothing along the
    direction of a common shift.
    """
    square = hessian**2 / noise  # (bin,)
    spread = TAUS[:, None] ** 2 * square + 1.0  # (tau, bin)
    trust = square / spread  # precision of a bin's own estimate of the level, under tau
    level = trust @ (z / hessian) / trust.sum(axis=1)
    off = z / hessian - level[:, None]
    log_evidence = prior(caution) - 0.5 * (
        np.log(spread).sum(axis=1) + np.log(trust.sum(axis=1)) + np.sum(trust * off**2, axis=1)
    )
    return _around_zero(TAUS[:, None] ** 2 * trust * off, log_evidence, hessian)


def _around_zero(means: Floats, log_evidence: Floats, hessian: Floats) -> Floats:
    """Means (model, bin) averaged by evidence, less their common level."""
    weights = np.exp(log_evidence - log_evidence.max())
    mean = weights @ means / weights.sum()
    return np.asarray(mean - mean @ hessian / hessian.sum())


def smooth(
    evidence: Evidence,
    hessian: Floats,
    ordered: bool,
    caution: float = 0.0,
    apart: tuple[int, ...] = (),
) -> Floats:
    """Scores of one column from what is known of its sums: (bin,)."""
    if evidence.precision.ndim == 1:
        noise = 1 / evidence.precision
        return smoothed_levels(noise * evidence.moment, noise, hessian, caution)
    return smoothed(evidence, hessian, kernels_of(hessian.size, ordered, apart), caution)


def directed(scores: Floats, hessian: Floats, sign: int) -> Floats:
    """The nearest scores that only rise (sign 1) or fall (-1) over a column's bins.

    The last bin, that of missing values, has no place in the order.
    """
    if sign == 0 or len(scores) < 3:
        return scores
    from scipy.optimize import isotonic_regression

    monotone = isotonic_regression(scores[:-1], weights=hessian[:-1], increasing=sign > 0)
    return np.append(monotone.x, scores[-1])


def importance(theta: list[Floats], hessians: list[Floats]) -> Floats:
    """Variance of each column's scores over the rows, weighted by Hessians: (column,)."""
    variances = []
    for scores, h in zip(theta, hessians, strict=True):
        mean = float(scores @ h / h.sum())
        variances.append(float((scores - mean) ** 2 @ h / h.sum()))
    return np.array(variances)


def column_weights(theta: list[Floats], hessians: list[Floats], uniform: float) -> Floats:
    """Weights of the columns in a question, squares adding up to 1: (column,).

    (importance times bins)^(1/4), mixed with equal weights: columns that matter get less noise, and
    so do those with many bins, each of which has noise of its own.
    """
    n_bins = np.array([h.size for h in hessians])
    root = np.sqrt(np.maximum(importance(theta, hessians), 0.0) * n_bins)
    if root.max() <= 0:
        root = np.ones_like(root)
    weights = np.sqrt(root / root.sum() * (1 - uniform) + uniform / root.size)
    return np.asarray(weights.astype(np.float32), np.float64)  # model/rounding.py says why
