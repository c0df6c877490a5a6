"""Choices and samples have exactly the probabilities that their privacy is proved for."""

from __future__ import annotations

import math
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

from hedgerow.privacy.accounting.rounds import Draw
from hedgerow.privacy.noise.bernoulli import Sampler
from hedgerow.privacy.noise.mechanisms import choose
from hedgerow.privacy.noise.poisson_sampling import PoissonSampler
from hedgerow.testing import noise_off, seeded
from tests.statistical.measures import (
    UNNOTICED,
    counts_fit,
    counts_unnoticed,
    hits_fit,
    samples_agree,
)

N = 12_000
CASES = [  # utilities and scale
    ([5, 5], 3),
    ([0, 7, 3], 4),
    ([-10, 40, 39, -500], 20),
    ([2**50, 2**50 - 3, 2**50 - 8, 2**50 - 8], 5),  # large ones, whose differences count
]


def softmax(utilities: list[int], scale: int) -> NDArray[np.float64]:
    weights = np.exp((np.array(utilities) - max(utilities)) / scale)
    return np.asarray(weights / weights.sum())


def flipped(utilities: list[int], scale: int) -> NDArray[np.float64]:
    """Permute and flip by its definition: over every order, the first draw that succeeds."""
    odds, n = np.exp((np.array(utilities) - max(utilities)) / scale), len(utilities)
    found = np.zeros(n)
    for order in permutations(range(n)):
        left = 1.0 / math.factorial(n)
        for i in order:
            found[i] += left * odds[i]
            left *= 1 - odds[i]
    return found


EXACT = {"exponential": softmax, "permute-and-flip": flipped}


def drawn(utilities: list[int], scale: int, how: str) -> NDArray[np.int64]:
    places = choose([np.array(utilities, np.int64)] * N, scale, how)
    return np.bincount(places, minlength=len(utilities))


@pytest.mark.parametrize("how", EXACT)
@pytest.mark.parametrize(("utilities", "scale"), CASES, ids=str)
def test_a_choice_has_the_exact_probabilities(utilities: list[int], scale: int, how: str) -> None:
    assert counts_fit(drawn(utilities, scale, how), EXACT[how](utilities, scale))


def test_the_two_selectors_and_other_scales_are_told_apart() -> None:
    utilities, scale = CASES[1]
    for how, chances in (
        ("exponential", flipped(utilities, scale)),
        ("permute-and-flip", softmax(utilities, scale)),
        ("exponential", softmax(utilities, 2 * scale)),
        ("permute-and-flip", flipped(utilities, 2 * scale)),
    ):
        seen = drawn(utilities, scale, how)
        assert counts_unnoticed(seen.sum(), chances, EXACT[how](utilities, scale)) < UNNOTICED
        assert not counts_fit(seen, chances)


@pytest.mark.parametrize("how", EXACT)
def test_no_neighbour_makes_a_choice_more_likely_than_its_price_allows(how: str) -> None:
    """Utilities that one row moves apart by R at most, with scale R / epsilon, exactly."""
    R, epsilon = 4, 0.8
    scale = R / epsilon
    for utilities in ([0, 3, 9], [2, 2, 2], [0, 1, 5]):
        before = EXACT[how](utilities, scale)  # type: ignore[arg-type]
        worst = 0.0
        for moves in product(range(-3, 2), repeat=3):  # from -3 to +1, as gains do
            after = EXACT[how]([u + m for u, m in zip(utilities, moves, strict=True)], scale)  # type: ignore[arg-type]
            worst = max(worst, float(np.abs(np.log(after / before)).max()))
        assert worst <= epsilon + 1e-9
        assert worst > 0.5 * epsilon


