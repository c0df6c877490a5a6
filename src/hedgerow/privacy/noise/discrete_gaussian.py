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

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels.arrays import Int
from hedgerow.kernels.compiling import compiled

MOST_WHOLES = 62  # k; beyond that a number might not fit
OUT_OF_RANGE = -1
ALL, ONE, TWO = np.uint64(2**64 - 1), np.uint64(1), np.uint64(2)
HALF = ALL // TWO
N_PARTS = np.uint64(64)
# ALL // d, at hand for the small d that are nearly always enough
PARTS = np.array([0, *((2**64 - 1) // d for d in range(1, int(N_PARTS)))], np.uint64)

Words = NDArray[np.uint64]


@compiled(error_model="numpy", helper=True)
def _exp(
    words: Words, at: Int, share: np.uint64, times: Int, low: np.uint64, top: np.uint64
) -> Int:
    """Return the next place in the stream if an event of chance exp(-g) happened, else less it.

    g = (low / top)^times / share. The event takes a word at least, so the next place is above 0.
    Where words run out the event has not happened, and the next place lies behind them all: at
    words.size + 1.
    """
    of, is_odd, size = share, True, words.size
    while True:
        if of > ONE:
            part = PARTS[of] if of < N_PARTS else ALL // of
            limit, word = part * of, ALL
            while word >= limit:
                if at >= size:
                    return -1 - size
                word = words[np.uint64(at)]
                at += 1
            if word >= part:
                break
        hits = 0
        while hits < times:
            word = ALL
            while word >= top:
                if at >= size:
                    return -1 - size
                word = words[np.uint64(at)]
                at += 1
            if word >= low:
                break
            hits += 1
        if hits < times:
            break
        of += share
        is_odd = not is_odd
    return at if is_odd else -at


@compiled(error_model="numpy")
def gaussians(
    words: Words, sigmas: NDArray[np.int64], out: NDArray[np.int64], first: int
) -> tuple[int, Int]:
    """Fill out[first:] as far as the words reach: how many are done, and how many words they took.

    Each number has its own of the `sigmas`. A number whose words do not suffice is not drawn, and
    its words do not count as used. They must come again, followed by more: then the same number
    comes out that a longer stream would have given in the first place. Fresh words instead would
    favour numbers that need few.
    """
    # Numbers by `np.int64`: for each literal one Numba would compile the helper once more.
    none, once, twice = np.int64(0), np.int64(1), np.int64(2)
    at: Int = none
    used: Int = none
    done, size = first, words.size
    sigma, part, top = np.int64(1), ALL, ALL
    while done < out.size and at <= size:
        if sigmas[done] != sigma:
            sigma = sigmas[done]
            part = ALL // np.uint64(sigma)
            top = part * np.uint64(sigma)
        k = 0  # in proportion to exp(-k/2)
        at = _exp(words, at, TWO, none, ONE, ONE)
        while at > 0:
            k += 1
            at = _exp(words, at, TWO, none, ONE, ONE)
        at = -at
        tries = k * (k - 1)  # kept with exp(-k (k - 1)/2)
        while tries > 0 and at > 0:
            at = _exp(words, at, TWO, none, ONE, ONE)
            tries -= 1
        if at < 0:
            at = -at
            continue
        if k > MOST_WHOLES and at <= size:
            return OUT_OF_RANGE, used
        sign = word = ALL
        while sign >= HALF + HALF and at < size:
            sign = words[np.uint64(at)]
            at += 1
        while word >= top and at < size:
            word = words[np.uint64(at)]
            at += 1
        if sign >= HALF + HALF or word >= top:
            break  # no word is left
        negative, j = sign < HALF, word // part  # j is even below sigma
        if negative and k == 0 and j < ONE:
            continue  # zero comes once, not with both signs
        low, tries = j * part, k  # kept with exp(-x k) exp(-x^2/2), x = low / top
        while tries > 0 and at > 0:
            at = _exp(words, at, ONE, once, low, top)
            tries -= 1
        if at > 0:
            at = _exp(words, at, TWO, twice, low, top)
        if at < 0:
            at = -at
            continue
        number = k * sigma + np.int64(j)
        out[done] = -number if negative else number
        done += 1
        used = at
    return done, used
