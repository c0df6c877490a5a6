"""The most similar row of another party: that with most equal hashes, ties drawn from the seed.

Up to EXACT rows of the other party all of them are compared. Beyond, rows are sorted by their
hashes in BANDS different orders, and a row is compared with those around its place in each: rows
that agree in many hashes agree in the first ones of some order, so they stand close.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.rng import stream
from hedgerow.packing import digest

EXACT = 20_000  # rows of another party that are all compared
BANDS = 8  # orders in which more rows are sorted
AROUND = 48  # rows that are compared in each order
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Pair:
    """Two parties, in their order, and the seed: what draws between ties depend on."""

    seed: int
    own: str
    other: str

    @property
    def salt(self) -> np.uint64:
        return np.uint64(int(digest(str(self.seed), "ties", self.own, self.other)[:16], 16))


@dataclass(frozen=True, eq=False)
class Neighbours:
    """For every own row the most similar row of one other party."""

    pair: Pair
    n_hashes: int
    n_others: int
    found: Words  # (row, 3): hashes that differ, the draw between ties, the row of the other party

    @property
    def row(self) -> NDArray[np.int64]:
        return self.found[:, 2].astype(np.int64)

    @property
    def collisions(self) -> NDArray[np.int64]:
        return self.n_hashes - self.found[:, 0].astype(np.int64)

    def with_others(self, own: Words, added: Words) -> Neighbours:
        """The other party has added rows: only these are looked at."""
        found = self.found.copy()
        _search(self.pair, self.n_hashes, own, 0, added, self.n_others, found)
        return Neighbours(self.pair, self.n_hashes, self.n_others + len(added), found)

    def with_own(self, added: Words, others: Words) -> Neighbours:
        """This party has added rows: only these are looked for."""
        found = _nothing(len(added), self.n_hashes)
        _search(self.pair, self.n_hashes, added, len(self.found), others, 0, found)
        joined = np.concatenate([self.found, found])
        return Neighbours(self.pair, self.n_hashes, self.n_others, joined)


class Sorted:
    """Rows of one party in the orders that were last asked for: sorted once for many others."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self._held: dict[int, tuple[int, Words]] = {}  # by band

    def keys(self, band: int, order: NDArray[np.int64], shift: int) -> Words:
        """Sorted keys: hashes of the band above `shift` bits with the row's number."""
        if band not in self._held or self._held[band][0] != shift:
            self._held[band] = (shift, _sorted_keys(self.words, order, shift))
        return self._held[band][1]


def most_similar(
    pair: Pair, n_hashes: int, own: Words, others: Words, own_sorted: Sorted | None = None
) -> Neighbours:
    """For each of `own` (row, word) the row of `others` with most equal hashes.

    Who searches the rows of many parties passes own rows as `Sorted` too.
    """
    found = _nothing(len(own), n_hashes)
    _search(pair, n_hashes, own, 0, others, 0, found, own_sorted)
    return Neighbours(pair, n_hashes, len(others), found)


def _nothing(n_rows: int, n_hashes: int) -> Words:
    found = np.zeros((n_rows, 3), np.uint64)
    found[:, 0] = n_hashes + 1
    return found


def _search(
    pair: Pair,
    n_hashes: int,
    own: Words,
    first_row: int,
    others: Words,
    offset: int,
    found: Words,
    own_sorted: Sorted | None = None,
) -> None:
    """Fill `found` with what is better among `others`, which are numbered from `offset` on."""
    draws = kernels.Draws(pair.salt, first_row)
    if len(others) <= EXACT:
        columns = np.ascontiguousarray(others.T)
        numbers = np.arange(len(others), dtype=np.uint64)
        kernels.search_all(own, kernels.OtherRows(columns, numbers, offset), draws, found)
        return
    own_sorted = own_sorted or Sorted(own)
    shift = max(len(own), len(others)).bit_length()
    for band in range(BANDS):
        order = stream(pair.seed, "similarity", "band", band).permutation(n_hashes)
        order = order[: (64 - shift) // 4].astype(np.int64)
        keys, own_keys = _sorted_keys(others, order, shift), own_sorted.keys(band, order, shift)
        sorted_rows = kernels.OtherRows(kernels.in_order(others, keys, shift), keys, offset)
        kernels.search_window(own, own_keys, sorted_rows, shift, AROUND, draws, found)


def _sorted_keys(words: Words, order: NDArray[np.int64], shift: int) -> Words:
    keys = kernels.band_keys(words, order, shift)
    keys.sort()
    return keys
