"""Compiled: what noisy sums say of a column's scores under several priors; see `auto.smoothing`.

All of it lives in this one file, because Numba's cache on disk notices changes of a function's own
file only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _tridiagonal(matrix: Any, mirrors: Any, scales: Any, beside: Any) -> None:
    """A symmetric matrix to three diagonals, in place, by mirrors I - scale v v' from both sides.

    The diagonal is left in the matrix, the one beside it in `beside`.
    """
    n = len(matrix)
    for k in range(n - 2):
        length = 0.0
        for i in range(k + 1, n):
            mirrors[k, i] = matrix[i, k]
            length += matrix[i, k] ** 2
        length = math.sqrt(length)
        beside[k] = -length if matrix[k + 1, k] > 0 else length
        mirrors[k, k + 1] -= beside[k]
        square = 0.0
        for i in range(k + 1, n):
            square += mirrors[k, i] ** 2
        scales[k] = 2.0 / square if square > 0 else 0.0
        along, turned = 0.0, np.zeros(n)
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                turned[i] += matrix[i, j] * mirrors[k, j]
            turned[i] *= scales[k]
            along += turned[i] * mirrors[k, i]
        for i in range(k + 1, n):
            turned[i] -= 0.5 * scales[k] * along * mirrors[k, i]
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                matrix[i, j] -= mirrors[k, i] * turned[j] + turned[i] * mirrors[k, j]
    if n > 1:
        beside[n - 2] = matrix[n - 1, n - 2]


@njit(cache=True, nogil=True)
def _mirror(vector: Any, mirror: Any, scale: float, first: int) -> None:
    along = 0.0
    for i in range(first, vector.size):
        along += mirror[i] * vector[i]
    for i in range(first, vector.size):
        vector[i] -= scale * along * mirror[i]


@njit(cache=True, nogil=True)
def _solve(matrix: Any, beside: Any, times: float, vector: Any, out: Any) -> Any:
    """(I + times T)^-1 vector, for T not negative; and log determinant plus vector' of it."""
    n, logs = vector.size, 0.0
    pivots = np.empty(n)
    for i in range(n):
        pivots[i], out[i] = 1.0 + times * matrix[i, i], vector[i]
        if i:
            factor = times * beside[i - 1] / pivots[i - 1]
            pivots[i] -= factor * times * beside[i - 1]
            out[i] -= factor * out[i - 1]
        pivots[i] = max(pivots[i], 1.0)  # as it is but for rounding
        logs += math.log(pivots[i]) + out[i] ** 2 / pivots[i]
    for i in range(n - 1, -1, -1):
        out[i] /= pivots[i]
        if i < n - 1:
            out[i] -= times * beside[i] / pivots[i] * out[i + 1]
    return logs


@njit(cache=True, nogil=True)
def _projected(kernel: Any, a: Any, level: Any) -> Any:
    """a K a (element by element) with the direction `level` taken out on both sides."""
    n = a.size
    matrix, along, both = np.empty((n, n)), np.zeros(n), 0.0
    for i in range(n):
        for j in range(n):
            matrix[i, j] = a[i] * kernel[i, j] * a[j]
            along[i] += matrix[i, j] * level[j]
        both += level[i] * along[i]
    for i in range(n):
        for j in range(n):
            matrix[i, j] += both * level[i] * level[j] - level[i] * along[j] - along[i] * level[j]
    return matrix


@njit(cache=True, nogil=True)
def mean(kernels: Any, a: Any, level: Any, white: Any, taus: Any, prior: Any) -> Any:
    """The mean of theta ~ N(0, tau^2 K), averaged over kernels and taus by their evidence: (bin,).

    `white` = a theta + noise of variance 1, without its part along `level`, about which it says
    nothing; `prior` are log weights of the taus.
    """
    n_kernels, n, n_taus = len(kernels), a.size, taus.size
    back, logs = np.empty((n_kernels, n_taus, n)), np.empty((n_kernels, n_taus))
    for k in range(n_kernels):
        matrix = _projected(kernels[k], a, level)
        mirrors, scales, beside = np.zeros((n, n)), np.zeros(n), np.zeros(n)
        _tridiagonal(matrix, mirrors, scales, beside)
        turned = white.copy()
        for m in range(n - 2):
            _mirror(turned, mirrors[m], scales[m], m + 1)
        for t in range(n_taus):
            spent = _solve(matrix, beside, taus[t] ** 2, turned, back[k, t])
            logs[k, t] = prior[t] - 0.5 * spent
            for m in range(n - 3, -1, -1):
                _mirror(back[k, t], mirrors[m], scales[m], m + 1)
    top, whole, found = logs.max(), 0.0, np.zeros(n)
    for k in range(n_kernels):
        drawn = np.zeros(n)
        for t in range(n_taus):
            weight = math.exp(logs[k, t] - top)
            whole += weight
            for i in range(n):
                drawn[i] += weight * taus[t] ** 2 * back[k, t, i] * a[i]
        for i in range(n):
            for j in range(n):
                found[i] += kernels[k, i, j] * drawn[j]
    return found / whole
