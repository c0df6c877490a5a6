"""Model randomness: which questions are asked. The only use of numpy.random in the package.

Everything drawn here is public. Noise never comes from here (see `privacy/noise/mechanisms.py`).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.packing import digest

Generator = np.random.Generator


def fresh_seed() -> int:
    """A seed from the operating system, for users who did not give one."""
    return secrets.randbits(62)


def one_of(rng: Generator, among: Sequence[int] | NDArray[np.int64]) -> int:
    """One of these, every one as likely: what `rng.choice` draws, without its long way there."""
    return int(among[int(rng.integers(len(among)))])


def stream(seed: int, *path: str | int) -> Generator:
    """An independent generator for one place of one run, e.g. ``stream(seed, "tree", 7)``."""
    key = digest(str(seed), *(str(step) for step in path))
    return np.random.default_rng(int(key[:32], 16))
