"""What each way of hedgerow's to speed up Paillier's encryption saves, measured on this machine.

    python benchmarks/paillier_factors.py

A key of 2,048 bits; CPU seconds of one core, the quickest of three repetitions; rows and columns
of table 1 of Le et al. (2021), half of its columns at the passive party. The plain way is that of
the library `phe`: a number a ciphertext, encrypted with the public key, every node added up from
its rows, every sum sent and decrypted by itself. Written to results/paillier_factors.json.
"""

from __future__ import annotations

import argparse
import json
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gmpy2
import numpy as np
from phe import paillier as phe

from hedgerow.methods.fedxgboost import paillier
from hedgerow.methods.fedxgboost.paillier_jobs import Decryption, OwnRandom, random_power
from hedgerow.methods.fedxgboost.processes import Processes
from hedgerow.model.exact import BITS

RESULTS = Path(__file__).parent / "results" / "paillier_factors.json"
ROWS, COLUMNS, BINS, DEPTH, FIELDS = 105_000, 5, 33, 4, 2
TIMED, REPETITIONS = 30, 3


def quickest(work: Callable[[], Any], count: int) -> float:
    """CPU seconds of one of `count` operations."""
    found = []
    for _ in range(REPETITIONS):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found) / count


def measured() -> dict[str, float]:
    """Seconds of one operation of each kind."""
    key = paillier.make_key()
    n, n2 = gmpy2.mpz(key.public.n), gmpy2.mpz(key.public.n) ** 2
    own, public = OwnRandom(key.p, key.q, *key.generators), phe.PaillierPublicKey(key.public.n)
    opening = Decryption(key.p, key.q)
    packing = paillier.Packing.for_rows(FIELDS, 1 << BITS, ROWS, key.public.bits)
    numbers = np.arange(TIMED * FIELDS, dtype=np.int64).reshape(TIMED, FIELDS)
    cells = (np.arange(TIMED)[:, None] + np.arange(COLUMNS)) % TIMED
    with Processes(1) as here:
        made = paillier.encrypt(key, numbers, packing, here)
        sums = paillier.add_up(key.public, made, cells, TIMED, here)
    a, b = (int.from_bytes(sums[i, 0].tobytes(), "big") for i in (0, 1))
    found = {
        "encrypt, phe": quickest(lambda: [public.raw_encrypt(5) for _ in range(TIMED)], TIMED),
        "random power, public key": quickest(
            lambda: [random_power(n, n2) for _ in range(TIMED)], TIMED
        ),
        "random power, key owner, no table": quickest(
            lambda: [_without_table(own) for _ in range(TIMED)], TIMED
        ),
        "random power, key owner": quickest(lambda: [own.draw() for _ in range(TIMED)], TIMED),
        "decrypt": quickest(lambda: [opening.decrypted(gmpy2.mpz(a)) for _ in range(TIMED)], TIMED),
        "add": quickest(lambda: [gmpy2.mpz(a) * b % n2 for _ in range(100 * TIMED)], 100 * TIMED),
        "subtract": quickest(
            lambda: [a * gmpy2.invert(b, n2) % n2 for _ in range(10 * TIMED)], 10 * TIMED
        ),
        "shift one sum beside others": quickest(
            lambda: [
                gmpy2.powmod(a, gmpy2.mpz(1) << packing.fields_of_part * packing.field_bits, n2)
                for _ in range(TIMED)
            ],
            TIMED,
        ),
    }
    return {**found, "sums in one ciphertext": float(packing.together)}


def _without_table(own: OwnRandom) -> None:
    """What the key owner did before there was a table: a power of a random number at each prime."""
    gmpy2.powmod(secrets.randbelow(own.p - 1) + 1, own.p, own.p2)
    gmpy2.powmod(secrets.randbelow(own.q - 1) + 1, own.q, own.q2)


def tree(cost: dict[str, float], ways: set[str]) -> float:
    """CPU seconds of one tree, all parties together, with some of the ways."""
    fields = 1 if "numbers of a row in one ciphertext" in ways else FIELDS
    encrypt = "encrypt, phe"
    if "the key owner's factors" in ways:
        encrypt = "random power, key owner"
        encrypt += "" if "a table of powers" in ways else ", no table"
    seconds = ROWS * fields * cost[encrypt]
    sums = fields * COLUMNS * BINS
    for depth in range(DEPTH):
        nodes = 2**depth
        halved = depth > 0 and "the larger child by subtraction" in ways
        seconds += (ROWS / 2 if halved else ROWS) * COLUMNS * fields * cost["add"]
        seconds += halved * nodes / 2 * sums * cost["subtract"]
        together = cost["sums in one ciphertext"] if "many sums in one ciphertext" in ways else 1
        sent = nodes * sums / together
        seconds += sent * (cost["random power, public key"] + cost["decrypt"])
        seconds += (together > 1) * nodes * sums * cost["shift one sum beside others"]
    return seconds


WAYS = (
    "the key owner's factors", "a table of powers", "numbers of a row in one ciphertext",
    "the larger child by subtraction", "many sums in one ciphertext",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    out = parser.parse_args().out
    cost = measured()
    plain, every = tree(cost, set()), tree(cost, set(WAYS))
    written = {
        "command": "python benchmarks/paillier_factors.py",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {name: version(name) for name in ("hedgerow", "phe", "gmpy2")},
        "rows": ROWS, "columns": COLUMNS, "bins": BINS, "depth": DEPTH, "key_bits": paillier.BITS,
        "seconds_of_one": cost,
        "seconds_a_tree": {"plain": plain, "all": every},
        "factor": plain / every,
        "factor_lost_without": {way: tree(cost, set(WAYS) - {way}) / every for way in WAYS},
    }  # fmt: skip
    out.write_text(json.dumps(written, indent=1) + "\n", "utf-8")
    print(json.dumps(written, indent=1))


if __name__ == "__main__":
    main()
