"""Tests draw the same noise whenever they run, from production's own samplers."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.data.rng import fresh_seed
from hedgerow.privacy.noise import mechanisms, secret_randomness
from tests import randomness
from tests.conftest import MIXED, mixed_rows, mixed_table, promise, train
from tests.randomness import NOISE, PROCESSES, REAL, cached, stream_of


def everything(label: str) -> list[object]:
    """One of each thing that is drawn anew in production."""
    zeros = np.zeros(50, np.uint64)
    with stream_of(label):
        utilities = [np.arange(20)] * 30
        return [
            mechanisms.add_gaussian(zeros, [50], [2.0**30]).tolist(),
            mechanisms.add_laplace(zeros, [50], [40.0]).tolist(),
            mechanisms.add_laplace(zeros, [50], [40.0], 3).tolist(),
            mechanisms.choose(utilities, 5, "permute-and-flip"),
            mechanisms.choose(utilities, 5, "exponential"),
            mechanisms.perturb(np.zeros(50), 1.0, "hybrid").tolist(),
            mechanisms.perturb(np.zeros(50), 1.0, "laplace").tolist(),
            mechanisms.randomised_labels(np.zeros(50, np.int64), 9, 0.1).tolist(),
            secret_randomness.words(5).tolist(),
            secret_randomness.shuffled(50).tolist(),
            fresh_seed(),
            secrets.token_hex(8),
        ]


def test_a_label_has_one_stream_and_labels_share_none() -> None:
    before = everything("a test")
    assert everything("a test") == before
    assert not [a for a, b in zip(everything("another"), before, strict=True) if a == b]
    assert not [a for a, b in zip(everything(REAL + "x"), before, strict=True) if a == b]


def test_another_seed_is_other_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    before = everything("a test")
    monkeypatch.setattr(randomness, "SEED", randomness.SEED + 1)
    assert not [a for a, b in zip(everything("a test"), before, strict=True) if a == b]


@pytest.mark.parametrize("method", ["auto", "random-trees", "private-tree"])
def test_models_repeat_and_say_that_their_noise_is_secure(method: str) -> None:
    rows = {"all": mixed_rows(mixed_table(200))}
    settings = {} if method != "random-trees" else {"n_trees": 2, "max_depth": 2}
    models = []
    for _ in range(2):
        with stream_of("a model"):
            models.append(train(rows, MIXED, promise(method), settings, method=method)[0])
    assert models[0].hash == models[1].hash
    assert models[0].statement.guarantee in ("epsilon-delta", "pure")


def gaussian_share() -> NDArray[np.uint64]:
    return mechanisms.add_gaussian(np.zeros(500, np.uint64), [500], [2.0**30])


def laplace_share() -> NDArray[np.uint64]:
    return mechanisms.add_laplace(np.zeros(500, np.uint64), [500], [4.0], 5)


@pytest.mark.parametrize("noise", [gaussian_share, laplace_share])
def test_parties_that_draw_at_the_same_time_draw_the_same_sum(
    noise: Callable[[], NDArray[np.uint64]],
) -> None:
    def sums() -> NDArray[np.uint64]:
        shares: list[NDArray[np.uint64]] = []

        def draw() -> None:
            shares.append(noise())

        with stream_of("threads"):
            threads = [threading.Thread(target=draw) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return np.sum(shares, axis=0, dtype=np.uint64)

    assert np.array_equal(sums(), sums())


def test_a_cached_value_is_the_same_whoever_asks_first() -> None:
    def words() -> list[int]:
        return secret_randomness.words(3).tolist()

    def first_asked_by(label: str) -> list[int]:
        shared = cached(words)
        with stream_of(label) as first:
            secret_randomness.words(3)
            value = shared()
        with stream_of("second") as second:
            assert shared() == value
        assert first.used == second.used == {NOISE}
        return value

    assert first_asked_by("one test") == first_asked_by("another test")


def test_records_say_what_was_used() -> None:
    with stream_of("nothing") as nothing:
        os.urandom(8)
        secrets.token_hex(8)
    assert nothing.used == set()
    with stream_of("noise") as noise:
        mechanisms.add_laplace(np.zeros(1, np.uint64), [1], [1.0])
    assert noise.used == {NOISE}
    with stream_of("process") as process:
        subprocess.run([sys.executable, "-c", ""], check=True)
    assert process.used == {PROCESSES}
