"""Compiled: a party's exact sums by bin, times the mixes of a question; see `queries.mixes`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels.arrays import Ints
from hedgerow.kernels.compiling import compiled


@compiled()
def mix(sums: Ints, starts: Ints, mixes: NDArray[np.int8], begins: Ints, out: Ints) -> None:
    """Write sums (number, bin of all columns), column by column, each times its mix.

    Column j has the bins from starts[j] to starts[j + 1], and its mix, (number, bin), begins at
    begins[j] of `mixes`; a negative one leaves it as it is. Whole numbers wrap around, as all sums
    do. `out` has the numbers of a column one after another: (number, bin) each.
    """
    place = 0
    for j in range(len(begins)):
        first, n = starts[j], starts[j + 1] - starts[j]
        for row in range(len(sums)):
            for i in range(n):
                if begins[j] < 0:
                    out[place] = sums[row, first + i]
                else:
                    whole, at = np.int64(0), begins[j] + i * n
                    for k in range(n):
                        whole += np.int64(mixes[at + k]) * sums[row, first + k]
                    out[place] = whole
                place += 1
