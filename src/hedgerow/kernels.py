"""Compiled loops over column-major codes: route rows, add integer gradients, update scores.

Rows are cut into blocks; a block is handled by one thread with its own accumulator, and integer
addition does not care about order, so results are equal on any number of threads.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import get_num_threads, njit, prange, set_num_threads
from numpy.typing import NDArray

BLOCK = 4096
PARTS = 8  # accumulators, always as many: memory may not depend on the number of rows
ALL_THREADS = get_num_threads()
LOGISTIC, SOFTMAX, SQUARED = 0, 1, 2
NEWTON, GRADIENT, AVERAGING, SLOPE, COUNT = 0, 1, 2, 3, 4
NO_CLIP = 1 << 62
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def use_threads_for(n_rows: int) -> None:
    """All cores for large tables, one for small ones, where waking threads costs more."""
    set_num_threads(1 if n_rows < 16 * BLOCK else ALL_THREADS)


@njit(cache=True, nogil=True, inline="always")
def _code(narrow: Any, wide: Any, place: int, row: int) -> Any:
    return narrow[place, row] if place >= 0 else wide[-1 - place, row]


@njit(cache=True, nogil=True)
def _leaf(
    narrow: Any, wide: Any, root: int, place: Any, child: Any, start: Any, words: Any, row: int
) -> int:
    """The leaf of one row: a set bit of the node's code set sends the row right."""
    node = root
    while child[node, 0] >= 0:
        code = np.int64(_code(narrow, wide, place[node], row))
        word = words[start[node] + (code >> 6)]
        node = child[node, (word >> np.uint64(code & 63)) & np.uint64(1)]
    return node


@njit(cache=True, nogil=True, inline="always")
def _fixed(value: float, one: float) -> Any:
    """Truncate toward zero onto the grid; NaN becomes 0, so no row can exceed its bound."""
    if value != value:
        return 0
    return np.int64(value * one)


@njit(cache=True, nogil=True)
def _logistic(score: float, target: float, bits: int, out: Any) -> None:
    """g and h of one row on the grid 2**-bits.

    q = |p - y| is truncated, then h = q (1 - q) is computed in integers from that q and floored,
    so the pair is a point on or below the curve (q, q - q^2) for a q that is on the grid.
    """
    sign = 1.0 if target > 0.5 else -1.0
    # q = sigmoid(-score) for y = 1 and sigmoid(score) for y = 0; no overflow on either side.
    margin = sign * score
    if margin >= 0:
        tail = math.exp(-margin)
        q = tail / (1.0 + tail)
    else:
        q = 1.0 / (1.0 + math.exp(margin))
    one: Any = np.int64(1) << bits
    steps: Any = min(max(_fixed(q, float(one)), np.int64(0)), one)
    out[0] = -steps if target > 0.5 else steps
    out[1] = (steps * (one - steps)) >> bits


@njit(cache=True, nogil=True)
def _softmax(scores: Any, target: float, bits: int, out: Any) -> None:
    """g and h of every class: out[k] and out[K + k].

    Everything after exp is integer: weights of 31 bits, their exact sum, floored quotients. So the
    probabilities of the other classes add up to at most 1 on the grid, |g| of the row's own class
    is exactly their sum, and the order of the classes does not matter. Scores that are no finite
    numbers weigh nothing; where no class weighs anything the row adds nothing.
    """
    n = scores.shape[0]
    top = -math.inf
    for k in range(n):
        if scores[k] > top:
            top = scores[k]
    total: Any = np.int64(0)
    for k in range(n):
        out[k] = _fixed(math.exp(scores[k] - top), 2147483647.0)
        out[n + k] = 0
        total += out[k]
    if total == 0:
        return
    own = np.int64(target)
    one: Any = np.int64(1) << bits
    rest: Any = np.int64(0)
    for k in range(n):
        if k != own:
            out[k] = (out[k] << bits) // total
            rest += out[k]
            out[n + k] = (out[k] * (one - out[k])) >> bits
    out[own] = -rest
    out[n + own] = (rest * (one - rest)) >> bits


@njit(cache=True, nogil=True)
def _squared(score: float, target: float, bits: int, out: Any) -> None:
    """g = score - target, both between 0 and 1, and the row itself as h = 1."""
    one: Any = np.int64(1) << bits
    clipped = min(max(score, 0.0), 1.0) if score == score else 0.5
    out[0] = _fixed(clipped - target, float(one))
    out[1] = one


