"""Similarity: rows to hashes of four bits, and the row of another party with most equal hashes.

Sixteen hashes lie in one word. The loops here call none of another file, because Numba's cache on
disk notices changes of a function's own file only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hedgerow.kernels.arrays import CodeArrays, Floats, Int32s, Ints, Words
from hedgerow.kernels.compiling import compiled
from hedgerow.kernels.threads import over_rows

PER_WORD = 16  # hashes of four bits
Word = int | np.uint64  # an unsigned index
CHUNK = 512  # rows that are compared at once: what is known of them stays in the nearest cache


class Projection(NamedTuple):
    """The functions floor((a v + b) / r), all of them, over the codes of a table."""

    starts: Ints  # (column + 1,): where the codes of each column begin in `table`
    table: Floats  # (code of all columns, hash): what a code adds to a v
    offsets: Floats  # (hash,): b
    width: float  # r


class OtherRows(NamedTuple):
    """Another party's rows to compare with, in some order: rows lie beside each other."""

    columns: Words  # (word, row): a word of all rows before the next, to compare several at once
    numbers: Words  # (row,): each row's number in its party; to be sorted by key: key and number
    offset: int  # what its party's rows are numbered from


class Draws(NamedTuple):
    """How ties are broken: by draws that follow from a seed and the numbers of both rows."""

    seed: np.uint64
    first_row: int  # what one's own rows are numbered from


def hash_rows(codes: CodeArrays, projection: Projection, words: Words) -> None:
    """Write floor((a v + b) / r) mod 16 of every row, for every hash: (row, word).

    Projections are plain sums in the order of the columns, so that every machine gets the same.
    """
    narrow, wide, place = codes
    n_hashes = len(projection.offsets)
    shifts = np.arange(n_hashes, dtype=np.uint64) % PER_WORD * 4

    def work(first: int, stop: int) -> None:
        for begin in range(first, stop, CHUNK):
            rows = slice(begin, min(stop, begin + CHUNK))
            sums = np.tile(projection.offsets, (rows.stop - begin, 1))
            for j, at in enumerate(place.tolist()):
                code = narrow[at, rows] if at >= 0 else wide[-1 - at, rows]
                sums += projection.table[projection.starts[j] + code]
            windows = np.floor(sums / projection.width).astype(np.int64) & 15
            shifted = windows.astype(np.uint64) << shifts
            words[rows] = np.bitwise_or.reduceat(shifted, range(0, n_hashes, PER_WORD), axis=1)

    over_rows(work, len(words))


