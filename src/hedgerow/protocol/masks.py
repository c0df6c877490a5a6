"""Secure sum: ChaCha20 streams between neighbours, modulo 2**64, that cancel in the total.

Two parties that are neighbours in the graph of a sum (`mask_graph.py`, with the proof of what is
hidden) share an X25519 secret. The stream of one message is keyed by HKDF over that secret, salted
with all signed announcements and bound to the exact request, so a party that is asked something
else, for another set or another attempt, uses an unrelated mask. No mask is ever recovered: where
a party is lost, the attempt is abandoned and stays charged.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

from hedgerow.errors import FormatError
from hedgerow.packing import canonical_json, digest
from hedgerow.protocol.joined import SumSet

_LABEL = "hedgerow mask 3"
_SEAL = "hedgerow sealed answer 1"
SEAL_BYTES = 16  # by which a sealed answer is longer
MOST_SECRETS = 4096  # that a process keeps; whoever asks names keys to agree with


@dataclass(frozen=True)
class Context:
    """What one masked message answers; everything here is bound into the mask's key."""

    plan: str
    schema: str
    slot: int
    attempt: int
    request: str  # hash of query, ensemble, shape, grid, mechanism, mu, sigma and c
    among: SumSet  # the ordered set of this sum with its keys, and its graph

    @property
    def salt(self) -> bytes:
        return bytes.fromhex(digest(_LABEL, self.among.joined.hash))

    @property
    def info(self) -> bytes:
        """What all streams of the message are for; the pair comes behind it."""
        fields = (self.plan, self.schema, self.slot, self.attempt, self.request)
        among = (self.among.hash, self.among.degree)
        return canonical_json([_LABEL, *fields, *among])


class MaskKeys:
    """One party's X25519 key: new at every process start, kept in memory only."""

    def __init__(self) -> None:
        self._key = X25519PrivateKey.generate()
        self.public = self._key.public_key().public_bytes_raw().hex()
        self._secrets: OrderedDict[str, bytes] = OrderedDict()  # by the other's key

    def mask(self, me: str, context: Context, size: int) -> NDArray[np.uint64]:
        """This party's mask: plus the stream shared with later names, minus with earlier ones."""
        total = np.zeros(size, np.uint64)
        salt, info = context.salt, context.info
        for other in context.among.neighbours(me):
            stream = self._stream(other.key, salt, info + other.pair, size)
            if me < other.name:
                total += stream
            else:
                total -= stream
        return total

    def agree(self, other: str) -> bytes:
        """The secret shared with another party's key; refuses keys that make it predictable."""
        if other not in self._secrets:
            try:
                public = X25519PublicKey.from_public_bytes(bytes.fromhex(other))
                secret = self._key.exchange(public)
            except ValueError as error:
                raise FormatError("a party's mask key is not a valid X25519 key") from error
            while len(self._secrets) >= MOST_SECRETS:
                self._secrets.popitem(last=False)
            self._secrets[other] = secret
        return self._secrets[other]

    def seal(self, other: str, request: str, party: str, data: bytes) -> bytes:
        """An answer that only the owner of the key `other` can read.

        The key is that of one request and one party, which is answered by one message ever, so a
        fixed nonce never meets another text.
        """
        return self._sealing(other, request, party).encrypt(bytes(12), data, None)

    def unseal(self, other: str, request: str, party: str, data: bytes) -> bytes:
        """What was sealed by the owner of the key `other` for this one."""
        try:
            return self._sealing(other, request, party).decrypt(bytes(12), data, None)
        except InvalidTag as error:
            raise FormatError(f"the answer of {party} was sealed for another question") from error

    def _sealing(self, other: str, request: str, party: str) -> ChaCha20Poly1305:
        info = canonical_json([_SEAL, request, party, sorted((self.public, other))])
        return ChaCha20Poly1305(derived(self.agree(other), bytes(32), info))

    def _stream(self, other: str, salt: bytes, info: bytes, size: int) -> NDArray[np.uint64]:
        key = derived(self.agree(other), salt, info)
        # The key is used for this one stream only, so a fixed nonce never repeats with it.
        cipher = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
        return np.frombuffer(cipher.update(bytes(8 * size)), "<u8")


def derived(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """A key of 32 bytes: HKDF with SHA-256 (RFC 5869), of which that is the first block.

    Every message takes some, and a general HKDF takes ten times as long to set up.
    """
    return hmac.digest(hmac.digest(salt, secret, "sha256"), info + b"\x01", "sha256")


def add_modulo(vectors: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """The sum modulo 2**64; masks of a complete set cancel here and nowhere else.

    Vectors are taken one after another: those of many parties need not be there at once.
    """
    rest = iter(vectors)
    total = next(rest).copy()
    for vector in rest:
        total += vector
    return total
