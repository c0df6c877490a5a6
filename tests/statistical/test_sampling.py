"""The compiled sampler is exact: probabilities, tails, and a stream that it reads word by word."""

from __future__ import annotations

import importlib.util
import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray
from scipy import stats

from hedgerow.privacy.noise import discrete_gaussian, mechanisms
from hedgerow.privacy.noise.mechanisms import SecureSource
from tests.statistical.measures import (
    UNNOTICED,
    Floats,
    counts_fit,
    counts_unnoticed,
    follows_normal,
    hits_fit,
    mean_fits,
    samples_agree,
    variance_fits,
)

HAPPENS = 2**64 - 5  # a word that makes an event of chance exp(-1/2) at its first step
Draw = Callable[[int, int], NDArray[np.int64]]
Exponent = Callable[[Floats, int], Floats]


def draw(size: int, sigma: int) -> NDArray[np.int64]:
    return SecureSource().gaussian(size, float(sigma))


def exponent(number: Floats, sigma: int) -> Floats:
    """Minus the logarithm of a number's weight: the promised distribution."""
    return number**2 / (2.0 * sigma**2)


def cell_chances(sigma: int, exponent: Exponent = exponent) -> Floats:
    """Chances of -4 sigma to 4 sigma one by one, and of all that lies beyond."""
    number = np.arange(-12.0 * sigma, 12.0 * sigma + 1)
    weights = np.exp(-exponent(number, sigma))
    inside = np.abs(number) <= 4 * sigma
    return np.append(weights[inside], weights[~inside].sum()) / weights.sum()


def cell_counts(draws: NDArray[np.int64], sigma: int) -> NDArray[np.int64]:
    """How many draws fell into each of those cells."""
    most = 4 * sigma
    near = np.abs(draws) <= most
    seen = np.bincount(draws[near] + most, minlength=2 * most + 1)
    return np.append(seen, np.sum(~near))


def fits(draw: Draw, sigma: int, n: int = 60_000) -> bool:
    """Draws against the exact probabilities of a small sigma."""
    return counts_fit(cell_counts(draw(n, sigma), sigma), cell_chances(sigma))


def some_words(n: int) -> NDArray[np.uint64]:
    return np.frombuffer(os.urandom(8 * n), np.uint64).copy()


def read(words: NDArray[np.uint64], sigma: int, size: int) -> tuple[NDArray[np.int64], int]:
    """Numbers that these words give, and how many of the words they took."""
    out = np.zeros(size, np.int64)
    done, used = discrete_gaussian.gaussians(words, np.full(size, sigma), out, 0)
    return out[:done], int(used)


@pytest.mark.parametrize("sigma", [1, 2, 3, 7])
def test_small_widths_have_the_exact_probabilities(sigma: int) -> None:
    assert fits(draw, sigma)


@pytest.mark.parametrize("log2_sigma", [20, 40, 56])
def test_large_widths_have_the_moments_and_tails_of_a_normal(log2_sigma: int) -> None:
    n, sigma = 100_000, 2**log2_sigma - 12345
    draws = draw(n, sigma) / sigma
    assert mean_fits(draws, 1.0)
    assert variance_fits(draws, 1.0)
    assert follows_normal(draws)
    for bound in (0.5, 1.0, 2.0, 3.0, 3.9):  # around whole multiples the pieces meet
        tail = int(np.sum(np.abs(draws) > bound))
        assert hits_fit(tail, n, 2 * stats.norm.sf(bound))


def test_the_last_digits_are_even() -> None:
    digits = np.bincount(draw(100_000, 2**40) % 256, minlength=256)
    assert counts_fit(digits, np.full(256, 1 / 256))


def test_draws_look_like_those_of_another_exact_sampler() -> None:
    """OpenDP's discrete Gaussian, on zeros."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    theirs = make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=40.0)
    one, two = np.array(theirs([0] * 30_000)), draw(30_000, 40)
    edges = np.arange(-120, 121, 10)
    table = [np.bincount(np.searchsorted(edges, d), minlength=len(edges) + 1) for d in (one, two)]
    assert samples_agree(*table)


def test_a_width_between_two_steps_is_rounded_up() -> None:
    assert fits(lambda n, sigma: SecureSource().gaussian(n, sigma - 0.9), 3)
    share = mechanisms.add_gaussian(np.zeros(60_000, np.uint64), [60_000], [4.0], 1 / 3)
    assert fits(lambda *_: share.view(np.int64), 3)  # 4 / sqrt(3) is 2.31


def test_words_that_come_in_pieces_give_the_same_numbers() -> None:
    """A number that ran out of words is not dropped for one that needs fewer."""
    words = some_words(4_000)
    whole, _ = read(words, 1000, 150)
    assert len(whole) == 150
    pieces: list[int] = []
    first, stop = 0, 1
    while len(pieces) < 150:
        found, used = read(words[first:stop], 1000, 150 - len(pieces))
        pieces += found.tolist()
        first, stop = first + used, stop + 1 + stop % 7
    assert pieces == whole.tolist()


def test_no_two_numbers_share_a_word() -> None:
    words, first, one_by_one = some_words(4_000), 0, []
    for _ in range(100):  # each begins where the one before ended
        found, used = read(words[first:], 999, 1)
        assert used >= 4  # a step, a sign, a place, and whether it is kept
        one_by_one += found.tolist()
        first += used
    assert one_by_one == read(words, 999, 100)[0].tolist()
    assert read(words, 999, 100)[1] == first


def test_numbers_of_different_widths_are_what_each_would_be_alone() -> None:
    words, widths, alone, first = some_words(4_000), [1, 7, 7, 2**26, 3, 2**56] * 10, [], 0
    for width in widths:
        found, used = read(words[first:], width, 1)
        alone += found.tolist()
        first += used
    out = np.zeros(60, np.int64)
    done, used = discrete_gaussian.gaussians(words, np.array(widths), out, 0)
    assert (done, used) == (60, first)
    assert out.tolist() == alone


def test_every_batch_has_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of pairs of 6,000 numbers 0.076 are expected to share one (0.28 / 2^26 a pair), and twenty do
    with a chance below 0.076^20 / 20! = 2e-41."""
    keys: list[bytes] = []

    def noted(size: int) -> bytes:
        keys.append(honest(size))
        return keys[-1]

    honest = os.urandom
    monkeypatch.setattr(os, "urandom", noted)
    one, two = draw(3_000, 2**26), draw(3_000, 2**26)
    assert [len(key) for key in keys] == [32, 32]
    assert keys[0] != keys[1]
    assert len(np.unique(np.concatenate([one, two]))) > 5_980