@njit(cache=True, nogil=True)
def _row(
    loss: int, update: int, clip: int, scores: Any, target: float, bits: int, out: Any
) -> None:
    """What one row adds to its leaf: see `hedgerow.losses` for the widths and bounds.

    Gradients are clamped to +-clip steps of the grid, Hessians are those of the row itself.
    """
    one: Any = np.int64(1) << bits
    if update == COUNT:
        out[0] = one
    elif update == AVERAGING:
        if loss == SQUARED:
            out[0] = _fixed(min(max(target, 0.0), 1.0), float(one))
            out[1] = one
        else:
            for k in range(out.shape[0]):
                out[k] = 0
            out[np.int64(target)] = one
    elif loss == LOGISTIC:
        _logistic(scores[0], target, bits, out)
        if update == GRADIENT:
            out[1] = one
    elif loss == SOFTMAX:
        _softmax(scores, target, bits, out)
        if update == GRADIENT:
            out[scores.shape[0]] = one
    else:
        _squared(scores[0], target, bits, out)
    if update != COUNT and update != AVERAGING:
        most: Any = max(np.int64(clip), np.int64(0))  # a clip that wrapped lets nothing through
        for k in range(scores.shape[0]):
            out[k] = min(max(out[k], -most), most)


@njit(cache=True, nogil=True, parallel=True)
def leaf_sums(
    narrow: Any,
    wide: Any,
    scores: Floats,
    target: Floats,
    bits: int,
    loss: int,
    update: int,
    clip: int,
    width: int,
    roots: Any,
    place: Any,
    child: Any,
    start: Any,
    words: Any,
    leaf: Any,
    n_leaves: int,
) -> Ints:
    """Integer sums of every row's numbers in every leaf of every tree: (number, leaf)."""
    n_rows, n_outputs = scores.shape
    n_blocks = (n_rows + BLOCK - 1) // BLOCK
    n_parts = PARTS
    parts = np.zeros((n_parts, width, n_leaves), np.int64)
    for part in prange(n_parts):
        rows = np.empty((BLOCK, max(width, 2 * n_outputs)), np.int64)
        for block in range(part, n_blocks, n_parts):
            first = block * BLOCK
            size = min(BLOCK, n_rows - first)
            for i in range(size):
                out = rows[i, :width] if update == AVERAGING else rows[i]
                _row(loss, update, clip, scores[first + i], target[first + i], bits, out)
            for root in roots:
                for i in range(size):
                    node = _leaf(narrow, wide, root, place, child, start, words, first + i)
                    for w in range(width):
                        parts[part, w, leaf[node]] += rows[i, w]
    total = np.zeros((width, n_leaves), np.int64)
    for part in range(n_parts):
        total += parts[part]
    return total


@njit(cache=True, nogil=True, parallel=True)
def node_histograms(
    narrow: Any,
    wide: Any,
    scores: Floats,
    target: Floats,
    bits: int,
    loss: int,
    update: int,
    clip: int,
    width: int,
    place: Any,
    child: Any,
    start: Any,
    words: Any,
    leaf: Any,
    n_leaves: int,
    columns: Any,
    bins: Any,
    n_bins: int,
) -> Ints:
    """Sums of every row's numbers by leaf of one tree and bin of every column: (number, leaf, bin).

    `columns` are places of the columns in the codes, `bins` maps (column, code) to its bin.
    """
    n_rows, n_outputs = scores.shape
    n_blocks = (n_rows + BLOCK - 1) // BLOCK
    n_parts = PARTS
    parts = np.zeros((n_parts, width, n_leaves, n_bins), np.int64)
    for part in prange(n_parts):
        out = np.empty(max(width, 2 * n_outputs), np.int64)
        for block in range(part, n_blocks, n_parts):
            for row in range(block * BLOCK, min(n_rows, (block + 1) * BLOCK)):
                vector = out[:width] if update == AVERAGING else out
                _row(loss, update, clip, scores[row], target[row], bits, vector)
                node = leaf[_leaf(narrow, wide, 0, place, child, start, words, row)]
                for j in range(columns.shape[0]):
                    here = bins[j, _code(narrow, wide, columns[j], row)]
                    for w in range(width):
                        parts[part, w, node, here] += out[w]
    total = np.zeros((width, n_leaves, n_bins), np.int64)
    for part in range(n_parts):
        total += parts[part]
    return total


