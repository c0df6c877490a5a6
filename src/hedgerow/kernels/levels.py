"""Compiled loops of growing by level: histograms of many nodes at once, and which way rows go."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels.arrays import Bools, CodeArrays, Ints
from hedgerow.kernels.compiling import compiled
from hedgerow.kernels.threads import BLOCK

Nodes = NDArray[np.uint16]  # (row,)


@compiled()
def level_sums(
    codes: CodeArrays, starts: Ints, node: Nodes, slot: Ints, gradients: Ints, n_slots: int,
    first: int, stop: int,
) -> Ints:  # fmt: skip
    """Add rows' statistics by slot of their node and bin: (slot and bin of all columns, statistic).

    `node` (row,): the node of each row; `slot` (node,): where its sums go, -1 for nowhere. `starts`
    (column + 1,): where the bins of each column begin. `gradients` are (row, statistic).
    """
    narrow, wide, place = codes.narrow, codes.wide, codes.place
    width, n_bins = gradients.shape[1], starts[starts.shape[0] - 1]
    total = np.zeros((n_slots * n_bins, width), np.int64)
    # Rows that count, and their statistics, are put together once and not for every column.
    rows, base = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    fetched = np.empty((BLOCK, width), np.int64)
    for begin in range(first, stop, BLOCK):
        size = 0
        for i in range(begin, min(stop, begin + BLOCK)):
            at = slot[node[i]]
            if at >= 0:  # the larger child's sums follow from its parent's: its rows have no slot
                rows[size], base[size] = i, at * n_bins
                for w in range(width):
                    fetched[size, w] = gradients[i, w]
                size += 1
        for j in range(place.shape[0]):
            start = starts[j]
            if width == 2 and place[j] >= 0:  # by far the most frequent, and without a loop inside
                line = narrow[place[j]]
                for i in range(size):
                    at = np.uint64(base[i] + start + line[np.uint64(rows[i])])
                    total[at, 0] += fetched[i, 0]
                    total[at, 1] += fetched[i, 1]
                continue
            for i in range(size):
                row = np.uint64(rows[i])
                code = narrow[place[j], row] if place[j] >= 0 else wide[-1 - place[j], row]
                at = np.uint64(base[i] + start + code)
                for w in range(width):
                    total[at, w] += fetched[i, w]
    return total


@compiled()
def go_right(
    codes: CodeArrays, node: Nodes, columns: Ints, rights: Bools, first: int, stop: int,
    out: NDArray[np.uint8],
) -> None:  # fmt: skip
    """Write 1 for rows that go right at their node, else 0; rows of other nodes are left alone.

    `columns` (node,): the column of the split, -1 where a node is not split here. `rights` (node,
    code): which codes go right.
    """
    narrow, wide, place = codes.narrow, codes.wide, codes.place
    for i in range(first, stop):
        j = columns[node[i]]
        if j >= 0:
            p = place[j]
            code = np.int64(narrow[p, i]) if p >= 0 else np.int64(wide[-1 - p, i])
            out[i] = rights[node[i], code]