def test_no_decision_is_made_in_floating_point() -> None:
    loop = njit(error_model="numpy")(discrete_gaussian.gaussians.py_func)
    loop(some_words(4), np.full(1, 5), np.zeros(1, np.int64), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (text,) = loop.inspect_llvm().values()
    assert "udiv" in text
    assert "double" not in text


def wholes(k: int) -> list[int]:
    """Words that make a proposal of k whole deviations: as many events, one that is none, and
    those that keep so large a k."""
    return [HAPPENS] * k + [0, HAPPENS] + [HAPPENS] * (k * (k - 1))


def test_the_largest_number_fits_and_larger_ones_are_reported() -> None:
    top = 255 * 2**56  # 255 whole sigmas below 2**64
    rest = [HAPPENS, top - 1] + [top - 1] * 62 + [HAPPENS]  # plus, the last place, kept
    draws, _ = read(np.array(wholes(62) + rest, np.uint64), 2**56, 1)
    assert draws.tolist() == [63 * 2**56 - 1]
    words, out = np.array(wholes(63), np.uint64), np.zeros(1, np.int64)
    assert (
        discrete_gaussian.gaussians(words, np.full(1, 2**56), out, 0)[0]
        == discrete_gaussian.OUT_OF_RANGE
    )


@pytest.mark.parametrize("word", [0, 1, HAPPENS, 2**64 - 1])
def test_a_stream_of_one_word_gives_nothing_and_ends(word: int) -> None:
    assert len(read(np.full(3_000, word, np.uint64), 1000, 1)[0]) == 0


def without_the_last_step(number: Floats, sigma: int) -> Floats:
    return exponent(number, sigma) - (np.abs(number) % sigma / sigma) ** 2 / 2


def with_two_zeros(number: Floats, sigma: int) -> Floats:
    return exponent(number, sigma) - math.log(2) * (number == 0)


def without_thinning(number: Floats, sigma: int) -> Floats:
    k = np.abs(number) // sigma
    return exponent(number, sigma) - k * (k - 1) / 2 + k / 2


# What is wrong: the piece of source, what stands there instead, and the distribution that follows
BROKEN: dict[str, tuple[str, str, Exponent]] = {
    "the last step of keeping is left out": (
        "at = _exp(words, at, TWO, twice, low, top)",
        "at += 1",
        without_the_last_step,
    ),
    "zero comes with both signs": (
        "if negative and k == 0 and j < ONE:",
        "if k < 0:",
        with_two_zeros,
    ),
    "k is not thinned out": ("tries = k * (k - 1)", "tries = k", without_thinning),
}


def broken(old: str, new: str, folder: Path) -> Any:
    """The sampler with one piece of its source replaced, and a cache of its own."""
    source = Path(discrete_gaussian.__file__).read_text("utf-8")
    assert source.count(old) == 1
    (folder / "broken.py").write_text(source.replace(old, new))
    spec = importlib.util.spec_from_file_location("broken", folder / "broken.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_sampler_is_found(
    what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With a deviation of two and 60,000 draws the first defect passed one run in eight."""
    n, sigma = 100_000, 4
    old, new, exponent = BROKEN[what]
    monkeypatch.setattr(discrete_gaussian, "gaussians", broken(old, new, tmp_path).gaussians)
    assert not fits(draw, sigma, n)
    true = cell_chances(sigma, exponent)
    assert counts_unnoticed(n, cell_chances(sigma), true) < UNNOTICED
    # The defect does what its distribution says, so the chance above is the right one.
    assert counts_fit(cell_counts(draw(n, sigma), sigma), true)


def test_fresh_words_for_unfinished_numbers_are_found() -> None:
    """Dropping words with the number that needed more favours numbers that need few.

    Of 60,000 numbers from pieces of eight words 0.247 were zero, where 0.199 should be; 30,000 of
    which only 0.24 are would pass with a chance far below that of a false alarm.
    """
    rest = np.array([0.1995, 0.8005]), np.array([0.24, 0.76])
    assert counts_unnoticed(30_000, *rest) < UNNOTICED

    def careless(size: int, sigma: int) -> NDArray[np.int64]:
        found = np.zeros(0, np.int64)
        while len(found) < size:
            found = np.append(found, read(some_words(8), sigma, 8)[0])
        return found[:size]

    assert not fits(careless, 2, 30_000)
