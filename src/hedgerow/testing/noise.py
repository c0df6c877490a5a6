"""Noise for tests: switched off, or seeded. Models made with either say "not private"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.rng import stream
from hedgerow.privacy.noise.mechanisms import noise_from


class _Off:
    name = "switched off"

    def choose(self, utilities: Sequence[NDArray[np.int64]], scale: int, how: str) -> list[int]:
        return [int(np.argmax(one)) for one in utilities]

    def gaussian(self, size: int, sigma: float | NDArray[np.float64]) -> NDArray[np.int64]:
        return np.zeros(size, np.int64)

    def laplace(self, size: int, scale: float, shares: int = 1) -> NDArray[np.int64]:
        return np.zeros(size, np.int64)

    def below(self, size: int, limit: int) -> None:
        return None


class _Seeded:
    name = "seeded"

    def __init__(self, seed: int) -> None:
        self._rng = stream(seed, "test noise")

    def choose(self, utilities: Sequence[NDArray[np.int64]], scale: int, how: str) -> list[int]:
        gumbel = [self._rng.gumbel(size=len(one)) for one in utilities]
        return [int(np.argmax(u / scale + g)) for u, g in zip(utilities, gumbel, strict=True)]

    def gaussian(self, size: int, sigma: float | NDArray[np.float64]) -> NDArray[np.int64]:
        return np.rint(self._rng.normal(0.0, sigma, size)).astype(np.int64)

    def laplace(self, size: int, scale: float, shares: int = 1) -> NDArray[np.int64]:
        ends = -np.expm1(-1 / scale)
        sides = self._rng.negative_binomial(1 / shares, ends, (2, size))
        return np.asarray(sides[0] - sides[1], np.int64)

    def below(self, size: int, limit: int) -> NDArray[np.uint64]:
        return self._rng.integers(0, limit, size, np.uint64)


@contextmanager
def noise_off() -> Iterator[None]:
    """No noise inside the block: for comparing sums and models exactly."""
    with noise_from(_Off()):
        yield


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Reproducible noise inside the block."""
    with noise_from(_Seeded(seed)):
        yield
