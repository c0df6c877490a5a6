"""Bernoulli and integer samplers behind `mechanisms`, without bias, from a secure source.

They draw many values at once and compute with integers only: no floating point takes part in any
decision. `mechanisms.py` alone calls them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

from hedgerow.errors import PlanError


class Sampler:
    """Draws from a ChaCha20 stream whose key, the operating system's, is new for every batch."""

    def __init__(self) -> None:
        self._stream = Cipher(ChaCha20(os.urandom(32), bytes(16)), mode=None).encryptor()

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next words of 64 random bits; no two draws share one."""
        words = np.frombuffer(self._stream.update(bytes(8 * count)), "<u8")
        return words.astype(np.uint64, copy=False)

    def below(self, size: int, limit: int) -> NDArray[np.uint64]:
        """Uniform integers below `limit`, without bias."""
        top = (2**64 // limit) * limit  # what lies above would favour small remainders
        drawn = self.words(size)
        if top < 2**64:
            while (wrong := drawn >= np.uint64(top)).any():
                drawn = drawn.copy()
                drawn[wrong] = self.words(int(wrong.sum()))
        return drawn % np.uint64(limit)

    def exp(self, gaps: NDArray[np.int64], scale: int) -> NDArray[np.bool_]:
        """Bernoulli draws that succeed with probability exp(-gap / scale), exactly.

        exp(-(q + r/scale)) is the probability that q draws of exp(-1) and one of exp(-r/scale) all
        succeed.
        """
        whole, rest = np.divmod(gaps, scale)
        alive = np.flatnonzero(self.exp1(rest, scale))
        step = 0
        while len(due := alive[whole[alive] > step]):
            failed = due[~self.exp1(np.full(len(due), scale, np.int64), scale)]
            alive = np.setdiff1d(alive, failed, assume_unique=True)
            step += 1
        succeeded = np.zeros(len(gaps), np.bool_)
        succeeded[alive] = True
        return succeeded

    def in_proportion(self, gaps: Sequence[NDArray[np.int64]], scale: int) -> list[int]:
        """Draw a place of each list, in proportion to exp(-gap / scale), exactly.

        Any place is tried, each as likely as another, and accepted if a Bernoulli draw of
        exp(-gap / scale) succeeds: the first accepted place has the wanted chances, whatever came
        before it. The best place always succeeds, so as many tries as there are places fail with
        probability 1/e at most.
        """
        chosen = [-1] * len(gaps)
        while left := [i for i, place in enumerate(chosen) if place < 0]:
            tried = [self.below(len(gaps[i]), len(gaps[i])).view(np.int64) for i in left]
            accepted = self.exp(
                np.concatenate([gaps[i][places] for i, places in zip(left, tried, strict=True)]),
                scale,
            )
            ends = np.cumsum([len(places) for places in tried])[:-1]
            for i, places, hits in zip(left, tried, np.split(accepted, ends), strict=True):
                if hits.any():
                    chosen[i] = int(places[int(np.argmax(hits))])
        return chosen

    def exp1(self, parts: NDArray[np.int64], scale: int) -> NDArray[np.bool_]:
        """Bernoulli draws of exp(-part / scale) for parts up to the scale, by integers alone.

        Count how long draws of (part/scale)/1, (part/scale)/2, ... succeed, the first failure
        included: the count is k with probability x^(k-1)/(k-1)! - x^k/k!, and odd with the sum
        1 - x + x^2/2! - ... = exp(-x) (von Neumann; Canonne, Kamath and Steinke 2020). A scale
        below 2^53 has room for 2^11 draws in a row; more succeed with a chance of 1/2048!.
        """
        count = np.zeros(len(parts), np.int64)
        active, k = np.arange(len(parts)), 1
        while len(active):
            count[active] = k
            drawn = self.below(len(active), scale * k)
            active = active[drawn < parts[active].view(np.uint64)]
            k += 1
        return np.asarray(count % 2 == 1)

    def geometrics(self, size: int, numerator: int, denominator: int = 1) -> NDArray[np.int64]:
        """Draw g >= 0 in proportion to exp(-g / scale), scale = numerator / denominator, exactly.

        Canonne, Kamath and Steinke (2020), algorithm 2. First x = low + numerator high: `low` is
        uniform below the numerator and kept with exp(-low / numerator), `high` counts draws of
        exp(-1) that succeed in a row. So x comes in proportion to exp(-low / numerator - high)
        = exp(-x / numerator). Then g = floor(x / denominator) gathers `denominator` integers in a
        row, whose chances add up to exp(-g / scale) times what is the same for every g.

        A numerator below 2^53 and `high` below 2^10 keep x below 2^63. A larger `high` has a
        probability of exp(-1024); it is refused, never cut off.
        """
        kept = np.zeros(0, np.int64)
        while len(kept) < size:
            low = self.below(2 * (size - len(kept)) + 16, numerator).view(np.int64)
            kept = np.concatenate([kept, low[self.exp1(low, numerator)]])
        low, high = kept[:size], np.zeros(size, np.int64)
        alive, ones = np.arange(size), np.ones(size, np.int64)
        while len(alive):
            alive = alive[self.exp1(ones[: len(alive)], 1)]
            high[alive] += 1
        if high.max(initial=0) >= 2**10:
            raise PlanError("a draw of noise was out of range; nothing was sent")
        return np.asarray((low + numerator * high) // denominator)

    def laplaces(self, size: int, numerator: int, denominator: int = 1) -> NDArray[np.int64]:
        """Draw x in proportion to exp(-|x| / scale), scale = numerator / denominator, exactly.

        It is a geometric number with a fair sign. Zero would come with both, so one is refused.
        """
        accepted = np.zeros(0, np.int64)
        while (left := size - len(accepted)) > 0:
            drawn = self.geometrics(left + left // 8 + 8, numerator, denominator)
            negative = self.below(len(drawn), 2) == 1
            drawn = np.where(negative, -drawn, drawn)[~(negative & (drawn == 0))]
            accepted = np.concatenate([accepted, drawn])
        return accepted[:size]
