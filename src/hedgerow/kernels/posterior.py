"""Compiled: posterior means of a column's scores under several Gaussian priors.

`methods.auto.smoothing` has the model. Scores theta (bin,) have the prior N(0, tau^2 K) for one of
several kernels K and sizes tau, less their level; a release is y = H theta + noise, with H the
diagonal of Hessians and the precision P of the noise known. With P = L L' (Cholesky) the release is
whitened, w = L^-1 P y, so that its noise has variance 1 and its mean is D theta with
D = L' H (I - 1 s'). Then the posterior mean is tau^2 K D' (I + tau^2 M)^-1 w with M = D K D', and
the evidence needs the determinant of I + tau^2 M.

M does not depend on tau. It is reduced once to a tridiagonal T by Householder reflections, after
which a solve and a determinant take n steps for each tau instead of n^3.

All of it lives in this one file, because Numba's cache on disk notices changes of a function's own
file only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

NEGLIGIBLE = 1e-9  # the weight of a prior below which it is left out


# Sums may be taken in another order, so that the processor adds several products at once.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _product(matrix: Any, row: int, others: Any, other: int, first: int) -> Any:
    """Return the inner product of a row of one matrix and a row of another, from a column on."""
    # Unsigned indices: for signed ones Numba compiles the case of a negative index too.
    product, left, right = 0.0, np.uint64(row), np.uint64(other)
    for j in range(np.uint64(first), np.uint64(matrix.shape[1])):
        product += matrix[left, j] * others[right, j]
    return product


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _update_row(matrix: Any, row: int, products: Any, reflectors: Any, k: int) -> None:
    """Subtract from one row what reflection k changes in it from both sides: v w' + w v'."""
    v, w, at, of = reflectors[k, row], products[0, row], np.uint64(row), np.uint64(k)
    for j in range(np.uint64(k + 1), np.uint64(matrix.shape[1])):
        matrix[at, j] -= v * products[0, j] + w * reflectors[of, j]


@njit(cache=True, nogil=True)
def _tridiagonal(matrix: Any, reflectors: Any, scales: Any, beside: Any) -> None:
    """Reduce a symmetric matrix to tridiagonal form, in place (Householder 1958).

    Reflection k is I - scale v v', applied from both sides, with v in row k of `reflectors`. The
    diagonal is left in the matrix, the one beside it in `beside`. Whole rows are updated, though
    half of each would do: that is quicker. Slices of rows would take seconds to compile.
    """
    n = len(matrix)
    products = np.zeros((1, n))  # w = scale A v - (scale / 2) (scale v' A v) v
    for k in range(n - 2):
        for i in range(k + 1, n):
            reflectors[k, i] = matrix[k, i]
        length = math.sqrt(_product(reflectors, k, reflectors, k, k + 1))
        # Of both signs the one that adds to the first entry of v: nothing cancels.
        beside[k] = -length if reflectors[k, k + 1] > 0 else length
        reflectors[k, k + 1] -= beside[k]
        square = _product(reflectors, k, reflectors, k, k + 1)
        scales[k] = 2.0 / square if square > 0 else 0.0
        for i in range(k + 1, n):
            products[0, i] = scales[k] * _product(matrix, i, reflectors, k, k + 1)
        along = 0.5 * scales[k] * _product(products, 0, reflectors, k, k + 1)
        for i in range(k + 1, n):
            products[0, i] -= along * reflectors[k, i]
        for i in range(k + 1, n):
            _update_row(matrix, i, products, reflectors, k)
    if n > 1:
        beside[n - 2] = matrix[n - 1, n - 2]


@njit(cache=True, nogil=True)
def _reflect(vector: Any, reflector: Any, scale: float, first: int) -> None:
    """Apply one reflection I - scale v v' to a vector, in place; v is 0 before `first`."""
    along = 0.0
    for i in range(first, vector.size):
        along += reflector[i] * vector[i]
    for i in range(first, vector.size):
        vector[i] -= scale * along * reflector[i]


