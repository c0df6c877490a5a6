"""Primes for Paillier's keys, each with a number whose powers are all others below it.

To draw a random power of it is as good as to draw a random number, and much quicker, because its
powers can be kept in a table (`paillier_jobs.py`). A generator is only known as one where the
factors of p - 1 are known, so primes are made as 2 k r + 1 with a random prime r that is 33 bits
shorter and a random k. A large prime factor of p - 1 makes n no easier to factor (it is what
"strong" primes have), and r alone leaves far more primes than can be tried.
"""

from __future__ import annotations

import secrets
from typing import Any

import gmpy2

COFACTOR_BITS = 32
ROUNDS = 40  # of the primality test: a number that is no prime passes with a chance below 4^-40


def prime_with_generator(bits: int) -> tuple[int, int]:
    """A random prime whose two highest bits are set, and a generator of the numbers below it.

    Two such primes have a product of twice as many bits.
    """
    r = _prime(bits - 1 - COFACTOR_BITS)
    least, most = 3 << (bits - 2), (1 << bits) - 1
    first, last = -(-(least - 1) // (2 * r)), (most - 1) // (2 * r)
    while True:
        k = first + secrets.randbelow(last - first + 1)
        p = 2 * k * r + 1
        if gmpy2.is_prime(p, ROUNDS):
            return int(p), generator(int(p), [2, *factors(k), int(r)])


def _prime(bits: int) -> Any:
    while True:
        r = gmpy2.mpz(secrets.randbits(bits) | 1 << (bits - 1) | 1)
        if gmpy2.is_prime(r, ROUNDS):
            return r


def generator(p: int, of_order: list[int]) -> int:
    """A number whose powers modulo p are 1 to p - 1; `of_order` are all prime factors of p - 1."""
    while True:
        g = 2 + secrets.randbelow(p - 3)
        if all(gmpy2.powmod(g, (p - 1) // f, p) != 1 for f in of_order):
            return g


def factors(k: int) -> list[int]:
    """The prime factors of a number of some 32 bits."""
    found, f = [], 2
    k = int(k)
    while f * f <= k:
        if k % f == 0:
            found.append(f)
            while k % f == 0:
                k //= f
        f += 1
    return [*found, k] if k > 1 else found
