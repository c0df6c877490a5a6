"""What a statement is worth where more changes than one unit that comes or goes.

One table: a unit added or removed, a unit replaced, groups of units. `docs/proofs/changes.md` has
the proofs. A change of k steps between neighbouring tables has k times the mu, because trade-off
curves of Gaussians compose along a path of tables (Dong, Roth and Su 2022), and k times a pure
epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.model.tradeoff import (
    EXACT_LIMIT,
    epsilon_of,
    gaussian_guess,
    group_delta,
    plain_guess,
)
from hedgerow.model.trust import trust_named

if TYPE_CHECKING:
    from hedgerow.model.statement import Statement

PRIVATE = ("epsilon-delta", "pure")
GROUPS = (2, 5, 10)  # units that come or go together: a couple, a family, a large one
# A statement does not say how many values were released; no plan releases more: 2**20 questions of
# 2**22 values. At the grid of mu <= EXACT_LIMIT all of them add 1.4e-11 to the chance of a guess.
_MOST_VALUES = 2**42


@dataclass(frozen=True)
class Change:
    """By what two tables differ, and what then holds for all that is seen."""

    what: str
    units: int
    epsilon: float  # infinite where nothing is promised
    delta: float
    best_guess: float  # how often whoever takes both tables to be equally likely can be right

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which has no infinity."""
        epsilon = None if math.isinf(self.epsilon) else self.epsilon
        return {
            "change": self.what, "units": self.units, "epsilon": epsilon, "delta": self.delta,
            "best_guess": self.best_guess,
        }  # fmt: skip

    def cells(self) -> tuple[str, str, str]:
        """The change, epsilon and the guess, for a table; a delta that differs is said there."""
        epsilon = f"{self.epsilon:.3g}" if self.epsilon < 1000 else f"{self.epsilon:.2e}"
        guess = f"{100 * self.best_guess:.1f} %" if self.best_guess < 0.9995 else "nearly always"
        return self.what, "none" if math.isinf(self.epsilon) else epsilon, guess


def changes_of(said: Statement, groups: tuple[int, ...] = GROUPS) -> tuple[Change, ...]:
    """What a statement promises for each kind of change; nothing where it promises nothing."""
    if said.guarantee == "label":
        names = ["one label changed", *(f"{n} labels changed" for n in groups)]
        steps = [1, *groups]
    elif said.guarantee not in PRIVATE:
        return ()
    elif trust_named(said.trust).distance > 1:  # counts are visible: units are replaced
        names = [f"one {said.unit} replaced (its label, one value, or all of it)"]
        names += [f"{n} {said.unit}s replaced" for n in groups]
        steps = [1, *groups]
    else:
        names = [
            f"one {said.unit} added or removed",
            f"one {said.unit} replaced (its label, one value, or all of it)",
            *(f"{n} {said.unit}s added or removed" for n in groups),
        ]
        steps = [1, 2, *groups]
    units = [1] * (len(steps) - len(groups)) + list(groups)
    return tuple(
        Change(name, n, *after_steps(said, k), guess_after(said, k))
        for name, n, k in zip(names, units, steps, strict=True)
    )


def after_steps(said: Statement, steps: int) -> tuple[float, float]:
    """Epsilon and delta between tables so many neighbours apart; infinite without a promise.

    Delta stays what it is, but where only (epsilon, delta) is known: there it grows.
    """
    if said.guarantee not in (*PRIVATE, "label"):
        return math.inf, 0.0
    if steps == 1 or said.delta == 0 or said.guarantee == "label":
        return steps * said.epsilon, said.delta
    if not said.mu:
        delta = group_delta(said.epsilon, said.delta, steps)
        return (steps * said.epsilon, delta) if delta < 1 else (math.inf, 1.0)
    if said.accounting == "pure":  # of composed questions that have no Gaussian noise
        return epsilon_of(steps * said.mu, said.delta, 0), said.delta
    mu = steps * said.mu
    return epsilon_of(mu, said.delta, _MOST_VALUES, said.accounting), said.delta


def guess_after(said: Statement, steps: int) -> float:
    """How often whoever takes tables so many neighbours apart to be equally likely is right."""
    epsilon, delta = after_steps(said, steps)
    if epsilon == math.inf:
        return 1.0
    plain = plain_guess(epsilon, delta)
    if not said.mu or said.guarantee == "label":
        return plain
    gaussian = said.accounting != "pure"
    values = _MOST_VALUES if gaussian else 0
    narrow = gaussian and said.mu > EXACT_LIMIT
    return min(plain, gaussian_guess(steps * said.mu, values, narrow))


def leaving_words(said: Statement) -> str:
    """What stays of rows whose owner takes no further part; "" where nothing is promised."""
    if said.guarantee not in PRIVATE:
        return ""
    if said.single_owner:
        return (
            f"If a {said.unit} is deleted from the table later, what was released with it stays in "
            "this model and in every copy, under the same promise, and stays spent. A model "
            "without it is a new training, which costs its own epsilon."
        )
    return (
        "If a party leaves, what was released with its rows stays in this model and in every copy, "
        "under the same promise, and stays spent on every ledger. Later runs do not ask it. A "
        "model without its rows is a new training, which costs the other parties' rows anew."
    )