@njit(cache=True, nogil=True)
def _solve(matrix: Any, beside: Any, times: float, vector: Any, out: Any) -> Any:
    """Write (I + times T)^-1 vector to `out`, and return log det + vector' (I + times T)^-1 vector.

    T is tridiagonal and positive semidefinite, given by its diagonal in `matrix` and `beside`. The
    system is factored as L D L', with pivots on the diagonal of D, which are at least 1.
    """
    n, logs, product = vector.size, 0.0, 1.0
    inverses = np.empty(n)  # of the pivots
    for i in range(n):
        pivot, out[i] = 1.0 + times * matrix[i, i], vector[i]
        if i:
            factor = times * beside[i - 1] * inverses[i - 1]
            pivot -= factor * times * beside[i - 1]
            out[i] -= factor * out[i - 1]
        pivot = max(pivot, 1.0)  # as it is but for rounding
        inverses[i] = 1.0 / pivot
        logs += out[i] ** 2 * inverses[i]
        product *= pivot
        if product > 1e150:  # one logarithm of many pivots, before their product overflows
            logs += math.log(product)
            product = 1.0
    for i in range(n - 1, -1, -1):
        out[i] *= inverses[i]
        if i < n - 1:
            out[i] -= times * beside[i] * inverses[i] * out[i + 1]
    return logs + math.log(product)


@njit(cache=True, nogil=True)
def _root(precision: Any) -> Any:
    """Return the lower triangle L with L L' = precision (Cholesky)."""
    n = len(precision)
    root = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            rest = precision[i, j]
            for k in range(j):
                rest -= root[i, k] * root[j, k]
            # On the diagonal `rest` is positive but for rounding.
            root[i, j] = math.sqrt(max(rest, 1e-300)) if i == j else rest / root[j, j]
    return root


@njit(cache=True, nogil=True)
def _white(root: Any, moment: Any) -> Any:
    """Return L^-1 moment, coordinates whose noise has variance 1: (coordinate,)."""
    white = moment.copy()
    for i in range(white.size):
        for k in range(i):
            white[i] -= root[i, k] * white[k]
        white[i] /= root[i, i]
    return white


@njit(cache=True, nogil=True)
def _design(root: Any, hessian: Any) -> Any:
    """Return D = L' H (I - 1 s'), s the shares of H: (white coordinate, bin).

    It takes scores to the means of the white coordinates. The last factor takes away the level.
    """
    n, total = hessian.size, hessian.sum()
    design = np.zeros((n, n))
    for i in range(n):
        level = 0.0
        for j in range(i, n):
            design[i, j] = root[j, i] * hessian[j]
            level += design[i, j]
        for j in range(n):
            design[i, j] -= level * hessian[j] / total
    return design


@njit(cache=True, nogil=True)
def _back_transform(vectors: Any, reflectors: Any, scales: Any) -> None:
    """Apply all reflections, the last one first, to several vectors, in place: (bin, vector)."""
    n, along = len(vectors), np.empty(vectors.shape[1])
    for m in range(n - 3, -1, -1):
        along[:] = 0.0
        for i in range(m + 1, n):
            for j in range(along.size):
                along[j] += reflectors[m, i] * vectors[i, j]
        for i in range(m + 1, n):
            factor = scales[m] * reflectors[m, i]
            for j in range(along.size):
                vectors[i, j] -= factor * along[j]


