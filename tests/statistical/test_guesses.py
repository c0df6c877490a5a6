"""The best guess about a row, tried on real releases: right as often as statements say, no more.

The row has a gradient of 1 and lands in one leaf of each of 8 trees, which is all that a row may
add to the query. Whoever knows all other rows subtracts them and is left with noise, or with noise
and the row: which is likelier shows in the sum over these leaves, below or above the middle of 0
and 8.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hedgerow.model.statement import Statement
from hedgerow.privacy.noise import mechanisms
from tests.statistical.measures import UNNOTICED, counts_unnoticed, hits_fit
from tests.statistical.test_noise import DELTA, QUERY, releases

N_TREES, N_RELEASES = 8, 60
EPSILON = 4.0


def right_guesses() -> tuple[int, int, Statement]:
    """Right guesses and all of them, half with and half without the row, and the statement."""
    right = tries = 0
    mu = 0.0
    for _ in range(N_RELEASES):
        (noise,), mu, _ = releases(slots=1, epsilon=EPSILON)
        gradients = noise[: len(noise) // 2].reshape(N_TREES, -1).sum(axis=0)
        there = np.arange(len(gradients)) % 2 == 0
        seen = gradients + N_TREES * there
        right += int(np.sum((seen > N_TREES / 2) == there))
        tries += len(seen)
    return right, tries, Statement("epsilon-delta", EPSILON, DELTA, "coordinator", mu=mu)


def test_the_best_guess_is_right_as_often_as_the_statement_says() -> None:
    right, tries, said = right_guesses()
    assert QUERY.sensitivity.l2 == pytest.approx(N_TREES**0.5)
    assert hits_fit(right, tries, said.best_guess())


def test_guesses_that_noise_of_half_the_size_allows_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right_draw = mechanisms.SecureSource.gaussian
    monkeypatch.setattr(
        mechanisms.SecureSource,
        "gaussian",
        lambda self, n, sigma: right_draw(self, n, sigma / 2),
    )
    right, tries, said = right_guesses()
    stated = said.best_guess()
    easier = replace(said, mu=2 * said.mu, epsilon=50.0).best_guess()
    chances = [np.array([chance, 1 - chance]) for chance in (stated, easier)]
    assert counts_unnoticed(tries, *chances) < UNNOTICED
    assert not hits_fit(right, tries, stated)
