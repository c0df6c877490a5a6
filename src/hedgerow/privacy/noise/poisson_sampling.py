"""Poisson sampling: which rows take part in a round, independently, and the same after a restart.

The draws come from a ChaCha20 stream whose key only the party has. Whoever knew them would see the
round without its sampling, so they are never sent, and no ledger has them.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
from hedgerow.privacy.accounting.rounds import Draw

# The label that keys are derived with and the suffix of a stored key. Both are formats, older than
# the words of this module: with other ones a run that is resumed would draw other rows.
_LABEL = "hedgerow coins 1"
KEY_SUFFIX = ".coins"
KEY_BYTES = 32
Persons = NDArray[np.uint64] | None


@dataclass(frozen=True)
class PoissonSampler:
    """Draws the rows of one party that take part in one round of one plan.

    The key is good for this round alone.
    """

    key: bytes
    draw: Draw

    @staticmethod
    def of(secret: bytes, about: Sequence[str], draw: Draw) -> PoissonSampler:
        """The sampler of a round; `about` names the party, the plan and its line in the ledger.

        Parties of one process may share a secret, a plan may be run over two ledgers, and no two
        rows or runs may share a draw. Two samples of one round would do no harm (their costs
        add up to less than that of both questions on one sample); one sample for two rounds would.
        """
        return PoissonSampler(_derived(secret, [_LABEL, *about, draw.round]), draw)

    def to_dict(self) -> dict[str, Any]:
        return {"key": self.key.hex(), "round": self.draw.round, "rate": self.draw.rate}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> PoissonSampler:
        draw = Draw(int(values["round"]), float(values["rate"]))
        return PoissonSampler(bytes.fromhex(values["key"]), draw)

    def part(self, number: int) -> PoissonSampler:
        """The sampler of one of several parts of a party's rows, independent of the others.

        A person with rows in several parts is drawn in each of them. That costs no more than one
        draw for all: docs/proofs/poisson-sampling.md.
        """
        return PoissonSampler(_derived(self.key, [_LABEL, "part", number]), self.draw)

    def taken(self, n_rows: int, persons: Persons = None) -> NDArray[np.int64]:
        """The indices of the rows that take part, each with probability at most `draw.rate`.

        All rows of a person share one draw, because the promise is about the person.
        """
        if persons is None:
            return np.flatnonzero(self._draws(n_rows))
        distinct, person_of = np.unique(persons, return_inverse=True)
        return np.flatnonzero(self._draws(len(distinct))[person_of])

    def _draws(self, n: int) -> NDArray[np.bool_]:
        stream = Cipher(ChaCha20(self.key, bytes(16)), mode=None).encryptor()
        words = np.frombuffer(stream.update(bytes(4 * n)), "<u4")
        return np.asarray(words < math.floor(self.draw.rate * 2**32))  # never more than the rate


def _derived(secret: bytes, about: list[object]) -> bytes:
    return HKDF(hashes.SHA256(), KEY_BYTES, None, canonical_json(about)).derive(secret)


def stored_key(path: Path) -> bytes:
    """The key in a file that only its owner can read; made when it is first needed."""
    with suppress(FileNotFoundError):
        return _read_key(path)
    # Written beside it first: another process finds a whole key or none.
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(os.urandom(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # the other process was quicker
            os.link(beside, path)
    finally:
        os.unlink(beside)
    return _read_key(path)


def _read_key(path: Path) -> bytes:
    """The key in the file, unless somebody else may know it: samples are secret or no use."""
    with path.open("rb") as file:
        about, key = os.fstat(file.fileno()), file.read(KEY_BYTES + 1)
    if about.st_uid != os.geteuid() or about.st_mode & 0o077:
        raise LedgerError(
            f"{path} belongs to another account, or others may open it: they would know which rows "
            "are drawn. Nothing was asked. Remove it, and rows are drawn anew."
        )
    if len(key) != KEY_BYTES:
        raise LedgerError(
            f"{path} is no key of {KEY_BYTES} bytes. Nothing was asked. Remove it, and rows are "
            "drawn anew."
        )
    return key