@njit(cache=True, nogil=True)
def _solve_all(kernels: Any, design: Any, white: Any, taus: Any, prior: Any) -> Any:
    """Return the weight of each prior, (kernel, tau), and (I + tau^2 M)^-1 white under it.

    M = design K design' comes back as a tridiagonal T and the reflections that take T to M. The
    solutions, (kernel, coordinate, tau), are those of T: the reflections have yet to be applied.
    A weight is the prior times the evidence, and all weights add up to 1.
    """
    n, size = white.size, len(kernels)
    matrices, reflectors = np.empty((size, n, n)), np.zeros((size, n, n))
    besides, scales = np.zeros((size, n)), np.zeros((size, n))
    backs = np.empty((size, n, taus.size))
    logs, design_t = np.empty((len(kernels), taus.size)), design.T.copy()
    for k in range(len(kernels)):
        matrices[k] = np.dot(np.dot(design, kernels[k]), design_t)
        _tridiagonal(matrices[k], reflectors[k], scales[k], besides[k])
        reflected = white.copy()
        for m in range(white.size - 2):
            _reflect(reflected, reflectors[k, m], scales[k, m], m + 1)
        for t in range(taus.size):
            misfit = _solve(matrices[k], besides[k], taus[t] ** 2, reflected, backs[k, :, t])
            logs[k, t] = prior[t] - 0.5 * misfit
    most, total = logs[0, 0], 0.0  # the largest is taken off, so that no exponential overflows
    for k in range(len(kernels)):
        for t in range(taus.size):
            most = max(most, logs[k, t])
    for k in range(len(kernels)):
        for t in range(taus.size):
            logs[k, t] = math.exp(logs[k, t] - most)
            total += logs[k, t]
    return logs / total, backs, matrices, besides, reflectors, scales


@njit(cache=True, nogil=True)
def _take_level(scores: Any, hessian: Any) -> None:
    """Subtract from each column of `scores` its mean weighted by Hessians, in place: (bin, any)."""
    total = hessian.sum()
    for j in range(scores.shape[1]):
        level = 0.0
        for i in range(hessian.size):
            level += scores[i, j] * hessian[i] / total
        for i in range(hessian.size):
            scores[i, j] -= level


@njit(cache=True, nogil=True)
def mean(kernels: Any, precision: Any, moment: Any, hessian: Any, taus: Any, prior: Any) -> Any:
    """Return the posterior mean of scores less their level, averaged over the priors: (bin,).

    Priors are theta ~ N(0, tau^2 K) for kernels K (kernel, bin, bin) and taus with log weights
    `prior` (tau,); they count by their evidence. `moment` is the precision (bin, bin) times a
    noisy H theta.
    """
    n, size, root = hessian.size, len(kernels), _root(precision)
    design = _design(root, hessian)
    weights, backs, _, _, reflectors, scales = _solve_all(
        kernels, design, _white(root, moment), taus, prior
    )
    scores, design_t = np.zeros((n, 1)), design.T.copy()
    for k in range(size):
        solution = np.zeros((n, 1))  # over all taus: the reflections are linear, once will do
        for i in range(n):
            for t in range(taus.size):
                solution[i, 0] += weights[k, t] * taus[t] ** 2 * backs[k, i, t]
        _back_transform(solution, reflectors[k], scales[k])
        scores += np.dot(kernels[k], np.dot(design_t, solution))
    _take_level(scores, hessian)
    return scores[:, 0]


@njit(cache=True, nogil=True)
def _inverse(
    matrix: Any, beside: Any, reflectors: Any, scales: Any, times: Any, weights: Any
) -> Any:
    """Return the weighted sum of (I + times[t] M)^-1, for M as `_solve_all` leaves it: (n, n)."""
    n = len(matrix)
    inverse, pivots, factors, out = np.zeros((n, n)), np.ones(n), np.zeros(n), np.empty(n)
    for t in range(times.size):
        if weights[t] == 0.0:
            continue
        for i in range(n):
            pivots[i] = 1.0 + times[t] * matrix[i, i]
            if i:
                factors[i] = times[t] * beside[i - 1] / pivots[i - 1]
                pivots[i] -= factors[i] * times[t] * beside[i - 1]
            pivots[i] = max(pivots[i], 1.0)
        for column in range(n):  # solve for each unit vector; before its 1 all stays 0
            out[:column], out[column] = 0.0, 1.0
            for i in range(column + 1, n):
                out[i] = -factors[i] * out[i - 1]
            out[n - 1] /= pivots[n - 1]
            for i in range(n - 2, -1, -1):
                out[i] = out[i] / pivots[i] - factors[i + 1] * out[i + 1]
            for i in range(n):
                inverse[column, i] += weights[t] * out[i]
    _back_transform(inverse, reflectors, scales)  # from one side, and from the other
    inverse = inverse.T.copy()
    _back_transform(inverse, reflectors, scales)
    return inverse