@njit(cache=True, nogil=True, parallel=True)
def column_sums(
    narrow: Any,
    wide: Any,
    scores: Floats,
    target: Floats,
    bits: int,
    loss: int,
    update: int,
    clip: int,
    width: int,
    columns: Any,
    bins: Any,
    n_bins: int,
) -> Ints:
    """Sums of every row's numbers by bin of every column: (number, bin of all columns).

    Column by column over a block of rows, so that codes are read in the order they lie in.
    """
    n_rows, n_outputs = scores.shape
    n_blocks = (n_rows + BLOCK - 1) // BLOCK
    n_parts = PARTS
    parts = np.zeros((n_parts, n_bins, width), np.int64)
    for part in prange(n_parts):
        rows = np.empty((BLOCK, max(width, 2 * n_outputs)), np.int64)
        for block in range(part, n_blocks, n_parts):
            first = block * BLOCK
            size = min(BLOCK, n_rows - first)
            for i in range(size):
                out = rows[i, :width] if update == AVERAGING else rows[i]
                _row(loss, update, clip, scores[first + i], target[first + i], bits, out)
            for j in range(columns.shape[0]):
                for i in range(size):
                    here = bins[j, _code(narrow, wide, columns[j], first + i)]
                    for w in range(width):
                        parts[part, here, w] += rows[i, w]
    total = np.zeros((width, n_bins), np.int64)
    for part in range(n_parts):
        total += parts[part].T
    return total


@njit(cache=True, nogil=True)
def step_sums(
    scores: Floats, step: Floats, target: Floats, bits: int, loss: int, update: int, clip: int
) -> Ints:
    """Sums of g u and h u^2 over the rows of a loss with one output, u = step clamped to +-1: (2,).

    u is truncated toward zero onto a grid of 2**-20 and so are the products, on the grid 2**-bits:
    no row's product exceeds its own g or h. A step that is no number counts as 0.
    """
    total = np.zeros(2, np.int64)
    out = np.empty(2, np.int64)
    for row in range(scores.shape[0]):
        _row(loss, update, clip, scores[row], target[row], bits, out)
        u: Any = _fixed(min(max(step[row], -1.0), 1.0), 1048576.0)
        size: Any = (abs(out[0]) * abs(u)) >> 20
        total[0] += size if (out[0] < 0) == (u < 0) else -size
        total[1] += (out[1] * ((u * u) >> 20)) >> 20
    return total


@njit(cache=True, nogil=True, parallel=True)
def row_hessians(scores: Floats, target: Floats, bits: int, loss: int) -> Ints:
    """The Hessians of every row, summed over outputs: (row,)."""
    n_rows, n_outputs = scores.shape
    hessians = np.zeros(n_rows, np.int64)
    for block in prange((n_rows + BLOCK - 1) // BLOCK):
        out = np.empty(2 * n_outputs, np.int64)
        for row in range(block * BLOCK, min(n_rows, (block + 1) * BLOCK)):
            _row(loss, NEWTON, NO_CLIP, scores[row], target[row], bits, out)
            for k in range(n_outputs):
                hessians[row] += out[n_outputs + k]
    return hessians


@njit(cache=True, nogil=True, parallel=True)
def bin_sums(codes: Any, bins: Any, n_bins: int, values: Ints) -> Ints:
    """Values of the rows of one column by bin: (bin,). `bins` maps a code to its bin."""
    n_rows = codes.shape[0]
    n_blocks = (n_rows + BLOCK - 1) // BLOCK
    n_parts = PARTS
    parts = np.zeros((n_parts, n_bins), np.int64)
    for part in prange(n_parts):
        for block in range(part, n_blocks, n_parts):
            for row in range(block * BLOCK, min(n_rows, (block + 1) * BLOCK)):
                parts[part, bins[codes[row]]] += values[row]
    total = np.zeros(n_bins, np.int64)
    for part in range(n_parts):
        total += parts[part]
    return total


@njit(cache=True, nogil=True, parallel=True)
def add_scores(
    narrow: Any,
    wide: Any,
    scores: Floats,
    roots: Any,
    place: Any,
    child: Any,
    start: Any,
    words: Any,
    leaf: Any,
    values: Any,
) -> None:
    """Add each tree's leaf value to the running scores, in tree order, in float64."""
    n_rows, n_outputs = scores.shape
    n_blocks = (n_rows + BLOCK - 1) // BLOCK
    for block in prange(n_blocks):
        for root in roots:
            for row in range(block * BLOCK, min(n_rows, (block + 1) * BLOCK)):
                node = _leaf(narrow, wide, root, place, child, start, words, row)
                for k in range(n_outputs):
                    scores[row, k] += np.float64(values[leaf[node], k])


@njit(cache=True, nogil=True, parallel=True)
def cell_counts(codes: Any, group: Any, n_groups: int, n_codes: int) -> Ints:
    """Rows of one column by group and code: (group, code)."""
    n_rows = codes.shape[0]
    n_blocks = (n_rows + BLOCK - 1) // BLOCK
    n_parts = PARTS
    parts = np.zeros((n_parts, n_groups, n_codes), np.int64)
    for part in prange(n_parts):
        for block in range(part, n_blocks, n_parts):
            for row in range(block * BLOCK, min(n_rows, (block + 1) * BLOCK)):
                parts[part, group[row], codes[row]] += 1
    total = np.zeros((n_groups, n_codes), np.int64)
    for part in range(n_parts):
        total += parts[part]
    return total
