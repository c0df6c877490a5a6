"""What statements say: how often a guess can be right, a replaced unit, one owner or several."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from hedgerow.model.statement import Statement, guess_words
from hedgerow.model.tradeoff import epsilon_of, gaussian_guess, plain_guess
from hedgerow.model.trust import TRUSTS
from hedgerow.privacy.accounting.gaussian import mu_of

MU = mu_of(1.0, 1e-6, 10_000)
GAUSSIAN = Statement(
    "epsilon-delta", 1.0, 1e-6, "parties", mu=MU, parties=("a", "b", "c"), colluding=1,
    minimum_parties=3, releases=9,
)  # fmt: skip
ALONE = replace(GAUSSIAN, trust="coordinator", parties=("all",), colluding=0, minimum_parties=1)
PURE = replace(ALONE, guarantee="pure", delta=0.0, accounting="pure", mu=1.232, parties=("a", "b"))


def test_a_statement_says_how_often_a_guess_is_right() -> None:
    assert (
        "whoever knows all other rows and takes even odds on whether one row was there is right at "
        "best 54.7 % of the time after this fit. For one row replaced (a changed label or value) "
        "it is epsilon = 2.12 at the same delta, and at best 59.4 % of the time."
    ) in GAUSSIAN.words()
    assert "54.7 % of the time after this evaluation" in GAUSSIAN.words("evaluation")


def test_the_guess_covers_discrete_noise_and_no_more() -> None:
    assert gaussian_guess(MU, 10_000) <= GAUSSIAN.best_guess() < gaussian_guess(MU) + 1e-10
    again = replace(GAUSSIAN, accounting="renyi", epsilon=1.1)
    assert again.best_guess() == GAUSSIAN.best_guess()  # it follows from mu, not from epsilon
    assert again.replaced_epsilon > GAUSSIAN.replaced_epsilon


@pytest.mark.parametrize("mu", [1.0, 3.0, 4.5])
def test_a_replaced_unit_has_twice_the_mu(mu: float) -> None:
    said = replace(GAUSSIAN, mu=mu, epsilon=epsilon_of(mu, 1e-6, 1000))
    assert said.replaced_epsilon >= epsilon_of(2 * mu, 1e-6, 1000) > said.epsilon
    assert said.best_guess(replaced=True) >= gaussian_guess(2 * mu) - 1e-12
    assert said.best_guess() < said.best_guess(replaced=True)


def test_pure_epsilons_double_and_are_guessed_as_randomised_response() -> None:
    assert PURE.replaced_epsilon == 2.0
    assert PURE.best_guess() == pytest.approx(math.e / (1 + math.e), abs=1e-4)
    assert "it is epsilon = 2, and at best 88.1 % of the time" in PURE.words()
    composed = replace(PURE, mu=0.5)  # many small questions: the guess is worse than epsilon says
    assert composed.best_guess() == gaussian_guess(0.5) < plain_guess(1.0)
    approximate = replace(PURE, guarantee="epsilon-delta", delta=1e-6, mu=0.5)
    assert approximate.replaced_epsilon == epsilon_of(1.0, 1e-6, 0)


def test_under_trust_in_nobody_a_unit_is_replaced_already() -> None:
    said = replace(GAUSSIAN, trust="nobody", neighbours="replace one row")
    assert said.best_guess(replaced=True) == said.best_guess()
    assert said.replaced_epsilon == said.epsilon
    assert "even odds on which of two possible rows it was is right at best 54.7 %" in said.words()
    assert "was there" not in said.words()


def test_a_person_is_guessed_about_as_a_person() -> None:
    assert "whether one person was there" in replace(GAUSSIAN, unit="person").words()


@pytest.mark.parametrize("guarantee", ["label", "none", "not private"])
def test_without_a_promise_about_rows_no_guess_is_bounded(guarantee: str) -> None:
    said = replace(GAUSSIAN, guarantee=guarantee)  # type: ignore[arg-type]
    assert said.best_guess() == 1.0
    assert said.replaced_epsilon == math.inf
    assert "guess" not in said.words()


def test_a_statement_without_mu_goes_by_epsilon_and_delta() -> None:
    said = replace(GAUSSIAN, mu=0.0)
    assert said.best_guess() == plain_guess(1.0, 1e-6)
    assert "replaced" not in said.words()


def test_a_guess_that_is_nearly_sure_is_called_so() -> None:
    assert guess_words(0.9994).startswith("at best 99.9 %")
    assert guess_words(0.9996) == "nearly always"


@pytest.mark.parametrize("trust", sorted(set(TRUSTS) - {"parties"}))
@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("of", ["model", "evaluation"])
def test_one_owner_of_one_table_reads_nothing_of_parties(trust: str, unit: str, of: str) -> None:
    many = " with at most 3 rows in each party" if unit == "person" else ""
    neighbours = f"{TRUSTS[trust].change} one {unit}{many}"
    said = replace(ALONE, trust=trust, unit=unit, neighbours=neighbours)
    for word in ("part", "coordinator", "simulated"):
        assert word not in said.words(of)
    assert "at most 3 rows)" in said.words() or unit == "row"
    several = replace(said, parties=("a", "b"))
    assert "simulated" in several.words(of)
    assert "several parties" in several.words(of)


def test_one_party_at_a_site_of_its_own_has_a_coordinator() -> None:
    assert "The coordinator is trusted" in replace(ALONE, simulated=False).words()
