"""Effects on hazards that change at a public cut: what both periods share, and how far they differ.

Pure functions of released values. With H1 and H2 the denominators of a bin in the two periods and
w1, w2 their shares, theta1 = a + w2 d and theta2 = a - w1 d: z1 + z2 = (H1 + H2) a, as one effect
for all intervals would have it, and w2 z1 - w1 z2 = H1 H2 / (H1 + H2) d. Each is shrunk by its own
noise, so a column whose effect does not change gets a d of nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.rng import stream
from hedgerow.methods.auto.base_line import TAIL, edges_between
from hedgerow.methods.auto.evidence import Evidence

Floats = NDArray[np.float64]
Smooth = Callable[[Evidence, Floats], Floats]  # evidence and denominators to values by bin
ROWS = 20_000  # made up, that say how scores of both periods are spread


@dataclass(frozen=True, eq=False)
class Shared:
    """What is known of a column's a and d."""

    evidences: Sequence[Evidence]  # of each period
    hessians: Floats  # (period, bin)
    sampling: Floats  # (period, bin)

    @property
    def shares(self) -> tuple[Floats, Floats]:
        """Of the denominators of each bin, the part of each period: (bin,)."""
        first, second = self.hessians / self.hessians.sum(axis=0)
        return first, second

    @property
    def common(self) -> tuple[Evidence, Floats]:
        """Evidence of the sum of both, which have equal noise, and its denominators: (bin,)."""
        one, other = self.evidences
        both = Evidence(
            (one.precision + other.precision) / 4,
            (one.moment + other.moment) / 2,
            (one.variance + other.variance) / 4,
        )
        return both.of_a_sample(self.sampling.sum(axis=0)), self.hessians.sum(axis=0)

    @property
    def change(self) -> tuple[Evidence, Floats]:
        """Evidence of the weighted difference, and its denominators: (bin,)."""
        (one, other), (w1, w2), (s1, s2) = self.evidences, self.shares, self.sampling
        if one.precision.ndim == 1:
            mine, theirs = w2 / one.precision, w1 / other.precision
            precision = 1 / (w2 * mine + w1 * theirs)
            moment = precision * (mine * one.moment - theirs * other.moment)
            variance = precision**2 * (mine**2 * one.variance + theirs**2 * other.variance)
        else:
            mine = w2[:, None] * _inverse(one.precision)
            theirs = w1[:, None] * _inverse(other.precision)
            precision = _inverse(mine * w2 + theirs * w1)
            moment = precision @ (mine @ one.moment - theirs @ other.moment)
            noise = mine @ one.variance @ mine.T + theirs @ other.variance @ theirs.T
            variance = precision @ noise @ precision
        apart = Evidence(precision, moment, variance).of_a_sample(w2**2 * s1 + w1**2 * s2)
        return apart, w1 * self.hessians[1]

    def scores(self, smooth: Smooth) -> Floats:
        """Scores of both periods: (period, bin)."""
        return self._of_both(smooth(*self.common), smooth(*self.change))

    def deviations(self, deviation: Smooth) -> Floats:
        """Deviations of `scores`: (period, bin)."""
        common, change = deviation(*self.common), deviation(*self.change)
        w1, w2 = self.shares
        return np.stack([np.hypot(common, w2 * change), np.hypot(common, w1 * change)])

    def _of_both(self, common: Floats, change: Floats) -> Floats:
        w1, w2 = self.shares
        return np.stack([common + w2 * change, common - w1 * change])


def _inverse(matrix: Floats) -> Floats:
    """Of a symmetric matrix, and symmetric."""
    found = np.linalg.inv(matrix)
    return np.asarray((found + found.T) / 2)


def spread_scores(
    theta: Sequence[Floats], counts: Sequence[Floats], base: Floats, n_bins: int
) -> tuple[Floats, Floats, Floats]:
    """How scores (period, bin) of columns are spread if these have nothing to do with each other.

    `base` are the hazards of both periods together, of a row of ratio 1. Returned are edges of risk
    (the logarithm of hazards up to the horizon, less that of ratio 1), and for each bin between
    them the logarithms of the mean hazard ratios (bin, period) and the share of the rows (bin,).
    """
    rng, u = stream(0, "periods"), np.zeros((2, ROWS))
    for scores, n in zip(theta, counts, strict=True):
        u += scores[:, rng.choice(len(n), ROWS, p=n / n.sum())]
    risk = np.log(base @ np.exp(np.clip(u, -20, 20)) / base.sum())  # (row,)
    low, high = np.quantile(risk, [TAIL, 1 - TAIL])
    edges = edges_between(float(low), float(high), n_bins)
    place = np.searchsorted(edges, risk, side="right")
    size = np.bincount(place, minlength=len(edges) + 1).astype(np.float64)
    width = edges[1] - edges[0]
    middle = np.append(edges[0] - width, edges) + width / 2
    ratios = [np.bincount(place, np.exp(one), len(edges) + 1) for one in np.clip(u, -20, 20)]
    seen = np.maximum(size, 1.0)
    logs = [np.where(size > 0, np.log(np.maximum(r, 1e-9) / seen), middle) for r in ratios]
    return edges, np.stack(logs, axis=1), np.maximum(size / ROWS, 1e-6)
