"""What is known of the nodes of a growing tree: rows that can be there, counts, budget left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow.methods.maddock.splits.growth import Bools, Floats
from hedgerow.model.splitting import BestSplit, Histogram


@dataclass(frozen=True, eq=False)
class Measured:
    """Noisy class counts of a node, and the variance of the noise in each."""

    counts: Floats  # (class,)
    variance: float

    @property
    def is_exact(self) -> bool:
        """Whether a test switched the noise off; averages divide by no less than 1e-300."""
        return self.variance < 1e-200


@dataclass(eq=False)
class Offer:
    """The best cut of one column of a node, and the histogram as it was released."""

    column: int
    released: Histogram
    split: BestSplit | None


@dataclass(eq=False)
class Node:
    """One node; `left` is what its path may still spend."""

    number: int  # in the growing tree
    depth: int
    left: float
    columns: tuple[int, ...]  # that may cut it, the likeliest first
    possible: tuple[Bools, ...]  # of each column of the schema, (bin,): where rows can be
    known: Measured | None = None  # the best estimate so far
    measured: list[Measured] = field(default_factory=list)  # independent ones, of this node alone
    bounds: dict[int, float] = field(default_factory=dict)  # noisy, by column
    bounds_deviation: float = 0.0
    is_rough: bool = False  # whether bounds are too noisy to ask further columns by them
    agreed: Measured | None = None  # what is known once its histograms are there
    offers: list[Offer] = field(default_factory=list)
    spent: float = 0.0  # at this node
    budget: float = 0.0  # of this node

    def pay(self, amount: float) -> None:
        self.spent += amount
        self.left -= amount
        self.budget -= amount

    @property
    def best(self) -> Offer | None:
        """The offer with the largest noisy gain, if any gains."""
        gains = [o for o in self.offers if o.split is not None and o.split.gain > 0]
        return max(gains, key=lambda o: o.split.gain if o.split else 0.0, default=None)


def impurity(counts: Floats) -> float:
    """(n - sum n_k^2 / n) / 2, the unit in which bounds and gains are counted."""
    rows = np.maximum(counts, 0.0)
    n = float(rows.sum())
    return 0.5 * (n - float((rows**2).sum()) / n) if n > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Settled:
    """Counts that agree over the whole tree, and their noise."""

    counts: NDArray[np.float64]  # (node, class)
    deviations: NDArray[np.float64]  # (node,) of one class


def settle(
    measured: Sequence[Sequence[Measured]], children: Sequence[tuple[int, int]], n_classes: int
) -> Settled:
    """The least-squares counts of all nodes, children adding up to their parent exactly.

    Every node has some independent measurements (or none). Going up, what a node's own say and what
    its children add up to is averaged by precision; going down, each child takes the part of the
    difference that its variance has in the two. That is the exact weighted least-squares solution
    on a tree (Hay et al. 2010, for unequal variances).
    """
    n = len(children)
    up, up_variance = np.zeros((n, n_classes)), np.full(n, math.inf)
    for node in range(n - 1, -1, -1):  # children come after their parent
        estimates = list(measured[node])
        left, right = children[node]
        if left >= 0:
            both = up_variance[left] + up_variance[right]
            estimates.append(Measured(up[left] + up[right], both))
        up[node], up_variance[node] = _averaged(estimates, n_classes)
    counts, variances = up.copy(), up_variance.copy()
    for node in range(n):
        left, right = children[node]
        if left < 0:
            continue
        both = up_variance[left] + up_variance[right]
        lost = counts[node] - (up[left] + up[right])
        for child in (left, right):
            part = _part(up_variance[child], both)
            counts[child] = up[child] + part * lost
            rest = up_variance[child] - part * up_variance[child] if both < math.inf else math.inf
            variances[child] = rest + part**2 * variances[node]
    return Settled(counts, np.sqrt(variances))


def _part(own: float, both: float) -> float:
    """The part of a difference that a child takes."""
    if both == math.inf:
        return 1.0 if own == math.inf else 0.0
    return own / both if both > 0 else 0.5


def _averaged(estimates: Sequence[Measured], n_classes: int) -> tuple[Floats, float]:
    """By precision; measurements without noise are told apart from none at all."""
    real = [one for one in estimates if one.variance < math.inf]
    if not real:
        return np.zeros(n_classes), math.inf
    exact = [one for one in real if one.variance == 0]
    if exact:
        return exact[0].counts, 0.0
    weights = [1 / one.variance for one in real]
    total = sum(w * one.counts for w, one in zip(weights, real, strict=True))
    return np.asarray(total) / math.fsum(weights), 1 / math.fsum(weights)
