"""Gaussian and pure runs of one ledger: the bound, whoever plays against it, who shows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import (
    from_gaussian_mechanism,
    from_randomized_response,
)
from numpy.typing import NDArray
from scipy.stats import norm

from hedgerow.errors import BudgetExceeded, LedgerError, SettingsError
from hedgerow.model.tradeoff import delta_of, epsilon_of
from hedgerow.privacy.accounting.mixed import mixed_delta, mixed_epsilon, mixed_mu
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.accounting.pure import pure_mu
from hedgerow.privacy.ledger.gaps import Ceilings, settle
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Reservation
from hedgerow.privacy.ledger.spending import Budget, budget_of, set_budget, spending
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.ledger.witnesses import Gap, note_gap, now_text
from tests.privacy.accounting.test_pure import gaussian_plan, pure_plan

Floats = NDArray[np.float64]
DELTA = 1e-6


def reserved(*plans: Plan, ledger: Ledger | None = None) -> Ledger:
    ledger = ledger or Ledger.in_memory()
    for plan in plans:
        Reservation(ledger, plan)
    return ledger


def test_boosting_and_a_tree_cost_less_than_the_sum_of_the_two() -> None:
    spent = spending(reserved(gaussian_plan(1.0), pure_plan(1.0)))
    assert spent.epsilon(DELTA) == pytest.approx(1.983, abs=5e-4)
    assert spent.epsilon(DELTA, as_gaussians=True) == pytest.approx(6.339, abs=5e-4)
    assert spent.epsilon(0.0) == math.inf


@pytest.mark.parametrize("pure", [0.05, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("mu", [0.05, 0.24, 1.0, 3.0])
def test_the_bound_agrees_with_privacy_loss_distributions(mu: float, pure: float) -> None:
    # Of k equal answers, the truth is told with chance 1 - noise (k - 1) / k.
    response = from_randomized_response(2 / (1 + math.exp(pure)), 2)
    both = from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4).compose(response)
    for epsilon in (0.2, pure, 0.9 * (pure + mu), pure + 2 * mu):
        theirs = both.get_delta_for_epsilon(epsilon)  # rounded up
        assert mixed_delta(epsilon, mu, pure) <= theirs * (1 + 1e-6) + 1e-12
        assert mixed_delta(epsilon, mu, pure) == pytest.approx(theirs, rel=0.02, abs=1e-7)


def test_the_bound_lies_between_its_parts_and_their_sum() -> None:
    for mu in (0.01, 0.2, 1.0, 3.9, 5.0):
        for pure in (1e-3, 0.3, 2.0, 40.0):
            for accounting in ("exact", "renyi"):
                alone = epsilon_of(mu, DELTA, 1000, accounting)
                both = mixed_epsilon(mu, pure, DELTA, 1000, accounting)
                assert max(alone, 0.9 * pure) <= both <= alone + pure
                assert both <= mixed_epsilon(mu, pure * 1.01, DELTA, 1000, accounting)
                assert both <= mixed_epsilon(mu * 1.01, pure, DELTA, 1000, accounting)
    assert mixed_epsilon(5.0, 1.0, DELTA, 0) == epsilon_of(5.0, DELTA, 0) + 1.0  # too narrow noise
    assert mixed_epsilon(0.2, 1.0, DELTA, 2**120) == epsilon_of(0.2, DELTA, 2**120) + 1.0
    assert mixed_epsilon(0.0, 1.0, DELTA, 0) == 1.0
    assert mixed_epsilon(0.2, 0.0, DELTA, 7) == epsilon_of(0.2, DELTA, 7)
    largest = mixed_mu(4.0, 1.0, DELTA, 0)
    assert mixed_epsilon(largest, 1.0, DELTA, 0) <= 4.0
    assert mixed_epsilon(largest * (1 + 1e-9), 1.0, DELTA, 0) > 4.0


class Game:
    """Whoever chooses every step with sight of the privacy loss so far, to end above epsilon.

    Values are hockey-stick divergences on a grid of losses: a step of mu adds N(mu^2/2, mu^2) to
    the loss, one of e adds e with chance e^e/(1 + e^e) and else takes it away.
    """

    def __init__(self, epsilon: float) -> None:
        self.step, self.loss = 0.01, np.arange(-900, 901) * 0.01
        self.end = np.maximum(0.0, -np.expm1(np.minimum(epsilon - self.loss, 0.0)))

    def gaussian(self, mu: float, later: Floats) -> Floats:
        reach = np.arange(-400, 401)
        chances = np.diff(norm.cdf((np.arange(-400, 402) - 0.5) * self.step, mu**2 / 2, mu))
        padded = np.concatenate([np.full(400, later[0]), later, np.full(400, later[-1])])
        return np.convolve(padded, chances[::-1], "valid") if len(reach) else later

    def pure(self, e: float, later: Floats) -> Floats:
        truth, n = 1 / (1 + math.exp(-e)), round(e / self.step)
        up = np.concatenate([later[n:], np.full(n, later[-1])])
        down = np.concatenate([np.full(n, later[0]), later[: len(later) - n]])
        return truth * up + (1 - truth) * down

    def best(self, squares: int, pures: int, mu: float, e: float) -> Floats:
        """The most that can be had, by loss, with so many steps of mu and parts of e left."""
        known: dict[tuple[int, int], Floats] = {(0, 0): self.end}
        for left in sorted((s, p) for s in range(squares + 1) for p in range(pures + 1)):
            s, p = left
            choices = [self.end]
            choices += [self.gaussian(math.sqrt(k) * mu, known[s - k, p]) for k in range(1, s + 1)]
            choices += [self.pure(k * e, known[s, p - k]) for k in range(1, p + 1)]
            known[left] = np.max(choices, axis=0)
        return known[squares, pures]

    def value(self, of: Floats) -> float:
        return float(of[len(self.loss) // 2])


@pytest.mark.parametrize(("mu", "e", "epsilon"), [(0.4, 0.2, 1.2), (0.25, 0.5, 2.0)])
def test_no_order_and_no_choice_of_steps_gets_beyond_the_box(
    mu: float, e: float, epsilon: float
) -> None:
    """Three squares of mu and three parts of e, taken in any order and sizes, or not at all."""
    game = Game(epsilon)
    best = game.value(game.best(3, 3, mu, e))
    bound = mixed_delta(epsilon, math.sqrt(3) * mu, 3 * e)
    assert best <= bound * 1.005  # the grid rounds losses by half a step
    assert best >= bound * 0.98  # and it can be reached: no better bound exists


def test_a_choice_between_two_boxes_gets_beyond_both() -> None:
    """Why the share of pure runs is fixed, and what they took so far is not counted instead."""
    epsilon, first, delta = 1.0, 0.15, 1e-3
    game = Game(epsilon)
    more = math.sqrt(mixed_mu(epsilon, 0.0, delta, 0) ** 2 - first**2)  # all of it by Gaussians
    e = 0.6
    while mixed_delta(epsilon, first, e) <= delta:  # or a pure run, which fits as well
        e += 0.01
    e = round(e - 0.01, 2)
    ways = [game.gaussian(more, game.end), game.pure(e, game.end)]
    each = [game.value(game.gaussian(first, way)) for way in ways]
    assert max(each) <= delta * 1.01
    chosen = game.value(game.gaussian(first, np.maximum(*ways)))
    assert chosen > 1.2 * delta


@pytest.mark.parametrize("order", sorted(set(permutations("gggp"))))
def test_the_order_of_runs_changes_nothing(order: tuple[str, ...]) -> None:
    make: dict[str, Callable[[], Plan]] = {
        "g": partial(gaussian_plan, 0.5),
        "p": partial(pure_plan, 1.0),
    }
    ledger = reserved(*(make[kind]() for kind in order), ledger=Ledger.in_memory(epsilon=2, pure=1))
    # Before any pure run, what three Gaussian ones leave of the share is not theirs.
    with pytest.raises(BudgetExceeded, match=r"with the share of 1 for pure runs, from 1\.8"):
        Reservation(ledger, gaussian_plan(0.7))
    with pytest.raises(BudgetExceeded, match=r"pure epsilon from 1.000 to 1.050, over the share"):
        Reservation(ledger, pure_plan(0.05))
    assert ledger.spent <= 2.0


def test_a_share_is_not_for_gaussian_runs_even_while_nobody_takes_it() -> None:
    ledger = Ledger.in_memory(epsilon=2.0, delta=DELTA, pure=1.0)
    with pytest.raises(BudgetExceeded, match="over the budget of 2 at delta = 1e-06"):
        Reservation(ledger, gaussian_plan(1.5))  # alone it would cost 1.5
    plain = Ledger.in_memory(epsilon=2.0, delta=DELTA)
    Reservation(plain, gaussian_plan(1.5))
    with pytest.raises(BudgetExceeded, match=r"from 1\.500 to"):
        Reservation(plain, pure_plan(0.4))  # one filter: the tree counts as a Gaussian


def test_everybody_tells_the_same(tmp_path: Path) -> None:
    for pure, told in ((None, 6.339), (2.0, 1.983)):
        with Ledger.open(tmp_path / f"{pure}.ledger", epsilon=8, pure=pure) as ledger:
            reserved(gaussian_plan(1.0), pure_plan(1.0), ledger=ledger)
            budget = budget_of(ledger)
            assert budget == Budget(8.0, DELTA, pure)
            assert ledger.spent == budget.counts(spending(ledger))
            assert ledger.spent == pytest.approx(told, abs=5e-4)
            assert ledger.history()[-1].total == ledger.spent
            assert ledger.left == 8 - ledger.spent
    with Ledger.open(tmp_path / "2.0.ledger") as ledger:
        assert ledger.next_run == pytest.approx(spending(ledger).room(Budget(8.0, DELTA, 2.0)))
        Reservation(ledger, gaussian_plan(ledger.next_run - 1e-3))
        with pytest.raises(BudgetExceeded):
            Reservation(ledger, gaussian_plan(0.3))
        Reservation(ledger, pure_plan(1.0))  # the share is still there
        with pytest.raises(
            LedgerError, match="budget of epsilon = 8 at delta = 1e-06, 2 of it for"
        ):
            set_budget(ledger, Budget(8.0, DELTA))


def test_a_ledger_of_an_earlier_version_is_one_filter() -> None:
    ledger = Ledger.in_memory()
    ledger.append(COORDINATOR, "open", values={"epsilon": 4.0, "delta": DELTA})
    assert budget_of(ledger) == Budget(4.0, DELTA)
    Reservation(ledger, gaussian_plan(1.0))
    with pytest.raises(BudgetExceeded, match=r"from 1.000 to 6.339"):
        Reservation(ledger, pure_plan(1.0))


def test_lost_lines_book_what_both_filters_had_left() -> None:
    total = Budget(4.0, DELTA, 1.0)
    ledger = Ledger.in_memory()
    note_gap(ledger, "a", Gap("c" * 64, 3, now_text(), "b", now_text()))
    booked = settle(ledger, "a", Ceilings(total=total), "Ada Koch", "disk died")
    whole = mixed_mu(4.0, 1.0, DELTA, 0) ** 2 + pure_mu(1.0) ** 2
    assert booked.mu**2 == pytest.approx(whole, rel=1e-6)
    for plan in (gaussian_plan(0.1), pure_plan(0.1)):
        with pytest.raises(BudgetExceeded):
            Reservation(ledger, plan, "a", total)


@pytest.mark.parametrize("share", [0.0, -1.0, 4.5])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(SettingsError, match="is none: it is above 0, at most the whole"):
        Budget(4.0, DELTA, share)
    with pytest.raises(SettingsError, match="has a delta beside it"):
        Budget(4.0, 0.0, 1.0)
    with pytest.raises(SettingsError, match="share for pure runs needs an epsilon"):
        Ledger.in_memory(pure=1.0)


def test_the_gaussian_curve_holds_below_zero() -> None:
    """`mixed_delta` asks it there."""
    grid = np.linspace(-12, 12, 400_001)
    for mu, epsilon in ((0.3, -0.5), (1.0, -2.0)):
        ratio = norm.pdf(grid, mu) - math.exp(epsilon) * norm.pdf(grid)
        expected = float(np.maximum(ratio, 0).sum() * (grid[1] - grid[0]))
        assert delta_of(epsilon, mu) == pytest.approx(expected, rel=1e-4)
