"""Noise on: it is there, it has the stated size, and no two draws have anything in common."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from hedgerow.coordinator.gate import Gate
from hedgerow.data.rng import stream
from hedgerow.errors import PlanError
from hedgerow.estimators.boosting import PrivateBoostingClassifier
from hedgerow.methods.maddock.candidates import CANDIDATES
from hedgerow.methods.maddock.splits.totally_random import totally_random
from hedgerow.privacy.accounting.budget import DeclaredQuery
from hedgerow.privacy.accounting.plan import make_plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.noise import mechanisms
from hedgerow.privacy.settings import Privacy, Settings
from hedgerow.queries import NO_TREES, LeafSums, size_of
from hedgerow.testing import noise_off, seeded
from tests.attacks.test_drop_outs import Flaky
from tests.conftest import MIXED, federation_of, mixed_rows, mixed_table, split_rows
from tests.statistical.measures import (
    FALSE_ALARM,
    UNNOTICED,
    mean_fits,
    sizes_as_normals,
    unrelated,
    variance_fits,
    variance_unnoticed,
)

ROWS = mixed_rows(mixed_table(60, seed=4))
STRUCTURES = tuple(
    totally_random(
        MIXED, CANDIDATES["uniform"](MIXED, 32), range(5), 7, "subset", stream(2, "tree", i)
    )
    for i in range(8)
)
QUERY = LeafSums(STRUCTURES, "logistic", NO_TREES)  # 1,024 gradients and as many Hessians
DELTA = 1e-6


def releases(
    n_parties: int = 1, trust: str = "coordinator", colluding: int = 1, slots: int = 2,
    epsilon: float = 1.0,
) -> tuple[list[NDArray[np.float64]], float, list[tuple[float, ...]]]:  # fmt: skip
    """Noise of each release in units of the answer, the plan's mu a slot, the stated sigmas."""
    privacy = Privacy(
        epsilon, DELTA, trust, colluding=colluding,  # type: ignore[arg-type]
        minimum_parties=max(2, colluding + 1),
    )  # fmt: skip
    declared = DeclaredQuery("measure", QUERY.kind, 1.0, size_of(QUERY), repeat=slots)
    plan = make_plan(MIXED.hash, "measure", Settings(), privacy, [declared], seed=0)
    ledger = Ledger.in_memory()
    parts = split_rows(ROWS, [7] * (n_parties - 1))
    gate = Gate(federation_of(parts, MIXED, privacy, ledger), plan, ledger)
    found = [gate.release(QUERY) for _ in range(slots)]
    exact = QUERY.answer(ROWS, np.zeros((ROWS.n_rows, 1)), MIXED, found[0].bits)
    assert {release.source for release in found} <= {"secure", "switched off"}
    noise = [(r.total - exact) / 2.0**r.bits for r in found]
    return noise, plan.slots[0].mu, [r.sigmas for r in found]


