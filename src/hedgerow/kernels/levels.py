"""Compiled loops of growing by level: histograms of many nodes at once, and which way rows go."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hedgerow.kernels.threads import BLOCK


@njit(cache=True, nogil=True)
def level_sums(
    narrow: Any, wide: Any, place: Any, starts: Any, node: Any, slot: Any, numbers: Any,
    n_slots: int, first: int, stop: int,
) -> Any:  # fmt: skip
    """Sums of rows' numbers by slot of their node and bin of every column: (slot and bin, number).

    `node` (row,): the node of each row; `slot` (node,): where its sums go, -1 for nowhere.
    """
    width, n_bins = numbers.shape[1], starts[starts.shape[0] - 1]
    total = np.zeros((n_slots * n_bins, width), np.int64)
    rows, base = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    held = np.empty((BLOCK, width), np.int64)
    for begin in range(first, stop, BLOCK):
        size = 0
        for i in range(begin, min(stop, begin + BLOCK)):
            at = slot[node[i]]
            if at >= 0:
                rows[size], base[size] = i, at * n_bins
                for w in range(width):
                    held[size, w] = numbers[i, w]
                size += 1
        for j in range(place.shape[0]):
            start = starts[j]
            if width == 2 and place[j] >= 0:
                codes = narrow[place[j]]
                for i in range(size):
                    at = np.uint64(base[i] + start + codes[np.uint64(rows[i])])
                    total[at, 0] += held[i, 0]
                    total[at, 1] += held[i, 1]
                continue
            for i in range(size):
                row = np.uint64(rows[i])
                code = narrow[place[j], row] if place[j] >= 0 else wide[-1 - place[j], row]
                at = np.uint64(base[i] + start + code)
                for w in range(width):
                    total[at, w] += held[i, w]
    return total


@njit(cache=True, nogil=True)
def go_right(
    narrow: Any, wide: Any, place: Any, node: Any, columns: Any, rights: Any, first: int,
    stop: int, out: Any,
) -> None:  # fmt: skip
    """Whether each row goes right at its node: 1 or 0; rows of nodes without a column are left.

    `columns` (node,): -1 where a node is not split here.
    """
    for i in range(first, stop):
        j = columns[node[i]]
        if j >= 0:
            p = place[j]
            code = np.int64(narrow[p, i]) if p >= 0 else np.int64(wide[-1 - p, i])
            out[i] = rights[node[i], code]
