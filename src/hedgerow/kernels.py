"""Compiled loops over column-major codes: route rows, add integer gradients, update scores.

Rows are cut into blocks; a block is handled by one thread with its own accumulator, and integer
addition does not care about order, so results are equal on any number of threads.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

BLOCK = 4096
LOGISTIC = 0
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


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
def _logistic(score: float, target: float, bits: int) -> Any:
    """(g, h) of one row on the grid 2**-bits.

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
    g = -steps if target > 0.5 else steps
    return g, (steps * (one - steps)) >> bits


@njit(cache=True, nogil=True, parallel=True)
def leaf_sums(
    narrow: Any,
    wide: Any,
    scores: Floats,
    target: Floats,
    bits: int,
    loss: int,
    roots: Any,
    place: Any,
    child: Any,
    start: Any,
    words: Any,
    leaf: Any,
    n_leaves: int,
) -> Ints:
    """Integer sums of (g, h) in every leaf of every tree of a batch: (g|h, leaf, output)."""
    n_rows, n_outputs = scores.shape
    n_blocks = (n_rows + BLOCK - 1) // BLOCK
    n_parts = min(n_blocks, 64)
    parts = np.zeros((n_parts, 2, n_leaves, n_outputs), np.int64)
    for part in prange(n_parts):
        gradients = np.empty((BLOCK, 2, n_outputs), np.int64)
        for block in range(part, n_blocks, n_parts):
            first = block * BLOCK
            size = min(BLOCK, n_rows - first)
            for i in range(size):
                row = first + i
                if loss == LOGISTIC:
                    g, h = _logistic(scores[row, 0], target[row], bits)
                    gradients[i, 0, 0] = g
                    gradients[i, 1, 0] = h
            for root in roots:
                for i in range(size):
                    node = _leaf(narrow, wide, root, place, child, start, words, first + i)
                    for k in range(n_outputs):
                        parts[part, 0, leaf[node], k] += gradients[i, 0, k]
                        parts[part, 1, leaf[node], k] += gradients[i, 1, k]
    total = np.zeros((2, n_leaves, n_outputs), np.int64)
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
    n_parts = min(n_blocks, 16)
    parts = np.zeros((n_parts, n_groups, n_codes), np.int64)
    for part in prange(n_parts):
        for block in range(part, n_blocks, n_parts):
            for row in range(block * BLOCK, min(n_rows, (block + 1) * BLOCK)):
                parts[part, group[row], codes[row]] += 1
    total = np.zeros((n_groups, n_codes), np.int64)
    for part in range(n_parts):
        total += parts[part]
    return total
