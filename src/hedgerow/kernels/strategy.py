"""A party's exact sums by bin, times strategy matrices; see `queries.strategy`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels.arrays import Ints


def apply_matrices(
    sums: Ints, starts: Ints, entries: NDArray[np.int8], begins: Ints, out: Ints
) -> None:
    """Multiply the sums of every column by its strategy matrix, and write them column by column.

    `sums` is (output, bin of all columns). Column j has the bins from starts[j] to starts[j + 1],
    n of them, and its matrix, (coordinate, bin) and thus n by n, begins at begins[j] of `entries`;
    a negative begin stands for the identity. `out` has (output, coordinate) of one column after
    another, the order of the query's blocks.
    """
    whole, first = entries.astype(np.int64), starts.tolist()
    for j, begin in enumerate(begins.tolist()):
        n, block = first[j + 1] - first[j], sums[:, first[j] : first[j + 1]]
        if begin >= 0:
            # The product is linear and wraps around modulo 2**64 like the sums themselves, so the
            # products of all parties add up to the product of their total.
            block = block @ whole[begin : begin + n * n].reshape(n, n).T
        out[len(sums) * first[j] : len(sums) * first[j + 1]] = block.ravel()
