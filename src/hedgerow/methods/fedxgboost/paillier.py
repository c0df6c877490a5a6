"""Paillier's encryption of gradients, the protection that others use: for comparison.

The active party encrypts the numbers of every row, packed side by side; a passive party adds up
ciphertexts by node and bin without reading them, makes the sums unrecognisable and sends them
back; the active party decrypts exact sums. It learns the sums of every bin, and a passive party
learns nothing but the number of rows, as long as factoring n is hard.

Numbers are whole: gradients on a grid. Keys are made in `paillier_keys.py`, the arithmetic on
arrays is in `paillier_jobs.py`, and the library `phe` reads the same numbers (the tests compare).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError, SettingsError
from hedgerow.methods.fedxgboost.paillier_jobs import width_of
from hedgerow.methods.fedxgboost.processes import Processes
from hedgerow.packing import pack, unpack

BITS = 2048
LEAST_BITS = 1024
MOST_FIELD_BITS = 63  # sums are int64 in the end
ROWS_OF_A_JOB = 4096
CLOSED_OF_A_JOB = 32
Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PublicKey:
    """What passive parties get: the modulus."""

    n: int

    @property
    def bits(self) -> int:
        return self.n.bit_length()

    @property
    def width(self) -> int:
        """Bytes of a ciphertext."""
        return width_of(self.n)

    def to_bytes(self) -> bytes:
        return self.n.to_bytes((self.bits + 7) // 8, "big")

    @staticmethod
    def from_bytes(raw: bytes, least_bits: int = LEAST_BITS) -> PublicKey:
        key = PublicKey(int.from_bytes(raw, "big"))
        if key.bits < least_bits or key.n % 2 == 0:
            raise FormatError(
                f"the key that was sent has {key.bits} bits or is even; at least {least_bits} bits "
                "are needed. Nothing was computed with it."
            )
        return key


@dataclass(frozen=True, repr=False)
class PrivateKey:
    """Stays with the active party."""

    p: int
    q: int
    generators: tuple[int, int]  # modulo p and modulo q

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.p * self.q)

    def _factors(self) -> dict[str, str]:
        return {"p": f"{self.p:x}", "q": f"{self.q:x}"}


def make_key(bits: int = BITS, least_bits: int = LEAST_BITS) -> PrivateKey:
    """A new key from the operating system's randomness."""
    if bits < least_bits or bits % 2:
        raise SettingsError(
            f"a key of {bits} bits: at least {least_bits} and an even number are needed. Nothing "
            "was sent."
        )
    from hedgerow.methods.fedxgboost.paillier_keys import prime_with_generator

    (p, g), (q, h) = prime_with_generator(bits // 2), prime_with_generator(bits // 2)
    return PrivateKey(p, q, (g, h)) if p != q else make_key(bits, least_bits)


@dataclass(frozen=True)
class Packing:
    """How the numbers of a row (g and h of every output) lie in ciphertexts.

    A field has room for the sum over all rows and a sign, so no sum ever runs into another field.
    """

    n_fields: int
    field_bits: int
    key_bits: int

    @staticmethod
    def for_rows(n_fields: int, largest: int, n_rows: int, key_bits: int) -> Packing:
        """`largest` bounds the size of every number of a row."""
        bits = (max(1, largest) * max(1, n_rows)).bit_length() + 1
        if bits > MOST_FIELD_BITS or bits > key_bits - 2 or n_fields < 1:
            raise SettingsError(
                f"sums of {n_rows:,} rows up to {largest:,} each need {bits} bits, more than "
                f"{min(MOST_FIELD_BITS, key_bits - 2)}. Nothing was sent. Take a coarser grid or a "
                "longer key."
            )
        return Packing(n_fields, bits, key_bits)

    @property
    def fields_of_part(self) -> int:
        """Fields in one ciphertext: a row with very many outputs takes several."""
        return min(self.n_fields, (self.key_bits - 2) // self.field_bits)

    @property
    def n_parts(self) -> int:
        return -(-self.n_fields // self.fields_of_part)

    @property
    def together(self) -> int:
        """Sums that are sent back in one ciphertext."""
        return (self.key_bits - 2) // (self.fields_of_part * self.field_bits)

    @property
    def largest_sum(self) -> int:
        return int((1 << (self.field_bits - 1)) - 1)

    def split(self, numbers: Ints) -> Ints:
        """(row, field) to (row x part, field of a part), with zeros where fields are left."""
        padded = np.zeros((len(numbers), self.n_parts * self.fields_of_part), np.int64)
        padded[:, : self.n_fields] = numbers
        return padded.reshape(-1, self.fields_of_part)


def encrypt(key: PrivateKey, numbers: Ints, packing: Packing, processes: Processes) -> Bytes:
    """Numbers (row, field) to ciphertexts (row, part, byte)."""
    most = int(np.abs(numbers).max(initial=0))
    if numbers.ndim != 2 or numbers.shape[1] != packing.n_fields:
        raise SettingsError(f"there are numbers of shape {numbers.shape}, not {packing.n_fields}")
    if most * max(1, len(numbers)) > packing.largest_sum:
        raise SettingsError(
            f"{len(numbers):,} rows with numbers up to {most:,} could exceed the room for their "
            "sums. Nothing was sent."
        )
    g, h = key.generators
    values = {
        "do": "encrypt", **key._factors(), "g": f"{g:x}", "h": f"{h:x}",
        "field_bits": packing.field_bits,
    }  # fmt: skip
    rows = packing.split(numbers)
    step = max(1, min(ROWS_OF_A_JOB, -(-len(rows) // processes.count)))
    jobs = [
        pack(values, {"numbers": rows[first : first + step]}) for first in range(0, len(rows), step)
    ]
    made = _joined(processes.map(jobs), (0, key.public.width), np.uint8)
    return made.reshape(len(numbers), packing.n_parts, key.public.width)


def cells_of(nodes: Ints, codes: NDArray[Any], n_bins: Sequence[int]) -> tuple[Ints, int]:
    """Where rows are added to: (row, column) numbers of cells, and how many there are a node.

    The cells of a node follow each other column by column, `n_bins` of each. Rows whose node is -1
    are in none.
    """
    starts = np.concatenate([[0], np.cumsum(n_bins)]).astype(np.int64)
    cells = nodes[:, None] * starts[-1] + starts[:-1] + codes.astype(np.int64)
    cells[nodes < 0] = -1
    return cells, int(starts[-1])


def add_up(
    key: PublicKey, ciphertexts: Bytes, cells: Ints, n_cells: int, processes: Processes
) -> Bytes:
    """Ciphertexts (row, part, byte) added up by cell: (cell, part, byte). Not for sending yet."""
    _, n_parts, width = ciphertexts.shape
    if width != key.width or cells.max(initial=-1) >= n_cells or len(cells) != len(ciphertexts):
        raise FormatError("encrypted numbers do not fit the rows or the key; nothing was added")
    used = np.flatnonzero((cells >= 0).any(axis=1))
    pieces = [piece for piece in np.array_split(used, processes.count) if len(piece)] or [used]
    values = {"do": "add", "n": f"{key.n:x}", "n_cells": n_cells}
    jobs = [
        pack(values, {"ciphertexts": ciphertexts[piece, part], "cells": cells[piece]})
        for part in range(n_parts)
        for piece in pieces
    ]
    made = _joined(processes.map(jobs), (0, width), np.uint8)
    tables = made.reshape(n_parts, len(pieces), n_cells, width)
    sums = tables[:, 0]
    for number in range(1, len(pieces)):
        sums = _multiplied(key, sums, tables[:, number], False, processes)
    return np.ascontiguousarray(sums.transpose(1, 0, 2))


def subtract(key: PublicKey, whole: Bytes, part: Bytes, processes: Processes) -> Bytes:
    """Sums of the rows of a parent that are not in one child: those of the other child."""
    if whole.shape != part.shape or whole.shape[-1] != key.width:
        raise FormatError("sums of a parent and a child do not fit each other")
    return _multiplied(key, whole, part, True, processes)


def close(key: PublicKey, sums: Bytes, packing: Packing, processes: Processes) -> Bytes:
    """Sums (cell, part, byte) made ready for sending: fewer ciphertexts, none recognisable."""
    flat = sums.reshape(-1, key.width)
    values = {
        "do": "close",
        "n": f"{key.n:x}",
        "together": packing.together,
        "sum_bits": packing.fields_of_part * packing.field_bits,
    }
    n_closed = -(-len(flat) // packing.together)
    step = packing.together * max(1, min(CLOSED_OF_A_JOB, -(-n_closed // processes.count)))
    jobs = [
        pack(values, {"sums": flat[first : first + step]}) for first in range(0, len(flat), step)
    ]
    return _joined(processes.map(jobs), (0, key.width), np.uint8)


def open_sums(
    key: PrivateKey, closed: Bytes, packing: Packing, n_cells: int, processes: Processes
) -> Ints:
    """What `close` made, decrypted: exact sums (cell, field)."""
    n_sums = n_cells * packing.n_parts
    expected = (-(-n_sums // packing.together), key.public.width)
    if closed.dtype != np.uint8 or closed.shape != expected:
        raise FormatError(f"encrypted sums have the shape {closed.shape}, not {expected}")
    values = {
        "do": "decrypt",
        **key._factors(),
        "field_bits": packing.field_bits,
        "count": packing.together * packing.fields_of_part,
    }
    step = max(1, min(CLOSED_OF_A_JOB, -(-len(closed) // processes.count)))
    jobs = [
        pack(values, {"ciphertexts": closed[first : first + step]})
        for first in range(0, len(closed), step)
    ]
    fields = _joined(processes.map(jobs), (0, packing.together * packing.fields_of_part), np.int64)
    sums = fields.reshape(-1, packing.fields_of_part)[:n_sums]
    return sums.reshape(n_cells, -1)[:, : packing.n_fields]


def _multiplied(key: PublicKey, one: Bytes, two: Bytes, less: bool, processes: Processes) -> Bytes:
    values = {"do": "multiply", "n": f"{key.n:x}", "less": less}
    a, b = one.reshape(-1, key.width), two.reshape(-1, key.width)
    step = max(1, min(ROWS_OF_A_JOB, -(-len(a) // processes.count)))
    jobs = [
        pack(values, {"one": a[first : first + step], "two": b[first : first + step]})
        for first in range(0, len(a), step)
    ]
    return _joined(processes.map(jobs), (0, key.width), np.uint8).reshape(one.shape)


def _joined(answers: Sequence[bytes], empty: tuple[int, int], dtype: Any) -> NDArray[Any]:
    parts = [unpack(answer)[1]["made"] for answer in answers]
    return np.concatenate([np.zeros(empty, dtype), *parts])
