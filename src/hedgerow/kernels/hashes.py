"""Compiled loops of similarity: rows to hashes of four bits, and the row with most equal hashes.

Sixteen hashes lie in one word. The loops here call none of another file, because Numba's cache on
disk notices changes of a function's own file only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hedgerow.kernels.arrays import CodeArrays, Floats, Int32s, Ints, Words
from hedgerow.kernels.compiling import compiled

PER_WORD = 16  # hashes of four bits
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


@compiled()
def hash_rows(
    codes: CodeArrays, projection: Projection, first: int, stop: int, words: Words
) -> None:
    """Write floor((a v + b) / r) mod 16 of rows first .. stop, for every hash: (row, word).

    Projections are plain sums in the order of the columns, so that every machine gets the same.
    """
    narrow, wide, place = codes.narrow, codes.wide, codes.place
    starts, table, offsets = projection.starts, projection.table, projection.offsets
    n_hashes = offsets.shape[0]
    sums = np.empty(n_hashes)
    for row in range(first, stop):
        for k in range(n_hashes):
            sums[k] = offsets[k]
        for j in range(place.shape[0]):
            code = narrow[place[j], row] if place[j] >= 0 else wide[-1 - place[j], row]
            adds = table[starts[j] + code]  # (hash,): the projections of one code, looked up
            for k in range(n_hashes):
                sums[k] += adds[k]
        for w in range(words.shape[1]):
            words[row, w] = 0
        for k in range(n_hashes):
            value = np.uint64(np.int64(math.floor(sums[k] / projection.width)) & 15)
            words[row, k // PER_WORD] |= value << np.uint64(4 * (k % PER_WORD))


@compiled()
def band_keys(words: Words, order: Ints, shift: int, keys: Words) -> None:
    """Write keys by which rows are sorted: some hashes, the first one highest, then the row.

    `order` names the hashes; the row's number stands in the lowest `shift` bits: (row,).
    """
    for row in range(words.shape[0]):
        key = np.uint64(0)
        for k in order:
            key = (key << np.uint64(4)) | (
                (words[row, k // PER_WORD] >> np.uint64(4 * (k % PER_WORD))) & np.uint64(15)
            )
        keys[row] = (key << np.uint64(shift)) | np.uint64(row)


@compiled(inline="always")
def _hashed(x: np.uint64) -> np.uint64:
    """Return a hash of a word that looks random: the finaliser of SplitMix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled()
def _compare(
    own: Words, row: int, columns: Words, first: int, size: int, unequal: Words
) -> np.uint64:
    """Write how many hashes differ from those of `size` other rows; return the fewest.

    `columns` are (word, row). A hash that differs leaves one bit in its four; these fields of four
    bits are added over all words, at most 15 of them, which a field can count. Multiplying by
    0x0101... then adds the eight bytes of a word in its highest one.
    """
    for i in range(size):
        unequal[i] = 0
    for w in range(columns.shape[0]):
        mine = own[row, w]
        theirs = columns[w, first : first + size]
        for i in range(size):
            x = mine ^ theirs[i]
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
    return fewest


@compiled()
def _take_best(
    fewest: np.uint64, unequal: Words, size: int, numbers: Words, first: int, offset: int,
    salt: np.uint64, row: int, best: Words,
) -> None:  # fmt: skip
    """Keep the best of the rows just compared; of equals the one whose draw is highest.

    `best` (row, 3): hashes that differ, the draw, the other row's number. A draw belongs to two
    rows, so it does not matter in which order rows are met, or how often.
    """
    if fewest > best[row, 0]:
        return
    if fewest < best[row, 0]:
        best[row, 0], best[row, 1], best[row, 2] = fewest, np.uint64(0), np.uint64(0)
    for i in range(size):
        if unequal[i] == fewest:
            other = numbers[first + i] + np.uint64(offset)
            draw = _hashed(salt + other * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)
            if draw > best[row, 1] or (draw == best[row, 1] and other < best[row, 2]):
                best[row, 1], best[row, 2] = draw, other


@compiled()
def search_all(
    own: Words, others: OtherRows, draws: Draws, first: int, stop: int, best: Words
) -> None:
    """Compare rows first .. stop with every row of another party; see `_take_best` on `best`."""
    columns, numbers, offset = others.columns, others.numbers, others.offset
    unequal = np.empty(CHUNK, np.uint64)
    n_others = columns.shape[1]
    for begin in range(0, n_others, CHUNK):
        size = min(CHUNK, n_others - begin)
        for row in range(first, stop):
            fewest = _compare(own, row, columns, begin, size, unequal)
            salt = _hashed(draws.seed + np.uint64(draws.first_row + row))
            _take_best(fewest, unequal, size, numbers, begin, offset, salt, row, best)


@compiled()
def in_order(words: Words, keys: Words, shift: int, columns: Words) -> None:
    """Write the rows in the order of their sorted keys, word by word: (word, row)."""
    mask = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
    for place in range(keys.shape[0]):
        row = int(keys[place] & mask)
        for w in range(words.shape[1]):
            columns[w, place] = words[row, w]


@compiled()
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
    columns, keys, offset = others.columns, others.numbers, others.offset
    unequal = np.empty(window, np.uint64)
    mine, chunk_best = np.empty((CHUNK, own.shape[1]), np.uint64), np.empty((CHUNK, 3), np.uint64)
    n_own, n_others = own_keys.shape[0], keys.shape[0]
    mask = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
    numbers = keys & mask
    low, high, first = 0, 0, 0
    size = min(window, n_others)
    for begin in range(0, n_own, CHUNK):
        count = min(CHUNK, n_own - begin)
        for i in range(count):
            row = int(own_keys[begin + i] & mask)
            for w in range(own.shape[1]):
                mine[i, w] = own[row, w]
            for k in range(3):
                chunk_best[i, k] = best[row, k]
        for i in range(count):
            # Own keys are sorted too, so `low` and `high`, between which the others' keys are
            # equal to this one, only ever rise: one pass over the others serves all own rows.
            key = own_keys[begin + i] >> np.uint64(shift)
            while low < n_others and (keys[low] >> np.uint64(shift)) < key:
                low += 1
            high = max(high, low)
            while high < n_others and (keys[high] >> np.uint64(shift)) == key:
                high += 1
            salt = _hashed(draws.seed + np.uint64(draws.first_row) + (own_keys[begin + i] & mask))
            if high - low > size:
                drawn = _hashed(salt + np.uint64(shift)) % np.uint64(high - low - size + 1)
                first = low + int(drawn)
            else:
                first = (low + high - size) // 2
            first = int(min(max(first, 0), n_others - size))
            fewest = _compare(mine, i, columns, first, size, unequal)
            _take_best(fewest, unequal, size, numbers, first, offset, salt, i, chunk_best)
        for i in range(count):
            row = int(own_keys[begin + i] & mask)
            for k in range(3):
                best[row, k] = chunk_best[i, k]


@compiled()
def sums_by_place(place: Ints | Int32s, statistics: Ints, total: Ints) -> None:
    """Add the statistics of every row to its place: (place, statistic)."""
    for i in range(place.shape[0]):
        for w in range(statistics.shape[1]):
            total[place[i], w] += statistics[i, w]
