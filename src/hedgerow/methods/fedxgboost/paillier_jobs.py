"""Arithmetic of Paillier's encryption on pieces of arrays: what `processes.py` has done elsewhere.

A ciphertext of m is (1 + m n) r^n modulo n^2 with a random r; products of ciphertexts are
ciphertexts of sums. Numbers travel as big-endian bytes of a fixed width. The random r is key
material, not noise: it hides which ciphertexts are equal and adds nothing to what is decrypted, so
it is drawn here, from the operating system, and not in `privacy/noise/mechanisms.py`.
"""

from __future__ import annotations

import secrets
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError, SettingsError
from hedgerow.packing import pack, unpack

try:
    import gmpy2
except ImportError as missing:
    raise SettingsError(
        "Paillier's encryption needs other packages. Nothing was sent. Install them with "
        "pip install 'hedgerow[vertical]', or choose another protection."
    ) from missing

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


def width_of(n: int) -> int:
    """Bytes of a ciphertext."""
    return (2 * n.bit_length() + 7) // 8


def to_rows(numbers: Iterable[Any], width: int) -> Bytes:
    """Large numbers as (number, byte)."""
    raw = b"".join(one.to_bytes(width, "big") for one in numbers)
    return np.frombuffer(raw, np.uint8).reshape(-1, width)


def from_rows(rows: Bytes, n_squared: Any) -> list[Any]:
    """The ciphertexts in (number, byte); refused unless they lie between 0 and n^2."""
    numbers = [gmpy2.mpz(int.from_bytes(row.tobytes(), "big")) for row in rows]
    if numbers and not (min(numbers) > 0 and max(numbers) < n_squared):
        raise FormatError("numbers that should be encrypted are not; nothing was computed")
    return numbers


def packed(values: Sequence[int], field_bits: int) -> int:
    """Signed numbers side by side in one: the sum of v_i 2^(i field_bits).

    Sums of packed numbers are packed sums, borrowed bits included, as long as every sum fits.
    """
    total = 0
    for value in reversed(values):
        total = (total << field_bits) + value
    return total


def unpacked(total: int, count: int, field_bits: int) -> list[int]:
    """The inverse of `packed`, for numbers from -2^(field_bits - 1) up to below 2^that.

    Whatever is left over is left out. Sums of gradients leave nothing; whether made-up ones do may
    depend on labels, so it must not show.
    """
    half, mask = 1 << (field_bits - 1), (1 << field_bits) - 1
    found = []
    for _ in range(count):
        value = ((total + half) & mask) - half
        found.append(value)
        total = (total - value) >> field_bits
    return found


class Powers:
    """Powers of one number: a table of its powers to d 256^i, one product for each byte of x."""

    def __init__(self, base: Any, modulus: Any, width: int) -> None:
        self.modulus, self.width = modulus, width  # bytes of an exponent
        self.table: list[list[Any]] = []
        for _ in range(self.width):
            row = [gmpy2.mpz(1)]
            for _ in range(255):
                row.append(row[-1] * base % modulus)
            self.table.append(row)
            base = row[-1] * base % modulus

    def power(self, x: int) -> Any:
        found = gmpy2.mpz(1)
        for row, digit in zip(self.table, x.to_bytes(self.width, "little"), strict=True):
            found = found * row[digit] % self.modulus
        return found


