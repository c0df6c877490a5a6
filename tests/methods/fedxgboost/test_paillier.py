"""Encrypted sums are the exact sums, agree with `phe`, and do not show what was added."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import gmpy2
import numpy as np
import pytest
from phe import EncryptedNumber, PaillierPrivateKey, PaillierPublicKey

from hedgerow.errors import FormatError, SessionFailed, SettingsError
from hedgerow.methods.fedxgboost import paillier_jobs, paillier_keys
from hedgerow.methods.fedxgboost.paillier import (
    Packing,
    PrivateKey,
    PublicKey,
    add_up,
    cells_of,
    close,
    encrypt,
    make_key,
    open_sums,
    subtract,
)
from hedgerow.methods.fedxgboost.processes import Processes
from tests.statistical.measures import counts_fit

SMALL = 256  # bits: no security, quick


@pytest.fixture(scope="module")
def key() -> PrivateKey:
    return make_key(SMALL, least_bits=SMALL)


@pytest.fixture(scope="module")
def here() -> Processes:
    return Processes(1)


@pytest.fixture(scope="module")
def two() -> Iterator[Processes]:
    with Processes(2) as processes:
        yield processes


def numbers(n_rows: int, n_fields: int, largest: int, seed: int = 0) -> np.ndarray:
    found = np.random.default_rng(seed).integers(-largest, largest + 1, (n_rows, n_fields))
    found[0], found[1] = largest, -largest
    return found


def plain_sums(values: np.ndarray, cells: np.ndarray, n_cells: int) -> np.ndarray:
    sums = np.zeros((n_cells, values.shape[1]), np.int64)
    for column in range(cells.shape[1]):
        used = cells[:, column] >= 0
        np.add.at(sums, cells[used, column], values[used])
    return sums


@pytest.mark.parametrize(("n_fields", "largest"), [(2, 2**20), (2, 1), (6, 2**24), (40, 2**16)])
def test_sums_by_node_and_bin_are_exact(
    key: PrivateKey, here: Processes, n_fields: int, largest: int
) -> None:
    n_rows, n_bins, rng = 60, (5, 3), np.random.default_rng(1)
    values = numbers(n_rows, n_fields, largest)
    nodes = rng.integers(-1, 2, n_rows)
    codes = np.column_stack([rng.integers(0, 4, n_rows), rng.integers(0, 3, n_rows)])
    packing = Packing.for_rows(n_fields, largest, n_rows, SMALL)
    cells, a_node = cells_of(nodes, codes.astype(np.uint8), n_bins)
    assert a_node == 8
    assert cells[nodes == 1, 1].tolist() == (8 + 5 + codes[nodes == 1, 1]).tolist()
    made = encrypt(key, values, packing, here)
    assert made.shape == (n_rows, packing.n_parts, key.public.width)
    sums = add_up(key.public, made, cells, 16, here)
    closed = close(key.public, sums, packing, here)
    found = open_sums(key, closed, packing, 16, here)
    assert np.array_equal(found, plain_sums(values, cells, 16))


def test_all_extreme_rows_in_one_cell_still_fit(key: PrivateKey, here: Processes) -> None:
    largest, n_rows = 2**15 - 1, 33
    for sign in (1, -1):
        values = np.full((n_rows, 3), sign * largest, np.int64)
        values[:, 1] *= -1
        packing = Packing.for_rows(3, largest, n_rows, SMALL)
        cells = np.zeros((n_rows, 1), np.int64)
        sums = add_up(key.public, encrypt(key, values, packing, here), cells, 5, here)
        found = open_sums(key, close(key.public, sums, packing, here), packing, 5, here)
        assert found[0].tolist() == values.sum(axis=0).tolist()
        assert not found[1:].any()


def test_several_processes_compute_the_same(key: PrivateKey, two: Processes) -> None:
    values = numbers(50, 2, 1000)
    packing = Packing.for_rows(2, 1000, 50, SMALL)
    cells = np.random.default_rng(2).integers(-1, 40, (50, 3))
    made = encrypt(key, values, packing, two)
    sums = add_up(key.public, made, cells, 40, two)
    found = open_sums(key, close(key.public, sums, packing, two), packing, 40, two)
    assert np.array_equal(found, plain_sums(values, cells, 40))


def test_the_other_child_is_the_parent_less_one(key: PrivateKey, here: Processes) -> None:
    values = numbers(40, 2, 2**20)
    packing = Packing.for_rows(2, 2**20, 40, SMALL)
    codes = np.random.default_rng(3).integers(0, 6, (40, 1))
    left = np.arange(40) % 3 == 0
    made = encrypt(key, values, packing, here)
    parent = add_up(key.public, made, codes, 6, here)
    child = add_up(key.public, made, np.where(left[:, None], codes, -1), 6, here)
    other = close(key.public, subtract(key.public, parent, child, here), packing, here)
    expected = plain_sums(values[~left], codes[~left], 6)
    assert np.array_equal(open_sums(key, other, packing, 6, here), expected)


def test_phe_reads_our_ciphertexts_and_adds_alike(here: Processes) -> None:
    key = make_key(1024)
    public = PaillierPublicKey(key.public.n)
    private = PaillierPrivateKey(public, key.p, key.q)
    packing = Packing.for_rows(1, 10**6, 3, 1024)
    made = encrypt(key, np.array([[123456], [-654321], [7]]), packing, here)
    whole = [int.from_bytes(row.tobytes(), "big") for row in made[:, 0]]
    assert [private.decrypt(EncryptedNumber(public, c)) for c in whole] == [123456, -654321, 7]
    total = sum((EncryptedNumber(public, c) for c in whole[1:]), EncryptedNumber(public, whole[0]))
    sums = add_up(key.public, made, np.zeros((3, 1), np.int64), 1, here)
    assert int.from_bytes(sums.tobytes(), "big") == total.ciphertext(be_secure=False)
    theirs = np.frombuffer(
        public.raw_encrypt(42).to_bytes(key.public.width, "big"), np.uint8
    ).reshape(1, -1)
    assert open_sums(key, theirs, packing, 1, here).tolist() == [[42]]


def test_equal_numbers_look_different_and_closed_sums_are_new(
    key: PrivateKey, here: Processes
) -> None:
    packing = Packing.for_rows(2, 5, 8, SMALL)
    made = encrypt(key, np.full((8, 2), 3), packing, here)
    assert len(np.unique(made.reshape(8, -1), axis=0)) == 8
    sums = add_up(key.public, made, np.zeros((8, 1), np.int64), 1, here)
    one, other = (close(key.public, sums, packing, here) for _ in range(2))
    assert not np.array_equal(one, other)
    assert not np.array_equal(one, sums[0])
    # The random part r of a ciphertext (1 + m n) r^n: the key's owner can take the root.
    n, phi = key.public.n, (key.p - 1) * (key.q - 1)
    root = gmpy2.invert(n, phi)

    def part(raw: np.ndarray) -> int:
        return int(gmpy2.powmod(int.from_bytes(raw.tobytes(), "big") % n, root, n))

    added = 1
    for row in made[:, 0]:
        added = added * part(row) % n
    assert part(sums[0, 0]) == added  # tells which were added ...
    assert part(one[0]) not in (added, part(other[0]))  # ... and this does not


def test_random_powers_of_the_key_owner_are_nth_powers_of_every_class() -> None:
    """With tiny primes every n-th power comes, each as often as another."""
    own, n = paillier_jobs.OwnRandom(7, 11, 3, 2), 77  # 3 and 2 generate all numbers below
    powers = {pow(r, n, n * n) for r in range(1, n) if r % 7 and r % 11}
    drawn = Counter(int(own.draw()) for _ in range(6000))
    assert set(drawn) == powers  # one is missing with a chance below 60 (59/60)^6000 = 1e-42
    assert len(powers) == 60
    assert counts_fit(np.array([*drawn.values()]), np.full(60, 1 / 60))


def test_powers_by_table_are_powers() -> None:
    table = paillier_jobs.Powers(gmpy2.mpz(5), gmpy2.mpz(10**9 + 7), 3)
    for x in (0, 1, 255, 256, 65537, 2**24 - 1):
        assert table.power(x) == pow(5, x, 10**9 + 7)


@pytest.mark.parametrize("k", [1, 2, 97, 2**31 - 1, 2**32 - 1, 65521**2, 720720])
def test_factors_are_prime_and_all_there(k: int) -> None:
    found, rest = paillier_keys.factors(k), k
    for f in found:
        assert gmpy2.is_prime(f)
        while rest % f == 0:
            rest //= f
    assert rest == 1
    assert len(set(found)) == len(found)


def test_generators_have_every_power_and_others_are_not_taken() -> None:
    for p, of_order in ((7, [2, 3]), (11, [2, 5]), (31, [2, 3, 5]), (211, [2, 3, 5, 7])):
        for g in {paillier_keys.generator(p, of_order) for _ in range(20)}:
            assert {pow(g, x, p) for x in range(p - 1)} == set(range(1, p))


def test_keys_are_of_new_primes_with_generators(key: PrivateKey) -> None:
    other = make_key(SMALL, least_bits=SMALL)
    assert len({key.p, key.q, other.p, other.q}) == 4
    for made in (key, other):
        assert made.public.bits == SMALL
        for p, g in zip((made.p, made.q), made.generators, strict=True):
            assert gmpy2.is_prime(p)
            assert p.bit_length() == SMALL // 2
            assert pow(g, (p - 1) // 2, p) == p - 1  # no square, as no generator is one
    assert gmpy2.gcd(key.public.n, (key.p - 1) * (key.q - 1)) == 1


def test_keys_travel_and_short_ones_are_refused(key: PrivateKey) -> None:
    raw = key.public.to_bytes()
    assert PublicKey.from_bytes(raw, SMALL) == key.public
    with pytest.raises(FormatError, match=r"256 bits.*at least 1024"):
        PublicKey.from_bytes(raw)
    with pytest.raises(SettingsError, match="at least 1024"):
        make_key(512)
    assert str(key.p) not in repr(key)
    assert str(key.generators[0]) not in repr(key)


def test_numbers_without_room_are_refused(key: PrivateKey, here: Processes) -> None:
    with pytest.raises(SettingsError, match="Nothing was sent"):
        Packing.for_rows(2, 2**40, 2**24, 2048)
    packing = Packing.for_rows(2, 10, 4, SMALL)
    with pytest.raises(SettingsError, match="exceed the room"):
        encrypt(key, np.full((4, 2), 100), packing, here)


@pytest.mark.parametrize("count", [1, 2])
def test_bytes_that_are_no_ciphertexts_are_refused(key: PrivateKey, count: int) -> None:
    packing, width = Packing.for_rows(2, 10, 4, SMALL), key.public.width
    cells = np.zeros((4, 1), np.int64)
    with Processes(count) as processes:
        for value in (0, 255):
            wrong = np.full((4, 1, width), value, np.uint8)
            with pytest.raises(FormatError, match="are not"):
                add_up(key.public, wrong, cells, 1, processes)
        factor = np.frombuffer(key.p.to_bytes(width, "big"), np.uint8).reshape(1, 1, width)
        with pytest.raises(FormatError, match="are not"):
            subtract(key.public, np.repeat(factor, 4, 0), np.repeat(factor, 4, 0), processes)
        with pytest.raises(FormatError, match="shape"):
            open_sums(key, np.zeros((2, width), np.uint8), packing, 1, processes)
        with pytest.raises(FormatError, match="do not fit"):
            add_up(key.public, np.ones((4, 1, 3), np.uint8), cells, 1, processes)


def test_a_process_that_dies_is_reported_and_replaced(key: PrivateKey) -> None:
    packing = Packing.for_rows(2, 10, 4, SMALL)
    values = np.ones((4, 2), np.int64)
    with Processes(2) as processes:
        encrypt(key, values, packing, processes)
        processes._started[0].kill()
        processes._started[0].wait()
        with pytest.raises(SessionFailed, match="has ended"):
            encrypt(key, values, packing, processes)
        assert encrypt(key, values, packing, processes).shape[0] == 4
        started = list(processes._started)
    assert [process.returncode for process in started] == [0, 0]  # they end by themselves


def test_processes_end_with_whoever_started_them() -> None:
    code = (
        "from hedgerow.methods.fedxgboost.processes import Processes, _started\n"
        "import os; print(_started().pid, flush=True); os._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    pid = int(done.stdout)
    # The output pipe of `run` is shared by the child: that it returned means that all ended or
    # closed it; the child has a pipe of its own, so look whether it is still there.
    for _ in range(200):
        if not _runs(pid):
            return
        multiprocessing.Event().wait(0.05)
    pytest.fail("a process is left behind")


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _in_a_daemon(answers: multiprocessing.Queue) -> None:  # type: ignore[type-arg]
    key = make_key(SMALL, least_bits=SMALL)
    packing = Packing.for_rows(1, 10, 4, SMALL)
    with Processes(2) as processes:
        made = encrypt(key, np.arange(4)[:, None], packing, processes)
        sums = add_up(key.public, made, np.zeros((4, 1), np.int64), 1, processes)
        closed = close(key.public, sums, packing, processes)
        answers.put(open_sums(key, closed, packing, 1, processes).tolist())


def test_daemons_may_use_processes() -> None:
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=_in_a_daemon, args=(answers,), daemon=True)
    process.start()
    assert answers.get(timeout=600) == [[6]]
    process.join()
    answers.close()
