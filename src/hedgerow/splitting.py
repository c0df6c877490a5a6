"""Split search on sums: pure functions of (noisy or exact) histograms.

A histogram holds, for one node and one column, the first part (gradients) and the second part
(Hessians or counts) of every bin; the last bin is that of missing values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GainRule:
    """How a split is scored: lambda under the sums, a floor under noisy denominators, gamma."""

    reg_lambda: float
    floor: float
    penalty: float

    def score(self, first: Floats, second: Floats) -> Floats:
        """sum over outputs of G^2 / (max(H, floor) + lambda); arrays are (output, ...)."""
        denominator = np.maximum(second, self.floor) + self.reg_lambda
        ratio = np.divide(first**2, denominator, out=np.zeros_like(first), where=denominator > 0)
        return np.asarray(ratio.sum(axis=0))


@dataclass(frozen=True, eq=False)
class BestSplit:
    """The best way to cut one node at one column."""

    gain: float
    cut: int  # ordered columns: number of bins that go left; -1 for categories
    members: NDArray[np.bool_]  # categories: which bins go right, missing not included
    missing_left: bool
    left: Floats  # (number,) sums of the left child
    right: Floats


def best_ordered(histogram: Floats, first: int, rule: GainRule) -> BestSplit:
    """The best cut of an ordered column; histogram is (number, bin), the last bin missing."""
    bins, missing = histogram[:, :-1], histogram[:, -1]
    left = np.cumsum(bins, axis=1)[:, :-1]  # (number, cut)
    return _best_of(left, histogram.sum(axis=1), missing, first, rule, None)


def best_category(histogram: Floats, first: int, rule: GainRule, subsets: bool) -> BestSplit:
    """The best category against the rest, or the best set of categories ordered by G / H."""
    bins, missing = histogram[:, :-1], histogram[:, -1]
    if not subsets:
        rest = bins.sum(axis=1, keepdims=True) - bins  # one category goes right
        members = np.eye(bins.shape[1], dtype=np.bool_)
        return _best_of(rest, histogram.sum(axis=1), missing, first, rule, members)
    second = bins[first:].sum(axis=0)
    order = np.argsort(bins[0] / (np.maximum(second, rule.floor) + rule.reg_lambda + 1e-12))
    left = np.cumsum(bins[:, order], axis=1)[:, :-1]  # (number, cut)
    rank = np.argsort(order)
    members = rank[None, :] > np.arange(bins.shape[1] - 1)[:, None]  # (cut, category)
    return _best_of(left, histogram.sum(axis=1), missing, first, rule, members)


def _best_of(
    left: Floats,
    total: Floats,
    missing: Floats,
    first: int,
    rule: GainRule,
    members: NDArray[np.bool_] | None,
) -> BestSplit:
    """Best of all cuts, with missing values on either side; `left` is (number, cut)."""
    sides = np.stack([left + missing[:, None], left])  # (missing left|right, number, cut)
    rest = total[None, :, None] - sides
    parent = rule.score(total[:first, None], _second(total[:, None], first))[0]
    gains = np.stack(
        [
            rule.score(a[:first], _second(a, first)) + rule.score(b[:first], _second(b, first))
            for a, b in zip(sides, rest, strict=True)
        ]
    )  # (side, cut)
    if gains.size == 0:
        empty = np.zeros(0, np.bool_)
        return BestSplit(-np.inf, -1, empty, True, total, np.zeros_like(total))
    gains = 0.5 * (gains - parent) - rule.penalty
    side, cut = np.unravel_index(int(np.argmax(gains)), gains.shape)
    return BestSplit(
        float(gains[side, cut]),
        int(cut) + 1 if members is None else -1,
        np.zeros(0, np.bool_) if members is None else members[cut],
        bool(side == 0),
        sides[side, :, cut],
        rest[side, :, cut],
    )


def _second(sums: Floats, first: int) -> Floats:
    """Denominators for every output: the second part, or one count for all of them."""
    return np.broadcast_to(sums[first:], (first, *sums.shape[1:]))
