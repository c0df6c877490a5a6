"""Compiled loops over single columns: values to codes, and codes to the rows of several sets.

All of it lives in this one file, because Numba's cache on disk notices changes of a function's own
file only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels.arrays import Int32s, Ints
from hedgerow.kernels.compiling import compiled

Codes = NDArray[np.integer]  # of any width: uint8 or uint16


@compiled(allocates=True)
def spread(codes: Codes, of: Codes, begin: Ints, out: Codes) -> None:
    """Write every row's code to where the codes of its set begin, one after another.

    Rows are read in their order, and there are as many places to write to as sets.
    """
    at = begin.copy()
    for i in range(codes.size):
        set_of = np.uint64(of[i])
        place = at[set_of]
        out[np.uint64(place)] = codes[i]
        at[set_of] = place + 1


@compiled()
def take_above(
    values: NDArray[np.number], lowest: int, table: NDArray[np.generic], first: int, stop: int,
    out: NDArray[np.generic],
) -> None:  # fmt: skip
    """Write what the table has at each whole number less the lowest; none lies outside of it."""
    for i in range(first, stop):
        out[i] = table[np.uint64(np.int64(values[i]) - lowest)]


@compiled()
def encode(
    values: NDArray[np.float32], edges: NDArray[np.float32], lead: Int32s, scale: float,
    missing: int, out: Codes,
) -> None:  # fmt: skip
    """Count the edges <= x for every value; NaN becomes `missing`.

    `lead` has, for equal stretches between the first and the last edge, how many edges lie at or
    below their beginning: a guess that is at most a few edges off outside of crowded stretches.
    Whatever the guess, the steps after it end at the right count.
    """
    n, last = edges.shape[0], lead.shape[0] - 2
    for i in range(values.shape[0]):
        x = values[i]
        if x != x:
            out[i] = missing
        elif n == 0 or x < edges[0]:
            out[i] = 0
        elif x >= edges[n - 1]:
            out[i] = n
        else:
            # A difference of two float32 may overflow; that of the same two float64 does not.
            stretch = np.int64((np.float64(x) - np.float64(edges[0])) * scale)
            stretch = stretch if stretch < last else last
            low, high = np.int64(lead[stretch]), np.int64(lead[stretch + 1])
            while high - low > 4:
                middle = (low + high) >> 1
                if edges[middle] <= x:
                    low = middle + 1
                else:
                    high = middle
            while low > 0 and x < edges[low - 1]:
                low -= 1
            while low < n and edges[low] <= x:
                low += 1
            out[i] = low
