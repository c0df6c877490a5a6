"""Which strategy matrix each column is asked with: patterns that effects have get less noise.

Noise on sums by bin is the same for every pattern over the bins. Effects are not: neighbours of an
ordered column have similar scores, and the level of a column is the same value in all of them. A
strategy matrix that amplifies likely patterns, at the cost of unlikely ones, costs the same (none
of its columns has a larger norm) and says more. That is the matrix mechanism (Li et al. 2010) with
the prior of `smoothing` as its workload. Matrices follow from public facts and releases; privacy
does not depend on their being the best ones, only on their being known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import posterior
from hedgerow.methods.auto.priors import kernels_of
from hedgerow.queries.strategy import LARGEST_ENTRY, WIDEST, StrategyMatrix, largest_norms

Floats = NDArray[np.float64]
EVERY = 0.7  # loudness that any pattern has, beside that of the likely ones: priors can be wrong
LEVEL = 1.5  # loudness of the level, over the root of the columns, all of which ask for it
GUESS = 0.25  # size of effects (log-odds, or deviations of the label) before anything is known
LEAST = 0.05  # what is added to the size that effects seem to have


@dataclass(frozen=True, eq=False)
class Strategy:
    """How one column is asked: sums by bin times a matrix; without one, sums by bin as they are."""

    n_bins: int
    integer_matrix: StrategyMatrix | None = None  # (coordinate, bin), as it is sent
    wide: bool = False  # too many categories for matrices of them

    @cached_property
    def matrix(self) -> Floats | None:
        """The matrix (coordinate, bin), its longest column of l2 norm 1."""
        whole = self.integer_matrix
        return None if whole is None else np.asarray(whole / largest_norms(whole)[1])

    @cached_property
    def gram(self) -> Floats | None:
        """The precision of sums by bin (bin, bin), at noise 1; None if the column is wide."""
        if self.wide:
            return None
        matrix = np.eye(self.n_bins) if self.matrix is None else self.matrix
        return np.asarray(matrix.T @ matrix)

    @cached_property
    def totals(self) -> Floats:
        """Weights of `back`'s values in the estimate of the column's total: (bin,)."""
        ones = np.ones(self.n_bins)
        if self.matrix is None:
            return ones
        return np.asarray(posterior.solve(self.matrix.T @ self.matrix, ones))

    def back(self, coordinates: Floats) -> Floats:
        """Released coordinates (output, coordinate) to what they say of each bin: (output, bin)."""
        return coordinates if self.matrix is None else np.asarray(coordinates @ self.matrix)


def is_wide(n_bins: int, ordered: bool) -> bool:
    """Whether a column has too many categories for matrices; ordered bins are never so many."""
    return n_bins > WIDEST and not ordered


@lru_cache(maxsize=1024)
def plain(n_bins: int, ordered: bool) -> Strategy:
    """Sums by bin as they are."""
    return Strategy(n_bins, wide=is_wide(n_bins, ordered))


def level_share(n_columns: int) -> float:
    """How loud the level is asked in each column, to be known well from all of them together.

    An error of it moves all columns the same way, so it must be smaller than theirs.
    """
    return min(1.0, LEVEL / math.sqrt(n_columns))


def strategy_for(
    n_bins: int, ordered: bool, strength: float, level: float, apart: tuple[int, ...] = ()
) -> Strategy:
    """The strategy of a column whose effect in a bin is `strength` times its noise.

    Bins that stand `apart` have effects of their own, see `kernels_of`. Strengths are rounded to
    half octaves, so that columns share matrices.
    """
    if not 2 <= n_bins <= WIDEST:
        return plain(n_bins, ordered)
    curve = ordered and n_bins > 3
    steps = round(2 * math.log2(min(max(strength, 2.0**-6), 2.0**4))) if curve else 0
    return _strategy(n_bins, curve, steps, level, apart)


@lru_cache(maxsize=4096)
def _strategy(
    n_bins: int, curve: bool, steps: int, level: float, apart: tuple[int, ...]
) -> Strategy:
    if curve:
        matrix = np.eye(n_bins)  # missing values are no part of any pattern
        matrix[:-1, :-1] = loud_patterns(*_patterns(n_bins, apart), 2.0**steps, level)
    else:
        matrix = np.eye(n_bins) - (1 - math.sqrt(level)) / n_bins
    matrix /= np.linalg.norm(matrix, axis=0)
    return Strategy(n_bins, np.rint(LARGEST_ENTRY * matrix).astype(np.int8))


@lru_cache(maxsize=512)
def _patterns(n_bins: int, apart: tuple[int, ...] = ()) -> tuple[Floats, Floats]:
    """Variances of an ordered column's effects, less their level, and along which patterns."""
    kernel = kernels_of(n_bins, True, apart)[:, :-1, :-1].mean(axis=0)
    centred = np.eye(len(kernel)) - 1 / len(kernel)
    variance, patterns = np.linalg.eigh(centred @ kernel @ centred)
    return np.maximum(variance, 1e-12), patterns


def loud_patterns(variance: Floats, patterns: Floats, square: float, level: float) -> Floats:
    """A symmetric matrix (coordinate, bin), its columns of length 1, for effects that vary so.

    `square` is the squared effect in a bin over the noise's variance. Along each direction in which
    effects vary, loudness is what makes the sum of their remaining variances least if all of it
    adds up to the bins ("water-filling"). Then every column is stretched to the length that is
    paid for anyway; on these kernels that is as good as solving for it exactly.
    """
    n = len(patterns)
    loud = _water(variance * square) + EVERY
    patterns = patterns - patterns.mean(axis=0)  # the level has no variance, and comes by itself
    shape = (patterns * np.sqrt(loud)) @ patterns.T
    shape *= math.sqrt(n / np.sum(shape**2))
    shape += math.sqrt(level) / n
    return np.asarray(shape / np.linalg.norm(shape, axis=0))


def _water(signal: Floats) -> Floats:
    """Shares w >= 0, adding up to as many as there are, that make sum s / (1 + w s) least."""
    order = np.sort(1 / signal)
    heights = (signal.size + np.cumsum(order)) / np.arange(1, signal.size + 1)
    height = heights[np.flatnonzero(heights > order)[-1]]
    return np.asarray(np.maximum(height - 1 / signal, 0.0))
