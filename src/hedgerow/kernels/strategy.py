"""Compiled: a party's exact sums by bin, times strategy matrices; see `queries.strategy`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels.arrays import Ints
from hedgerow.kernels.compiling import compiled


@compiled()
def apply_matrices(
    sums: Ints, starts: Ints, entries: NDArray[np.int8], begins: Ints, out: Ints
) -> None:
    """Multiply the sums of every column by its strategy matrix, and write them column by column.

    `sums` is (output, bin of all columns). Column j has the bins from starts[j] to starts[j + 1],
    n of them, and its matrix, (coordinate, bin) and thus n by n, begins at begins[j] of `entries`;
    a negative begin stands for the identity. `out` has (output, coordinate) of one column after
    another, the order of the query's blocks.
    """
    place = 0
    for j in range(len(begins)):
        first, n = starts[j], starts[j + 1] - starts[j]
        for output in range(len(sums)):
            for i in range(n):
                if begins[j] < 0:
                    out[place] = sums[output, first + i]
                else:
                    # The product is linear and wraps around modulo 2**64 like the sums themselves,
                    # so the products of all parties add up to the product of their total.
                    product, at = np.int64(0), begins[j] + i * n
                    for k in range(n):
                        product += np.int64(entries[at + k]) * sums[output, first + k]
                    out[place] = product
                place += 1
