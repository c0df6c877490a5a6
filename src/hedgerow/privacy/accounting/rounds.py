"""Rounds of a plan of pure queries: each asks about one tree, of one sample of the rows.

What the queries of one round may cost together is settled on the paths of its tree: `paths.py`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, groupby, repeat
from typing import Any

from hedgerow.errors import PlanError
from hedgerow.privacy.accounting.pure import (
    LEAST_PRICE,
    LEAST_RATE,
    MOST_KINDS,
    MOST_PRICE,
    MOST_ROUNDS,
    amplified,
)
from hedgerow.privacy.ledger.line import Line


@dataclass(frozen=True)
class Round:
    """Slots that are asked about one tree, of one sample of the rows.

    The first attempts at them cost at most `epsilon` on any path of the tree, for a row that is in
    the sample; so the whole round is `cost`-private.
    """

    slots: int
    epsilon: float
    rate: float = 1.0  # how likely a row takes part; 1 = all do

    @property
    def cost(self) -> float:
        return amplified(self.epsilon, self.rate)


@dataclass(frozen=True)
class Draw:
    """Which rows a slot is asked about: the Poisson sample of its round."""

    round: int
    rate: float


@dataclass(frozen=True)
class Branches:
    """What a plan of pure questions fixes: rounds, one after another, each with a tree of its own.

    A slot of a round is priced during the run, node by node, on the paths of the round's tree. A
    further attempt at a slot costs at most `retry`, on top of what its round costs: with r more
    inside of it, a round costs amplified(epsilon + r) <= amplified(epsilon) + r, because the
    formula's slope is at most 1.
    """

    retry: float
    rounds: tuple[Round, ...]

    def check(self, n_slots: int) -> None:
        rounds = {round_ for round_, _ in self.repeated}
        fits = (
            bool(self.rounds)
            and all(r.slots >= 1 and LEAST_PRICE <= r.epsilon < MOST_PRICE for r in rounds)
            and all(LEAST_RATE <= r.rate <= 1 for r in rounds)
            and LEAST_PRICE <= self.retry < MOST_PRICE
            and sum(r.slots * n for r, n in self.repeated) == n_slots
            and len(rounds) <= MOST_KINDS
        )
        if not fits:
            raise PlanError(
                "the plan's rounds are not described correctly: each has slots, an epsilon of its "
                f"tree's paths and a rate between {LEAST_RATE:g} and 1, together they have the "
                f"plan's slots, and at most {MOST_KINDS} differ. Nothing was asked. Make the plan "
                "again."
            )

    @cached_property
    def repeated(self) -> tuple[tuple[Round, int], ...]:
        """Rounds in order, each with how often it is repeated."""
        return tuple((one, len(list(group))) for one, group in groupby(self.rounds))

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return tuple(accumulate((r.slots for r in self.rounds[:-1]), initial=0))

    def round_of(self, slot: int) -> tuple[int, Round]:
        number = bisect_right(self._starts, slot) - 1
        return number, self.rounds[number]

    def of_round(self, slot: int, charges: Iterable[Line]) -> list[Line]:
        """Those charges that belong to the round of a slot."""
        number, found = self.round_of(slot)
        first = self._starts[number]
        return [line for line in charges if first <= line.slot < first + found.slots]

    def draw_of(self, slot: int) -> Draw | None:
        """The sample that a slot is asked about; None for all rows."""
        number, found = self.round_of(slot)
        return Draw(number, found.rate) if found.rate < 1 else None

    def epsilon(self, spare: int) -> float:
        """Everything added up: what holds without any delta."""
        costs = (repeat(r.cost, n) for r, n in self.repeated)
        return math.fsum([*chain.from_iterable(costs), spare * self.retry])

    def costs(self) -> list[tuple[float, int]]:
        """(cost, how many rounds have it)."""
        found = Counter[float]()
        for one, n in self.repeated:
            found[one.cost] += n
        return list(found.items())

    def words(self, spare: int) -> list[str]:
        """What people are told of it: a line for each kind of round, however they alternate."""
        found = []
        for one, n in Counter(self.rounds).items():
            trees = "one tree" if len(self.rounds) == 1 else f"{n:,} rounds, each of its own tree"
            text = f"Prices are settled during the run, node by node of {trees}: pure epsilon = "
            text += f"{one.epsilon:.4g} on any path from the root to a leaf"
            if one.rate < 1:
                text += (
                    f", of rows drawn with probability {one.rate:g} in secret, which costs "
                    f"{one.cost:.4g}"
                )
            found.append(f"{text}{' a round' if n > 1 else ''}.")
        if spare:
            found.append(f"Each spare attempt costs at most {self.retry:.4g} more.")
        return found

    def to_dict(self) -> dict[str, Any]:
        rounds = [
            {"slots": r.slots, "epsilon": r.epsilon, "rate": r.rate, "repeat": n}
            for r, n in self.repeated
        ]
        return {"retry": self.retry, "round": rounds}

    @staticmethod
    def from_dict(entry: Mapping[str, Any]) -> Branches:
        if sorted(entry) != ["retry", "round"]:
            raise PlanError("branches must have exactly these keys: retry, round")
        rounds: list[Round] = []
        for one in entry["round"]:
            if sorted(one) != ["epsilon", "rate", "repeat", "slots"]:
                raise PlanError("a round must have exactly epsilon, rate, repeat and slots")
            times, slots = one["repeat"], one["slots"]
            if type(times) is not int or type(slots) is not int:
                raise PlanError("a round counts slots and repeats in whole numbers")
            if not 1 <= times <= MOST_ROUNDS - len(rounds):
                raise PlanError(f"a round repeats {times} times")
            rounds.extend([Round(slots, float(one["epsilon"]), float(one["rate"]))] * times)
        return Branches(float(entry["retry"]), tuple(rounds))
