"""What questions say of the columns' sums, added up as precisions and moments. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.methods.auto.strategies import Strategy

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of z = H theta of one column and output, as if with Gaussian noise.

    `moment` is precision times z, and `variance` the covariance of the moment by noise alone, which
    is the precision where every question counts fully. Both are matrices (bin, bin), or for
    columns too wide for that their diagonals.
    """

    precision: Floats
    moment: Floats  # (bin,)
    variance: Floats

    def times(self, weight: float) -> Evidence:
        """The same, trusted less."""
        return Evidence(weight * self.precision, weight * self.moment, weight**2 * self.variance)

    def plus(self, other: Evidence) -> Evidence:
        """Both, their noise independent."""
        precision = self.precision + other.precision
        return Evidence(precision, self.moment + other.moment, self.variance + other.variance)

    def of_a_sample(self, variance: Floats) -> Evidence:
        """The same about the sums that another sample of as many rows would have had.

        Sums by bin (bin,) vary by this much from sample to sample. All rounds ask the same rows, so
        it is added once, to what all of them say together: the covariance of z is then
        precision^-1 + diag(variance), and no number of rounds, nor epsilon, makes it less.
        """
        if self.precision.ndim == 1:
            part = 1 / (1 + self.precision * variance)
            return Evidence(part * self.precision, part * self.moment, part**2 * self.variance)
        pull = np.asarray(np.linalg.inv(np.eye(len(variance)) + self.precision * variance), float)
        precision = pull @ self.precision
        symmetric = (precision + precision.T) / 2
        return Evidence(symmetric, pull @ self.moment, pull @ self.variance @ pull.T)

    def moved(self, by: Floats) -> Evidence:
        """The same about z + by."""
        return Evidence(self.precision, self.moment + product(self.precision, by), self.variance)


@dataclass(frozen=True, eq=False)
class Said:
    """One question about one column and output: precision of its sums, moment, and its total."""

    precision: Floats
    moment: Floats
    total: float
    total_variance: float


def product(precision: Floats, vector: Floats) -> Floats:
    """Precision times a vector, whether it is a matrix or a diagonal."""
    result = precision * vector if precision.ndim == 1 else precision @ vector
    return np.asarray(result)


def nothing(n_bins: int, wide: bool) -> Evidence:
    """Evidence of nothing."""
    empty = np.zeros(n_bins) if wide else np.zeros((n_bins, n_bins))
    return Evidence(empty, np.zeros(n_bins), empty)


def said_by_bins(z: Floats, variance: Floats, wide: bool) -> Said:
    """Of sums (bin,) with independent noise of these variances."""
    precision = 1 / variance
    whole = precision if wide else np.diag(precision)
    return Said(whole, precision * z, float(z.sum()), float(variance.sum()))


def said_by_coordinates(coordinates: Floats, strategy: Strategy, variance: float) -> list[Said]:
    """Of a column's released coordinates (output, coordinate), each with noise of this variance."""
    gram, back, weights = strategy.gram, strategy.back(coordinates), strategy.totals
    precision = np.full(strategy.n_bins, 1 / variance) if gram is None else gram / variance
    spread = variance * float(weights.sum())
    return [Said(precision, one / variance, float(one @ weights), spread) for one in back]


def pooled(said: Sequence[Said], hessians: Sequence[Floats]) -> tuple[list[Evidence], float, float]:
    """One output's columns made to agree on their total, which is then taken out of all of them.

    All columns' sums have the same total, so each learns it from the others: along the direction
    of a common shift of its bins it is then nearly without noise. What is left of a column adds up
    to nothing, as H theta does, and the total itself moves the intercept. Returned are the
    evidence, the total, and its variance.
    """
    trust = np.array([1 / one.total_variance for one in said])
    totals = np.array([one.total for one in said])
    total = float(trust @ totals / trust.sum())
    evidences = []
    for one, trust_of_column, hessian in zip(said, trust, hessians, strict=True):
        precision, moment, rest = one.precision, one.moment, float(trust.sum() - trust_of_column)
        if precision.ndim == 2 and rest > 0:
            others = (total * trust.sum() - one.total * trust_of_column) / rest
            precision, moment = precision + rest, moment + rest * others
        evidence = Evidence(precision, moment, precision)
        evidences.append(evidence.moved(-total / float(hessian.sum()) * hessian))
    return evidences, total, 1 / float(trust.sum())
