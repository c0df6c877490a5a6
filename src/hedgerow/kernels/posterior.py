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


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})  # sums of several numbers at once
def _product(matrix: Any, row: int, others: Any, other: int, first: int) -> Any:
    """Of a row of one matrix and a row of another, from a column on."""
    found, one, two = 0.0, np.uint64(row), np.uint64(other)
    for j in range(np.uint64(first), np.uint64(matrix.shape[1])):
        found += matrix[one, j] * others[two, j]
    return found


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _take_both(matrix: Any, row: int, turned: Any, mirrors: Any, k: int) -> None:
    """Take from a row what both mirrors change in it."""
    mirror, moved, own, of = mirrors[k, row], turned[0, row], np.uint64(row), np.uint64(k)
    for j in range(np.uint64(k + 1), np.uint64(matrix.shape[1])):
        matrix[own, j] -= mirror * turned[0, j] + moved * mirrors[of, j]


@njit(cache=True, nogil=True)
def _tridiagonal(matrix: Any, mirrors: Any, scales: Any, beside: Any) -> None:
    """A symmetric matrix to three diagonals, in place, by mirrors I - scale v v' from both sides.

    The diagonal is left in the matrix, the one beside it in `beside`. Whole rows are taken, though
    half of each would do: that is quicker. Slices of rows would take seconds to compile.
    """
    n = len(matrix)
    turned = np.zeros((1, n))
    for k in range(n - 2):
        for i in range(k + 1, n):
            mirrors[k, i] = matrix[k, i]
        length = math.sqrt(_product(mirrors, k, mirrors, k, k + 1))
        beside[k] = -length if mirrors[k, k + 1] > 0 else length
        mirrors[k, k + 1] -= beside[k]
        square = _product(mirrors, k, mirrors, k, k + 1)
        scales[k] = 2.0 / square if square > 0 else 0.0
        for i in range(k + 1, n):
            turned[0, i] = scales[k] * _product(matrix, i, mirrors, k, k + 1)
        along = 0.5 * scales[k] * _product(turned, 0, mirrors, k, k + 1)
        for i in range(k + 1, n):
            turned[0, i] -= along * mirrors[k, i]
        for i in range(k + 1, n):
            _take_both(matrix, i, turned, mirrors, k)
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
    n, logs, whole = vector.size, 0.0, 1.0
    parts = np.empty(n)  # of one: what the pivots have below them
    for i in range(n):
        pivot, out[i] = 1.0 + times * matrix[i, i], vector[i]
        if i:
            factor = times * beside[i - 1] * parts[i - 1]
            pivot -= factor * times * beside[i - 1]
            out[i] -= factor * out[i - 1]
        pivot = max(pivot, 1.0)  # as it is but for rounding
        parts[i] = 1.0 / pivot
        logs += out[i] ** 2 * parts[i]
        whole *= pivot
        if whole > 1e150:  # the logarithm of many at once
            logs += math.log(whole)
            whole = 1.0
    for i in range(n - 1, -1, -1):
        out[i] *= parts[i]
        if i < n - 1:
            out[i] -= times * beside[i] * parts[i] * out[i + 1]
    return logs + math.log(whole)


@njit(cache=True, nogil=True)
def _root(precision: Any) -> Any:
    """The lower triangle L with L L' = precision (Cholesky)."""
    n = len(precision)
    root = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            left = precision[i, j]
            for k in range(j):
                left -= root[i, k] * root[j, k]
            root[i, j] = math.sqrt(max(left, 1e-300)) if i == j else left / root[j, j]
    return root


@njit(cache=True, nogil=True)
def _white(root: Any, moment: Any) -> Any:
    """L^-1 moment: numbers with noise of variance 1."""
    white = moment.copy()
    for i in range(white.size):
        for k in range(i):
            white[i] -= root[i, k] * white[k]
        white[i] /= root[i, i]
    return white


@njit(cache=True, nogil=True)
def _design(root: Any, hessian: Any) -> Any:
    """L' H (I - 1 s'), s the shares of H: what those numbers are of scores: (number, bin)."""
    n, whole = hessian.size, hessian.sum()
    design = np.zeros((n, n))
    for i in range(n):
        level = 0.0
        for j in range(i, n):
            design[i, j] = root[j, i] * hessian[j]
            level += design[i, j]
        for j in range(n):
            design[i, j] -= level * hessian[j] / whole
    return design


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
def _solve_all(kernels: Any, design: Any, white: Any, taus: Any, prior: Any) -> Any:
    """How likely each kernel and tau is, (kernel, tau), and (I + tau^2 M)^-1 white behind it.

    M = design K design'. It is left as the diagonals of a matrix T and the mirrors that turn T
    into M, which have yet to turn those vectors (kernel, number, tau) back.
    """
    n, size = white.size, len(kernels)
    matrices, mirrors = np.empty((size, n, n)), np.zeros((size, n, n))
    besides, scales = np.zeros((size, n)), np.zeros((size, n))
    backs = np.empty((size, n, taus.size))
    logs, turned_design = np.empty((len(kernels), taus.size)), design.T.copy()
    for k in range(len(kernels)):
        matrices[k] = np.dot(np.dot(design, kernels[k]), turned_design)
        _tridiagonal(matrices[k], mirrors[k], scales[k], besides[k])
        turned = white.copy()
        for m in range(white.size - 2):
            _mirror(turned, mirrors[k, m], scales[k, m], m + 1)
        for t in range(taus.size):
            solved = _solve(matrices[k], besides[k], taus[t] ** 2, turned, backs[k, :, t])
            logs[k, t] = prior[t] - 0.5 * solved
    most, total = logs[0, 0], 0.0
    for k in range(len(kernels)):
        for t in range(taus.size):
            most = max(most, logs[k, t])
    for k in range(len(kernels)):
        for t in range(taus.size):
            logs[k, t] = math.exp(logs[k, t] - most)
            total += logs[k, t]
    return logs / total, backs, matrices, besides, mirrors, scales


