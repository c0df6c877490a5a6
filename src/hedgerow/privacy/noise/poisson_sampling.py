"""Which rows take part in a round: independent secret coins, the same after a restart.

Coins come from a ChaCha20 stream whose key only the party has. Whoever knew them would see the
round without its sampling, so they never leave, and no ledger has them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from hedgerow.errors import LedgerError
from hedgerow.packing import canonical_json
from hedgerow.privacy.accounting.pure import Draw

_LABEL = "hedgerow coins 1"
KEY_BYTES = 32
Persons = NDArray[np.uint64] | None


@dataclass(frozen=True)
class Coins:
    """The coins of one round of one plan at one party: which of its rows take part.

    The key is good for this round alone.
    """

    key: bytes
    draw: Draw

    @staticmethod
    def of(secret: bytes, about: Sequence[str], draw: Draw) -> Coins:
        """`about` names the party, the plan and the line of the ledger that reserved it: parties of
        one process may share a secret, a plan may be run over two ledgers, and no two rows or runs
        may share a coin. Two samples of one round would do no harm (their costs add up to less than
        that of both questions on one sample); one sample for two rounds would.
        """
        return Coins(_derived(secret, [_LABEL, *about, draw.round]), draw)

    def to_dict(self) -> dict[str, Any]:
        return {"key": self.key.hex(), "round": self.draw.round, "rate": self.draw.rate}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Coins:
        draw = Draw(int(values["round"]), float(values["rate"]))
        return Coins(bytes.fromhex(values["key"]), draw)

    def part(self, number: int) -> Coins:
        """Coins of their own for one of several parts of a party's rows."""
        return Coins(_derived(self.key, [_LABEL, "part", number]), self.draw)

    def taken(self, n_rows: int, persons: Persons = None) -> NDArray[np.int64]:
        """Numbers of the rows that take part, each with probability at most `draw.rate`.

        All rows of a person share one coin, because the promise is about the person.
        """
        if persons is None:
            return np.flatnonzero(self._flipped(n_rows))
        different, whose = np.unique(persons, return_inverse=True)
        return np.flatnonzero(self._flipped(len(different))[whose])

    def _flipped(self, n: int) -> NDArray[np.bool_]:
        stream = Cipher(ChaCha20(self.key, bytes(16)), mode=None).encryptor()
        words = np.frombuffer(stream.update(bytes(4 * n)), "<u4")
        return np.asarray(words < math.floor(self.draw.rate * 2**32))  # never more than the rate


def _derived(secret: bytes, about: list[object]) -> bytes:
    return HKDF(hashes.SHA256(), KEY_BYTES, None, canonical_json(about)).derive(secret)


def kept_key(path: Path) -> bytes:
    """The key in a file that only its owner can read; made when it is first needed."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _found_key(path)
    with os.fdopen(handle, "wb") as file:
        fresh = os.urandom(KEY_BYTES)
        file.write(fresh)
        file.flush()
        os.fsync(file.fileno())
    return fresh


def _found_key(path: Path) -> bytes:
    """The key that stands there, unless somebody else may know it: coins are secret or no use."""
    with path.open("rb") as file:
        about, found = os.fstat(file.fileno()), file.read(KEY_BYTES + 1)
    if about.st_uid != os.geteuid() or about.st_mode & 0o077:
        raise LedgerError(
            f"{path} belongs to another account, or others may open it: they would know which rows "
            "are drawn. Nothing was asked. Remove it, and rows are drawn anew."
        )
    if len(found) != KEY_BYTES:
        raise LedgerError(
            f"{path} is no key of {KEY_BYTES} bytes. Nothing was asked. Remove it, and rows are "
            "drawn anew."
        )
    return found