def _one_hash(words: Words, k: int) -> Words:
    return np.asarray((words[:, k // PER_WORD] >> np.uint64(4 * (k % PER_WORD))) & np.uint64(15))


def band_keys(words: Words, order: Ints, shift: int) -> Words:
    """Return keys by which rows are sorted: some hashes, the first one highest, then the row.

    `order` names the hashes; the row's number stands in the lowest `shift` bits: (row,).
    """
    keys = np.zeros(len(words), np.uint64)
    for k in order.tolist():
        keys = (keys << np.uint64(4)) | _one_hash(words, k)
    return np.asarray((keys << np.uint64(shift)) | np.arange(len(words), dtype=np.uint64))


@compiled(error_model="numpy", helper=True)
def _hashed(x: np.uint64) -> np.uint64:
    """Return a hash of a word that looks random: the finaliser of SplitMix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled(error_model="numpy", helper=True)
def _keep_best(
    own: Words, row: Word, columns: Words, numbers: Words, first: Word, size: Word,
    offset: np.uint64, salt: np.uint64, unequal: Words, best: Words,
) -> None:  # fmt: skip
    """Compare a row with `size` others; keep the best, of equals that whose draw is highest.

    `columns` are (word, row). A hash that differs leaves one bit in its four; these fields of four
    bits are added over all words, at most 15 of them, which a field can count. Multiplying by
    0x0101... then adds the eight bytes of a word in its highest one. `unequal` is memory.

    `best` (row, 3): hashes that differ, the draw, the other row's number. A draw belongs to two
    rows, so it does not matter in which order rows are met, or how often.
    """
    for i in range(size):
        unequal[i] = 0
    for w in range(np.uint64(columns.shape[0])):
        mine = own[row, w]
        for i in range(size):
            x = mine ^ columns[w, first + i]
            x |= x >> np.uint64(2)
            x |= x >> np.uint64(1)
            unequal[i] += x & np.uint64(0x1111111111111111)
    fewest, half = np.uint64(1 << 20), np.uint64(0x0F0F0F0F0F0F0F0F)
    for i in range(size):
        x = unequal[i]
        x = (x & half) + ((x >> np.uint64(4)) & half)
        x = (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
        unequal[i] = x
        fewest = min(fewest, x)
    if fewest > best[row, 0]:
        return
    if fewest < best[row, 0]:
        best[row, 0], best[row, 1], best[row, 2] = fewest, np.uint64(0), np.uint64(0)
    for i in range(size):
        if unequal[i] == fewest:
            other = numbers[first + i] + offset
            draw = _hashed(salt + other * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)
            if draw > best[row, 1] or (draw == best[row, 1] and other < best[row, 2]):
                best[row, 1], best[row, 2] = draw, other


@compiled(error_model="numpy")
def _search_all(
    own: Words, columns: Words, numbers: Words, offset: np.uint64, seed: np.uint64,
    first_row: np.uint64, first: int, stop: int, unequal: Words, best: Words,
) -> None:  # fmt: skip
    """Compare rows first .. stop with every row of another party; see `_keep_best` on `best`."""
    n_others, chunk = np.uint64(numbers.size), np.uint64(unequal.size)
    for begin in range(np.uint64(0), n_others, chunk):
        size = min(chunk, n_others - begin)
        for row in range(np.uint64(first), np.uint64(stop)):
            salt = _hashed(seed + first_row + row)
            _keep_best(own, row, columns, numbers, begin, size, offset, salt, unequal, best)


def search_all(own: Words, others: OtherRows, draws: Draws, best: Words) -> None:
    """Compare every row with every row of another party; see `_keep_best` on `best`."""
    given = (others.columns, others.numbers, np.uint64(others.offset), draws.seed)

    def work(first: int, stop: int) -> None:
        unequal = np.empty(CHUNK, np.uint64)
        _search_all(own, *given, np.uint64(draws.first_row), first, stop, unequal, best)

    over_rows(work, len(own))


def in_order(words: Words, keys: Words, shift: int) -> Words:
    """Return the rows in the order of their sorted keys, word by word: (word, row)."""
    rows = keys & np.uint64((1 << shift) - 1)
    return np.ascontiguousarray(words.T[:, rows.astype(np.int64)])


@compiled(error_model="numpy")
def _search_window(
    own: Words, own_keys: Words, columns: Words, keys: Words, numbers: Words, offset: np.uint64,
    seed: np.uint64, shift: np.uint64, window: int, mine: Words, unequal: Words, chunk_best: Words,
    best: Words,
) -> None:  # fmt: skip
    """Do as `search_window`; `mine`, `unequal` and `chunk_best` are memory."""
    n_own, n_others, n_words = own_keys.size, keys.size, own.shape[1]
    mask = (np.uint64(1) << shift) - np.uint64(1)
    low, high, first = np.int64(0), np.int64(0), np.int64(0)
    size = min(window, n_others)
    for begin in range(0, n_own, CHUNK):
        count = min(CHUNK, n_own - begin)
        for i in range(count):
            row = own_keys[begin + i] & mask
            for w in range(n_words):
                mine[i, w] = own[row, w]
            for k in range(3):
                chunk_best[i, k] = best[row, k]
        for i in range(count):
            # Own keys are sorted too, so `low` and `high`, between which the others' keys are
            # equal to this one, only ever rise: one pass over the others serves all own rows.
            key = own_keys[begin + i] >> shift
            while low < n_others and (keys[low] >> shift) < key:
                low += 1
            high = max(high, low)
            while high < n_others and (keys[high] >> shift) == key:
                high += 1
            salt = _hashed(seed + (own_keys[begin + i] & mask))
            if high - low > size:
                drawn = _hashed(salt + shift) % np.uint64(high - low - size + 1)
                first = low + np.int64(drawn)
            else:
                first = (low + high - size) // 2
            first = max(min(first, np.int64(n_others - size)), np.int64(0))
            _keep_best(
                mine, np.uint64(i), columns, numbers, np.uint64(first), np.uint64(size), offset,
                salt, unequal, chunk_best,
            )  # fmt: skip
        for i in range(count):
            row = own_keys[begin + i] & mask
            for k in range(3):
                best[row, k] = chunk_best[i, k]


def search_window(
    own: Words, own_keys: Words, others: OtherRows, shift: int, window: int, draws: Draws,
    best: Words,
) -> None:  # fmt: skip
    """Compare every row with those around its place among another party's sorted rows.

    Both lists of keys are sorted; the others' stand in place of their numbers. Where more rows
    than the window have the same key, the window lies at a drawn place among them. Own rows stand
    anywhere in memory: some hundred are fetched at once, because the processor waits for such reads
    together, and one by one for those that lie between comparisons. So the time of a row does not
    depend on how many there are.
    """
    numbers = others.numbers & np.uint64((1 << shift) - 1)
    seed = np.uint64((int(draws.seed) + draws.first_row) % (1 << 64))
    _search_window(
        own, own_keys, others.columns, others.numbers, numbers, np.uint64(others.offset), seed,
        np.uint64(shift), window, np.empty((CHUNK, own.shape[1]), np.uint64),
        np.empty(window, np.uint64), np.empty((CHUNK, 3), np.uint64), best,
    )  # fmt: skip


@compiled(error_model="numpy")
def _add_by_place(place: Ints, statistics: Ints, total: Ints) -> None:
    for i in range(np.uint64(place.size)):
        here = np.uint64(place[i])
        for w in range(np.uint64(statistics.shape[1])):
            total[here, w] += statistics[i, w]


def sums_by_place(place: Ints | Int32s, statistics: Ints, n_places: int) -> Ints:
    """Add the statistics of all rows up by place: (place, statistic)."""
    total = np.zeros((n_places, statistics.shape[1]), np.int64)
    _add_by_place(place.astype(np.int64, copy=False), statistics, total)
    return total
