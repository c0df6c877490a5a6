"""Split search on sums: pure functions of (noisy or exact) histograms.

A histogram holds, for one node and one column, the first part (gradients or class counts) and the
second part (Hessians or counts) of every bin. Where sums are noisy, the search allows for it: it
knows how much noise every side of a cut carries, and which bins can hold no row at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Histogram:
    """Sums of one node by bin of one column, and how noisy they are.

    `possible` is public: a bin that the cuts above have sent elsewhere, or the bin of missing
    values of a column that has none, holds no row, so whatever was released for it is noise.
    """

    sums: Floats  # (number, bin); 0 where no row can be
    possible: Bools  # (bin,)
    variance: float  # of the noise in one released number of the first part
    total_variance: float  # of the noise in the first part of the node's total

    @staticmethod
    def of(sums: Floats, possible: Bools, variance: float) -> Histogram:
        """A histogram as released."""
        possible_sums = np.where(possible, sums, 0.0)
        return Histogram(possible_sums, possible, variance, variance * int(possible.sum()))

    @property
    def total(self) -> Floats:
        return np.asarray(self.sums.sum(axis=1))  # (number,)

    def variances(self, n_bins: NDArray[np.int64]) -> Floats:
        """Noise variance of the first part of a side that holds so many possible bins.

        The bins are those released, moved by equal amounts so that they add up to the total.
        """
        share = n_bins / max(1, int(self.possible.sum()))
        return np.asarray(n_bins * (1 - share) * self.variance + share**2 * self.total_variance)


@dataclass(frozen=True)
class GainRule:
    """How a split is scored.

    A side that steps by w lowers the loss by half of -2 G w - D w^2, with G its gradients and D its
    Hessians (or count) and lambda; w = -G / D, held within `clip` as the leaf's weight will be.
    Without a clip that is G^2 / D.

    With `caution` c above 0 the noise is allowed for: c times its variance is taken from G^2,
    because E[G^2] exceeds the square of the true sum by that variance, which is what lets nearly
    empty sides win; and a side whose D is below c deviations of its own noise may be empty, and is
    not split off.
    """

    reg_lambda: float
    penalty: float
    caution: float
    floor_deviations: float
    first: int  # how many statistics the first part has: the outputs
    second_scale: float  # the first part has so many times the noise of the second
    clip: float = np.inf
    least_rows: float = 0.0  # a side with fewer is not split off

    def denominators(self, sums: Floats) -> Floats:
        """What divides each output (output, ...): Hessians, or the count of all rows."""
        rest = sums[self.first :]
        below = rest if len(rest) else sums[: self.first].sum(axis=0, keepdims=True)
        return np.broadcast_to(below, (self.first, *sums.shape[1:]))

    def deviations(self, sums: Floats, variances: Floats) -> Floats:
        """Noise deviation of one denominator."""
        n_added = self.first if len(sums) == self.first else 1
        scale = 1.0 if len(sums) == self.first else self.second_scale
        return np.asarray(np.sqrt(n_added * variances) / scale)

    def score(self, sums: Floats, variances: Floats) -> Floats:
        """The score of sides with sums (number, side) and noise variances (side,)."""
        floor = self.floor_deviations * self.deviations(sums, variances)
        below = np.maximum(self.denominators(sums), floor) + self.reg_lambda
        square = sums[: self.first] ** 2 - self.caution * variances
        size = np.sqrt(np.maximum(square, 0.0))
        step = np.divide(size, below, out=np.zeros_like(size), where=below > 0)
        step = np.minimum(step, self.clip)
        lost = np.divide(square, below, out=np.zeros_like(size), where=(below > 0) & (square < 0))
        # Sorted, because a sum of floats must not depend on the order of the classes.
        scores = step * (2 * size - below * step) + lost
        return np.asarray(np.sort(scores, axis=0).sum(axis=0))

    def holds_rows(self, sums: Floats, variances: Floats) -> Bools:
        """Whether sides hold more than noise would show in an empty one."""
        if self.caution == 0 and self.least_rows == 0:
            return np.ones(sums.shape[1], np.bool_)
        rest = sums[self.first :] if len(sums) > self.first else sums
        least = self.caution * np.sqrt(len(rest) * variances)
        least /= 1.0 if len(sums) == self.first else self.second_scale
        rows = np.sort(rest, axis=0).sum(axis=0)
        return np.asarray(rows >= np.maximum(least, self.least_rows))


@dataclass(frozen=True, eq=False)
class BestSplit:
    """The best way to cut one node at one column."""

    gain: float
    right: Bools  # (bin,) the bins that go right
    sums: tuple[Floats, Floats]  # (number,) of the left and of the right child
    variances: tuple[float, float]  # of the noise in their first parts


def best_split(histogram: Histogram, rights: Bools, rule: GainRule) -> BestSplit | None:
    """The best of some ways to cut; `rights` (cut, bin) says which bins go right in each."""
    goes = rights & histogram.possible
    stays = ~rights & histogram.possible
    real = goes.any(axis=1) & stays.any(axis=1)
    rights, goes, stays = rights[real], goes[real], stays[real]
    if not len(rights):
        return None
    sides = [histogram.sums @ part.T.astype(np.float64) for part in (stays, goes)]
    noise = [histogram.variances(part.sum(axis=1)) for part in (stays, goes)]
    total, total_noise = histogram.total[:, None], np.array([histogram.total_variance])
    gains = sum(rule.score(s, v) for s, v in zip(sides, noise, strict=True))
    gains = 0.5 * (gains - rule.score(total, total_noise)) - rule.penalty
    has_rows = [rule.holds_rows(s, v) for s, v in zip(sides, noise, strict=True)]
    gains = np.where(has_rows[0] & has_rows[1], gains, -np.inf)
    best = int(np.argmax(gains))
    left, right = (s[:, best] for s in sides)
    spread = (float(noise[0][best]), float(noise[1][best]))
    return BestSplit(float(gains[best]), rights[best], (left, right), spread)


def ordered_cuts(possible: Bools) -> Bools:
    """Every cut of an ordered column, missing values (the last bin) on either side: (cut, bin)."""
    n = len(possible) - 1
    right = np.arange(n)[None, :] >= np.arange(1, n)[:, None]  # (cut, bin)
    return _with_missing(right, bool(possible[-1]))


def category_cuts(histogram: Histogram, rule: GainRule, subsets: bool) -> Bools:
    """Each category against the rest, or sets of categories ordered by G / D: (cut, bin)."""
    inside = np.flatnonzero(histogram.possible[:-1])
    n, n_bins = len(inside), len(histogram.possible) - 1
    right = np.zeros((n if not subsets else max(0, n - 1), n_bins), np.bool_)
    if subsets:
        bins = histogram.sums[:, inside]
        noise = np.full(n, histogram.variance)
        floor = rule.floor_deviations * rule.deviations(bins, noise)
        below = np.maximum(rule.denominators(bins)[0], floor) + rule.reg_lambda + 1e-12
        rank = np.argsort(np.argsort(bins[0] / below, kind="stable"))
        right[:, inside] = rank[None, :] > np.arange(n - 1)[:, None]
    else:
        right[np.arange(n), inside] = True
    return _with_missing(right, bool(histogram.possible[-1]))


def _with_missing(right: Bools, possible: bool) -> Bools:
    """Each cut with missing values left and, if there can be any, with missing values right."""
    stays = np.concatenate([right, np.zeros((len(right), 1), np.bool_)], axis=1)
    if not possible:
        return stays
    goes = stays.copy()
    goes[:, -1] = True
    return np.concatenate([stays, goes])


def reconciled(
    histograms: Sequence[Histogram], known: tuple[Floats, float] | None = None
) -> list[Histogram]:
    """Histograms of one node that agree on its total, which all of them estimate.

    The total is averaged with precision weights over the columns and what is `known` of the node
    already (sums and the noise variance of their first part); each histogram is then moved by the
    same amount in every possible bin, which is the least-squares estimate given that total.
    """
    estimates = [(h.total, h.total_variance) for h in histograms]
    if known is not None:
        estimates.append(known)
    weights = np.array([1 / max(variance, 1e-300) for _, variance in estimates])
    variance = 1 / float(weights.sum())
    base = estimates[0][0]
    # Differences from one of them: where nothing is noisy, nothing moves by a rounding error.
    moves = sum(w * (total - base) for w, (total, _) in zip(weights, estimates, strict=True))
    total = base + np.asarray(moves) * variance
    return [_moved(histogram, total, variance) for histogram in histograms]


def _moved(histogram: Histogram, total: Floats, variance: float) -> Histogram:
    share = (total - histogram.total) / max(1, int(histogram.possible.sum()))
    sums = histogram.sums + share[:, None] * histogram.possible
    return replace(histogram, sums=sums, total_variance=variance)
