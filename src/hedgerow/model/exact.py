"""What every exact grower shares: gradients of rows on an integer grid, and steps from their sums.

Numbers of rows are whole multiples of 2**-BITS, so sums depend on no order and on no split of the
rows or columns over parties.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.binning import ColumnGrid
from hedgerow.model.losses import Loss
from hedgerow.model.tree import member_words

BITS = 24  # sums of 2**39 rows still fit into int64
Ints = NDArray[np.int64]


def gradients(loss: Loss, scores: NDArray[np.float64], target: NDArray[np.float64]) -> Ints:
    """Gradients, then Hessians, of every row and output on the grid 2**-BITS: (row, number)."""
    return kernels.row_statistics(loss.code, scores, target, BITS)


def leaf_values(sums: Ints, learning_rate: float, reg_lambda: float) -> NDArray[np.float32]:
    """Steps (leaf, output) from sums (leaf, number) on the grid: -G / (H + lambda), shrunk."""
    totals, n_outputs = sums * 2.0**-BITS, sums.shape[1] // 2
    first, below = totals[:, :n_outputs], totals[:, n_outputs:] + reg_lambda
    steps = np.divide(-first, below, out=np.zeros_like(first), where=below > 0)
    return np.asarray(learning_rate * steps, np.float32)


def member_bits(grid: ColumnGrid, right: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """The bits of a category split: which of the column's cells go right."""
    chosen = np.zeros(member_words(grid.column) * 64, np.bool_)
    chosen[: grid.n_cells] = right[: grid.n_cells]
    return np.packbits(chosen, bitorder="little").view("<u8").astype(np.uint64)
