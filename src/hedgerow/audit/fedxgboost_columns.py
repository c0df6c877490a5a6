"""How far the active party can tell a passive party's column from the splits it is shown.

For every split of the model the active party sees which rows of the node went left: so it must,
to know the leaves. Of one column's splits it can put the cuts in order (a row that is right of one
cut and left of another says which cut is lower), and then it knows between which cuts every row
lies. Rows come in blocks; only the splits and two numbers a row are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError

BLOCK = 8192  # rows
GROUPS = 32  # of true values, as large as another, that information is counted about
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SeenSplit:
    """One split as the active party sees it: the node's rows, and which of them went left."""

    rows: Ints
    left: Bits

    def __post_init__(self) -> None:
        if self.rows.shape != self.left.shape or self.rows.ndim != 1:
            raise FormatError(f"{self.rows.shape} rows of a split and {self.left.shape} sides")


@dataclass(frozen=True)
class Narrowed:
    """What is known of a column from its splits."""

    n_splits: int
    n_cells: int  # groups of rows that are told apart; of most use if they are many
    rank_correlation: float  # of the places between cuts with the true values; NaN for categories
    bits: float  # mutual information with the true values, in at most GROUPS groups
    of_bits: float  # the entropy of these groups

    @property
    def share_of_bits(self) -> float:
        return self.bits / self.of_bits if self.of_bits else 0.0


def instance_spaces(splits: Sequence[SeenSplit], values: Floats, ordered: bool = True) -> Narrowed:
    """Attack one column by its splits; `values` are its true values (or codes), one a row.

    Information is counted as if the rows were all there are, which is too much by about
    cells x groups / (1.4 rows) bits: small for tables worth an audit.
    """
    if ordered:
        low, high = places_between_cuts(splits, len(values))
        groups = low * (len(splits) + 2) + high
        correlation = _rank_correlation(low + high, values)
    else:
        groups, correlation = _signatures(splits, len(values)), float("nan")
    _, cells = np.unique(groups, return_inverse=True)
    codes = _grouped(values)
    both = np.unique(cells * (int(codes.max(initial=0)) + 1) + codes, return_counts=True)[1]
    entropy = _entropy(np.bincount(codes))
    bits = _entropy(np.bincount(cells)) + entropy - _entropy(both)
    n_spaces = int(cells.max(initial=-1)) + 1
    return Narrowed(len(splits), n_spaces, correlation, max(0.0, bits), entropy)


def places_between_cuts(splits: Sequence[SeenSplit], n_rows: int) -> tuple[Ints, Ints]:
    """For every row the highest cut below it and the lowest above, counted from 1 in order.

    0 and len(splits) + 1 are the ends: no cut is known to be below, or above.
    """
    rank = order_of_cuts(splits, n_rows)
    low = np.zeros(n_rows, np.int64)
    high = np.full(n_rows, len(splits) + 1)
    for split, place in zip(splits, rank + 1, strict=True):
        left, right = split.rows[split.left], split.rows[~split.left]
        high[left] = np.minimum(high[left], place)
        low[right] = np.maximum(low[right], place)
    return low, high


def order_of_cuts(splits: Sequence[SeenSplit], n_rows: int) -> Ints:
    """The place of every cut among the others, as far as rows tell: (split,).

    Cut a is below cut b if more rows are right of a and left of b than the other way round (where
    only missing values are). Cuts that no chain of rows compares are put by how many are known to
    be below and above.
    """
    n = len(splits)
    between = np.zeros((n, n))
    for first in range(0, n_rows, BLOCK):
        sides = _sides(splits, first, min(n_rows, first + BLOCK))
        between += (sides > 0).astype(np.float32) @ (sides < 0).T.astype(np.float32)
    below = between > between.T
    for _ in range(max(1, n).bit_length()):  # chains: a below b below c
        below |= below.astype(np.float32) @ below.astype(np.float32) > 0
    balance = below.sum(axis=0) - below.sum(axis=1)
    rank = np.empty(n, np.int64)
    rank[np.argsort(balance, kind="stable")] = np.arange(n)
    return rank


def _sides(splits: Sequence[SeenSplit], first: int, stop: int) -> NDArray[np.int8]:
    """(split, row of the block): -1 left, 1 right, 0 not in the node."""
    sides = np.zeros((len(splits), stop - first), np.int8)
    for i, split in enumerate(splits):
        here = (split.rows >= first) & (split.rows < stop)
        sides[i, split.rows[here] - first] = np.where(split.left[here], -1, 1)
    return sides


def _signatures(splits: Sequence[SeenSplit], n_rows: int) -> Ints:
    """A number for every combination of sides that a row can have, by its splits one by one."""
    signatures = np.zeros(n_rows, np.int64)
    for split in splits:
        side = np.zeros(n_rows, np.int64)
        side[split.rows] = np.where(split.left, 1, 2)
        _, signatures = np.unique(signatures * 3 + side, return_inverse=True)
    return signatures


def _rank_correlation(one: Ints, two: Floats) -> float:
    """Spearman's: the correlation of ranks, equal values sharing one; 0 if either is constant."""
    a, b = _ranks(one), _ranks(two)
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else 0.0


def _ranks(values: NDArray[np.int64] | Floats) -> Floats:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[place], np.float64)


def _grouped(values: Floats) -> Ints:
    """Values as numbers of groups: each its own, or by rank where they are very many."""
    different, codes = np.unique(values, return_inverse=True)
    if len(different) <= GROUPS:
        return codes
    return np.minimum(((_ranks(values) - 0.5) / len(values) * GROUPS).astype(np.int64), GROUPS - 1)


def _entropy(counts: Ints) -> float:
    """In bits."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())
