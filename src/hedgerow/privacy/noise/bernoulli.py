"""Coins and whole numbers behind `mechanisms`, without bias, from the operating system.

Many at once and whole numbers only: no floating point takes part in any decision. Asked by
`mechanisms.py` and by nobody else.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def below(size: int, limit: int) -> NDArray[np.uint64]:
    """Uniform whole numbers below `limit`, from the operating system, without bias."""
    top = (2**64 // limit) * limit  # what lies above would favour small remainders
    drawn = np.frombuffer(os.urandom(8 * size), np.uint64)
    if top < 2**64:
        while (wrong := drawn >= np.uint64(top)).any():
            drawn = drawn.copy()
            drawn[wrong] = np.frombuffer(os.urandom(8 * int(wrong.sum())), np.uint64)
    return drawn % np.uint64(limit)


def exp_coins(gaps: NDArray[np.int64], scale: int) -> NDArray[np.bool_]:
    """Coins that succeed with probability exp(-gap / scale), exactly.

    exp(-(q + r/scale)) is q coins of exp(-1) and one of exp(-r/scale), all of which must succeed.
    """
    whole, rest = np.divmod(gaps, scale)
    alive = np.flatnonzero(short_coins(rest, scale))
    step = 0
    while len(due := alive[whole[alive] > step]):
        failed = due[~short_coins(np.full(len(due), scale, np.int64), scale)]
        alive = np.setdiff1d(alive, failed, assume_unique=True)
        step += 1
    flipped = np.zeros(len(gaps), np.bool_)
    flipped[alive] = True
    return flipped


def in_proportion(gaps: Sequence[NDArray[np.int64]], scale: int) -> list[int]:
    """Of each list a place, in proportion to exp(-gap / scale), exactly.

    Any place is tried, each as likely as another, and kept if its coin of exp(-gap / scale)
    succeeds: the first that is kept has the wanted chances, whatever came before it. The best
    place always succeeds, so as many tries as there are places fail with probability 1/e at most.
    """
    found = [-1] * len(gaps)
    while left := [i for i, place in enumerate(found) if place < 0]:
        tried = [below(len(gaps[i]), len(gaps[i])).view(np.int64) for i in left]
        flipped = exp_coins(
            np.concatenate([gaps[i][places] for i, places in zip(left, tried, strict=True)]), scale
        )
        ends = np.cumsum([len(places) for places in tried])[:-1]
        for i, places, kept in zip(left, tried, np.split(flipped, ends), strict=True):
            if kept.any():
                found[i] = int(places[int(np.argmax(kept))])
    return found


def short_coins(parts: NDArray[np.int64], scale: int) -> NDArray[np.bool_]:
    """Coins of exp(-part / scale) for parts up to the scale, by whole numbers alone.

    Count how long coins of (part/scale)/1, (part/scale)/2, ... succeed, the first failure included:
    the count is k with probability x^(k-1)/(k-1)! - x^k/k!, and odd with the sum 1 - x + x^2/2! -
    ... = exp(-x) (von Neumann; Canonne, Kamath and Steinke 2020).
    """
    count = np.zeros(len(parts), np.int64)
    active, k = np.arange(len(parts)), 1
    while len(active):
        count[active] = k
        drawn = below(len(active), scale * k)
        active = active[drawn < parts[active].view(np.uint64)]
        k += 1
    return np.asarray(count % 2 == 1)


def many_laplace(size: int, scale: int) -> NDArray[np.int64]:
    """P(x) in proportion to exp(-|x| / scale), exactly (Canonne, Kamath and Steinke 2020).

    |x| = low + scale high: low uniform, kept with exp(-low / scale), and high counts coins of
    exp(-1) that succeed in a row. Zero would come with both signs, so one of them is refused.
    """
    found = np.zeros(0, np.int64)
    while len(found) < size:
        low = below(2 * (size - len(found)) + 16, scale).view(np.int64)
        low = low[short_coins(low, scale)]
        high = np.zeros(len(low), np.int64)
        alive = np.arange(len(low))
        while len(alive):
            alive = alive[short_coins(np.full(len(alive), scale, np.int64), scale)]
            high[alive] += 1
        drawn = low + scale * high
        negative = below(len(low), 2) == 1
        drawn = np.where(negative, -drawn, drawn)[~(negative & (drawn == 0))]
        found = np.concatenate([found, drawn])
    return found[:size]
