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
ALL, ZERO, ONE, TWO = np.uint64(2**64 - 1), np.uint64(0), np.uint64(1), np.uint64(2)
HALF = ALL // TWO
# ALL // d, at hand for the small d that are nearly always enough
PARTS = np.array([0, *((2**64 - 1) // d for d in range(1, 64))], np.uint64)

# The place `at` in the stream goes in and out by value, which keeps it in a register. Where no word
# is left it ends behind them all, at words.size + 1, and whatever is being drawn is void.


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _below(words: Any, at: Any, top: Any) -> Any:
    """An even whole number below `top`, and the next place."""
    size = np.uint64(words.size)
    while at < size:
        word = words[at]
        at += ONE
        if word < top:
            return word, at
    return ZERO, size + ONE


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _exp(words: Any, at: Any, share: Any, times: int, low: Any, top: Any) -> Any:
    """An event of chance exp(-g), g = (low / top)^times / share; none if words ran out.

    And the next place.
    """
    of, is_odd, size = share, True, np.uint64(words.size)
    while at <= size:
        if of > ONE:
            part = PARTS[of] if of < np.uint64(PARTS.size) else ALL // of
            word, at = _below(words, at, part * of)
            if word >= part:
                break
        missed = False
        for _ in range(times):
            word, at = _below(words, at, top)
            missed = word >= low
            if missed:
                break
        if missed:
            break
        of += share
        is_odd = not is_odd
    return is_odd and at <= size, at


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _proposal(words: Any, at: Any) -> Any:
    """k with a probability in proportion to exp(-k^2/2), or -1 for one that was refused.

    And the next place.
    """
    k = 0
    happened, at = _exp(words, at, TWO, 0, ONE, ONE)
    while happened:
        k += 1
        happened, at = _exp(words, at, TWO, 0, ONE, ONE)
    for _ in range(k * (k - 1)):
        happened, at = _exp(words, at, TWO, 0, ONE, ONE)
        if not happened:
            return -1, at
    return k, at


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _is_kept(words: Any, at: Any, k: int, low: Any, top: Any) -> Any:
    """An event of chance exp(-x k) exp(-x^2/2), x = low / top; and the next place."""
    for _ in range(k):
        happened, at = _exp(words, at, ONE, 1, low, top)
        if not happened:
            return False, at
    return _exp(words, at, TWO, 2, low, top)


@njit(cache=True, nogil=True, error_model="numpy")
def gaussians(words: Any, sigmas: Any, out: Any, first: int) -> tuple[Any, Any]:
    """Fill out[first:] as far as the words reach: how many are done, and how many words they took.

    Each number has its own of the `sigmas`. A number whose words do not suffice is not drawn, and
    its words do not count as used. They must come again, followed by more: then the same number
    comes out that a longer stream would have given in the first place. Fresh words instead would
    favour numbers that need few.
    """
    done, used, at, size = first, ZERO, ZERO, np.uint64(words.size)
    sigma, part, top = np.int64(1), ALL, ALL
    while done < out.size and at <= size:
        if sigmas[done] != sigma:
            sigma = sigmas[done]
            part = ALL // np.uint64(sigma)
            top = part * np.uint64(sigma)
        k, at = _proposal(words, at)
        if k > MOST_WHOLES and at <= size:
            return OUT_OF_RANGE, used
        if k < 0:
            continue
        word, at = _below(words, at, HALF + HALF)
        negative = word < HALF
        word, at = _below(words, at, top)
        j = word // part  # even below sigma
        if negative and k == 0 and j < ONE:
            continue  # zero comes once, not with both signs
        kept, at = _is_kept(words, at, k, j * part, top)
        if kept:
            number = k * sigma + np.int64(j)
            out[done] = -number if negative else number
            done += 1
            used = at
    return done, used
