"""The exact grower: best splits of nodes, and one tree from integer gradients, depth first.

Statistics of a row are K gradients and K Hessians on the grid 2**-bits: (row, statistic). Sums of
integers do not depend on their order, and a child's histogram is its parent's minus its sibling's
without rounding. Only scores of splits are floats. `loops.py` says how loops are written, and why.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hedgerow.kernels.arrays import Bools, CodeArrays, Floats, Int, Int32s, Ints
from hedgerow.kernels.compiling import compiled
from hedgerow.kernels.levels import histogram

Histograms = Ints  # (node, bin of all columns, statistic)


class BinLayout(NamedTuple):
    """Where the bins of columns lie in a histogram: a bin is a code, missing values are last."""

    starts: Ints  # (column + 1,): where the bins of each column begin
    categorical: Bools  # (column,)


class SplitRule(NamedTuple):
    """How splits are scored: by G^2 / (H + lambda) of both sides."""

    step: float  # of the grid: 2**-bits
    n_outputs: int
    reg_lambda: float
    min_weight: float  # Hessians, over all outputs, that each side must reach

    @classmethod
    def of(cls, bits: int, width: int, reg_lambda: float, min_weight: float) -> SplitRule:
        """The rule for so many statistics a row; Numba compiles it for floats alone."""
        return cls(2.0**-bits, width // 2, float(reg_lambda), float(min_weight))


class Splits(NamedTuple):
    """The best split of every node."""

    scores: Floats  # (node,): of both sides together, -1 where no split is better than none
    columns: Ints  # (node,): the column, -1 where there is no split
    rights: Bools  # (node, code): which codes of the column go right, missing values last
    cuts: Ints  # (node, 2): last code of an ordered column that goes left; missing goes left
    sums: Ints  # (node, side, statistic)


class GrownTree(NamedTuple):
    """The memory that `grow` writes a tree to; nodes are numbered depth first, left ones first."""

    nodes: Ints  # (node, 5): column (-1 at leaves), last code left, missing goes left, left, right
    rights: Bools  # (node, code): categories that go right
    sums: Ints  # (node, statistic)
    leaf: Int32s  # (row,): the node in which each row ends


@compiled(error_model="numpy", helper=True)
def _score(
    left: Ints, histograms: Histograms, node: int, missing: int, with_missing: bool, totals: Ints,
    step: float, n_outputs: int, reg_lambda: float, min_weight: float,
) -> float:  # fmt: skip
    """Return G^2 / (H + lambda), added over outputs and both sides; -1 where a side is too light.

    Missing values are added to the left side if this is asked for, else they are on the right.
    """
    one = other = weight = other_weight = 0.0
    for k in range(n_outputs):
        g, h = left[k], left[n_outputs + k]
        if with_missing:
            g, h = g + histograms[node, missing, k], h + histograms[node, missing, n_outputs + k]
        left_g, left_h = g * step, h * step
        right_g, right_h = totals[node, k] * step - left_g, totals[node, n_outputs + k] * step
        right_h -= left_h
        weight += left_h
        other_weight += right_h
        if left_h + reg_lambda > 0.0:
            one += left_g * left_g / (left_h + reg_lambda)
        if right_h + reg_lambda > 0.0:
            other += right_g * right_g / (right_h + reg_lambda)
    return one + other if weight >= min_weight and other_weight >= min_weight else -1.0


@compiled(error_model="numpy", helper=True)
def _least(totals: Ints, node: int, step: float, n_outputs: int, reg_lambda: float) -> float:
    """Return what a split must beat: the score of the node itself, by more than rounding."""
    score = 0.0
    for k in range(n_outputs):
        g, below = totals[node, k] * step, totals[node, n_outputs + k] * step + reg_lambda
        if below > 0.0:
            score += g * g / below
    return score * (1.0 + 1e-9) + 1e-9


@compiled(error_model="numpy", helper=True)
def _divide(
    histograms: Histograms, node: int, start: Int, missing: Int, ordered: bool, cuts: Ints,
    rights: Bools, sums: Ints,
) -> None:  # fmt: skip
    """Write which codes of a column go right, and the sums of both sides; see `Splits`.

    Its bins begin at `start`, the code of missing values is `missing`. Where no missing value
    decided its side, missing values go with the heavier one.
    """
    if ordered:
        for b in range(rights.shape[1]):
            rights[node, b] = b > cuts[node, 0] and b < missing
        rights[node, missing] = cuts[node, 1] == 0
    width, empty, weight = histograms.shape[2], True, np.int64(0)
    for w in range(width):
        one = other = np.int64(0)
        for b in range(missing + 1):
            here = histograms[node, start + b, w]
            one, other = (one, other + here) if rights[node, b] else (one + here, other)
        sums[node, 0, w], sums[node, 1, w] = one, other
        empty = empty and histograms[node, start + missing, w] == 0
        if 2 * w >= width:
            weight += other - one
    if empty and ordered:
        rights[node, missing] = weight > 0
    cuts[node, 1] = not rights[node, missing]


@compiled(error_model="numpy")
def _ordered_splits(
    histograms: Histograms, starts: Ints, categorical: Bools, totals: Ints, step: float,
    n_outputs: int, reg_lambda: float, min_weight: float, left: Ints, scores: Floats,
    columns: Ints, rights: Bools, cuts: Ints, sums: Ints,
) -> None:  # fmt: skip
    """Write the best cut of ordered columns where it beats what a node has, and its two sides.

    See `Splits`. Of equal scores the first column's counts, as if all columns had been tried in
    their order. Between two cells with rows the cut lies in the middle of the empty ones. Missing
    values are tried on both sides, and on their own. `left` (statistic,) is memory.
    """
    width = 2 * n_outputs
    for node in range(totals.shape[0]):
        best, column, code, goes_left = scores[node], columns[node], np.int64(0), False
        if column < 0:
            best = _least(totals, node, step, n_outputs, reg_lambda)
        for j in range(categorical.size):
            if categorical[j]:
                continue
            start, missing = starts[j], starts[j + 1] - 1
            n_cells, last, has_missing = missing - start, np.int64(-1), False
            for w in range(width):
                left[w] = 0  # of all cells up to `last`
                has_missing = has_missing or histograms[node, missing, w] != 0
            for b in range(n_cells + 1):  # at last all known values against the missing ones
                behind = b == n_cells
                empty = not behind
                for w in range(width):
                    empty = empty and histograms[node, start + b, w] == 0
                if empty or (behind and (not has_missing or last == n_cells - 1)):
                    continue
                tries = 0 if last < 0 else 2 if has_missing and not behind else 1
                for t in range(tries):
                    score = _score(
                        left, histograms, node, missing, t == 1, totals, step, n_outputs,
                        reg_lambda, min_weight,
                    )  # fmt: skip
                    if score > best or (score == best and j < column):
                        best, column = score, np.int64(j)
                        goes_left = t == 1 or not has_missing
                        code = last if behind else (last + b - 1) // 2
                for w in range(width):
                    left[w] += histograms[node, start + b, w]
                last = np.int64(b)
        scores[node], columns[node] = best if column >= 0 else -1.0, column
        cuts[node, 0], cuts[node, 1] = code, goes_left
        if column >= 0:
            start, missing = starts[column], starts[column + 1] - 1 - starts[column]
            _divide(histograms, node, start, missing, not categorical[column], cuts, rights, sums)


@compiled(error_model="numpy")
def _category_splits(
    histograms: Histograms, starts: Ints, categorical: Bools, totals: Ints, step: float,
    n_outputs: int, reg_lambda: float, min_weight: float, left: Ints, scores: Floats,
    columns: Ints, rights: Bools, cells: Ints, rank: Floats,
) -> None:  # fmt: skip
    """Write the best set of categories of every node, and what it sends right; see `Splits`.

    Cells with rows, missing values among them, are ordered by G / (H + lambda) of the first output
    and cut in that order: for one output the best of all sets (Fisher 1958), so that n - 1 cuts are
    tried and not 2^(n - 1). Cells without rows go with the heavier side. The last two are memory.
    """
    width = 2 * n_outputs
    for node in range(totals.shape[0]):
        best, column = _least(totals, node, step, n_outputs, reg_lambda), np.int64(-1)
        for j in range(categorical.size):
            if not categorical[j]:
                continue
            start, n_codes, n = starts[j], starts[j + 1] - starts[j], 0
            for w in range(width):
                left[w] = 0
            for b in range(n_codes):
                empty = True
                for w in range(width):
                    empty = empty and histograms[node, start + b, w] == 0
                if not empty:
                    below = histograms[node, start + b, n_outputs] * step + reg_lambda
                    cells[n] = b
                    rank[n] = histograms[node, start + b, 0] * step / max(below, 1e-12)
                    n += 1
            _sort(rank, cells, n)
            last_left, heavier_right = -1, False
            for i in range(n - 1):
                for w in range(width):
                    left[w] += histograms[node, start + cells[i], w]
                score = _score(
                    left, histograms, node, start, False, totals, step, n_outputs, reg_lambda,
                    min_weight,
                )  # fmt: skip
                if score > best:
                    best, column, last_left, weight = score, np.int64(j), i, np.int64(0)
                    for w in range(n_outputs, width):
                        weight += totals[node, w] - 2 * left[w]
                    heavier_right = bool(weight > 0)
            if last_left >= 0:
                for b in range(rights.shape[1]):
                    rights[node, b] = heavier_right and b < n_codes
                for i in range(n):
                    rights[node, cells[i]] = i > last_left
        scores[node], columns[node] = best, column


@compiled(error_model="numpy", helper=True)
def _sort(rank: Floats, cells: Ints, n: int) -> None:
    """Sort cells by rank, equal ones by number.

    This is Shell's sort: cells are few, and NumPy's sort would compile for seconds.
    """
    gap = n // 2
    while gap > 0:
        for i in range(gap, n):
            r, c, j = rank[i], cells[i], i
            while j >= gap and (rank[j - gap] > r or (rank[j - gap] == r and cells[j - gap] > c)):
                rank[j], cells[j] = rank[j - gap], cells[j - gap]
                j -= gap
            rank[j], cells[j] = r, c
        gap //= 2


class _Search:
    """Finds the best splits of some nodes at a time, in memory of its own."""

    def __init__(self, n_nodes: int, layout: BinLayout, rule: SplitRule) -> None:
        most, width = int(np.diff(layout.starts).max(initial=1)), 2 * rule.n_outputs
        self._layout, self._rule = layout, rule
        self._memory = np.empty(width, np.int64)
        self._sorting = (np.empty(most, np.int64), np.empty(most))
        self._has_categories = bool(layout.categorical.any())
        self._found = Splits(
            np.empty(n_nodes), np.empty(n_nodes, np.int64), np.zeros((n_nodes, most), np.bool_),
            np.empty((n_nodes, 2), np.int64), np.empty((n_nodes, 2, width), np.int64),
        )  # fmt: skip

    def of(self, histograms: Histograms, totals: Ints) -> Splits:
        """The splits, from histograms and totals (node, statistic); overwritten by the next."""
        found = self._found
        given = (histograms, *self._layout, totals, *self._rule, self._memory)
        found.columns.fill(-1)
        if self._has_categories:
            _category_splits(*given, *found[:3], *self._sorting)
        _ordered_splits(*given, *found)
        return found


def best_splits(histograms: Histograms, layout: BinLayout, totals: Ints, rule: SplitRule) -> Splits:
    """Find the best split of every node, from its histogram and its total (node, statistic)."""
    return _Search(len(totals), layout, rule).of(histograms, totals)


class _Open(NamedTuple):
    """A node that is to be looked at."""

    rows: Ints
    sums: Ints
    histogram: Ints | None  # (bin, statistic); at the last depth, where nodes stay leaves, none
    depth: int
    parent: int
    side: int  # 0 left, 1 right


def grow(
    codes: CodeArrays, layout: BinLayout, gradients: Ints, rule: SplitRule, max_depth: int,
    tree: GrownTree,
) -> int:  # fmt: skip
    """Grow one tree; return how many nodes it has.

    A node holds one histogram from when it is met until it is split or done, so there are never
    more than the depth and one.
    """
    rows = np.arange(len(gradients))
    nodes: list[list[int]] = []
    search = _Search(1, layout, rule)
    whole = histogram(codes, layout.starts, rows, gradients) if max_depth > 0 else None
    waiting = [_Open(rows, gradients.sum(axis=0), whole, 0, -1, 0)]
    while waiting:
        here, node = waiting.pop(), len(nodes)
        nodes.append([-1, 0, 0, -1, -1])
        tree.sums[node] = here.sums
        if here.parent >= 0:
            nodes[here.parent][3 + here.side] = node
        column = -1
        if here.histogram is not None and len(here.rows) > 1:
            found = search.of(here.histogram[None], here.sums[None])
            column = found.columns.item(0)
        if column < 0:
            tree.leaf[here.rows] = node
            continue
        nodes[node][:3] = [column, *found.cuts[0].tolist()]
        if layout.categorical[column]:
            n_codes = int(layout.starts[column + 1] - layout.starts[column])
            tree.rights[node, :n_codes] = found.rights[0, :n_codes]
        waiting += _children(codes, layout.starts, gradients, here, found, node, max_depth)
    tree.nodes[: len(nodes)] = nodes
    return len(nodes)


def _children(
    codes: CodeArrays, starts: Ints, gradients: Ints, parent: _Open, found: Splits, node: int,
    max_depth: int,
) -> tuple[_Open, _Open]:  # fmt: skip
    """Both children of a node, the left one last: it is looked at first."""
    place, rows = codes.place.item(found.columns.item(0)), parent.rows
    code = codes.narrow[place] if place >= 0 else codes.wide[-1 - place]
    goes_right = found.rights[0].take(code.take(rows))
    # Rows stay in rising order on either side: later passes read codes forward through memory.
    left, right = rows[~goes_right], rows[goes_right]
    of_left = of_right = None
    if parent.depth + 1 < max_depth and parent.histogram is not None:
        # Only the smaller one's rows are read; the parent's histogram becomes the larger one's.
        small_left = 2 * len(left) <= len(rows)
        small = histogram(codes, starts, left if small_left else right, gradients)
        np.subtract(parent.histogram, small, out=parent.histogram)
        of_left, of_right = parent.histogram, small
        if small_left:
            of_left, of_right = of_right, of_left
    sums, depth = found.sums[0].copy(), parent.depth + 1
    return _Open(right, sums[1], of_right, depth, node, 1), _Open(
        left, sums[0], of_left, depth, node, 0
    )