class OwnRandom:
    """Random n-th powers modulo n^2 by whoever knows p, q and a generator of each.

    Modulo p^2 an n-th power of a random r is a random element of the subgroup of order p - 1: r ->
    r^p depends on r modulo p only and takes each of its elements once, and the power of q that is
    left permutes them, since q has no factor in common with p - 1. With g a generator modulo p, g^p
    is one of that subgroup, so its power with a random exponent below p - 1 has the same
    distribution; the same modulo q^2, and both together by the Chinese remainder theorem.
    """

    def __init__(self, p: int, q: int, g: int, h: int) -> None:
        self.p, self.q = p, q
        self.p2, self.q2 = gmpy2.mpz(p) ** 2, gmpy2.mpz(q) ** 2
        self.squares = gmpy2.invert(self.p2, self.q2)
        self.of_p = Powers(gmpy2.powmod(g, p, self.p2), self.p2, (p.bit_length() + 7) // 8)
        self.of_q = Powers(gmpy2.powmod(h, q, self.q2), self.q2, (q.bit_length() + 7) // 8)

    def draw(self) -> Any:
        a = self.of_p.power(secrets.randbelow(self.p - 1))
        b = self.of_q.power(secrets.randbelow(self.q - 1))
        return a + self.p2 * ((b - a) * self.squares % self.q2)


@lru_cache(maxsize=2)  # some 20 MB each
def _random(p: str, q: str, g: str, h: str) -> OwnRandom:
    return OwnRandom(int(p, 16), int(q, 16), int(g, 16), int(h, 16))


class Decryption:
    """Decryption by whoever knows p and q."""

    def __init__(self, p: int, q: int) -> None:
        self.p, self.q = gmpy2.mpz(p), gmpy2.mpz(q)
        self.n = self.p * self.q
        self.p2, self.q2 = self.p**2, self.q**2
        self.primes = gmpy2.invert(self.p, self.q)
        # With 1 + n as the base, c^(p - 1) is 1 + m (p - 1) n modulo p^2, and (p - 1) q is -q.
        self.h_p = gmpy2.invert(-self.q, self.p)
        self.h_q = gmpy2.invert(-self.p, self.q)

    def decrypted(self, ciphertext: Any) -> int:
        """The number between -n/2 and n/2 that was encrypted."""
        a = gmpy2.powmod(ciphertext, self.p - 1, self.p2)
        b = gmpy2.powmod(ciphertext, self.q - 1, self.q2)
        m_p = (a - 1) // self.p * self.h_p % self.p
        m_q = (b - 1) // self.q * self.h_q % self.q
        m = m_p + self.p * ((m_q - m_p) * self.primes % self.q)
        return int(m - self.n if m > self.n // 2 else m)


@lru_cache(maxsize=4)
def _decryption(p: str, q: str) -> Decryption:
    return Decryption(int(p, 16), int(q, 16))


def random_power(n: Any, n_squared: Any) -> Any:
    """A random n-th power modulo n^2, without knowing the factors of n."""
    while True:
        r = secrets.randbelow(int(n) - 1) + 1
        if gmpy2.gcd(r, n) == 1:
            return gmpy2.powmod(r, n, n_squared)


def encrypt(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Bytes:
    """(row, field) numbers to (row, byte) ciphertexts."""
    p, q, g, h = (values[name] for name in ("p", "q", "g", "h"))
    n, bits = gmpy2.mpz(p, 16) * gmpy2.mpz(q, 16), int(values["field_bits"])
    random, n2 = _random(p, q, g, h), n**2
    rows = arrays["numbers"].tolist()
    made = ((1 + packed(row, bits) % n * n) * random.draw() % n2 for row in rows)
    return to_rows(made, width_of(int(n)))


def add(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Bytes:
    """Multiply (row, byte) ciphertexts into cells: cells (row, column), -1 for none."""
    n = gmpy2.mpz(values["n"], 16)
    n2, one = n**2, gmpy2.mpz(1)
    sums = [one] * int(values["n_cells"])
    ciphertexts = from_rows(arrays["ciphertexts"], n2)
    for ciphertext, cells in zip(ciphertexts, arrays["cells"].tolist(), strict=True):
        for cell in cells:
            if cell >= 0:
                sums[cell] = sums[cell] * ciphertext % n2
    return to_rows(sums, width_of(int(n)))


def multiply(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Bytes:
    """Cell by cell the sum, or with `less` the difference, of two lists of sums."""
    n = gmpy2.mpz(values["n"], 16)
    n2 = n**2
    one, two = (from_rows(arrays[name], n2) for name in ("one", "two"))
    if values["less"]:
        two = [gmpy2.invert(c, n2) if c != 1 else c for c in two]
    made = (a * b % n2 for a, b in zip(one, two, strict=True))
    return to_rows(made, width_of(int(n)))


def close(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Bytes:
    """Put `together` sums into one ciphertext each and make these unrecognisable.

    Whoever made the ciphertexts knows their r, and the product of some of them could tell it which
    ones were added. Times the n-th power of a fresh random number, a sum is any of its ciphertexts
    with the same chance: nothing is left in it but what it decrypts to.
    """
    n = gmpy2.mpz(values["n"], 16)
    n2, together = n**2, int(values["together"])
    shift = gmpy2.mpz(1) << int(values["sum_bits"])
    sums, made = from_rows(arrays["sums"], n2), []
    for first in range(0, len(sums), together):
        total = random_power(n, n2)
        product = gmpy2.mpz(1)
        for ciphertext in reversed(sums[first : first + together]):  # Horner
            product = gmpy2.powmod(product, shift, n2) * ciphertext % n2
        made.append(total * product % n2)
    return to_rows(made, width_of(int(n)))


def decrypt(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Ints:
    """(ciphertext, byte) to (ciphertext, number): what was packed side by side."""
    own, count = _decryption(values["p"], values["q"]), int(values["count"])
    numbers = from_rows(arrays["ciphertexts"], own.n**2)
    found = [unpacked(own.decrypted(c), count, int(values["field_bits"])) for c in numbers]
    return np.array(found, np.int64).reshape(-1, count)


Job = Callable[[dict[str, Any], dict[str, NDArray[Any]]], NDArray[Any]]
JOBS: dict[str, Job] = {
    "encrypt": encrypt,
    "add": add,
    "multiply": multiply,
    "close": close,
    "decrypt": decrypt,
}


def done_job(job: bytes) -> bytes:
    """A job done: a byte that says whether it could be, then an array or the reason."""
    values, arrays = unpack(job)
    try:
        return b"\x00" + pack({}, {"made": JOBS[values["do"]](values, arrays)})
    except FormatError as error:
        return b"\x01" + str(error).encode("utf-8")
    except ZeroDivisionError:  # a number that has a factor in common with n
        return b"\x01numbers that should be encrypted are not; nothing was computed"


def write_frame(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(struct.pack("<Q", len(data)))
    pipe.write(data)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> bytes:
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError("no more frames")
    (size,) = struct.unpack("<Q", head)
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError("a frame is cut short")
    return data


def main() -> None:
    """Do jobs from standard input until it ends."""
    source, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            write_frame(answers, done_job(read_frame(source)))
        except (EOFError, BrokenPipeError):
            return


if __name__ == "__main__":
    main()
