"""Pure epsilon: rounds of questions, samples of rows and what they cost, added up or composed.

What the questions of one round may cost together is settled on the paths of a tree: `paths.py`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby
from typing import Any

import numpy as np

from hedgerow.errors import PlanError
from hedgerow.privacy.ledger.ledger import Line

LEAST_PRICE = 1e-7  # of a node for a column; less is no answer
MOST_PRICE = 1e7
LEAST_RATE = 1e-6
MOST_ROUNDS = 1_000_000
MOST_KINDS = 64  # of rounds that differ: each takes a while to compose
_LOSSES = 1 << 13  # values of a sum of privacy losses
_PAIRS = 1 << 20  # of two of them that are added


def pure_mu(epsilon: float) -> float:
    """The Gaussian parameter that a pure epsilon books as: mu = 2 Phi^-1(e^eps / (1 + e^eps)).

    An epsilon-private mechanism is mu-Gaussian private for this mu: its trade-off curve lies above
    that of randomised response, which the Gaussian one touches (Dong, Roth and Su 2022).

    >>> round(pure_mu(1.0), 4)
    1.232
    """
    from scipy.optimize import brentq
    from scipy.special import log_ndtr

    if epsilon <= 0:
        return 0.0
    # Phi(-mu / 2) = 1 / (1 + e^eps), in logarithms so that a large epsilon does not overflow.
    log_tail = -float(np.logaddexp(0.0, epsilon))
    high = 2.0
    while float(log_ndtr(-high / 2)) > log_tail:
        high *= 2
    root = float(brentq(lambda mu: float(log_ndtr(-mu / 2)) - log_tail, 0.0, high, xtol=1e-14))
    return root * (1 + 1e-12)


def amplified(epsilon: float, rate: float) -> float:
    """What an epsilon-private question costs when every row takes part with probability `rate`.

    Rows are drawn one by one (Poisson sampling), in secret. Let M be the question on the
    rows taken, p its probability of an outcome on D and q on D + x. With x left out (1 - rate) the
    two tables give the same p; with x taken the outcome has at most e^epsilon and at least
    e^-epsilon times the probability it has on the same rows without x. So q / p lies between
    1 - rate (1 - e^-epsilon) and 1 + rate (e^epsilon - 1), and the latter is further from 1 in
    logarithms: log(1 + rate (e^epsilon - 1)). It does not hold for samples of a fixed size, where
    adding x pushes another row out.

    >>> round(amplified(1.0, 0.1), 4), amplified(1.0, 1.0)
    (0.1586, 1.0)
    """
    return epsilon if rate == 1 else math.log1p(rate * math.expm1(epsilon))


def before_sampling(cost: float, rate: float) -> float:
    """The inverse of `amplified`: what a question on a sample may be if it costs so much."""
    return cost if rate == 1 else math.log1p(math.expm1(cost) / rate)


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
        fits = (
            bool(self.rounds)
            and all(r.slots >= 1 and LEAST_PRICE <= r.epsilon < MOST_PRICE for r in self.rounds)
            and all(LEAST_RATE <= r.rate <= 1 for r in self.rounds)
            and LEAST_PRICE <= self.retry < MOST_PRICE
            and sum(r.slots for r in self.rounds) == n_slots
            and len(set(self.rounds)) <= MOST_KINDS
        )
        if not fits:
            raise PlanError(
                "the plan's rounds are not described correctly: each has slots, an epsilon of its "
                f"tree's paths and a rate between {LEAST_RATE:g} and 1, together they have the "
                f"plan's slots, and at most {MOST_KINDS} differ. Nothing was asked. Make the plan "
                "again."
            )

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
        return math.fsum([*(r.cost for r in self.rounds), spare * self.retry])

    def costs(self) -> list[tuple[float, int]]:
        """(cost, how many rounds have it)."""
        return list(Counter(r.cost for r in self.rounds).items())

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
            {"slots": r.slots, "epsilon": r.epsilon, "rate": r.rate, "repeat": len(list(group))}
            for r, group in groupby(self.rounds)
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
            repeat, slots = one["repeat"], one["slots"]
            if type(repeat) is not int or type(slots) is not int:
                raise PlanError("a round counts slots and repeats in whole numbers")
            if not 1 <= repeat <= MOST_ROUNDS - len(rounds):
                raise PlanError(f"a round repeats {repeat} times")
            rounds.extend([Round(slots, float(one["epsilon"]), float(one["rate"]))] * repeat)
        return Branches(float(entry["retry"]), tuple(rounds))


@dataclass(frozen=True)
class OnPaths:
    """What a grower says of a plan of pure questions: its rounds, and what a retry may take.

    Each round is (slots, its part of what all cost, rate of its sample); a further attempt may take
    the part `retry` of the whole.
    """

    retry: float
    rounds: tuple[tuple[int, float, float], ...]
    kinds: tuple[str, ...] = ()

    def branches(self, unit: float) -> Branches:
        """With so much to spend on a part of 1."""
        whole = math.fsum(part for _, part, _ in self.rounds)
        rounds = tuple(
            Round(slots, before_sampling(unit * part, rate) * (1 - 1e-12), rate)
            for slots, part, rate in self.rounds
        )
        return Branches(unit * whole * self.retry, rounds)


def composed_delta(costs: Sequence[tuple[float, int]], epsilon: float) -> float:
    """The smallest delta at which rounds of these costs are (epsilon, delta)-private together.

    Rounds that are e_i-private, each chosen with sight of the ones before it, are together no worse
    than independent randomised responses, which answer a bit truthfully with probability
    e^e_i / (1 + e^e_i) (Kairouz, Oh and Viswanath 2015; Murtagh and Vadhan 2016), and that is
    attained: no better bound exists that knows the e_i alone. There the privacy loss L is a sum of
    e_i times signs, and delta(epsilon) the mean of max(0, 1 - e^(epsilon - L)). Where there would
    be too many values of L, they are rounded up, which only adds to delta.
    """
    return _excess(*_losses_of(costs), epsilon)


def composed(costs: Sequence[tuple[float, int]], delta: float) -> float:
    """The smallest epsilon for a delta, by `composed_delta`; their sum if there is no delta.

    >>> round(composed([(0.01, 100)], 1e-6), 3), composed([(0.5, 2)], 1e-6) <= 1.0
    (0.392, True)
    """
    low, high = 0.0, math.fsum(cost * n for cost, n in costs)
    if delta == 0:
        return high
    losses, chances = _losses_of(costs)
    for _ in range(60):
        middle = (low + high) / 2
        fits = _excess(losses, chances, middle) <= delta
        low, high = (low, middle) if fits else (middle, high)
    return high


def _losses_of(costs: Sequence[tuple[float, int]]) -> tuple[Any, Any]:
    """Privacy losses of the randomised responses, and how likely they are."""
    losses, chances = np.zeros(1), np.ones(1)
    for cost, n in costs:
        truths = np.arange(n + 1)
        logs = _log_binomial(n, truths) + truths * cost - n * float(np.logaddexp(0.0, cost))
        fresh, likely = _merged(cost * (2.0 * truths - n), np.exp(logs), _LOSSES)
        losses, chances = _merged(losses, chances, min(_LOSSES, _PAIRS // len(fresh)))
        losses = np.add.outer(losses, fresh).ravel()
        chances = np.multiply.outer(chances, likely).ravel()
    return losses, chances * (1 + 1e-7)  # rounding errors above: 1e-9 with a million rounds


def _excess(losses: Any, chances: Any, epsilon: float) -> float:
    above = losses > epsilon
    return float(chances[above] @ -np.expm1(epsilon - losses[above]))


def _log_binomial(n: int, k: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
    from scipy.special import gammaln

    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _merged(losses: Any, chances: Any, most: int) -> tuple[Any, Any]:
    """At most so many values: rounded up to a grid, chances of equal ones added.

    The grid lies where nearly all of the chance is: 15 deviations around the mean. What lies below
    is rounded up to its start, and what lies above (less than 1e-48) to the largest value of all.
    """
    if len(losses) <= most:
        return losses, chances
    mean = float(chances @ losses) / float(chances.sum())
    wide = 15 * math.sqrt(float(chances @ (losses - mean) ** 2) / float(chances.sum()))
    top = float(losses.max())
    low, high = max(float(losses.min()), mean - wide), min(top, mean + wide)
    step = max((high - low) / (most - 2), 1e-300)
    cells = np.ceil(np.clip((losses - low) / step, 0, most - 2)).astype(np.int64)
    cells[losses > high] = most - 1
    together = np.bincount(cells, weights=chances, minlength=most)
    values = low + step * np.arange(most)
    values[most - 2 :] = high, top
    held = np.flatnonzero(together)
    return values[held], together[held]
