"""Secret random numbers that are no noise: directions, choices and orders.

They come from ChaCha20 under a key of the operating system, drawn anew for each call. Nothing here
is charged and no epsilon rests on it; noise is drawn in `mechanisms.py`.
"""

from __future__ import annotations

import math
import secrets

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray


def below(n: int) -> int:
    """A whole number from 0 to n - 1, each as likely."""
    return secrets.randbelow(n)


def words(count: int) -> NDArray[np.uint64]:
    """So many random 64-bit words."""
    stream = Cipher(ChaCha20(secrets.token_bytes(32), bytes(16)), mode=None).encryptor()
    return np.frombuffer(stream.update(bytes(8 * count)), "<u8")


def shuffled(n: int) -> NDArray[np.int64]:
    """0 to n - 1 in a random order."""
    return np.argsort(words(n), kind="stable")


def bits(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Fair random bits."""
    return np.asarray(words(math.prod(shape)) >> np.uint64(63) == 1).reshape(shape)


def uniform(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Uniform values between -1 and 1."""
    drawn = (words(math.prod(shape)) >> np.uint64(11)).astype(np.float64)
    return (drawn * 2.0**-52 - 1.0).reshape(shape)


def normals(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Standard normal numbers (Box and Muller)."""
    n = math.prod(shape)
    half = -(-n // 2)
    uniform = (words(2 * half) >> np.uint64(11)).astype(np.float64)
    radius = np.sqrt(-2.0 * np.log((uniform[:half] + 1.0) * 2.0**-53))
    angle = 2.0 * np.pi * 2.0**-53 * uniform[half:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:n].reshape(shape)
