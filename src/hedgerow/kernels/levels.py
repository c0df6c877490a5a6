"""Histograms of nodes, and which way rows go: what trees that are grown on exact numbers need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels.arrays import Bools, CodeArrays, Int32s, Ints
from hedgerow.kernels.compiling import compiled
from hedgerow.kernels.sweeps import STRETCH, stretches
from hedgerow.kernels.threads import BLOCK, over_rows

Nodes = NDArray[np.uint16]  # (row,)
Narrow = NDArray[np.uint8]  # (narrow column, row)
_NO_BASE = np.zeros(STRETCH, np.int64)  # one node: its bins begin at 0


@compiled(error_model="numpy")
def _add_rows(
    narrow: Narrow, wide: Nodes, place: Int32s, starts: Ints, rows: Ints, base: Ints,
    numbers: Ints, total: Ints,
) -> None:  # fmt: skip
    """Add the numbers of some rows to the bins of their codes in every column: (bin, number).

    `rows` names them among all codes; `base` has where the bins of a row's node begin in `total`,
    `starts` where those of a column begin in a node. It goes column by column over a block of rows.
    """
    n, width = np.uint64(rows.size), np.uint64(numbers.shape[1])
    for begin in range(np.uint64(0), n, np.uint64(BLOCK)):
        stop = min(n, begin + np.uint64(BLOCK))
        for j in range(np.uint64(place.size)):
            at, start = np.int64(place[j]), np.uint64(starts[j])
            if at >= 0 and width == 2:  # by far the most frequent, and without a loop inside
                line = np.uint64(at)
                for i in range(begin, stop):
                    code = np.uint64(narrow[line, np.uint64(rows[i])])
                    here = np.uint64(base[i]) + start + code
                    total[here, 0] += numbers[i, 0]
                    total[here, 1] += numbers[i, 1]
                continue
            for i in range(begin, stop):
                row = np.uint64(rows[i])
                if at >= 0:
                    code = np.uint64(narrow[np.uint64(at), row])
                else:
                    code = np.uint64(wide[np.uint64(-1 - at), row])
                here = np.uint64(base[i]) + start + code
                for w in range(width):
                    total[here, w] += numbers[i, w]


@compiled(error_model="numpy")
def _go_right(
    narrow: Narrow, wide: Nodes, place: Int32s, node: Nodes, columns: Ints, rights: Bools,
    first: int, stop: int, out: Narrow,
) -> None:  # fmt: skip
    """Do as `go_right` for rows first .. stop."""
    for i in range(np.uint64(first), np.uint64(stop)):
        here = np.uint64(node[i])
        column = columns[here]
        if column >= 0:
            at = np.int64(place[np.uint64(column)])
            if at >= 0:
                code = np.uint64(narrow[np.uint64(at), i])
            else:
                code = np.uint64(wide[np.uint64(-1 - at), i])
            out[i] = rights[here, code]


def histogram(codes: CodeArrays, starts: Ints, rows: Ints, numbers: Ints) -> Ints:
    """Add the numbers of some rows, all in one node, by bin of all columns: (bin, number)."""
    total = np.zeros((int(starts[-1]), numbers.shape[1]), np.int64)
    for begin, size in stretches(0, len(rows)):
        some = rows[begin : begin + size]
        # Rows of a node lie anywhere: their numbers are fetched once, and not for every column.
        _add_rows(*codes, starts, some, _NO_BASE, numbers.take(some, axis=0), total)
    return total


def level_histograms(
    codes: CodeArrays, starts: Ints, node: Nodes, slot: Ints, numbers: Ints, n_slots: int
) -> Ints:
    """Add rows' numbers by slot of their node and bin of all columns: (slot, bin, number).

    `node` (row,): the node of each row; `slot` (node,): where its sums go, -1 for nowhere. `starts`
    (column + 1,): where the bins of each column begin. `numbers` are (row, number).
    """
    n_bins, width = int(starts[-1]), numbers.shape[1]

    def work(first: int, stop: int) -> Ints:
        total = np.zeros((n_slots * n_bins, width), np.int64)
        for begin, size in stretches(first, stop):
            slots = slot.take(node[begin : begin + size])
            # The larger child's sums follow from its parent's: its rows have no slot.
            chosen = np.flatnonzero(slots >= 0)
            rows = begin + chosen
            _add_rows(
                *codes, starts, rows, slots.take(chosen) * n_bins, numbers.take(rows, axis=0), total
            )
        return total

    parts = over_rows(work, len(node))
    return np.asarray(sum(parts[1:], parts[0])).reshape(n_slots, n_bins, width)


def go_right(codes: CodeArrays, node: Nodes, columns: Ints, rights: Bools, out: Narrow) -> None:
    """Write 1 for rows that go right at their node, else 0; rows of other nodes are left alone.

    `columns` (node,): the column of the split, -1 where a node is not split here. `rights` (node,
    code): which codes go right.
    """

    def work(first: int, stop: int) -> None:
        _go_right(*codes, node, columns, rights, first, stop, out)

    over_rows(work, len(node))
