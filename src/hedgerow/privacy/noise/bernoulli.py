"""Bernoulli and integer samplers behind `mechanisms`, without bias, from the operating system.

They draw many values at once and compute with integers only: no floating point takes part in any
decision. `mechanisms.py` alone calls them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def below(size: int, limit: int) -> NDArray[np.uint64]:
    """Uniform integers below `limit`, from the operating system, without bias."""
    top = (2**64 // limit) * limit  # what lies above would favour small remainders
    drawn = np.frombuffer(os.urandom(8 * size), np.uint64)
    if top < 2**64:
        while (wrong := drawn >= np.uint64(top)).any():
            drawn = drawn.copy()
            drawn[wrong] = np.frombuffer(os.urandom(8 * int(wrong.sum())), np.uint64)
    return drawn % np.uint64(limit)


def bernoulli_exp(gaps: NDArray[np.int64], scale: int) -> NDArray[np.bool_]:
    """Bernoulli draws that succeed with probability exp(-gap / scale), exactly.

    exp(-(q + r/scale)) is the probability that q draws of exp(-1) and one of exp(-r/scale) all
    succeed.
    """
    whole, rest = np.divmod(gaps, scale)
    alive = np.flatnonzero(bernoulli_exp1(rest, scale))
    step = 0
    while len(due := alive[whole[alive] > step]):
        failed = due[~bernoulli_exp1(np.full(len(due), scale, np.int64), scale)]
        alive = np.setdiff1d(alive, failed, assume_unique=True)
        step += 1
    succeeded = np.zeros(len(gaps), np.bool_)
    succeeded[alive] = True
    return succeeded


def in_proportion(gaps: Sequence[NDArray[np.int64]], scale: int) -> list[int]:
    """Draw a place of each list, in proportion to exp(-gap / scale), exactly.

    Any place is tried, each as likely as another, and accepted if a Bernoulli draw of
    exp(-gap / scale) succeeds: the first accepted place has the wanted chances, whatever came
    before it. The best place always succeeds, so as many tries as there are places fail with
    probability 1/e at most.
    """
    chosen = [-1] * len(gaps)
    while left := [i for i, place in enumerate(chosen) if place < 0]:
        tried = [below(len(gaps[i]), len(gaps[i])).view(np.int64) for i in left]
        accepted = bernoulli_exp(
            np.concatenate([gaps[i][places] for i, places in zip(left, tried, strict=True)]), scale
        )
        ends = np.cumsum([len(places) for places in tried])[:-1]
        for i, places, hits in zip(left, tried, np.split(accepted, ends), strict=True):
            if hits.any():
                chosen[i] = int(places[int(np.argmax(hits))])
    return chosen


def bernoulli_exp1(parts: NDArray[np.int64], scale: int) -> NDArray[np.bool_]:
    """Bernoulli draws of exp(-part / scale) for parts up to the scale, by integers alone.

    Count how long draws of (part/scale)/1, (part/scale)/2, ... succeed, the first failure included:
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
    """Draw x in proportion to exp(-|x| / scale), exactly (Canonne, Kamath and Steinke 2020).

    |x| = low + scale high: low uniform, kept with exp(-low / scale), and high counts draws of
    exp(-1) that succeed in a row. Zero would come with both signs, so one of them is refused.
    """
    accepted = np.zeros(0, np.int64)
    while len(accepted) < size:
        low = below(2 * (size - len(accepted)) + 16, scale).view(np.int64)
        low = low[bernoulli_exp1(low, scale)]
        high = np.zeros(len(low), np.int64)
        alive = np.arange(len(low))
        while len(alive):
            alive = alive[bernoulli_exp1(np.full(len(alive), scale, np.int64), scale)]
            high[alive] += 1
        drawn = low + scale * high
        negative = below(len(low), 2) == 1
        drawn = np.where(negative, -drawn, drawn)[~(negative & (drawn == 0))]
        accepted = np.concatenate([accepted, drawn])
    return accepted[:size]
