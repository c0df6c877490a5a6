"""What null-space vectors show by themselves: attacks on U with U'X = 0, before any answer.

Whoever gets U knows that the columns of X lie in the space beside it, and the more vectors it gets
the smaller that space is. So SMM-1 would have to send few vectors to hide labels and many to hide
splits (`fedxgboost_matrices.py`).

- Labels (SMM-1, a passive party attacks). Gradients of a first logistic tree take two values. Every
  level of the tree sends vectors about the same gradients, in other blocks of rows. Once there are
  more vectors than rows, nothing is beside all of them but the gradients and the constant.
- Splits (SMM-2, the active party attacks). The rows of one bin, as a vector of zeros and ones, are
  a difference of two splits, hence beside U; and it has few ones. Of all vectors beside U with
  entries in [0, 1] and a 1 for some row, the one with the least sum is found by a linear program.
  Columns of random bits or normal values that hide the splits have no such vectors: no help.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.audit.fedxgboost_matrices import NOTHING_LEFT, Recovered, null_vectors
from hedgerow.data.rng import Generator

TRIES = 10
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]


def beside(vectors: Floats) -> Floats:
    """An orthonormal basis of all that is orthogonal to these columns: (row, dimension)."""
    left, size, _ = np.linalg.svd(vectors, full_matrices=True)
    rank = int((size > NOTHING_LEFT * max(1.0, float(size.max(initial=0.0)))).sum())
    return np.asarray(left[:, rank:])


def labels_from_kernel(
    labels: Bits, share: float, rng: Generator, n_levels: int = 2, block_rows: int = 256
) -> Recovered:
    """SMM-1 in a first logistic tree, attacked by a passive party from vectors of all levels.

    At every level the rows are dealt into blocks of about `block_rows`, and `share` of a block's
    rows are vectors for it. Which value is which label is told by the share of ones.
    """
    p, n_rows = float(labels.mean()), len(labels)
    numbers = np.column_stack([p - labels, np.full(n_rows, p * (1 - p))])
    sent = []
    for _ in range(n_levels):
        for rows in np.array_split(rng.permutation(n_rows), max(1, n_rows // block_rows)):
            count = max(1, min(round(share * len(rows)), len(rows) - 2))
            whole = np.zeros((n_rows, count))
            whole[rows] = null_vectors(numbers[rows], count, rng)
            sent.append(whole)
    guess = two_values(beside(np.concatenate(sent, axis=1)))
    right = float((guess == labels).mean())
    # The two values are told apart by how often each comes: the attacker knows the share of ones.
    if abs(float((~guess).mean()) - p) < abs(float(guess.mean()) - p):
        right = 1 - right
    return Recovered(right, right, max(p, 1 - p))


def two_values(space: Floats) -> Bits:
    """Which of two values a row has, for the vector of a space that varies over rows most evenly.

    In a space of the constant and one vector of two values, that vector but for its scale. In a
    larger one the guess is the side of a vector as good as any.
    """
    varying = space - space.mean(axis=0)
    left, _, _ = np.linalg.svd(varying, full_matrices=False)
    first = left[:, 0]
    return np.asarray(first > (first.min() + first.max()) / 2)


def bins_from_kernel(
    codes: Ints, n_bins: int, decoys: int, share: float, rng: Generator, tries: int = TRIES
) -> float:
    """SMM-2, attacked by the active party: of how many rows it finds all others of the same bin.

    `codes` (row, column) are bins of a passive party, one block. Its vectors are `share` of those
    beside the splits, `decoys` columns of random bits and two of normal values (algorithm 5). A row
    counts if the set that is found is exactly its bin in one of the columns.
    """
    n_rows = len(codes)
    splits = (codes[:, :, None] <= np.arange(n_bins - 1)).reshape(n_rows, -1)
    bits = rng.integers(0, 2, (n_rows, decoys))
    hidden = np.column_stack([splits, np.ones(n_rows), bits, rng.normal(size=(n_rows, 2))])
    left, size, _ = np.linalg.svd(hidden, full_matrices=False)
    basis = left[:, size > NOTHING_LEFT * size[0]]
    count = max(1, round(share * (n_rows - basis.shape[1])))
    space = beside(null_vectors(basis, count, rng))
    n_recovered = 0
    for row in rng.permutation(n_rows)[:tries]:
        group = fewest_ones(space, int(row))
        n_recovered += any(np.array_equal(group, column == column[row]) for column in codes.T)
    return n_recovered / min(tries, n_rows)


def fewest_ones(space: Floats, row: int) -> Bits:
    """The vector of a space with entries in [0, 1], 1 for this row, and the least sum, rounded."""
    from scipy.optimize import linprog

    n_rows = len(space)
    done = linprog(
        space.sum(axis=0),
        np.concatenate([space, -space]),
        np.concatenate([np.ones(n_rows), np.zeros(n_rows)]),
        space[[row]],
        [1.0],
        bounds=(None, None),
    )
    if not done.success:
        return np.zeros(n_rows, np.bool_)
    return np.asarray(space @ done.x > 0.5)
