"""Algorithms 5 and 6 of the report to the letter, in a few lines of numpy: only to compare with.

All rows lie in one table with the number of each row's party. Noise is continuous, seeded Laplace
noise, what shares of all parties add up to; nothing here is private. What the report leaves open is
done as its program does it: sides without a noisy count are passed over, noisy shares are held
between 0 and 1. In two things its program does otherwise than the report says: see `program`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BOUND_SENSITIVITY = 5 / 4  # lemma 3.2


@dataclass
class Written:
    """One tree; `saves` is algorithm 6.

    With `program` bins lie between the least and the largest value of a node's rows, which no
    epsilon covers, where the report says public ranges; and bounds are noise alone, which is what
    the program makes of them: it also tries the cut that leaves one side empty, and counts rows of
    class 1 only.

    As written each of the p bounds is released with the whole of what a node has for bounds, so a
    node costs p times as much: with `bounds_pay` they share it, and the tree keeps its epsilon.
    """

    epsilon: float
    max_depth: int
    rng: np.random.Generator
    saves: bool = False
    bounds_pay: bool = False
    program: bool = False
    leaf_share: float = 0.5
    bounds_share: float = 0.25
    n_bins: int = 10
    min_samples: int = 10
    spent: float = field(default=0.0, init=False)  # most that a path has really cost

    def fit(self, X: Floats, y: Ints, party: Ints, bound: float) -> Written:
        self.X, self.y, self.party, self.bound = X, y, party, bound
        self.node = (1 - self.leaf_share) * self.epsilon / self.max_depth
        self.tree = self._grow(np.arange(len(y)), 0, 0.0, 0.0)
        return self

    def predict(self, X: Floats) -> Ints:
        found = np.zeros(len(X), np.int64)
        waiting = [(self.tree, np.arange(len(X)))]
        while waiting:
            node, rows = waiting.pop()
            if isinstance(node, int):
                found[rows] = node
                continue
            column, at, left, right = node
            goes = X[rows, column] >= at
            waiting += [(left, rows[~goes]), (right, rows[goes])]
        return found

    def _grow(self, rows: Ints, depth: int, saved: float, paid: float) -> object:
        if depth >= self.max_depth:
            return self._leaf(rows, paid)
        split, saved, cost = self._split(rows, saved)
        if split is None:
            return self._leaf(rows, paid + cost)
        column, at = split
        goes = self.X[rows, column] >= at
        if self.program and (goes.all() or not goes.any()):
            return self._leaf(rows, paid + cost)
        sides = [self._grow(rows[s], depth + 1, saved, paid + cost) for s in (~goes, goes)]
        return column, at, *sides

    def _leaf(self, rows: Ints, paid: float) -> int:
        epsilon = self.leaf_share * self.epsilon
        self.spent = max(self.spent, paid + epsilon)
        counts = np.bincount(self.y[rows], minlength=2) + self.rng.laplace(0, 1 / epsilon, 2)
        return int(np.argmax(counts))

    def _split(self, rows: Ints, saved: float) -> tuple[tuple[int, float] | None, float, float]:
        """The best split of a node, what is saved for its children, and what it really cost."""
        p = self.X.shape[1]
        if not self.saves:
            best, _, counts = self._best(rows, np.arange(p), self.node / p)
            totals = counts.sum(axis=2)  # (class, column)
            few = (totals.sum(axis=0) < self.min_samples).all()
            return (None if few or (totals <= 0).all(axis=1).any() else best), 0.0, self.node
        budget = self.node + saved
        for_bounds, each = self.bounds_share * budget, (1 - self.bounds_share) * budget / p
        of_bound = for_bounds / p if self.bounds_pay else for_bounds
        bounds = self._bounds(rows) + self.rng.laplace(0, BOUND_SENSITIVITY / of_bound, p)
        best, least, removed = None, np.inf, np.zeros(p, bool)
        asked, totals = 0, np.full((2, p), -np.inf)
        for j in np.argsort(bounds):
            if removed[j]:
                continue
            asked += 1
            found, impurity, counts = self._best(rows, np.array([j]), each)
            totals[:, j] = counts.sum(axis=(1, 2))
            if found is not None and impurity < least:
                best, least = found, impurity
            removed |= bounds > counts.sum() * least
        # A leaf is made by the same two rules as in algorithm 5, of the columns asked.
        few = (totals.sum(axis=0) < self.min_samples).all()
        one_class = (totals <= 0).all(axis=1).any()
        cost = p * of_bound + asked * each
        return (None if few or one_class else best), (p - asked) * each, cost

    def _best(
        self, rows: Ints, columns: Ints, epsilon: float
    ) -> tuple[tuple[int, float] | None, float, Floats]:
        """Algorithms 3 and 4: noisy counts (class, column, bin) and the purest cut in them."""
        X = self.X[rows][:, columns]
        low, high = np.full(len(columns), -self.bound), np.full(len(columns), self.bound)
        if self.program and len(rows):
            low, high = X.min(axis=0), X.max(axis=0)
        width = np.maximum(high - low, 1e-12) / self.n_bins
        codes = np.clip((X - low) / width, 0, self.n_bins - 1).astype(np.int64)  # (row, column)
        cells = (
            self.y[rows][:, None] * len(columns) + np.arange(len(columns))
        ) * self.n_bins + codes
        counts = np.bincount(cells.ravel(), minlength=2 * len(columns) * self.n_bins)
        counts = counts.reshape(2, len(columns), self.n_bins).astype(np.float64)
        counts += self.rng.laplace(0, 1 / epsilon, counts.shape)
        totals = counts.sum(axis=2)  # (class, column)
        left = counts.cumsum(axis=2)[:, :, :-1]
        impurity = _impurity(left) + _impurity(totals[:, :, None] - left)
        impurity /= np.where(impurity < np.inf, totals.sum(axis=0)[:, None], 1.0)
        place, at = np.unravel_index(int(np.argmin(impurity)), impurity.shape)
        least = float(impurity[place, at])
        edge = float(low[place] + (at + 1) * width[place])
        return (None if least == np.inf else (int(columns[place]), edge)), least, counts

    def _bounds(self, rows: Ints) -> Floats:
        """Theorem 7: what the parties' own best cuts of each column leave impure, added up."""
        total = np.zeros(self.X.shape[1])
        if self.program:
            return total
        for k in np.unique(self.party[rows]):
            mine = rows[self.party[rows] == k]
            order = np.argsort(self.X[mine], axis=0)
            ones = self.y[mine][order].cumsum(axis=0)  # (row, column) of class 1 up to there
            left = np.stack([np.arange(1, len(mine) + 1)[:, None] - ones, ones])
            # The last of them leaves one side empty: the node without a cut.
            total += (_scaled(left) + _scaled(left[:, -1:] - left)).min(axis=0)
        return total


def _impurity(sides: Floats) -> Floats:
    """n p (1 - p) of sides (class, ...) from noisy counts; inf without any."""
    n = sides.sum(axis=0)
    share = np.clip(np.divide(sides[1], n, out=np.zeros_like(n), where=n > 0), 0, 1)
    return np.where(n > 0, n * share * (1 - share), np.inf)


def _scaled(sides: Ints) -> Floats:
    """The same from exact counts, where an empty side leaves nothing."""
    n = np.maximum(sides.sum(axis=0), 1)
    return np.asarray(sides[0] * sides[1] / n)
