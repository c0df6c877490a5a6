"""What scores of a column look like before anything is known of them: kernels and sizes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ROUGH = (3.0, 15.0)  # lengths in bins of kernels that allow jumps (Ornstein-Uhlenbeck)
SMOOTH = (5.0, 15.0)  # and of kernels whose curves have a slope everywhere (Matern 3/2)
TAUS = np.array([0.0, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0])


@lru_cache(maxsize=512)
def kernels_of(n_bins: int, ordered: bool, apart: tuple[int, ...] = ()) -> Floats:
    """Prior covariances of a column's scores, the last bin (missing) independent of the others.

    (kernel, bin, bin), not to be written to.

    Ordered bins resemble their neighbours, with jumps or without, or lie on a line; categories are
    exchangeable. Bins that stand `apart`, of one value each, add an effect of their own to that of
    their place between the others.
    """
    if not ordered or n_bins <= 3:
        return np.eye(n_bins)[None]
    k = n_bins - 1
    own = np.zeros(k)
    own[list(apart)] = 1.0
    place = np.cumsum(1 - own) + own / 2
    gap = np.abs(np.subtract.outer(place, place))
    line = np.linspace(-1.7, 1.7, k)
    if apart:
        line = 3.4 * (place - place[0]) / max(float(place[-1] - place[0]), 1.0) - 1.7
    inner = [np.exp(-gap / length) for length in ROUGH]
    # A curve smoother than the column is long is a constant, which is no effect at all.
    inner += [_matern(gap / length) for length in SMOOTH if length < k]
    inner.append(np.outer(line, line) + 1e-3 * np.eye(k))
    return np.stack([_with_missing(kernel + np.diag(own)) for kernel in inner])


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
