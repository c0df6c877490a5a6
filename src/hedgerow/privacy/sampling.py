"""The compiled loop behind `mechanisms`: exact discrete Gaussians from a stream of random words.

Whole numbers only: no floating point takes part in any decision. Asked by `mechanisms.py` and by
nobody else. All of it lives in this one file, because Numba's cache on disk notices changes of a
function's own file only.

What is drawn. For a whole sigma >= 1 the number i comes with a probability in proportion to
exp(-i^2 / (2 sigma^2)). The way is that of Karney (ACM TOMS 42, 2016, algorithm D): write
|i| = k sigma + j with 0 <= j < sigma, and x = j / sigma. Then

    i^2 / (2 sigma^2) = (k + x)^2 / 2 = k/2 + k (k - 1)/2 + x k + x^2/2,

so a proposal is made of parts that are drawn one after another: k with probability in proportion
to exp(-k/2), kept with exp(-k (k - 1)/2); a sign; a j, every one as likely as the others; and all
of it is kept with exp(-x k) exp(-x^2/2). What is kept has the wanted proportion, but that zero
has two signs: one of the two is refused. A proposal that is refused starts all over, words and all.

Every one of those chances is a product of chances exp(-g) with g = 1/2, x or x^2/2, all between 0
and 1. Such an event (von Neumann): for n = 1, 2, ... try an event of chance g/n, until one does not
happen. That n - 1 of them happened has chance g^(n-1)/(n-1)!, so the first miss is at n with chance
g^(n-1)/(n-1)! - g^n/n!, and it is at an odd n with the alternating sum of all g^n/n!, exp(-g).

And every g/n is a product of whole fractions, 1/2, j/sigma and 1/n, each an event of its own. For
a fraction c/d and m = floor((2^64 - 1)/d), a word w of 64 random bits is taken if it is below m d,
else the next one is tried. What was taken is even below m d, so w < m c has chance c/d exactly. No
product exceeds 64 bits, and nothing is a remainder of a division, so nothing is favoured.

The largest sigma is 2^56: then m >= 255, and |i| < (k + 1) sigma stays below 2^62 for k < 63.
A larger k has a chance below exp(-63^2/2) < 2^-2800; it is reported, never cut off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

MOST_WHOLES = 62  # k; beyond that a number might not fit
OUT_OF_RANGE = -1
ALL, ONE = np.uint64(2**64 - 1), np.uint64(1)


@njit(cache=True, nogil=True, error_model="numpy")
def _below(words: Any, at: Any, top: Any) -> Any:
    """An even whole number below `top`.

    Where no word is left, `at` ends behind them all and whatever is being drawn is void.
    """
    while at[0] < words.size:
        word = words[at[0]]
        at[0] += 1
        if word < top:
            return word
    at[0] = words.size + 1
    return np.uint64(0)


@njit(cache=True, nogil=True, error_model="numpy")
def _exp(words: Any, at: Any, share: int, times: int, low: Any, top: Any) -> Any:
    """An event of chance exp(-g), g = (low / top)^times / share; none if words ran out."""
    n = 1
    while at[0] <= words.size:
        of = np.uint64(share * n)
        part = ALL // of
        if of > ONE and _below(words, at, part * of) >= part:
            break
        missed = False
        for _ in range(times):
            missed = missed or _below(words, at, top) >= low
        if missed:
            break
        n += 1
    return n % 2 == 1 and at[0] <= words.size


@njit(cache=True, nogil=True, error_model="numpy")
def _proposal(words: Any, at: Any) -> Any:
    """k with a probability in proportion to exp(-k^2/2), or -1 for one that was refused."""
    k = 0
    while _exp(words, at, 2, 0, ONE, ONE):
        k += 1
    for _ in range(k * (k - 1)):
        if not _exp(words, at, 2, 0, ONE, ONE):
            return -1
    return k


@njit(cache=True, nogil=True, error_model="numpy")
def _is_kept(words: Any, at: Any, k: int, low: Any, top: Any) -> Any:
    """An event of chance exp(-x k) exp(-x^2/2), x = low / top."""
    for _ in range(k):
        if not _exp(words, at, 1, 1, low, top):
            return False
    return _exp(words, at, 2, 2, low, top)


@njit(cache=True, nogil=True, error_model="numpy")
def gaussians(words: Any, at: Any, sigma: int, out: Any, first: int) -> Any:
    """Fill out[first:] as far as the words reach: how many are done; at[1] says with what words.

    `at` are two zeros. A number whose words do not suffice is not drawn, and its words do not count
    as used. They must come again, followed by more: then the same number comes out that a longer
    stream would have given in the first place. Fresh words instead would favour numbers that need
    few.
    """
    done = first
    half, part = ALL // np.uint64(2), ALL // np.uint64(sigma)
    top = part * np.uint64(sigma)
    while done < out.size and at[0] <= words.size:
        k = _proposal(words, at)
        if k > MOST_WHOLES and at[0] <= words.size:
            return OUT_OF_RANGE
        if k < 0:
            continue
        negative = _below(words, at, half + half) < half
        j = _below(words, at, top) // part  # even below sigma
        if negative and k == 0 and j < ONE:
            continue  # zero comes once, not with both signs
        if _is_kept(words, at, k, j * part, top):
            size = k * np.int64(sigma) + np.int64(j)
            out[done] = -size if negative else size
            done += 1
            at[1] = at[0]
    return done
