"""Compiled: what noisy sums say of a column's scores under several priors; see `auto.smoothing`.

All of it lives in this one file, because Numba's cache on disk notices changes of a function's own
file only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

NEGLIGIBLE = 1e-9  # weight of a prior below which it is left out


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
        for i in range(k + 1, n):  # row by row, which is as good: several numbers at once
            for j in range(k + 1, n):
                turned[j] += matrix[i, j] * mirrors[k, i]
        for i in range(k + 1, n):
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
def _turn_back(vectors: Any, mirrors: Any, scales: Any) -> None:
    """Apply all mirrors, the last one first, to several vectors: (bin, vector)."""
    n, along = len(vectors), np.empty(vectors.shape[1])
    for m in range(n - 3, -1, -1):
        along[:] = 0.0
        for i in range(m + 1, n):
            for j in range(along.size):
                along[j] += mirrors[m, i] * vectors[i, j]
        for i in range(m + 1, n):
            factor = scales[m] * mirrors[m, i]
            for j in range(along.size):
                vectors[i, j] -= factor * along[j]


@njit(cache=True, nogil=True)
def _add_product(kernel: Any, a: Any, other: Any, out: Any) -> None:
    """Add the product of K, a (as a diagonal) and another matrix (bin, any): (bin, any)."""
    for i in range(a.size):
        for k in range(a.size):
            factor = kernel[i, k] * a[k]
            for j in range(out.shape[1]):
                out[i, j] += factor * other[k, j]


@njit(cache=True, nogil=True)
def _solved(kernel: Any, a: Any, level: Any, white: Any, taus: Any, prior: Any) -> Any:
    """(I + tau^2 M)^-1 white (bin, tau), M = a K a projected, and the log evidence of every tau.

    Behind them M itself: the diagonals of a matrix T, and the mirrors that turn it into M. They
    have yet to turn the former back.
    """
    n = a.size
    matrix = _projected(kernel, a, level)
    mirrors, scales, beside = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    _tridiagonal(matrix, mirrors, scales, beside)
    turned, back, logs = white.copy(), np.empty((n, taus.size)), np.empty(taus.size)
    for m in range(n - 2):
        _mirror(turned, mirrors[m], scales[m], m + 1)
    for t in range(taus.size):
        logs[t] = prior[t] - 0.5 * _solve(matrix, beside, taus[t] ** 2, turned, back[:, t])
    return back, logs, matrix, beside, mirrors, scales


@njit(cache=True, nogil=True)
def _weights(fits: Any) -> Any:
    """How likely each kernel and tau is: (kernel, tau)."""
    logs = np.empty((len(fits), fits[0][1].size))
    for k in range(len(fits)):
        logs[k] = fits[k][1]
    found = np.exp(logs - logs.max())
    return found / found.sum()


@njit(cache=True, nogil=True)
def mean(kernels: Any, a: Any, level: Any, white: Any, taus: Any, prior: Any) -> Any:
    """The mean of theta ~ N(0, tau^2 K), averaged over kernels and taus by their evidence: (bin,).

    `white` = a theta + noise of variance 1, without its part along `level`, about which it says
    nothing; `prior` are log weights of the taus.
    """
    fits = [_solved(kernel, a, level, white, taus, prior) for kernel in kernels]
    weights, found = _weights(fits), np.zeros((a.size, 1))
    for k in range(len(kernels)):
        back, _, _, _, mirrors, scales = fits[k]
        drawn = np.zeros((a.size, 1))
        for i in range(a.size):
            for t in range(taus.size):
                drawn[i, 0] += weights[k, t] * taus[t] ** 2 * back[i, t]
        _turn_back(drawn, mirrors, scales)
        _add_product(kernels[k], a, drawn, found)
    return found[:, 0]


@njit(cache=True, nogil=True)
def _inverse(matrix: Any, beside: Any, mirrors: Any, scales: Any, times: Any, weights: Any) -> Any:
    """The sum of weights times (I + times M)^-1, for M as `_solved` leaves it: (bin, bin)."""
    n = len(matrix)
    whole, pivots, factors, out = np.zeros((n, n)), np.ones(n), np.zeros(n), np.empty(n)
    for t in range(times.size):
        if weights[t] == 0.0:
            continue
        for i in range(n):
            pivots[i] = 1.0 + times[t] * matrix[i, i]
            if i:
                factors[i] = times[t] * beside[i - 1] / pivots[i - 1]
                pivots[i] -= factors[i] * times[t] * beside[i - 1]
            pivots[i] = max(pivots[i], 1.0)
        for column in range(n):
            out[:column], out[column] = 0.0, 1.0
            for i in range(column + 1, n):
                out[i] = -factors[i] * out[i - 1]
            out[n - 1] /= pivots[n - 1]
            for i in range(n - 2, -1, -1):
                out[i] = out[i] / pivots[i] - factors[i + 1] * out[i + 1]
            for i in range(n):
                whole[column, i] += weights[t] * out[i]
    _turn_back(whole, mirrors, scales)  # from one side, and from the other
    whole = whole.T.copy()
    _turn_back(whole, mirrors, scales)
    return whole


@njit(cache=True, nogil=True)
def slope(kernels: Any, a: Any, level: Any, white: Any, taus: Any, prior: Any) -> Any:
    """The derivative of `mean` by `white`: (bin, bin).

    Each prior's mean is linear in `white`, and the weights of the priors move with it. Most priors
    have next to no weight, and then no part in it.
    """
    fits = [_solved(kernel, a, level, white, taus, prior) for kernel in kernels]
    weights, means = _weights(fits), np.zeros((len(kernels), a.size, taus.size))
    average, found = np.zeros(a.size), np.zeros((a.size, a.size))
    weights = np.where(weights > NEGLIGIBLE, weights, 0.0)
    for k in range(len(kernels)):
        if weights[k].sum() == 0.0:
            continue
        back, _, _, _, mirrors, scales = fits[k]
        _turn_back(back, mirrors, scales)
        _add_product(kernels[k], a, back * taus**2, means[k])
        for t in range(taus.size):
            average += weights[k, t] * means[k, :, t]
    for k in range(len(kernels)):
        if weights[k].sum() == 0.0:
            continue
        back, _, matrix, beside, mirrors, scales = fits[k]
        linear = _inverse(matrix, beside, mirrors, scales, taus**2, weights[k] * taus**2)
        _add_product(kernels[k], a, linear, found)
        for i in range(a.size):
            for t in range(taus.size):  # the log evidence of a prior has the derivative -back
                if weights[k, t] == 0.0:
                    continue
                moved = weights[k, t] * (means[k, i, t] - average[i])
                for j in range(a.size):
                    found[i, j] -= moved * back[j, t]
    return found
