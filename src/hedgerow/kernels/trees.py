"""Compiled loops of the exact grower: one tree from integer numbers of rows, depth first.

Numbers are (row, number): K gradients and K Hessians on the grid 2**-bits. Sums of integers do not
depend on their order, and a child's histogram is its parent's minus its sibling's without rounding.
The loops here call none of another file, because Numba's cache on disk notices changes of a
function's own file only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hedgerow.kernels.threads import BLOCK

SPLIT_COLUMN, SPLIT_CODE, SPLIT_MISSING_LEFT = 0, 1, 2  # whole numbers of the best split


@njit(cache=True, nogil=True)
def _copy(source: Any, target: Any, n: int) -> None:
    """Copy n values; a slice assignment would compile for seconds, for the text of its error."""
    for i in range(n):
        target[i] = source[i]


@njit(cache=True, nogil=True)
def _side(sums: Any, n_outputs: int, reg_lambda: float) -> float:
    """G^2 / (H + lambda) of one side, over its outputs."""
    score = 0.0
    for k in range(n_outputs):
        below = sums[n_outputs + k] + reg_lambda
        if below > 0.0:
            score += sums[k] * sums[k] / below
    return score


@njit(cache=True, nogil=True)
def _heavy(sums: Any, n_outputs: int, least: float) -> bool:
    """Whether the Hessians of one side, over its outputs, reach the least."""
    weight = 0.0
    for k in range(n_outputs):
        weight += sums[n_outputs + k]
    return weight >= least


@njit(cache=True, nogil=True)
def _two_sides(left: Any, total: Any, right: Any, n_outputs: int, lam: float, least: float) -> Any:
    """The score of a cut, or -1 where a side is too light; `right` is overwritten."""
    for w in range(2 * n_outputs):
        right[w] = total[w] - left[w]
    if not (_heavy(left, n_outputs, least) and _heavy(right, n_outputs, least)):
        return -1.0
    return _side(left, n_outputs, lam) + _side(right, n_outputs, lam)


@njit(cache=True, nogil=True)
def _is_empty(histogram: Any, at: int) -> bool:
    empty = True
    for w in range(histogram.shape[1]):
        empty = empty and histogram[at, w] == 0
    return empty


@njit(cache=True, nogil=True)
def _best_ordered_one(
    histogram: Any, start: int, n_cells: int, step: float, total: Any, lam: float, least: float,
    best: float,
) -> Any:  # fmt: skip
    """`_best_ordered` for one output: (score, code, missing goes left); score is `best` if none."""
    missing_g = histogram[start + n_cells, 0] * step
    missing_h = histogram[start + n_cells, 1] * step
    has_missing = missing_g != 0.0 or missing_h != 0.0
    all_g, all_h = total[0], total[1]
    g, h = np.int64(0), np.int64(0)
    last, code, goes_left = -1, -1, True
    for b in range(n_cells):
        here_g, here_h = histogram[start + b, 0], histogram[start + b, 1]
        if here_g == 0 and here_h == 0:
            continue
        if last >= 0:
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


@njit(cache=True, nogil=True)
def _best_ordered(
    histogram: Any, start: int, n_cells: int, step: float, total: Any, n_outputs: int,
    lam: float, least: float, best: float,
) -> Any:  # fmt: skip
    """The best cut of an ordered column that beats `best`: (score, code, missing goes left).

    Codes up to `code` go left. Between two cells with rows the cut lies in the middle of the empty
    ones. Missing values are tried on both sides, and on their own.
    """
    width = 2 * n_outputs
    left, with_missing, right = np.zeros(width), np.zeros(width), np.zeros(width)
    missing = start + n_cells
    has_missing = not _is_empty(histogram, missing)
    last, code, goes_left = -1, -1, True
    for b in range(n_cells):
        if _is_empty(histogram, start + b):
            continue
        if last >= 0:
            score = _two_sides(left, total, right, n_outputs, lam, least)
            if score > best:
                best, code, goes_left = score, (last + b - 1) // 2, not has_missing
            if has_missing:
                for w in range(width):
                    with_missing[w] = left[w] + histogram[missing, w] * step
                score = _two_sides(with_missing, total, right, n_outputs, lam, least)
                if score > best:
                    best, code, goes_left = score, (last + b - 1) // 2, True
        for w in range(width):
            left[w] += histogram[start + b, w] * step
        last = b
    if has_missing and 0 <= last < n_cells - 1:
        score = _two_sides(left, total, right, n_outputs, lam, least)
        if score > best:
            best, code, goes_left = score, last, False
    return best, code, goes_left


@njit(cache=True, nogil=True)
def _sort(rank: Any, cells: Any, n: int) -> None:
    """Sort cells by rank, equal ones by number (Shell's way: quick to compile, few cells)."""
    gap = n // 2
    while gap > 0:
        for i in range(gap, n):
            r, c, j = rank[i], cells[i], i
            while j >= gap and (rank[j - gap] > r or (rank[j - gap] == r and cells[j - gap] > c)):
                rank[j], cells[j] = rank[j - gap], cells[j - gap]
                j -= gap
            rank[j], cells[j] = r, c
        gap //= 2


@njit(cache=True, nogil=True)
def _best_categories(
    histogram: Any, start: int, n_codes: int, step: float, total: Any, n_outputs: int,
    lam: float, least: float, best: float, members: Any,
) -> Any:  # fmt: skip
    """The best set of categories that beats `best`: its score; the set is left in `members`.

    Cells with rows, missing values among them, are ordered by G / (H + lambda) of the first output
    and cut in that order: for one output the best of all sets (Fisher 1958). Cells without rows go
    with the heavier side.
    """
    width = 2 * n_outputs
    cells, rank = np.empty(n_codes, np.int64), np.empty(n_codes)
    n = 0
    for b in range(n_codes):
        if not _is_empty(histogram, start + b):
            below = histogram[start + b, n_outputs] * step + lam
            cells[n] = b
            rank[n] = histogram[start + b, 0] * step / max(below, 1e-12)
            n += 1
    _sort(rank, cells, n)
    left, right = np.zeros(width), np.zeros(width)
    found, heavier_right = -1, False
    for i in range(n - 1):
        for w in range(width):
            left[w] += histogram[start + cells[i], w] * step
        score = _two_sides(left, total, right, n_outputs, lam, least)
        if score > best:
            best, found = score, i
            weight = 0.0
            for k in range(n_outputs, width):
                weight += right[k] - left[k]
            heavier_right = weight > 0.0
    if found >= 0:
        for b in range(n_codes):
            members[b] = heavier_right
        for i in range(n):
            members[cells[i]] = i > found
    return best


@njit(cache=True, nogil=True)
def _best_split(
    histogram: Any, starts: Any, categorical: Any, step: float, total: Any, n_outputs: int,
    lam: float, least: float, split: Any, members: Any, trial: Any,
) -> float:  # fmt: skip
    """The best split of one node into `split` and `members`: its score, -1 if none is better."""
    node = _side(total, n_outputs, lam)
    best = node * (1.0 + 1e-9) + 1e-9
    split[SPLIT_COLUMN] = -1
    for j in range(categorical.shape[0]):
        start, n_codes = starts[j], starts[j + 1] - starts[j]
        if categorical[j]:
            score = _best_categories(
                histogram, start, n_codes, step, total, n_outputs, lam, least, best, trial
            )
            if score > best:
                best = score
                split[SPLIT_COLUMN] = j
                _copy(trial, members, n_codes)
            continue
        if n_outputs == 1:
            score, code, goes_left = _best_ordered_one(
                histogram, start, n_codes - 1, step, total, lam, least, best
            )
        else:
            score, code, goes_left = _best_ordered(
                histogram, start, n_codes - 1, step, total, n_outputs, lam, least, best
            )
        if score > best:
            best = score
            split[SPLIT_COLUMN], split[SPLIT_CODE] = j, code
            split[SPLIT_MISSING_LEFT] = goes_left
    return best if split[SPLIT_COLUMN] >= 0 else -1.0


@njit(cache=True, nogil=True)
def _finish(
    histogram: Any, starts: Any, categorical: Any, split: Any, members: Any, n_outputs: int,
    sides: Any,
) -> None:  # fmt: skip
    """Which codes go right, into `members`, and the sums of both sides (side, number).

    Where no missing value decided its side, missing values go with the heavier one.
    """
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


@njit(cache=True, nogil=True)
def _fill(
    narrow: Any, wide: Any, place: Any, starts: Any, rows: Any, numbers: Any, histogram: Any
) -> None:
    """The histogram of some rows, of all columns: (bin, number)."""
    histogram[:] = 0
    width = numbers.shape[1]
    held = np.empty((BLOCK, width), np.int64)
    for begin in range(0, rows.shape[0], BLOCK):
        size = min(BLOCK, rows.shape[0] - begin)
        here = rows[begin : begin + size]
        for i in range(size):
            for w in range(width):
                held[i, w] = numbers[here[i], w]
        for j in range(place.shape[0]):
            start = np.uint64(starts[j])
            if width == 2 and place[j] >= 0:
                codes = narrow[place[j]]
                for i in range(size):
                    at = start + np.uint64(codes[np.uint64(here[i])])
                    histogram[at, 0] += held[i, 0]
                    histogram[at, 1] += held[i, 1]
                continue
            for i in range(size):
                row = np.uint64(here[i])
                code = narrow[place[j], row] if place[j] >= 0 else wide[-1 - place[j], row]
                at = start + np.uint64(code)
                for w in range(width):
                    histogram[at, w] += held[i, w]


@njit(cache=True, nogil=True)
def _part(narrow: Any, wide: Any, place: int, members: Any, rows: Any, spare: Any) -> int:
    """Rows that go left first, each side in its order; returns how many go left."""
    n_left, n_right = 0, 0
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


@njit(cache=True, nogil=True)
def _halve(
    narrow: Any, wide: Any, place: Any, starts: Any, rows: Any, n_left: int, numbers: Any,
    whole: Any, small: Any,
) -> bool:  # fmt: skip
    """The histograms of two children: the smaller one's into `small`, the other's into `whole`.

    Returns whether the smaller one is the left.
    """
    small_left = 2 * n_left <= rows.shape[0]
    part = rows[:n_left] if small_left else rows[n_left:]
    _fill(narrow, wide, place, starts, part, numbers, small)
    large, less = whole.reshape(-1), small.reshape(-1)
    for i in range(large.shape[0]):
        large[i] -= less[i]
    return bool(small_left)


@njit(cache=True, nogil=True)
def _wait(
    waiting: Any, begin: int, end: int, depth: int, histogram: int, parent: int, side: int
) -> None:
    """Note a node that is to be looked at."""
    waiting[0], waiting[1], waiting[2] = begin, end, depth
    waiting[3], waiting[4], waiting[5] = histogram, parent, side


@njit(cache=True, nogil=True)
def _most_codes(starts: Any) -> Any:
    most = 0
    for j in range(starts.shape[0] - 1):
        most = max(most, starts[j + 1] - starts[j])
    return most


@njit(cache=True, nogil=True)
def grow(
    narrow: Any, wide: Any, place: Any, starts: Any, categorical: Any, numbers: Any, bits: int,
    max_depth: int, lam: float, least: float, nodes: Any, rights: Any, sums: Any, leaf: Any,
) -> int:  # fmt: skip
    """One tree; returns how many nodes it has, numbered depth first, left before right.

    `nodes` (node, 5): column (-1 at leaves), last code that goes left, missing goes left, left,
    right. `rights` (node, code): categories that go right. `sums` (node, number). `leaf` (row,):
    the node in which each row ends. A node holds one histogram from when it is met until it is
    split or done, so there are never more than the depth and one.
    """
    n_rows, width = numbers.shape
    n_outputs, step, room = width // 2, 2.0**-bits, max_depth + 2
    histograms = np.empty((room, starts[starts.shape[0] - 1], width), np.int64)
    free, n_free = np.arange(room), room - 1
    rows, spare = np.arange(n_rows), np.empty(n_rows, np.int64)
    stack = np.empty((room, 6), np.int64)  # begin, end, depth, histogram, parent, side
    stack_sums = np.empty((room, width), np.int64)
    split, sides, total = np.zeros(3, np.int64), np.zeros((2, width), np.int64), np.empty(width)
    members = np.zeros(_most_codes(starts), np.bool_)
    trial = members.copy()
    _wait(stack[0], 0, n_rows, 0, free[n_free], -1, 0)
    for w in range(width):
        stack_sums[0, w] = 0
    for i in range(n_rows):
        for w in range(width):
            stack_sums[0, w] += numbers[i, w]
    _fill(narrow, wide, place, starts, rows, numbers, histograms[free[n_free]])
    n_nodes, height = 0, 1
    while height > 0:
        height -= 1
        begin, end, depth = stack[height, 0], stack[height, 1], stack[height, 2]
        own, parent, side = stack[height, 3], stack[height, 4], stack[height, 5]
        node, n_nodes = n_nodes, n_nodes + 1
        if parent >= 0:
            nodes[parent, 3 + side] = node
        nodes[node, 0], nodes[node, 1], nodes[node, 2] = -1, 0, 0
        nodes[node, 3], nodes[node, 4] = -1, -1
        for w in range(width):
            sums[node, w] = stack_sums[height, w]
            total[w] = stack_sums[height, w] * step
        is_split = depth < max_depth and end - begin > 1
        if is_split:
            score = _best_split(
                histograms[own], starts, categorical, step, total, n_outputs, lam, least, split,
                members, trial,
            )  # fmt: skip
            is_split = score >= 0.0
        if not is_split:
            for i in range(begin, end):
                leaf[rows[i]] = node
        else:
            _finish(histograms[own], starts, categorical, split, members, n_outputs, sides)
            _copy(split, nodes[node], 3)
            if categorical[split[0]]:
                _copy(members, rights[node], starts[split[0] + 1] - starts[split[0]])
            here = rows[begin:end]
            n_left = _part(narrow, wide, place[split[0]], members, here, spare)
            left = right = -1
            if depth + 1 < max_depth:
                n_free -= 1
                left, right, small = own, own, free[n_free]
                if _halve(
                    narrow,
                    wide,
                    place,
                    starts,
                    here,
                    n_left,
                    numbers,
                    histograms[own],
                    histograms[small],
                ):
                    left = small
                else:
                    right = small
                own = -1  # a child has it now
            _wait(stack[height], begin + n_left, end, depth + 1, right, node, 1)
            _wait(stack[height + 1], begin, begin + n_left, depth + 1, left, node, 0)
            _copy(sides[1], stack_sums[height], width)
            _copy(sides[0], stack_sums[height + 1], width)
            height += 2
        if own >= 0:
            free[n_free] = own
            n_free += 1
    return n_nodes


@njit(cache=True, nogil=True)
def best_splits(
    histograms: Any, starts: Any, categorical: Any, totals: Any, bits: int, lam: float,
    least: float, scores: Any, columns: Any, rights: Any,
) -> None:  # fmt: skip
    """The best split of every node, from its histogram (node, bin, number) and total.

    `scores` (node,): of both sides together, -1 where no split is better than none. `columns`
    (node,): the column. `rights` (node, code): which of its codes go right, missing values last.
    """
    width = totals.shape[1]
    n_outputs, step = width // 2, 2.0**-bits
    split, sides, total = np.zeros(3, np.int64), np.zeros((2, width), np.int64), np.empty(width)
    trial = np.zeros(_most_codes(starts), np.bool_)
    for node in range(totals.shape[0]):
        for w in range(width):
            total[w] = totals[node, w] * step
        scores[node] = _best_split(
            histograms[node], starts, categorical, step, total, n_outputs, lam, least, split,
            rights[node], trial,
        )  # fmt: skip
        columns[node] = split[SPLIT_COLUMN]
        if split[SPLIT_COLUMN] >= 0:
            _finish(histograms[node], starts, categorical, split, rights[node], n_outputs, sides)
