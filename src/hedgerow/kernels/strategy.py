"""A party's exact sums by bin, times strategy matrices; see `queries.strategy`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.kernels.arrays import Ints

Column = tuple[int, int, Ints | None]  # its first bin, the one behind, and its matrix


def apply_matrices(sums: Ints, columns: Sequence[Column], out: Ints) -> None:
    """Multiply the sums of every column by its strategy matrix, and write them column by column.

    `sums` is (output, bin of all columns). A column's matrix is (bin, coordinate) and square; None
    stands for the identity. `out` has (output, coordinate) of one column after another, the order
    of the query's blocks.
    """
    width = len(sums)
    for begin, end, matrix in columns:
        block, place = sums[:, begin:end], out[width * begin : width * end].reshape(width, -1)
        if matrix is None:
            place[...] = block
        else:
            # The product is linear and wraps around modulo 2**64 like the sums themselves, so the
            # products of all parties add up to the product of their total.
            np.matmul(block, matrix, out=place)
