"""Model randomness: which questions are asked. The only use of numpy.random in the package.

Everything drawn here is public. Noise never comes from here (see `privacy/mechanisms.py`).
"""

from __future__ import annotations

import secrets

import numpy as np

from hedgerow.packing import digest

Generator = np.random.Generator


def fresh_seed() -> int:
    """A seed from the operating system, for users who did not give one."""
    return secrets.randbits(62)


def stream(seed: int, *path: str | int) -> Generator:
    """An independent generator for one place of one run, e.g. ``stream(seed, "tree", 7)``."""
    key = digest(str(seed), *(str(step) for step in path))
    return np.random.default_rng(int(key[:32], 16))