@njit(cache=True, nogil=True)
def _unwhiten(slopes: Any, root: Any) -> None:
    """Turn slopes by white coordinates into slopes by the moment, in place: (bin, coordinate)."""
    n = len(root)
    for row in range(len(slopes)):
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                slopes[row, i] -= slopes[row, k] * root[k, i]
            slopes[row, i] /= root[i, i]


@njit(cache=True, nogil=True)
def slope(kernels: Any, precision: Any, moment: Any, hessian: Any, taus: Any, prior: Any) -> Any:
    """Return the derivative of `mean` by `moment`: (bin of the mean, bin of the moment).

    It is a sum of two parts: each prior's mean is linear in the moment, and the weights of the
    priors move with it. Most priors have next to no weight, and are left out.
    """
    n, size, root = hessian.size, len(kernels), _root(precision)
    design = _design(root, hessian)
    weights, backs, matrices, besides, reflectors, scales = _solve_all(
        kernels, design, _white(root, moment), taus, prior
    )
    means, average, design_t = np.zeros((size, n, taus.size)), np.zeros(n), design.T.copy()
    slopes, sizes = np.zeros((n, n)), np.empty(taus.size)
    for k in range(size):
        for t in range(taus.size):
            if weights[k, t] <= NEGLIGIBLE:
                weights[k, t] = 0.0
        if weights[k].sum() == 0.0:
            continue
        _back_transform(backs[k], reflectors[k], scales[k])
        means[k] = np.dot(kernels[k], np.dot(design_t, backs[k] * taus**2))
        for i in range(n):
            for t in range(taus.size):
                average[i] += weights[k, t] * means[k, i, t]
    for k in range(size):
        if weights[k].sum() == 0.0:
            continue
        for t in range(taus.size):
            sizes[t] = weights[k, t] * taus[t] ** 2
        linear = _inverse(matrices[k], besides[k], reflectors[k], scales[k], taus**2, sizes)
        slopes += np.dot(kernels[k], np.dot(design_t, linear))
        for i in range(n):
            # The log evidence of a prior has the derivative -back by the white coordinates, so its
            # weight w has w (average back - back). Times the means and added over the priors that
            # is the same as -w (mean - average mean) back.
            for t in range(taus.size):
                moved = weights[k, t] * (means[k, i, t] - average[i])
                for j in range(n):
                    slopes[i, j] -= moved * backs[k, j, t]
    _unwhiten(slopes, root)
    _take_level(slopes, hessian)
    return slopes


@njit(cache=True, nogil=True)
def solve(precision: Any, vector: Any) -> Any:
    """Return precision^-1 vector, for a positive definite matrix: (bin,)."""
    root = _root(precision)
    solution, n = _white(root, vector), vector.size
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            solution[i] -= root[k, i] * solution[k]
        solution[i] /= root[i, i]
    return solution


@njit(cache=True, nogil=True)
def tridiagonalise(matrix: Any) -> Any:
    """Return the diagonal, the one beside it, and the reflections (vectors, scales) of a matrix.

    The matrix is symmetric; `back_transform` takes vectors of the tridiagonal one to its own.
    """
    n, reduced = len(matrix), matrix.copy()
    reflectors, scales, beside = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    _tridiagonal(reduced, reflectors, scales, beside)
    return np.diag(reduced), beside[: n - 1], reflectors, scales


@njit(cache=True, nogil=True)
def back_transform(vectors: Any, reflectors: Any, scales: Any) -> None:
    """Take vectors of the tridiagonal matrix to those of the matrix, in place: (bin, vector)."""
    _back_transform(vectors, reflectors, scales)
