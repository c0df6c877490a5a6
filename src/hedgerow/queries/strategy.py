"""Strategy matrices: integer matrices by which a column's sums by bin are multiplied before noise.

This is the matrix mechanism (Li et al. 2010). Independent noise on the products is not the same
for every pattern over the bins: a pattern to which the matrix gives a large product is measured
well, one to which it gives a small product is left to the noise. Choosing a good matrix is the
grower's part (`methods.auto.strategies`); this module says what a matrix is, what it costs, and
how it is sent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError

StrategyMatrix = NDArray[np.int8]  # (coordinate, bin), square
LARGEST_ENTRY = 127  # of a matrix, either sign
PLAIN = -1  # in place of a matrix's index: the column's sums are asked as they are
WIDEST = 48  # bins of a column that may have a matrix
MOST = 32  # matrices of one query: columns with as many bins can share one

# The names of the arrays in a sent query. They are older than the words above, and part of the
# format: a request is hashed and signed with them.
_ENTRIES = "mixes"
_MATRIX_OF = "mixed"


def largest_norms(matrix: StrategyMatrix) -> tuple[float, float]:
    """The largest l1 and the largest l2 norm of the matrix's columns, one column for each bin."""
    absolute = np.abs(matrix.astype(np.int64))
    return float(absolute.sum(axis=0).max()), math.sqrt(int((absolute**2).sum(axis=0).max()))


def check_matrices(
    matrices: Sequence[StrategyMatrix], matrix_of: Sequence[int], n_bins: Sequence[int]
) -> None:
    """Raise FormatError unless every column is plain, or has a matrix of its size and not zero."""
    if len(matrix_of) != len(n_bins) or set(matrix_of) - {PLAIN} != set(range(len(matrices))):
        raise FormatError("column sums do not say which column has which strategy matrix")
    if len(matrices) > MOST or max((len(matrix) for matrix in matrices), default=0) > WIDEST:
        raise FormatError(
            "column sums have more strategy matrices, or larger ones, than a query may have"
        )
    for n, m in zip(n_bins, matrix_of, strict=True):
        if m != PLAIN and matrices[m].shape != (n, n):
            raise FormatError(
                "column sums have a strategy matrix of another size than the column's bins"
            )
    for matrix in matrices:
        if matrix.dtype != np.int8 or not matrix.any() or matrix.min() < -LARGEST_ENTRY:
            raise FormatError("column sums have a strategy matrix of zeros, or of too large values")


def flat_entries(matrices: Sequence[StrategyMatrix]) -> NDArray[np.int8]:
    """The entries of all matrices, one matrix after another."""
    flat = [matrix.ravel() for matrix in matrices]
    return np.concatenate(flat) if flat else np.zeros(0, np.int8)


def pack_matrices(
    matrices: Sequence[StrategyMatrix], matrix_of: Sequence[int]
) -> dict[str, NDArray[Any]]:
    """Matrices as arrays of a message; `unpack_matrices` reads them back."""
    return {_MATRIX_OF: np.array(matrix_of, np.int32), _ENTRIES: flat_entries(matrices)}


def unpack_matrices(
    arrays: dict[str, NDArray[Any]], n_bins: Sequence[int]
) -> tuple[tuple[StrategyMatrix, ...], tuple[int, ...]]:
    """The matrices, and which column has which; a matrix is as large as its columns have bins."""
    flat, matrix_of = arrays[_ENTRIES], tuple(int(m) for m in arrays[_MATRIX_OF])
    wrong = FormatError("column sums do not have strategy matrices of the sizes they state")
    if len(matrix_of) != len(n_bins) or flat.ndim != 1 or flat.dtype != np.int8:
        raise wrong
    sizes = {m: n for m, n in zip(matrix_of, n_bins, strict=True) if m != PLAIN}
    if sorted(sizes) != list(range(len(sizes))) or any(n < 1 for n in sizes.values()):
        raise wrong
    ends = np.cumsum([0, *(sizes[m] ** 2 for m in range(len(sizes)))])
    if int(ends[-1]) != len(flat):
        raise wrong
    parts = [flat[a:b] for a, b in pairwise(ends)]
    return tuple(p.reshape(sizes[m], -1) for m, p in enumerate(parts)), matrix_of
