"""Everything that is otherwise drawn, held still: keys, nonces, secret numbers and the clock."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from unittest import mock

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hedgerow.clock import clock_from

NOW = datetime(2026, 1, 2, 3, 4, 5, 500000, tzinfo=UTC)


class _Clock:
    """A clock that stands still."""

    def timestamp(self) -> float:
        return NOW.timestamp()

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        return None


class _Source:
    """Bytes that look random and are the same in every run."""

    def __init__(self, label: str) -> None:
        self._label, self._count = label, itertools.count()

    def take(self, size: int) -> bytes:
        wanted = f"{self._label} {next(self._count)}".encode()
        return hashlib.shake_256(wanted).digest(size)

    def below(self, limit: int) -> int:
        return int.from_bytes(self.take(32 + limit.bit_length() // 8), "little") % limit


@contextmanager
def fixed(label: str) -> Iterator[None]:
    """Inside, what is drawn follows from the label alone."""
    source, signing, masks = (_Source(f"{label} {what}") for what in ("secret", "sign", "mask"))

    def signing_key() -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(signing.take(32))

    def mask_key() -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(masks.take(32))

    changes: list[AbstractContextManager[object]] = [
        mock.patch("secrets.token_hex", lambda size=32: source.take(size).hex()),
        mock.patch("secrets.token_bytes", lambda size=32: source.take(size)),
        mock.patch("secrets.randbelow", source.below),
        mock.patch("secrets.randbits", lambda bits: source.below(1 << bits)),
        mock.patch.object(Ed25519PrivateKey, "generate", signing_key),
        mock.patch.object(X25519PrivateKey, "generate", mask_key),
        clock_from(_Clock()),
    ]  # fmt: skip
    with ExitStack() as stack:
        for change in changes:
            stack.enter_context(change)
        yield