def test_permute_and_flip_is_the_noisy_maximum_of_opendp() -> None:
    """Exponential noise on each, the largest wins: the same distribution, another sampler."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    utilities, scale = CASES[2]
    enable_features("contrib")
    space = (vector_domain(atom_domain(T="i64")), linf_distance(T="i64"))
    other = make_noisy_max(*space, max_divergence(), scale=float(scale))
    theirs = np.bincount([other(utilities) for _ in range(2_500)], minlength=4)
    ours = drawn(utilities, scale, "permute-and-flip")
    assert samples_agree(theirs, ours)


@pytest.mark.parametrize("gap", [0, 1, 5, 7, 8, 20, 41])
def test_bernoulli_draws_succeed_with_the_exponential_of_their_gap(gap: int) -> None:
    scale = 7
    hits = Sampler().exp(np.full(N, gap, np.int64), scale)
    assert hits_fit(int(hits.sum()), N, math.exp(-gap / scale))


def test_bernoulli_draws_of_one_call_are_independent() -> None:
    gaps = np.tile(np.array([3, 7, 14], np.int64), N // 3)
    hits = Sampler().exp(gaps, 7).reshape(-1, 3)
    together = int((hits[:, 0] & hits[:, 1]).sum())
    assert hits_fit(together, len(hits), math.exp(-10 / 7))
    following = hits[::2, 0] & hits[1::2, 0]
    assert hits_fit(int(following.sum()), len(following), math.exp(-6 / 7))


def test_lists_of_other_lengths_are_chosen_from_one_by_one() -> None:
    """Any other choice has a chance of 3 exp(-100), over both selectors."""
    lists = [np.array(u, np.int64) for u in ([0, 100], [100, 0, 0], [7])]
    for how in EXACT:
        assert choose(lists, 1, how) == [1, 0, 0]
    with noise_off():
        assert choose(lists, 50, "exponential") == [1, 0, 0]
    with seeded(3):
        one = choose(lists * 9, 60, "exponential")
    with seeded(3):
        assert choose(lists * 9, 60, "exponential") == one


@pytest.mark.parametrize(
    ("utilities", "scale", "how"),
    [([[1, 2]], 0, "exponential"), ([[1, 2]], 2**51, "exponential"), ([[1, 2]], 3, "best"),
     ([], 3, "exponential"), ([[1], []], 3, "permute-and-flip")],
)  # fmt: skip
def test_choices_that_cannot_be_drawn_are_refused(utilities: Any, scale: int, how: str) -> None:
    with pytest.raises(Exception, match="nothing was sent"):
        choose([np.array(u, np.int64) for u in utilities], scale, how)


# Samples of rows

KEY = bytes(range(32))
ROWS = 20_000


def sample(
    round_: int = 0, rate: float = 0.1, key: bytes = KEY, about: tuple[str, ...] = ("a", "plan")
) -> NDArray[np.bool_]:
    found = np.zeros(ROWS, np.bool_)
    found[PoissonSampler.of(key, about, Draw(round_, rate)).taken(ROWS)] = True
    return found


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 0.9])
def test_rows_take_part_as_often_as_stated(rate: float) -> None:
    assert hits_fit(int(sample(rate=rate).sum()), ROWS, rate)


def test_no_row_takes_part_more_often_than_stated() -> None:
    """A rate between two steps of 2**-32 is rounded down: a higher one would cost more."""
    key = PoissonSampler.of(KEY, ("a", "plan"), Draw(0, 0.1)).key
    stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    (word,) = np.frombuffer(stream.update(bytes(4)), "<u4").tolist()  # decides about the first row
    taken = [
        PoissonSampler(key, Draw(0, above / 2**32)).taken(1).tolist()
        for above in (word - 1, word, word + 0.5, word + 1)
    ]
    assert taken == [[], [], [], [0]]


@pytest.mark.parametrize(
    "other",
    [{"round_": 1}, {"about": ("b", "plan")}, {"about": ("a", "another plan")},
     {"about": ("ap", "lan")}, {"key": bytes(32)}],
    ids=str,
)  # fmt: skip
def test_samples_of_rounds_parties_and_plans_know_nothing_of_each_other(
    other: dict[str, Any],
) -> None:
    together = int((sample() & sample(**other)).sum())
    assert hits_fit(together, ROWS, 0.01)


def test_neighbouring_rows_know_nothing_of_each_other() -> None:
    found = sample(rate=0.3)
    assert hits_fit(int((found[:-1] & found[1:])[::2].sum()), ROWS // 2, 0.09)


def test_the_same_key_draws_the_same_rows_again() -> None:
    assert np.array_equal(sample(), sample())


def test_all_rows_of_a_person_share_one_draw() -> None:
    persons = np.repeat(np.arange(5000, dtype=np.uint64) * 977 % 6007, 4)
    rng = np.random.default_rng(1)
    rng.shuffle(persons)
    index = PoissonSampler.of(KEY, ("a", "plan"), Draw(0, 0.2)).taken(ROWS, persons)
    inside = np.zeros(ROWS, np.bool_)
    inside[index] = True
    chosen = set(persons[inside].tolist())
    assert not chosen & set(persons[~inside].tolist())
    assert hits_fit(len(chosen), 5000, 0.2)
