"""Keys, nonces and noise of a history follow from its seed; outside of the block nothing changes.

Python's own source (`os.urandom`) and the two kinds of keys that OpenSSL would draw by itself are
replaced while a history runs. Production code has no parameter for that.
"""

from __future__ import annotations

import os
import random  # noqa: TID251
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hedgerow.party import witnesses as party_witnesses
from hedgerow.protocol import handshake, identity, masks, messages, witnesses


class Dice:
    """What a history draws: faults, delays and choices from one stream each, bytes from another."""

    def __init__(self, seed: int, name: str) -> None:
        self._random = random.Random(f"hedgerow simulation 1, {seed}, {name}")
        self.unit = self._random.random
        self.between = self._random.uniform
        self.choice = self._random.choice
        self.integer = self._random.randint
        self.bytes = self._random.randbytes
        self.shuffle = self._random.shuffle

    def chance(self, probability: float) -> bool:
        return self.unit() < probability

    def weighted(self, weights: Mapping[str, float]) -> str:
        """One of the names, each as likely as its weight is large."""
        point, names = self.unit() * sum(weights.values()), list(weights)
        for name in names:
            point -= weights[name]
            if point < 0:
                return name
        return names[-1]


# Modules that look at signatures, by a name that they imported.
_VERIFYING = (handshake, messages, witnesses, party_witnesses)


class _SigningKey:
    """An Ed25519 key whose signatures are remembered.

    What a key has signed verifies, always: only signatures that nobody made in this history, those
    that were changed on the way or made up, have to be computed again to be found false.
    """

    def __init__(self, secret: bytes, made: set[tuple[str, bytes, str]]) -> None:
        self._key, self._made = Ed25519PrivateKey.from_private_bytes(secret), made
        self.public_key, self.private_bytes_raw = self._key.public_key, self._key.private_bytes_raw
        self._public = self._key.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> bytes:
        signature = self._key.sign(message)
        self._made.add((self._public, message, signature.hex()))
        return signature


@contextmanager
def secrets_from(dice: Dice) -> Iterator[None]:
    """Inside the block whatever should be unpredictable is drawn from these dice."""

    made: set[tuple[str, bytes, str]] = set()

    class Signing:
        generate = staticmethod(lambda: _SigningKey(dice.bytes(32), made))

    class Masking:
        generate = staticmethod(lambda: X25519PrivateKey.from_private_bytes(dice.bytes(32)))

    real = lru_cache(maxsize=1024)(identity.signed_by)

    def signed_by(public: str, message: bytes, signature: str) -> bool:
        return (public, message, signature) in made or real(public, message, signature)

    changes: list[tuple[Any, str, Any]] = [
        (os, "urandom", dice.bytes),
        (random, "_urandom", dice.bytes),
        (secrets, "token_bytes", lambda nbytes=32: dice.bytes(nbytes or 32)),
        (identity, "Ed25519PrivateKey", Signing),
        (masks, "X25519PrivateKey", Masking),
        *((module, "signed_by", signed_by) for module in _VERIFYING),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