@njit(cache=True, nogil=True)
def _take_level(scores: Any, hessian: Any) -> None:
    """Less their mean, weighted by Hessians, in place: (bin, any)."""
    whole = hessian.sum()
    for j in range(scores.shape[1]):
        level = 0.0
        for i in range(hessian.size):
            level += scores[i, j] * hessian[i] / whole
        for i in range(hessian.size):
            scores[i, j] -= level


@njit(cache=True, nogil=True)
def mean(kernels: Any, precision: Any, moment: Any, hessian: Any, taus: Any, prior: Any) -> Any:
    """The mean of scores theta ~ N(0, tau^2 K) less their level, averaged by evidence: (bin,).

    `moment` is precision times a noisy H theta; `prior` are log weights of the taus.
    """
    n, size, root = hessian.size, len(kernels), _root(precision)
    design = _design(root, hessian)
    weights, backs, _, _, mirrors, scales = _solve_all(
        kernels, design, _white(root, moment), taus, prior
    )
    found, back = np.zeros((n, 1)), design.T.copy()
    for k in range(size):
        drawn = np.zeros((n, 1))
        for i in range(n):
            for t in range(taus.size):
                drawn[i, 0] += weights[k, t] * taus[t] ** 2 * backs[k, i, t]
        _turn_back(drawn, mirrors[k], scales[k])
        found += np.dot(kernels[k], np.dot(back, drawn))
    _take_level(found, hessian)
    return found[:, 0]


@njit(cache=True, nogil=True)
def _inverse(matrix: Any, beside: Any, mirrors: Any, scales: Any, times: Any, weights: Any) -> Any:
    """The sum of weights times (I + times M)^-1, for M as `_solve_all` leaves it: (bin, bin)."""
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
def _unwhiten(slopes: Any, root: Any) -> None:
    """Slopes by white numbers to slopes by the moment, in place: (bin, number)."""
    n = len(root)
    for row in range(len(slopes)):
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                slopes[row, i] -= slopes[row, k] * root[k, i]
            slopes[row, i] /= root[i, i]


@njit(cache=True, nogil=True)
def slope(kernels: Any, precision: Any, moment: Any, hessian: Any, taus: Any, prior: Any) -> Any:
    """The derivative of `mean` by `moment`: (bin, bin).

    Each prior's mean is linear in the moment, and the weights of the priors move with it. Most
    priors have next to no weight, and then no part in it.
    """
    n, size, root = hessian.size, len(kernels), _root(precision)
    design = _design(root, hessian)
    weights, backs, matrices, besides, mirrors, scales = _solve_all(
        kernels, design, _white(root, moment), taus, prior
    )
    means, average, back = np.zeros((size, n, taus.size)), np.zeros(n), design.T.copy()
    found, sizes = np.zeros((n, n)), np.empty(taus.size)
    for k in range(size):
        for t in range(taus.size):
            if weights[k, t] <= NEGLIGIBLE:
                weights[k, t] = 0.0
        if weights[k].sum() == 0.0:
            continue
        _turn_back(backs[k], mirrors[k], scales[k])
        means[k] = np.dot(kernels[k], np.dot(back, backs[k] * taus**2))
        for i in range(n):
            for t in range(taus.size):
                average[i] += weights[k, t] * means[k, i, t]
    for k in range(size):
        if weights[k].sum() == 0.0:
            continue
        for t in range(taus.size):
            sizes[t] = weights[k, t] * taus[t] ** 2
        linear = _inverse(matrices[k], besides[k], mirrors[k], scales[k], taus**2, sizes)
        found += np.dot(kernels[k], np.dot(back, linear))
        for i in range(n):
            for t in range(taus.size):  # the log evidence of a prior has the derivative -back
                moved = weights[k, t] * (means[k, i, t] - average[i])
                for j in range(n):
                    found[i, j] -= moved * backs[k, j, t]
    _unwhiten(found, root)
    _take_level(found, hessian)
    return found


@njit(cache=True, nogil=True)
def solve(precision: Any, vector: Any) -> Any:
    """precision^-1 vector, for a positive definite matrix: (bin,)."""
    root = _root(precision)
    found, n = _white(root, vector), vector.size
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            found[i] -= root[k, i] * found[k]
        found[i] /= root[i, i]
    return found


@njit(cache=True, nogil=True)
def three_diagonals(matrix: Any) -> Any:
    """A symmetric matrix as a diagonal, the one beside it, and what turns vectors back."""
    n, left = len(matrix), matrix.copy()
    mirrors, scales, beside = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    _tridiagonal(left, mirrors, scales, beside)
    return np.diag(left), beside[: n - 1], mirrors, scales


@njit(cache=True, nogil=True)
def turn_back(vectors: Any, mirrors: Any, scales: Any) -> None:
    """Vectors (bin, vector) of the three diagonals to those of the matrix, in place."""
    _turn_back(vectors, mirrors, scales)
