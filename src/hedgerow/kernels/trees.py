"""Compiled loops of the exact grower: one tree from integer gradients of rows, depth first.

Statistics of a row are K gradients and K Hessians on the grid 2**-bits: (row, statistic). Sums of
integers do not depend on their order, and a child's histogram is its parent's minus its sibling's
without rounding. Only scores of splits are floats.

The loops here call none of another file, and stand in one file longer than others, because Numba's
cache on disk notices changes of a function's own file only. `loops.py` says how such loops are
written, and why.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels.arrays import Bools, CodeArrays, Floats, Int32s, Ints
from hedgerow.kernels.compiling import compiled
from hedgerow.kernels.threads import BLOCK

SPLIT_COLUMN, SPLIT_CODE, SPLIT_MISSING_LEFT = 0, 1, 2  # entries of the best split
NODE_LEFT, NODE_RIGHT = 3, 4  # of a node, behind the three of its split
Histogram = Ints  # (bin of all columns, statistic)


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


class GrownTree(NamedTuple):
    """The memory that `grow` writes a tree to; nodes are numbered depth first, left ones first."""

    nodes: Ints  # (node, 5): column (-1 at leaves), last code left, missing goes left, left, right
    rights: Bools  # (node, code): categories that go right
    sums: Ints  # (node, statistic)
    leaf: Int32s  # (row,): the node in which each row ends


@compiled()
def _copy(source: NDArray[np.generic], target: NDArray[np.generic], n: int) -> None:
    """Copy n values; a slice assignment would compile for seconds, for the text of its error."""
    for i in range(n):
        target[i] = source[i]


@compiled()
def _side(sums: Floats, rule: SplitRule) -> float:
    """Return G^2 / (H + lambda) of one side, added over its outputs."""
    n_outputs, reg_lambda = rule.n_outputs, rule.reg_lambda
    score = 0.0
    for k in range(n_outputs):
        below = sums[n_outputs + k] + reg_lambda
        if below > 0.0:
            score += sums[k] * sums[k] / below
    return score


@compiled()
def _heavy(sums: Floats, rule: SplitRule) -> bool:
    """Say whether the Hessians of one side, added over its outputs, reach the least."""
    n_outputs = rule.n_outputs
    weight = 0.0
    for k in range(n_outputs):
        weight += sums[n_outputs + k]
    return weight >= rule.min_weight


@compiled()
def _two_sides(left: Floats, total: Floats, right: Floats, rule: SplitRule) -> float:
    """Return the score of a cut, -1 where a side is too light; `right` is overwritten."""
    for w in range(2 * rule.n_outputs):
        right[w] = total[w] - left[w]
    if not (_heavy(left, rule) and _heavy(right, rule)):
        return -1.0
    return _side(left, rule) + _side(right, rule)


@compiled()
def _is_empty(histogram: Histogram, at: int) -> bool:
    """Say whether a bin has no statistics: then it has no rows, or they change no score."""
    empty = True
    for w in range(histogram.shape[1]):
        empty = empty and histogram[at, w] == 0
    return empty


@compiled()
def _best_ordered_one(
    histogram: Histogram, start: int, n_cells: int, total: Floats, rule: SplitRule, best: float
) -> tuple[float, int, bool]:
    """Do as `_best_ordered` for one output, without its small arrays: by far the most frequent."""
    step, lam, least = rule.step, rule.reg_lambda, rule.min_weight
    missing_g = histogram[start + n_cells, 0] * step
    missing_h = histogram[start + n_cells, 1] * step
    has_missing = missing_g != 0.0 or missing_h != 0.0
    all_g, all_h = total[0], total[1]
    g, h = np.int64(0), np.int64(0)  # of all cells up to `last`, exact; floats only for scores
    last, code, goes_left = -1, -1, True
    for b in range(n_cells):
        here_g, here_h = histogram[start + b, 0], histogram[start + b, 1]
        if here_g == 0 and here_h == 0:
            continue
        if last >= 0:  # a cut between two cells with rows: any edge between them divides alike
            left_g, left_h = g * step, h * step
            right_g, right_h = all_g - left_g, all_h - left_h
            if left_h >= least and right_h >= least:
                score = left_g * left_g / (left_h + lam) + right_g * right_g / (right_h + lam)
                if score > best:
                    best, code, goes_left = score, (last + b - 1) // 2, not has_missing
            if has_missing:
                left_g, left_h = left_g + missing_g, left_h + missing_h
                right_g, right_h = all_g - left_g, all_h - left_h
                if left_h >= least and right_h >= least:
                    score = left_g * left_g / (left_h + lam) + right_g * right_g / (right_h + lam)
                    if score > best:
                        best, code, goes_left = score, (last + b - 1) // 2, True
        g, h, last = g + here_g, h + here_h, b
    if has_missing and 0 <= last < n_cells - 1:  # all known values against the missing ones
        left_g, left_h = g * step, h * step
        if left_h >= least and missing_h >= least:
            score = left_g * left_g / (left_h + lam) + missing_g * missing_g / (missing_h + lam)
            if score > best:
                best, code, goes_left = score, last, False
    return best, code, goes_left


@compiled()
def _best_ordered(
    histogram: Histogram, start: int, n_cells: int, total: Floats, rule: SplitRule, best: float
) -> tuple[float, int, bool]:
    """Find the best cut of an ordered column that beats `best`: (score, code, missing goes left).

    Codes up to `code` go left; the score stays `best` where no cut beats it. Between two cells with
    rows the cut lies in the middle of the empty ones. Missing values are tried on both sides, and
    on their own.
    """
    step, width = rule.step, 2 * rule.n_outputs
    left, with_missing, right = np.zeros(width), np.zeros(width), np.zeros(width)
    missing = start + n_cells
    has_missing = not _is_empty(histogram, missing)
    last, code, goes_left = -1, -1, True
    for b in range(n_cells):
        if _is_empty(histogram, start + b):
            continue
        if last >= 0:
            score = _two_sides(left, total, right, rule)
            if score > best:
                best, code, goes_left = score, (last + b - 1) // 2, not has_missing
            if has_missing:
                for w in range(width):
                    with_missing[w] = left[w] + histogram[missing, w] * step
                score = _two_sides(with_missing, total, right, rule)
                if score > best:
                    best, code, goes_left = score, (last + b - 1) // 2, True
        for w in range(width):
            left[w] += histogram[start + b, w] * step
        last = b
    if has_missing and 0 <= last < n_cells - 1:
        score = _two_sides(left, total, right, rule)
        if score > best:
            best, code, goes_left = score, last, False
    return best, code, goes_left


@compiled()
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


@compiled()
def _best_categories(
    histogram: Histogram, start: int, n_codes: int, total: Floats, rule: SplitRule, best: float,
    members: Bools,
) -> float:  # fmt: skip
    """Return the score of the best set of categories, `best` if none beats it.

    The set is left in `members`: (code,). Cells with rows, missing values among them, are ordered
    by G / (H + lambda) of the first output and cut in that order: for one output the best of all
    sets (Fisher 1958). Cells without rows go with the heavier side.
    """
    step, lam, n_outputs, width = rule.step, rule.reg_lambda, rule.n_outputs, 2 * rule.n_outputs
    cells, rank = np.empty(n_codes, np.int64), np.empty(n_codes)
    n = 0
    for b in range(n_codes):
        if not _is_empty(histogram, start + b):
            below = histogram[start + b, n_outputs] * step + lam
            cells[n] = b
            rank[n] = histogram[start + b, 0] * step / max(below, 1e-12)
            n += 1
    # In this order the best of all sets is a prefix, so n - 1 cuts are tried and not 2^(n - 1).
    _sort(rank, cells, n)
    left, right = np.zeros(width), np.zeros(width)
    last_left, heavier_right = -1, False
    for i in range(n - 1):
        for w in range(width):
            left[w] += histogram[start + cells[i], w] * step
        score = _two_sides(left, total, right, rule)
        if score > best:
            best, last_left = score, i
            weight = 0.0
            for k in range(n_outputs, width):
                weight += right[k] - left[k]
            heavier_right = weight > 0.0
    if last_left >= 0:
        for b in range(n_codes):
            members[b] = heavier_right
        for i in range(n):
            members[cells[i]] = i > last_left
    return best


@compiled()
def _best_split(
    histogram: Histogram, layout: BinLayout, total: Floats, rule: SplitRule, split: Ints,
    members: Bools, trial: Bools,
) -> float:  # fmt: skip
    """Write the best split of one node to `split` and `members`; return its score, -1 if none.

    `members` (code,) is written for categories only; `_finish` does the rest.
    """
    starts, categorical = layout.starts, layout.categorical
    # A split counts if it is better by more than rounding could make it.
    best = _side(total, rule) * (1.0 + 1e-9) + 1e-9
    split[SPLIT_COLUMN] = -1
    for j in range(categorical.shape[0]):
        start, n_codes = starts[j], starts[j + 1] - starts[j]
        if categorical[j]:
            score = _best_categories(histogram, start, n_codes, total, rule, best, trial)
            if score > best:
                best = score
                split[SPLIT_COLUMN] = j
                _copy(trial, members, n_codes)
            continue
        if rule.n_outputs == 1:
            score, code, goes_left = _best_ordered_one(
                histogram, start, n_codes - 1, total, rule, best
            )
        else:
            score, code, goes_left = _best_ordered(histogram, start, n_codes - 1, total, rule, best)
        if score > best:
            best = score
            split[SPLIT_COLUMN], split[SPLIT_CODE] = j, code
            split[SPLIT_MISSING_LEFT] = goes_left
    return best if split[SPLIT_COLUMN] >= 0 else -1.0


@compiled()
def _finish(
    histogram: Histogram, layout: BinLayout, split: Ints, members: Bools, n_outputs: int,
    sides: Ints,
) -> None:  # fmt: skip
    """Write which codes go right to `members`, and the sums of both sides: (side, statistic).

    Where no missing value decided its side, missing values go with the heavier one.
    """
    starts, categorical = layout.starts, layout.categorical
    j = split[SPLIT_COLUMN]
    start, n_codes = starts[j], starts[j + 1] - starts[j]
    if not categorical[j]:
        for b in range(n_codes - 1):
            members[b] = b > split[SPLIT_CODE]
        members[n_codes - 1] = not split[SPLIT_MISSING_LEFT]
    for w in range(2 * n_outputs):
        sides[0, w], sides[1, w] = 0, 0
    for b in range(n_codes):
        side = 1 if members[b] else 0
        for w in range(2 * n_outputs):
            sides[side, w] += histogram[start + b, w]
    if not categorical[j] and _is_empty(histogram, start + n_codes - 1):
        weight = 0
        for k in range(n_outputs, 2 * n_outputs):
            weight += sides[1, k] - sides[0, k]
        members[n_codes - 1] = weight > 0
    split[SPLIT_MISSING_LEFT] = not members[n_codes - 1]


@compiled()
def _fill(
    codes: CodeArrays, starts: Ints, rows: Ints, gradients: Ints, histogram: Histogram
) -> None:
    """Write the histogram of some rows over all columns: (bin, statistic)."""
    narrow, wide, place = codes.narrow, codes.wide, codes.place
    histogram[:] = 0
    width = gradients.shape[1]
    # Rows of a node lie anywhere: their statistics are fetched once, and not for every column.
    fetched = np.empty((BLOCK, width), np.int64)
    for begin in range(0, rows.shape[0], BLOCK):
        size = min(BLOCK, rows.shape[0] - begin)
        here = rows[begin : begin + size]
        for i in range(size):
            for w in range(width):
                fetched[i, w] = gradients[here[i], w]
        for j in range(place.shape[0]):
            start = np.uint64(starts[j])
            if width == 2 and place[j] >= 0:  # by far the most frequent, and without a loop inside
                line = narrow[place[j]]
                for i in range(size):
                    at = start + np.uint64(line[np.uint64(here[i])])
                    histogram[at, 0] += fetched[i, 0]
                    histogram[at, 1] += fetched[i, 1]
                continue
            for i in range(size):
                row = np.uint64(here[i])
                code = narrow[place[j], row] if place[j] >= 0 else wide[-1 - place[j], row]
                at = start + np.uint64(code)
                for w in range(width):
                    histogram[at, w] += fetched[i, w]


@compiled()
def _part(codes: CodeArrays, column: int, members: Bools, rows: Ints, spare: Ints) -> int:
    """Move rows that go left to the front, each side in its order; return how many go left."""
    narrow, wide, place = codes.narrow, codes.wide, codes.place[column]
    n_left, n_right = 0, 0
    # Rows stay in rising order on either side, so later passes read codes forward through memory.
    for i in range(rows.shape[0]):
        row = rows[i]
        code = narrow[place, row] if place >= 0 else wide[-1 - place, row]
        if members[code]:
            spare[n_right] = row
            n_right += 1
        else:
            rows[n_left] = row
            n_left += 1
    _copy(spare, rows[n_left:], n_right)
    return n_left


@compiled()
def _halve(
    codes: CodeArrays, starts: Ints, rows: Ints, n_left: int, gradients: Ints, whole: Histogram,
    small: Histogram,
) -> bool:  # fmt: skip
    """Write histograms of two children: the smaller one's to `small`, the other's to `whole`.

    `whole` has the parent's before, and loses the smaller one's: only that one's rows are read.
    Returns whether the smaller one is the left.
    """
    small_left = 2 * n_left <= rows.shape[0]
    part = rows[:n_left] if small_left else rows[n_left:]
    _fill(codes, starts, part, gradients, small)
    minuend, subtrahend = whole.reshape(-1), small.reshape(-1)
    for i in range(minuend.shape[0]):
        minuend[i] -= subtrahend[i]
    return bool(small_left)


@compiled()
def _wait(
    waiting: Ints, begin: int, end: int, depth: int, histogram: int, parent: int, side: int
) -> None:
    """Note a node that is to be looked at: its rows begin .. end, and where it belongs."""
    waiting[0], waiting[1], waiting[2] = begin, end, depth
    waiting[3], waiting[4], waiting[5] = histogram, parent, side


@compiled()
def _most_codes(starts: Ints) -> int:
    """Return how many codes the column with the most has."""
    most = 0
    for j in range(starts.shape[0] - 1):
        most = max(most, starts[j + 1] - starts[j])
    return most


@compiled()
def _add_rows(gradients: Ints, sums: Ints) -> None:
    """Write the sums of all rows: (statistic,)."""
    for w in range(sums.shape[0]):
        sums[w] = 0
    for i in range(gradients.shape[0]):
        for w in range(sums.shape[0]):
            sums[w] += gradients[i, w]


@compiled()
def _write_node(tree: GrownTree, node: int, parent: int, side: int, sums: Ints) -> None:
    """Write a node as a leaf, which it stays unless it is split, and its number to its parent."""
    nodes = tree.nodes
    if parent >= 0:
        nodes[parent, NODE_LEFT + side] = node
    nodes[node, 0], nodes[node, 1], nodes[node, 2] = -1, 0, 0
    nodes[node, NODE_LEFT], nodes[node, NODE_RIGHT] = -1, -1
    _copy(sums, tree.sums[node], sums.shape[0])


@compiled()
def grow(
    codes: CodeArrays, layout: BinLayout, gradients: Ints, rule: SplitRule, max_depth: int,
    tree: GrownTree,
) -> int:  # fmt: skip
    """Grow one tree; return how many nodes it has.

    A node holds one histogram from when it is met until it is split or done, so there are never
    more than the depth and one.
    """
    starts, categorical, n_rows = layout.starts, layout.categorical, gradients.shape[0]
    width, room = gradients.shape[1], max_depth + 2
    histograms = np.empty((room, starts[starts.shape[0] - 1], width), np.int64)
    free, n_free = np.arange(room), room - 1  # a stack of the histograms that are not in use
    rows, spare = np.arange(n_rows), np.empty(n_rows, np.int64)
    stack = np.empty((room, 6), np.int64)  # begin, end, depth, histogram, parent, side
    stack_sums = np.empty((room, width), np.int64)
    split, sides, total = np.zeros(3, np.int64), np.zeros((2, width), np.int64), np.empty(width)
    members = np.zeros(_most_codes(starts), np.bool_)
    trial = members.copy()
    _wait(stack[0], 0, n_rows, 0, free[n_free], -1, 0)
    _add_rows(gradients, stack_sums[0])
    _fill(codes, starts, rows, gradients, histograms[free[n_free]])
    n_nodes, height = 0, 1
    while height > 0:
        height -= 1
        begin, end, depth = stack[height, 0], stack[height, 1], stack[height, 2]
        slot, parent, side = stack[height, 3], stack[height, 4], stack[height, 5]
        node, n_nodes = n_nodes, n_nodes + 1
        _write_node(tree, node, parent, side, stack_sums[height])
        is_split = depth < max_depth and end - begin > 1
        if is_split:
            for w in range(width):
                total[w] = stack_sums[height, w] * rule.step
            score = _best_split(histograms[slot], layout, total, rule, split, members, trial)
            is_split = score >= 0.0
        if not is_split:
            for i in range(begin, end):
                tree.leaf[rows[i]] = node
        else:
            _finish(histograms[slot], layout, split, members, rule.n_outputs, sides)
            column = split[SPLIT_COLUMN]
            _copy(split, tree.nodes[node], 3)
            if categorical[column]:
                _copy(members, tree.rights[node], starts[column + 1] - starts[column])
            here = rows[begin:end]
            n_left = _part(codes, column, members, here, spare)
            left = right = -1
            if depth + 1 < max_depth:  # children at the last depth stay leaves, and need none
                n_free -= 1
                left, right, small = slot, slot, free[n_free]
                whole = histograms[slot]
                # The parent's histogram becomes the larger child's, a free one the smaller's.
                if _halve(codes, starts, here, n_left, gradients, whole, histograms[small]):
                    left = small
                else:
                    right = small
                slot = -1  # a child uses it now
            _wait(stack[height], begin + n_left, end, depth + 1, right, node, 1)
            _wait(stack[height + 1], begin, begin + n_left, depth + 1, left, node, 0)
            _copy(sides[1], stack_sums[height], width)
            _copy(sides[0], stack_sums[height + 1], width)
            height += 2
        if slot >= 0:
            free[n_free] = slot
            n_free += 1
    return n_nodes


@compiled()
def best_splits(
    histograms: Ints, layout: BinLayout, totals: Ints, rule: SplitRule, scores: Floats,
    columns: Ints, rights: Bools,
) -> None:  # fmt: skip
    """Find the best split of every node, from its histogram (node, bin, statistic) and total.

    `scores` (node,): of both sides together, -1 where no split is better than none. `columns`
    (node,): the column. `rights` (node, code): which of its codes go right, missing values last.
    """
    width = totals.shape[1]
    split, sides, total = np.zeros(3, np.int64), np.zeros((2, width), np.int64), np.empty(width)
    trial = np.zeros(_most_codes(layout.starts), np.bool_)
    for node in range(totals.shape[0]):
        for w in range(width):
            total[w] = totals[node, w] * rule.step
        scores[node] = _best_split(
            histograms[node], layout, total, rule, split, rights[node], trial
        )
        columns[node] = split[SPLIT_COLUMN]
        if split[SPLIT_COLUMN] >= 0:
            _finish(histograms[node], layout, split, rights[node], rule.n_outputs, sides)