def blocks_of(noise: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    half = len(noise) // 2
    return noise[:half], noise[half:]


@pytest.mark.parametrize(
    ("n_parties", "trust", "colluding", "factor"),
    [
        (1, "coordinator", 1, 1.0),
        (4, "coordinator", 1, 1.0),
        (3, "parties", 1, 3 / 2),
        (5, "parties", 1, 5 / 4),
        (3, "parties", 2, 3 / 1),
        (5, "parties", 2, 5 / 3),
        # Every row's own noise, at twice the sensitivity because a row is replaced.
        (2, "nobody", 1, 4.0 * 60),
    ],
)
def test_the_measured_variance_is_the_promised_one(
    n_parties: int, trust: str, colluding: int, factor: float
) -> None:
    found, mu, stated = releases(n_parties, trust, colluding)
    gradients, hessians = blocks_of(np.array(found).T)
    sigma = math.sqrt(8) / mu * math.sqrt(factor)  # eight trees in the batch
    assert variance_fits(gradients.ravel(), sigma)
    assert variance_fits(hessians.ravel(), sigma / 3.33)
    assert mean_fits(gradients.ravel(), sigma)
    assert mean_fits(hessians.ravel(), sigma / 3.33)
    assert all(s == pytest.approx((sigma, sigma / 3.33), rel=1e-9) for s in stated)


def test_the_variance_is_the_promised_one_after_a_party_dropped_out() -> None:
    privacy = Privacy(1.0, DELTA, "parties", minimum_parties=3, spare=1)
    declared = DeclaredQuery("measure", QUERY.kind, 1.0, size_of(QUERY), repeat=3)
    plan = make_plan(MIXED.hash, "measure", Settings(), privacy, [declared], seed=0)
    ledger, parts = Ledger.in_memory(), split_rows(ROWS, [10, 10, 10])
    federation = federation_of(parts, MIXED, privacy, ledger)
    engine = Flaky(federation.engine)  # type: ignore[arg-type]
    federation.engine, gone = engine, sorted(federation.names)[-1]
    engine.lose = {2: {gone}}  # in the middle of the second release
    gate = Gate(federation, plan, ledger)
    found = [gate.release(QUERY) for _ in range(3)]
    stayed = {name: rows for name, rows in parts.items() if name != gone}
    expected = ((parts, 4 / 3), (stayed, 3 / 2), (stayed, 3 / 2))
    for release, (there, factor) in zip(found, expected, strict=True):
        exact = sum(
            QUERY.answer(rows, np.zeros((rows.n_rows, 1)), MIXED, release.bits)
            for rows in there.values()
        )
        gradients, hessians = blocks_of((release.total - exact) / 2.0**release.bits)
        sigma = math.sqrt(8) / plan.slots[0].mu * math.sqrt(factor)
        assert variance_fits(gradients, sigma)
        assert variance_fits(hessians, sigma / 3.33)
        assert release.sigmas == pytest.approx((sigma, sigma / 3.33), rel=1e-9)


@pytest.mark.parametrize("wrong", [0.0, 0.5, 0.8, 1.25])
def test_noise_of_another_size_is_found(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    right = mechanisms.SecureSource.gaussian
    monkeypatch.setattr(
        mechanisms.SecureSource,
        "gaussian",
        lambda self, size, sigma: (
            right(self, size, sigma * wrong) if wrong else np.zeros(size, np.int64)
        ),
    )
    found, mu, _ = releases()
    noise = np.array(found)[:, :1024].ravel()
    assert variance_unnoticed(len(noise), wrong**2) < UNNOTICED
    assert not variance_fits(noise, math.sqrt(8) / mu)


def test_a_missing_share_of_one_party_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of 1 / S instead of 1 / (S - c) would not survive one party that leaks its own."""
    right = mechanisms.add_gaussian
    monkeypatch.setattr(
        mechanisms, "add_gaussian", lambda t, b, s, share=1.0: right(t, b, s, share * 2 / 3)
    )
    found, mu, _ = releases(3, "parties", slots=4)
    noise = np.array(found)[:, :1024].ravel()
    assert variance_unnoticed(len(noise), 2 / 3) < UNNOTICED
    assert not variance_fits(noise, math.sqrt(8) / mu * math.sqrt(3 / 2))
    assert variance_fits(noise, math.sqrt(8) / mu)


@pytest.mark.parametrize(("n_parties", "trust"), [(1, "coordinator"), (3, "parties")])
def test_noise_is_independent_over_coordinates_slots_and_fits(n_parties: int, trust: str) -> None:
    """Of pairs of 2,048 numbers 0.0088 are expected to share one (of 2^26 steps a deviation, so
    0.28 / 2^26 a pair), and six or more do with a chance below 0.0088^6 / 720 = 7e-16."""
    (one, two), mu, _ = releases(n_parties, trust)
    (other, _), _, _ = releases(n_parties, trust)
    scale = np.repeat([1.0, 3.33], 1024)
    one, two, other = one * scale, two * scale, other * scale
    assert unrelated(one, two)  # slots
    assert unrelated(one, other)  # fits
    assert unrelated(one[::2], one[1::2])  # neighbouring numbers
    assert unrelated(one[:1024], one[1024:])  # gradient and Hessian of a leaf
    sigma = math.sqrt(8) / mu * (math.sqrt(3 / 2) if trust == "parties" else 1.0)
    sizes = sizes_as_normals(one, sigma)
    assert unrelated(sizes[::2], sizes[1::2])
    assert len(np.unique(one)) >= len(one) - 5


def test_seeded_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        mechanisms.SecureSource,
        "gaussian",
        lambda self, size, sigma: np.random.default_rng(1).normal(0, sigma, size).astype(np.int64),
    )
    (one, two), _, _ = releases()
    assert not unrelated(one, two)


def test_the_switched_off_source_is_the_only_way_to_no_noise() -> None:
    with noise_off():
        found, _, _ = releases()
    assert not np.any(found)


def test_two_fits_in_the_same_second_differ(
    two_numbers: tuple[NDArray[np.float64], NDArray[np.int64]],
) -> None:
    """Eight leaves agree to a float32 each with a chance below (2^-20)^8."""
    X, y = two_numbers
    models = [
        PrivateBoostingClassifier(
            method="random-trees",
            bounds=(0, 1),
            classes=[0, 1],
            n_trees=2,
            max_depth=2,
            random_state=1,
        ).fit(X, y)
        for _ in range(3)
    ]
    assert models[0].model_ != models[1].model_
    assert models[1].model_ != models[2].model_


def test_variance_falls_with_epsilon_by_the_exact_factor() -> None:
    weak, weak_mu, _ = releases(epsilon=4.0)
    strong, strong_mu, _ = releases(epsilon=0.5)
    measured = np.var(np.array(strong)[:, :1024]) / np.var(np.array(weak)[:, :1024])
    expected = (weak_mu / strong_mu) ** 2
    assert expected > 30  # eight times epsilon is nearly sixty-four times the variance
    high = stats.f.isf(FALSE_ALARM / 2, 2047, 2047)
    assert 1 / high < measured / expected < high


def test_epsilon_near_zero_destroys_the_model(
    two_numbers: tuple[NDArray[np.float64], NDArray[np.int64]],
) -> None:
    """Noise and its opposite are as likely and give opposite models, so accuracies have the mean
    1/2 and lie in [0, 1]: by Hoeffding, 110 of them have a mean above 0.85 with a chance below
    exp(-2 110 0.35^2) = 2e-12. Without noise to speak of, which is seeded, so that there is no
    chance, trees are right about most rows."""
    X, y = two_numbers

    def accuracy(epsilon: float, seed: int) -> float:
        model = PrivateBoostingClassifier(
            method="random-trees",
            bounds=(0, 1),
            classes=[0, 1],
            epsilon=epsilon,
            n_trees=4,
            max_depth=3,
            random_state=seed,
        )
        return float(model.fit(X, y).score(X, y))

    assert np.mean([accuracy(1e-4, seed) for seed in range(110)]) < 0.85
    with seeded(1):
        assert np.mean([accuracy(1e4, seed) for seed in range(40)]) > 0.87


@pytest.mark.parametrize("log2_sigma", [57, 63, 66, 80, 300])
def test_noise_that_would_saturate_is_not_drawn(log2_sigma: int) -> None:
    """Integers stop at 2**63: wider draws might not fit."""
    with pytest.raises(PlanError, match="cannot be drawn"):
        mechanisms.SecureSource().gaussian(4, 2.0**log2_sigma)
    with pytest.raises(PlanError, match="more than can be"):
        mechanisms.check_sigma(2.0**log2_sigma, 26)


def test_the_widest_noise_has_its_variance() -> None:
    draws = mechanisms.SecureSource().gaussian(4000, mechanisms.WIDEST).astype(float)
    assert variance_fits(draws, mechanisms.WIDEST)
