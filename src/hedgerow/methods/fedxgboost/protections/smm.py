"""`smm-1` and `smm-2` (algorithms 1 to 5): products of two parties' matrices through null spaces.

Rows of a node are taken in blocks, and products of blocks add up; the n-by-n matrix I - ZZ' is
never formed. What was sums of whole numbers is rounded back to them, so both are as exact as
`none`. What they hide, or do not, is measured in `audit/fedxgboost.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular
from threadpoolctl import threadpool_limits

from hedgerow.errors import SessionFailed
from hedgerow.kernels.threads import over_items
from hedgerow.methods.fedxgboost.bins import Bins
from hedgerow.methods.fedxgboost.levels import Level
from hedgerow.model.exact import BITS, Ints
from hedgerow.privacy.noise import secret_randomness

Floats = NDArray[np.float64]
T = TypeVar("T")
CHUNK_ROWS = 8192  # rows whose matrices travel in one message
TRIES = 8
EMPTY = 1e-12  # a row of Z with a smaller square shows the row of what it should hide


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of one open node."""

    node: int
    rows: Ints


def blocks_of(level: Level, block_rows: int) -> list[Block]:
    """Rows of every open node in blocks of about equal length; the same for both parties."""
    order = np.argsort(level.node, kind="stable")
    ends = np.cumsum(level.sizes)
    found = []
    for node, rows in enumerate(np.split(order, ends)[: level.n_nodes]):
        n_blocks = max(1, len(rows) // block_rows)
        found += [Block(node, part) for part in np.array_split(rows, n_blocks)]
    return found


def chunks(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Blocks in order, together not much more than `CHUNK_ROWS` rows."""
    held: list[Block] = []
    for block in blocks:
        held.append(block)
        if sum(len(one.rows) for one in held) >= CHUNK_ROWS:
            yield held
            held = []
    if held:
        yield held


class Candidates:
    """The split matrix M of a party: 1 where a row lies left of a cut, or in a category.

    A column of bins has a candidate for every cut and one for missing values; a categorical one
    for every category. From the sums of candidates, sums of bins follow.
    """

    def __init__(self, starts: Ints, categorical: NDArray[np.bool_]) -> None:
        self._sizes = np.diff(starts).tolist()
        self._categorical = categorical.tolist()

    @property
    def count(self) -> int:
        return sum(n if c else n - 1 for n, c in zip(self._sizes, self._categorical, strict=True))

    def matrix(self, bins: Bins, rows: Ints) -> Floats:
        """M of some rows: (row, candidate)."""
        parts = []
        for j, (n, categorical) in enumerate(zip(self._sizes, self._categorical, strict=True)):
            codes = bins.codes.column(j)[rows].astype(np.int64)[:, None]
            if categorical:
                parts.append(codes == np.arange(n))
            else:
                parts += [codes <= np.arange(n - 2), codes == n - 1]
        return np.concatenate(parts, axis=1).astype(np.float64)

    def bins(self, sums: Ints, total: Ints) -> Ints:
        """Sums by bin (bin, number) from sums by candidate (candidate, number) and the total."""
        parts, first = [], 0
        for n, categorical in zip(self._sizes, self._categorical, strict=True):
            if categorical:
                parts.append(sums[first : first + n])
                first += n
                continue
            cuts, missing = sums[first : first + n - 2], sums[first + n - 2 : first + n - 1]
            below = np.concatenate([np.zeros_like(missing), cuts, total[None, :] - missing])
            parts += [np.diff(below, axis=0), missing]
            first += n - 1
        return np.concatenate(parts)


def directions(held: Floats) -> Floats:
    """An orthonormal basis (row, direction) of what the columns of a matrix span."""
    # With pivots the directions that columns add come first; the others could be any.
    basis, upper, _ = qr(held, mode="economic", pivoting=True)
    size = np.abs(np.diagonal(upper))
    return np.asarray(basis[:, size > 1e-9 * float(size.max(initial=0.0))])


def null_vectors(held: Floats, r: int) -> Floats:
    """r random orthonormal vectors (row, vector) with held' U = 0."""
    return outside(directions(held), r)


def outside(basis: Floats, r: int) -> Floats:
    """r random orthonormal vectors at right angles to an orthonormal basis."""
    drawn = secret_randomness.uniform((len(basis), r))
    for _ in range(2):
        drawn = drawn - basis @ (basis.T @ drawn)
        # By Cholesky instead of QR: a few times as quick. Rounding grows with the square of how
        # unequal the directions are, so where they are very unequal it is done once more.
        lower = np.linalg.cholesky(drawn.T @ drawn)
        drawn = solve_triangular(lower, drawn.T, lower=True, check_finite=False).T
        size = np.diagonal(lower)
        if float(size.min()) > 1e-3 * float(size.max()):
            break
    return np.ascontiguousarray(drawn)


def shows_a_row(basis: Floats) -> bool:
    """Whether all vectors at right angles to a basis are 0 in some row."""
    return bool(np.square(basis).sum(axis=1).max(initial=0.0) > 1 - 1e-9)


def check_vectors(vectors: Floats) -> bool:
    """Whether these are orthonormal columns, as the protocol says."""
    square = vectors.T @ vectors
    return bool(np.abs(square - np.eye(vectors.shape[1])).max(initial=0.0) < 1e-8)


def some_vectors(vectors: Floats, share: float, refuse_empty: bool) -> Floats:
    """Z: a secret number r' of the vectors, in secret order; no row of ZZ' may be empty."""
    r = vectors.shape[1]
    least = max(1, int(np.ceil(share * r)))
    for _ in range(TRIES):
        count = least + secret_randomness.below(r - least + 1)
        chosen = vectors[:, secret_randomness.shuffled(r)[:count]]
        if not refuse_empty or float(np.square(chosen).sum(axis=1).min()) > EMPTY:
            return chosen
    raise SessionFailed(
        "the null-space vectors leave rows of ZZ' empty, which would show numbers of these rows. "
        "Nothing was answered. Raise `gaussians`, or choose another protection."
    )


def hidden(matrix: Floats, vectors: Floats) -> Floats:
    """(I - ZZ') times a matrix, by two thin products."""
    return matrix - vectors @ (vectors.T @ matrix)


def each(work: Callable[[T], Floats], items: Sequence[T]) -> list[Floats]:
    """One matrix after the other, on all cores; each on one, or small ones wait for each other."""
    with threadpool_limits(1, "blas"):
        return over_items(work, items)


def to_grid(products: Floats) -> Ints:
    """Sums of numbers of rows back on their grid; refuses what rounding has spoilt."""
    steps = products * 2.0**BITS
    whole = np.rint(steps)
    if float(np.abs(steps - whole).max(initial=0.0)) > 0.25:
        raise SessionFailed(
            "a product of matrices is not a sum of gradients: an answer was changed, or a block "
            "has too many rows. The run ends here. Make block_rows smaller if it happens again."
        )
    return whole.astype(np.int64)
