"""Empirical Bayes: noisy sums of a column's bins to scores that shrink, smooth and select.

Pure functions of released values. With z ~ N(H theta, noise) and theta ~ N(0, tau^2 K), the mean
of theta given z is averaged over kernels K and sizes tau by their marginal likelihood. tau = 0 is
among them, so a column that is all noise gets scores of nothing.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import posterior

Floats = NDArray[np.float64]
ROUGH = (3.0, 15.0)  # lengths in bins of kernels that allow jumps (Ornstein-Uhlenbeck)
SMOOTH = (5.0, 15.0)  # and of kernels whose curves have a slope everywhere (Matern 3/2)
TAUS = np.array([0.0, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0])


@lru_cache(maxsize=512)
def kernels_of(n_bins: int, ordered: bool) -> Floats:
    """Prior covariances of a column's scores, the last bin (missing) independent of the others.

    (kernel, bin, bin), not to be written to.

    Ordered bins resemble their neighbours, with jumps or without, or lie on a line; categories are
    exchangeable.
    """
    if not ordered or n_bins <= 3:
        return np.eye(n_bins)[None]
    k = n_bins - 1
    gap = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    line = np.linspace(-1.7, 1.7, k)
    inner = [np.exp(-gap / length) for length in ROUGH]
    # A curve smoother than the column is long is a constant, which is no effect at all.
    inner += [_matern(gap / length) for length in SMOOTH if length < k]
    inner.append(np.outer(line, line) + 1e-3 * np.eye(k))
    return np.stack([_with_missing(kernel) for kernel in inner])


def _matern(gap: Floats) -> Floats:
    """The Matern kernel of order 3/2 at distances in lengths, a little wider on the diagonal."""
    x = np.sqrt(3.0) * gap
    return np.asarray((1 + x) * np.exp(-x) + 1e-4 * np.eye(len(gap)))


def _with_missing(kernel: Floats) -> Floats:
    full = np.eye(kernel.shape[0] + 1)
    full[:-1, :-1] = kernel
    return full


def prior(caution: float, n_kernels: int = 1) -> Floats:
    """Log weights of TAUS beforehand: `caution` speaks for tau = 0.

    tau = 0 is the same under every kernel, so all of them together count it once.
    """
    weights = np.zeros(TAUS.size)
    weights[0] = caution - np.log(n_kernels)
    return weights


def smoothed(
    z: Floats, noise: Floats, hessian: Floats, kernels: Floats, caution: float = 0.0
) -> Floats:
    """Posterior mean of one column's scores (bin,), averaged over kernels and tau.

    The level of a column's scores is free (the intercept has it), so z says nothing along the
    direction of a common shift: it is projected out of sums and covariances. Otherwise a bin with
    most of the rows, whose score is always near the level, would speak against every large tau.
    """
    root = 1.0 / np.sqrt(noise)
    a = hessian * root
    level = a / np.linalg.norm(a)
    white = z * root
    white = white - level * (level @ white)
    mean = posterior.mean(kernels, a, level, white, TAUS, prior(caution, len(kernels)))
    return np.asarray(mean - mean @ hessian / hessian.sum())


def smoothed_levels(z: Floats, noise: Floats, hessian: Floats, caution: float = 0.0) -> Floats:
    """The same for exchangeable bins, where no matrix is needed (hundreds of categories)."""
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
    z: Floats, noise: Floats, hessian: Floats, ordered: bool, caution: float = 0.0
) -> Floats:
    """Scores of one column from its sums: (bin,)."""
    if not ordered or len(z) <= 3:
        return smoothed_levels(z, noise, hessian, caution)
    return smoothed(z, noise, hessian, kernels_of(len(z), True), caution)


def directed(scores: Floats, hessian: Floats, sign: int) -> Floats:
    """The nearest scores that only rise (sign 1) or fall (-1) over a column's bins.

    The last bin, that of missing values, has no place in the order.
    """
    if sign == 0 or len(scores) < 3:
        return scores
    from scipy.optimize import isotonic_regression

    found = isotonic_regression(scores[:-1], weights=hessian[:-1], increasing=sign > 0)
    return np.append(found.x, scores[-1])


def centred(
    sums: list[Floats], noise: Floats, hessians: list[Floats]
) -> tuple[list[Floats], float]:
    """Take the common shift out of every column's sums and return it as an intercept's step.

    Each column's total estimates the same number, with variance bins times `noise` (column,).
    """
    totals = np.array([s.sum() for s in sums])
    weight = 1.0 / (noise * np.array([s.size for s in sums]))
    total = float(totals @ weight / weight.sum())
    moved = [s - s.sum() * h / h.sum() for s, h in zip(sums, hessians, strict=True)]
    return moved, total / float(np.mean([h.sum() for h in hessians]))


def importance(theta: list[Floats], hessians: list[Floats]) -> Floats:
    """Variance of each column's scores over the rows, weighted by Hessians: (column,)."""
    found = []
    for scores, h in zip(theta, hessians, strict=True):
        mean = float(scores @ h / h.sum())
        found.append(float((scores - mean) ** 2 @ h / h.sum()))
    return np.array(found)


def column_weights(theta: list[Floats], hessians: list[Floats], uniform: float) -> Floats:
    """Weights of the columns in a question, squares adding up to 1: (column,).

    (importance times bins)^(1/4), mixed with equal weights: columns that matter get less noise, and
    so do those with many bins, each of which has noise of its own.
    """
    n_bins = np.array([h.size for h in hessians])
    root = np.sqrt(np.maximum(importance(theta, hessians), 0.0) * n_bins)
    if root.max() <= 0:
        root = np.ones_like(root)
    return np.asarray(np.sqrt(root / root.sum() * (1 - uniform) + uniform / root.size))
