"""Posterior means of a column's scores under several Gaussian priors.

`methods.auto.smoothing` has the model. Scores theta (bin,) have the prior N(0, tau^2 K) for one of
several kernels K and sizes tau, less their level; a release is y = H theta + noise, with H the
diagonal of Hessians and the precision P of the noise known. With P = L L' (Cholesky) the release is
whitened, w = L^-1 P y, so that its noise has variance 1 and its mean is D theta with
D = L' H (I - 1 s'). Then the posterior mean is tau^2 K D' (I + tau^2 M)^-1 w with M = D K D', and
the evidence needs the determinant of I + tau^2 M.

M does not depend on tau. It is reduced once to a tridiagonal T by Householder reflections, after
which a solve and a determinant take n steps for each tau instead of n^3.

Loops over elements are compiled, products of matrices are NumPy's. Eigenvalues are not asked for:
LAPACK wakes the threads of BLAS for them, which then spin for longer than all of this takes. The
matrices of all kernels lie below each other, (kernel and row, column), because compiled code for
two dimensions is smaller than for three. All of it lives in this one file, because Numba's cache on
disk notices changes of a function's own file only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hedgerow.kernels.arrays import Floats, Int
from hedgerow.kernels.compiling import compiled

NEGLIGIBLE = 1e-9  # the weight of a prior below which it is left out


class _White(NamedTuple):
    """A release in coordinates whose noise has variance 1."""

    root: Floats  # (coordinate, coordinate): the lower triangle L
    release: Floats  # (coordinate,): w
    design: Floats  # (coordinate, bin): D, which takes scores to the means of the coordinates


class _Solved(NamedTuple):
    """The systems (I + tau^2 M) x = w of all priors, with T in place of M."""

    reflectors: Floats  # (kernel and reflection, coordinate): they take T to M
    scales: Floats  # (kernel, reflection)
    beside: Floats  # (kernel, coordinate): T beside its diagonal
    work: Floats  # (3, coordinate): memory
    solutions: Floats  # (kernel and coordinate, tau): those of T, not yet reflected
    weights: Floats  # (kernel, tau): the prior times the evidence; all add up to 1
    averages: Floats  # (kernel, coordinate): tau^2 x averaged by weight, those of M


# Sums may be taken in another order, so that the processor adds several products at once.
@compiled(fastmath={"reassoc", "contract"}, helper=True)
def _product(matrix: Floats, row: Int, others: Floats, other: int, first: int) -> float:
    """Return the inner product of a row of one matrix and a row of another, from a column on."""
    # Unsigned indices: for signed ones Numba compiles the case of a negative index too.
    product, left, right = 0.0, np.uint64(row), np.uint64(other)
    for j in range(np.uint64(first), np.uint64(matrix.shape[1])):
        product += matrix[left, j] * others[right, j]
    return product


@compiled(fastmath={"reassoc", "contract"}, helper=True)
def _update_row(
    matrix: Floats, row: int, work: Floats, reflectors: Floats, of: int, i: int, first: int
) -> None:
    """Subtract from one row what a reflection changes in it from both sides: v w' + w v'."""
    v, w, at, line = reflectors[of, i], work[0, i], np.uint64(row), np.uint64(of)
    for j in range(np.uint64(first), np.uint64(matrix.shape[1])):
        matrix[at, j] -= v * work[0, j] + w * reflectors[line, j]


@compiled(error_model="numpy", helper=True)
def _tridiagonal(
    matrix: Floats, top: int, reflectors: Floats, scales: Floats, beside: Floats, kernel: int,
    work: Floats,
) -> None:  # fmt: skip
    """Reduce a symmetric matrix to tridiagonal form, in place (Householder 1958).

    The matrix begins at row `top`. Reflection k is I - scale v v', applied from both sides, with v
    in row top + k of `reflectors`. The diagonal is left in the matrix, the one beside it in
    `beside`. Whole rows are updated, though half of each would do: that is quicker.
    """
    n = matrix.shape[1]
    for k in range(n - 2):
        of = top + k
        for i in range(k + 1, n):
            reflectors[of, i] = matrix[of, i]
        length = math.sqrt(_product(reflectors, of, reflectors, of, k + 1))
        # Of both signs the one that adds to the first entry of v: nothing cancels.
        beside[kernel, k] = -length if reflectors[of, k + 1] > 0 else length
        reflectors[of, k + 1] -= beside[kernel, k]
        square = _product(reflectors, of, reflectors, of, k + 1)
        scale = 2.0 / square if square > 0 else 0.0
        scales[kernel, k] = scale
        # w = scale A v - (scale / 2) (scale v' A v) v
        for i in range(k + 1, n):
            work[0, i] = scale * _product(matrix, top + i, reflectors, of, k + 1)
        along = 0.5 * scale * _product(work, np.int64(0), reflectors, of, k + 1)
        for i in range(k + 1, n):
            work[0, i] -= along * reflectors[of, i]
        for i in range(k + 1, n):
            _update_row(matrix, top + i, work, reflectors, of, i, k + 1)
    if n > 1:
        beside[kernel, n - 2] = matrix[top + n - 1, n - 2]


@compiled(error_model="numpy", helper=True)
def _solve(
    matrix: Floats, top: int, beside: Floats, kernel: int, times: float, work: Floats, out: Floats,
    t: int,
) -> float:  # fmt: skip
    """Write (I + times T)^-1 vector to `out`, and return log det + vector' (I + times T)^-1 vector.

    T is tridiagonal and positive semidefinite, given by its diagonal in `matrix` and `beside`; the
    vector stands in work[1]. The system is factored as L D L', with pivots on the diagonal of D,
    which are at least 1; work[2] has their inverses.
    """
    n, logs, product = matrix.shape[1], 0.0, 1.0
    for i in range(n):
        pivot, value = 1.0 + times * matrix[top + i, i], work[1, i]
        if i:
            factor = times * beside[kernel, i - 1] * work[2, i - 1]
            pivot -= factor * times * beside[kernel, i - 1]
            value -= factor * out[top + i - 1, t]
        pivot = 1.0 if pivot < 1.0 else pivot  # as it is but for rounding
        out[top + i, t] = value
        inverse = 1.0 / pivot
        work[2, i] = inverse
        logs += value * value * inverse
        product *= pivot
        if product > 1e150:  # one logarithm of many pivots, before their product overflows
            logs += math.log(product)
            product = 1.0
    for i in range(n - 1, -1, -1):
        out[top + i, t] *= work[2, i]
        if i < n - 1:
            out[top + i, t] -= times * beside[kernel, i] * work[2, i] * out[top + i + 1, t]
    return logs + math.log(product)


@compiled(error_model="numpy")
def _solve_all(
    matrices: Floats, white: Floats, taus: Floats, prior: Floats, reflectors: Floats,
    scales: Floats, beside: Floats, work: Floats, solutions: Floats, weights: Floats,
    averages: Floats,
) -> None:  # fmt: skip
    """Write what `_Solved` has, of the matrices M (kernel and row, column), which are reduced."""
    n, n_kernels, most, total = white.size, weights.shape[0], -math.inf, 0.0
    for kernel in range(n_kernels):
        top = kernel * n
        _tridiagonal(matrices, top, reflectors, scales, beside, kernel, work)
        for i in range(n):
            work[1, i] = white[i]
        for m in range(n - 2):  # the reflections, the first one first
            along = 0.0
            for i in range(m + 1, n):
                along += reflectors[top + m, i] * work[1, i]
            for i in range(m + 1, n):
                work[1, i] -= scales[kernel, m] * along * reflectors[top + m, i]
        for t in range(taus.size):
            times = taus[t] * taus[t]
            misfit = _solve(matrices, top, beside, kernel, times, work, solutions, t)
            weights[kernel, t] = prior[t] - 0.5 * misfit
            if weights[kernel, t] > most:  # taken off, so that no exponential overflows
                most = weights[kernel, t]
    for kernel in range(n_kernels):
        for t in range(taus.size):
            weights[kernel, t] = math.exp(weights[kernel, t] - most)
            total += weights[kernel, t]
    for kernel in range(n_kernels):
        top = kernel * n
        for t in range(taus.size):
            weights[kernel, t] /= total
            for i in range(n):
                size = weights[kernel, t] * (taus[t] * taus[t])
                averages[kernel, i] += size * solutions[top + i, t]
        # The reflections are linear: they are applied once, to the average, the last one first.
        for m in range(n - 3, -1, -1):
            along = 0.0
            for i in range(m + 1, n):
                along += reflectors[top + m, i] * averages[kernel, i]
            for i in range(m + 1, n):
                averages[kernel, i] -= scales[kernel, m] * reflectors[top + m, i] * along


@compiled(error_model="numpy")
def _whiten(
    precision: Floats, moment: Floats, hessian: Floats, root: Floats, white: Floats, design: Floats
) -> None:
    """Write what `_White` has; nothing stands above the diagonal of `root`.

    D = L' H (I - 1 s'), s the shares of H: the last factor takes away the level.
    """
    n, total = hessian.size, 0.0
    for i in range(n):
        total += hessian[i]
        for j in range(i + 1):
            rest = precision[i, j]
            for k in range(j):
                rest -= root[i, k] * root[j, k]
            # On the diagonal `rest` is positive but for rounding.
            rest = 1e-300 if i == j and rest < 1e-300 else rest
            root[i, j] = math.sqrt(rest) if i == j else rest / root[j, j]
        rest = moment[i]
        for k in range(i):
            rest -= root[i, k] * white[k]
        white[i] = rest / root[i, i]
    for i in range(n):
        level = 0.0
        for j in range(i, n):
            design[i, j] = root[j, i] * hessian[j]
            level += design[i, j]
        for j in range(n):
            design[i, j] -= level * hessian[j] / total


@compiled(error_model="numpy")
def _back_transform(vectors: Floats, reflectors: Floats, scales: Floats, along: Floats) -> None:
    """Apply the reflections, the last one first, to vectors (kernel and coordinate, vector).

    They take what belongs to T to what belongs to M. `along` (vector,) is memory.
    """
    n = reflectors.shape[1]
    for kernel in range(scales.shape[0]):
        top = kernel * n
        for m in range(n - 3, -1, -1):
            for j in range(along.size):
                along[j] = 0.0
            for i in range(m + 1, n):
                for j in range(along.size):
                    along[j] += reflectors[top + m, i] * vectors[top + i, j]
            for i in range(m + 1, n):
                factor = scales[kernel, m] * reflectors[top + m, i]
                for j in range(along.size):
                    vectors[top + i, j] -= factor * along[j]


@compiled(error_model="numpy")
def _add_inverses(
    matrices: Floats, beside: Floats, taus: Floats, sizes: Floats, work: Floats, inverse: Floats,
    total: Floats,
) -> None:  # fmt: skip
    """Add the inverses of I + tau^2 T, each times its size (kernel, tau): (kernel and row, column).

    As in `_solve`, for all columns of the identity at once; `work` and `inverse` (row, column) are
    memory.
    """
    n = matrices.shape[1]
    for kernel in range(sizes.shape[0]):
        top = kernel * n
        for t in range(taus.size):
            if sizes[kernel, t] == 0.0:
                continue
            times = taus[t] * taus[t]
            for i in range(n):
                work[0, i], work[1, i] = 1.0 + times * matrices[top + i, i], 0.0
                if i:
                    work[1, i] = times * beside[kernel, i - 1] / work[0, i - 1]
                    work[0, i] -= work[1, i] * times * beside[kernel, i - 1]
                work[0, i] = 1.0 if work[0, i] < 1.0 else work[0, i]  # as it is but for rounding
                for j in range(n):
                    inverse[i, j] = -work[1, i] * inverse[i - 1, j] if j < i else 0.0
                inverse[i, i] = 1.0
            for i in range(n - 1, -1, -1):
                size, pivot = sizes[kernel, t], 1.0 / work[0, i]
                for j in range(n):
                    inverse[i, j] *= pivot
                if i < n - 1:
                    for j in range(n):
                        inverse[i, j] -= work[1, i + 1] * inverse[i + 1, j]
                for j in range(n):
                    total[top + i, j] += size * inverse[i, j]


def _white(precision: Floats, moment: Floats, hessian: Floats) -> _White:
    """Return a release of this precision, its moment the precision times it, whitened."""
    n = hessian.size
    white = _White(np.zeros((n, n)), np.empty(n), np.zeros((n, n)))
    _whiten(
        np.ascontiguousarray(precision), np.ascontiguousarray(moment),
        np.ascontiguousarray(hessian), *white,
    )  # fmt: skip
    return white


def _solved(matrices: Floats, white: Floats, taus: Floats, prior: Floats) -> _Solved:
    """Solve the systems of all priors; `matrices`, M (kernel, row, column), are overwritten."""
    size, n, _ = matrices.shape
    solved = _Solved(
        np.zeros((size * n, n)), np.zeros((size, n)), np.zeros((size, n)), np.zeros((3, n)),
        np.empty((size * n, taus.size)), np.empty((size, taus.size)), np.zeros((size, n)),
    )  # fmt: skip
    _solve_all(matrices.reshape(size * n, n), white, taus, prior, *solved)
    return solved


def mean(
    kernels: Floats, precision: Floats, moment: Floats, hessian: Floats, taus: Floats,
    prior: Floats,
) -> Floats:  # fmt: skip
    """Return the posterior mean of scores less their level, averaged over the priors: (bin,).

    Priors are theta ~ N(0, tau^2 K) for kernels K (kernel, bin, bin) and taus with log weights
    `prior` (tau,); they count by their evidence. `moment` is the precision (bin, bin) times a
    noisy H theta.
    """
    white = _white(precision, moment, hessian)
    design_t = np.ascontiguousarray(white.design.T)
    solved = _solved(white.design @ kernels @ design_t, white.release, taus, prior)
    scores = np.zeros(hessian.size)
    for kernel, average in zip(kernels, solved.averages, strict=True):
        scores += kernel @ (design_t @ average)
    return scores - level_of(scores, hessian)


def level_of(scores: Floats, hessian: Floats) -> float:
    """Return the mean of scores weighted by Hessians, added up in the order of the bins."""
    return float(np.cumsum(scores * hessian / np.cumsum(hessian)[-1])[-1])


def slope(
    kernels: Floats, precision: Floats, moment: Floats, hessian: Floats, taus: Floats,
    prior: Floats,
) -> Floats:  # fmt: skip
    """Return the derivative of `mean` by `moment`: (bin of the mean, bin of the moment).

    It is a sum of two parts: each prior's mean is linear in the moment, and the weights of the
    priors move with it. Most priors have next to no weight, and are left out of the first part.
    """
    white, n, size = _white(precision, moment, hessian), hessian.size, len(kernels)
    design_t = np.ascontiguousarray(white.design.T)
    matrices = white.design @ kernels @ design_t
    solved = _solved(matrices, white.release, taus, prior)
    _back_transform(solved.solutions, solved.reflectors, solved.scales, np.empty(taus.size))
    linear, sizes = np.zeros((size * n, n)), solved.weights * taus**2
    sizes[solved.weights <= NEGLIGIBLE] = 0.0
    memory = np.empty((n, n))
    _add_inverses(
        matrices.reshape(size * n, n), solved.beside, taus, sizes, solved.work, memory, linear
    )
    for _ in range(2):  # from one side, and from the other
        _back_transform(linear, solved.reflectors, solved.scales, memory[0])
        linear = np.swapaxes(linear.reshape(size, n, n), 1, 2).reshape(size * n, n)
    back = solved.solutions.reshape(size, n, -1)  # (kernel, coordinate, tau)
    to_scores = kernels @ design_t  # (kernel, bin, coordinate)
    slopes = (to_scores @ linear.reshape(size, n, n)).sum(axis=0)
    # The log evidence of a prior has the derivative -back by the white coordinates, so its weight
    # w has w (average back - back). Times the means and added over the priors that is the same as
    # -w (mean - average mean) back.
    means = (to_scores @ (back * taus**2)).transpose(1, 0, 2).reshape(n, -1)  # (bin, prior)
    weight = solved.weights.ravel()
    moved = weight * (means - (means @ weight)[:, None])
    slopes -= moved @ back.transpose(0, 2, 1).reshape(-1, n)
    # By the moment, not by white coordinates.
    by_moment = np.asarray(np.linalg.solve(white.root.T, slopes.T).T)
    return np.asarray(by_moment - (hessian / hessian.sum()) @ by_moment)


def solve(precision: Floats, vector: Floats) -> Floats:
    """Return precision^-1 vector, for a positive definite matrix: (bin,)."""
    white = _white(precision, vector, np.ones(len(vector)))
    root, solution = white.root.tolist(), white.release.tolist()
    for i in range(len(solution) - 1, -1, -1):  # one after another: matrices are asked once each
        for k in range(i + 1, len(solution)):
            solution[i] -= root[k][i] * solution[k]
        solution[i] /= root[i][i]
    return np.array(solution)
