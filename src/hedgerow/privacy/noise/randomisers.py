"""Noise for single numbers and labels (local differential privacy): the rules, not the draws.

Every rule says in whole numbers how often each output comes, and its promise holds for these: for
any two inputs and any output the weights differ by a factor of at most e^epsilon. Weights that
follow from e^epsilon are rounded toward safety, from 60 exact decimals. What is drawn is a whole
number below a limit, each as likely as another, and `mechanisms.py` draws it. Turning outputs into
floats is arithmetic on what everybody may see.

Numbers lie between -1 and 1; what lies outside is moved to the ends, what is no number to 0. They
are then put on a grid of about a million places, so a mean is right to 1e-6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError

PLACES = 2**20  # of a grid, on either side of 0
HALF_RANGE = 2**62  # of draws between two outputs
LEAST_EPSILON, MOST_EPSILON = 1e-4, 20.0
HYBRID_FROM = 0.61  # below it the hybrid is Duchi's mechanism alone (Wang et al. 2019)
MOST_CLASSES = 10_000
MECHANISMS = ("laplace", "duchi", "piecewise", "hybrid")
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]


def power_below(epsilon: float) -> Fraction:
    """e^epsilon, a little less: by at least the last error of 60 decimals, by at most 1e-57 of it.

    A decimal's exponential is correctly rounded to the precision of its context.
    """
    with localcontext(Context(prec=60)):
        return Fraction(Decimal(epsilon).exp() * (1 - Decimal(10) ** -58))


def checked_epsilon(epsilon: float) -> float:
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise PlanError(
            f"noise for single numbers takes an epsilon from {LEAST_EPSILON:g} to "
            f"{MOST_EPSILON:g}, not {epsilon:g}. Nothing was sent."
        )
    return float(epsilon)


def _clamped(values: Floats) -> Floats:
    return np.clip(np.nan_to_num(values, nan=0.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)


@dataclass(frozen=True)
class Laplace:
    """x + noise in proportion to exp(-|noise| / scale), on the grid of step 1 / places.

    Two inputs lie at most 2 places steps apart, so an output's chances differ by a factor of at
    most exp(2 places / scale), and scale >= 2 places / epsilon: a whole number, rounded up.
    """

    epsilon: float
    places: int = PLACES

    @property
    def scale(self) -> int:
        return math.ceil(Fraction(2 * self.places) / Fraction(self.epsilon))

    def cells(self, values: Floats) -> Ints:
        return np.rint(_clamped(values) * self.places).astype(np.int64)

    def exact(self, cells: Ints) -> Floats:
        return cells / self.places

    def outputs(self, cells: Ints, noise: Ints) -> Floats:
        return (cells + noise) / self.places

    def variance(self, value: float = 0.0) -> float:
        return 2 * (self.scale / self.places) ** 2


@dataclass(frozen=True)
class Duchi:
    """One of two outputs, the mean of which is the input (Duchi, Jordan and Wainwright 2013).

    Of 2 HALF_RANGE draws, HALF_RANGE + x step give the upper output, for x from -places to places.
    Chances of an output differ most between the two ends, by (1 + t)/(1 - t) with
    t = places step / HALF_RANGE; that is at most e^epsilon if t <= (e^epsilon - 1)/(e^epsilon + 1),
    which grows with e^epsilon, so a power below the true one and a step rounded down keep it.
    """

    epsilon: float
    places: int = PLACES

    @property
    def limit(self) -> int:
        return 2 * HALF_RANGE

    @property
    def step(self) -> int:
        power = power_below(self.epsilon)
        return math.floor(HALF_RANGE * (power - 1) / (power + 1) / self.places)

    @property
    def size(self) -> float:
        """The outputs are plus and minus this: exactly 1/t, so the mean is x / places."""
        return float(Fraction(HALF_RANGE, self.places * self.step))

    def weight(self, cells: Ints) -> Words:
        """How many draws give the upper output."""
        return (HALF_RANGE + cells * self.step).view(np.uint64)

    def cells(self, values: Floats) -> Ints:
        return np.rint(_clamped(values) * self.places).astype(np.int64)

    def exact(self, cells: Ints) -> Floats:
        return cells / self.places

    def outputs(self, cells: Ints, drawn: Words) -> Floats:
        return np.where(drawn < self.weight(cells), self.size, -self.size)

    def variance(self, value: float = 0.0) -> float:
        return self.size**2 - value**2


@dataclass(frozen=True)
class Piecewise:
    """An output from a window around the input, or from elsewhere (Wang et al. 2019), on cells.

    There are n_cells outputs; those of a window of `window` cells, which begins at the input's
    cell, come with weight `inside` each, all others with `outside`. Their sum is the same for all
    inputs, so chances differ by inside/outside at most, and inside = floor(power outside) with a
    power below e^epsilon. The mean of an output is a linear function of the window's place,
    which `outputs` inverts: exactly unbiased, whatever was rounded.
    """

    epsilon: float
    n_cells: int = PLACES

    @property
    def window(self) -> int:
        """The part 1/(e^(epsilon/2) + 1), which has least variance; even, so that 0 is a place."""
        return max(2, 2 * round(self.n_cells / (math.exp(self.epsilon / 2) + 1) / 2))

    @property
    def last(self) -> int:
        """Inputs are the window's places 0, ..., last."""
        return self.n_cells - self.window

    @property
    def weights(self) -> tuple[int, int]:
        """Of a cell inside the window and outside of it; all together below 2^63."""
        power = power_below(self.epsilon)
        outside = math.floor(2**63 / (self.window * power + self.last))
        return math.floor(power * outside), outside

    @property
    def limit(self) -> int:
        inside, outside = self.weights
        return self.window * inside + self.last * outside

    def cells(self, values: Floats) -> Ints:
        return np.rint((_clamped(values) + 1) / 2 * self.last).astype(np.int64)

    def exact(self, cells: Ints) -> Floats:
        return 2 * cells / self.last - 1

    @property
    def slope(self) -> float:
        """An output one cell further is this much more."""
        inside, outside = self.weights
        return float(Fraction(2 * self.limit, self.last * (inside - outside) * self.window))

    def drawn_cells(self, cells: Ints, drawn: Words) -> Ints:
        """Draws in order: `inside` for each cell of the window, `outside` for each of the rest."""
        inside, outside = (np.uint64(weight) for weight in self.weights)
        top = np.uint64(self.window) * inside
        near = drawn < top
        within = cells + (np.where(near, drawn, np.uint64(0)) // inside).view(np.int64)
        rest = (np.where(near, np.uint64(0), drawn - top) // outside).view(np.int64)
        return np.where(near, within, np.where(rest < cells, rest, rest + self.window))

    def outputs(self, cells: Ints, drawn: Words) -> Floats:
        centred = self.drawn_cells(cells, drawn) - (self.n_cells - 1) / 2
        return np.asarray(self.slope * centred, np.float64)

    def variance(self, value: float = 0.0) -> float:
        inside, outside = self.weights
        middle = (self.n_cells - 1) / 2
        centre = (value + 1) / 2 * self.last + (self.window - 1) / 2 - middle
        everywhere = self.n_cells * (self.n_cells**2 - 1) / 12
        here = self.window * ((self.window**2 - 1) / 12 + centre**2)
        square = (outside * everywhere + (inside - outside) * here) / self.limit
        return self.slope**2 * square - value**2


@dataclass(frozen=True)
class Hybrid:
    """Piecewise with a chance of 1 - e^(-epsilon/2), else Duchi's (Wang et al. 2019).

    The choice between them does not depend on the input, so even who sees it learns no more than
    from one of the two; its rounding is of no account.
    """

    epsilon: float

    @property
    def limit(self) -> int:
        return 2 * HALF_RANGE

    @property
    def share(self) -> int:
        """How many draws mean the piecewise mechanism."""
        if self.epsilon <= HYBRID_FROM:
            return 0
        return math.floor(-math.expm1(-self.epsilon / 2) * self.limit)

    @property
    def parts(self) -> tuple[Piecewise, Duchi]:
        return Piecewise(self.epsilon), Duchi(self.epsilon)

    def variance(self, value: float = 0.0) -> float:
        part = self.share / self.limit
        one, two = self.parts
        return part * one.variance(value) + (1 - part) * two.variance(value)


Rule = Laplace | Duchi | Piecewise | Hybrid


def rule_for(mechanism: str, epsilon: float) -> Rule:
    rules: dict[str, type[Rule]] = {
        "laplace": Laplace,
        "duchi": Duchi,
        "piecewise": Piecewise,
        "hybrid": Hybrid,
    }
    if mechanism not in rules:
        raise PlanError(f"noise is {', '.join(rules)}, not {mechanism!r}. Nothing was sent.")
    return rules[mechanism](checked_epsilon(epsilon))


def noise_variance(mechanism: str, epsilon: float, value: float = 0.0) -> float:
    """Variance of what a number between -1 and 1 becomes."""
    return rule_for(mechanism, epsilon).variance(value)


@dataclass(frozen=True)
class LabelResponse:
    """A label as it is, or any of the others (randomised response).

    Of 2^63 draws each other label has `other` = ceil(2^63 / (power + classes - 1)) and the own one
    the rest: at most 2^63 power / (power + classes - 1), so its chance is at most `power` times,
    hence at most e^epsilon times, as large as when it is another; and it is never less.
    """

    classes: int
    epsilon: float

    def __post_init__(self) -> None:
        checked_epsilon(self.epsilon)
        if not 2 <= self.classes <= MOST_CLASSES:
            raise PlanError(f"labels have 2 to {MOST_CLASSES:,} classes, not {self.classes:,}")

    @property
    def limit(self) -> int:
        return 2**63

    @property
    def other(self) -> int:
        return math.ceil(self.limit / (power_below(self.epsilon) + self.classes - 1))

    @property
    def own(self) -> int:
        return self.limit - (self.classes - 1) * self.other

    def outputs(self, labels: Ints, drawn: Words) -> Ints:
        own = np.uint64(self.own)
        other = np.where(drawn < own, np.uint64(0), drawn - own) // np.uint64(self.other)
        steps = np.where(drawn < own, 0, 1 + other.view(np.int64))
        return np.asarray((labels + steps) % self.classes)

    def unbiased_weights(self) -> Floats:
        """(reported, class): weights whose mean, over reports, is 1 for the true class, else 0.

        So the sum over classes of weight times f(class) has the mean f(true class), for gradients
        and whatever else depends on a label: post-processing of the report.
        """
        apart = self.own - self.other
        found = np.full((self.classes, self.classes), -self.other / apart)
        np.fill_diagonal(found, (self.limit - self.other) / apart)
        return found
