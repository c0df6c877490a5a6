"""Losses: how scores become gradients, and the proven bound of what one row can add.

`kernels/loops.py` computes the statistics on an integer grid; this module says how large they can
be. To add a loss: a class here, its line in `loss_for` and `loss_named`, its code and loop there.
A row adds a first part (gradients, or class counts) and a second part (Hessians, or the row
itself); the second is counted `second_scale`-fold, so it carries 1/second_scale of the first part's
noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.schema import Label
from hedgerow.data.schema_checks import BENDS, LEVELS, MAX_COUNT, MAX_TIME_CUTS
from hedgerow.errors import FormatError
from hedgerow.model.number_losses import Huber, Poisson, Quantile, Squared
from hedgerow.model.row_bound import RowBound

__all__ = [
    "TREE_UPDATES", "UPDATES", "Hazards", "Huber", "Logistic", "Loss", "Poisson", "Quantile",
    "RowBound", "Softmax", "Squared", "Update", "loss_for", "loss_named",
]  # fmt: skip

Update = Literal["newton", "gradient", "averaging", "slope", "count"]
UPDATES = {
    "newton": kernels.NEWTON,  # gradients and Hessians
    "gradient": kernels.GRADIENT,  # gradients and the row itself
    "averaging": kernels.AVERAGING,  # the class, or the label and the row itself
    "slope": kernels.SLOPE,  # gradients alone
    "count": kernels.COUNT,  # the row itself
}
TREE_UPDATES = ("newton", "gradient", "averaging")  # those that a published method may choose
Floats = NDArray[np.float64]


class Loss(Protocol):
    """What a grower and a party need to know of a loss."""

    @property
    def name(self) -> str: ...

    @property
    def code(self) -> int: ...

    @property
    def n_outputs(self) -> int: ...

    @property
    def parameter(self) -> float:
        """What the loops are told besides the code; 0 where there is nothing."""
        ...

    def bound(self, update: str, clip: float = math.inf) -> RowBound:
        """What a row adds under an update, its gradients clamped to +-clip."""
        ...

    def hessian_bound(self) -> float:
        """The most that the Hessians of one row add up to, over all outputs."""
        ...

    def start(self, counts: Floats, floor: float) -> Floats:
        """Scores of a constant model from noisy label sums, counts held above `floor`."""
        ...

    def start_deviation(self, counts: Floats, floor: float, noise: float) -> Floats:
        """Deviation of `start` by noise of that deviation in each sum, to first order: (output,)"""
        ...

    def predictions(self, scores: Floats, averaged: bool) -> Floats:
        """Class probabilities (row, class), or values (row, 1) between 0 and 1.

        Of times to an event: probabilities to be without it at every cut, (row, cut).
        """
        ...


@dataclass(frozen=True)
class Logistic:
    """Binary log loss on labels 0 and 1; the score is the log-odds of class 1.

    With q = |p - y| we have |g| = q and h = q (1 - q). In units where h counts c-fold, the
    row's squared norm is q^2 + c^2 q^2 (1 - q)^2. It is at most 1 for all q in [0, 1] exactly
    when c <= phi**2.5 = 3.33019 (phi the golden ratio; tight at q = 1 / phi), so Hessians travel
    free of charge at 1 / 3.33 of the gradients' noise. `kernels.statistics.logistic` truncates
    q onto the grid first and floors h, hence the bound holds on the grid too.
    """

    hessian_scale: float = 3.33
    name: str = "logistic"
    code: int = kernels.LOGISTIC
    n_outputs: int = 1
    parameter: float = 0.0

    def bound(self, update: str, clip: float = math.inf) -> RowBound:
        c, most = self.hessian_scale, min(clip, 1.0)
        if update == "newton" and most == 1.0:
            # q + c q (1 - q) is largest at q = (1 + c) / (2 c).
            return RowBound(1, 1, c, l1=(1 + c) ** 2 / (4 * c), l2=1.0)
        if update == "newton":
            # A clamped row keeps its Hessian, so Hessians are not free any more; they weigh c = 1.
            # Below the clip, q^2 + q^2 (1 - q)^2 rises with q (its slope is 2 q times
            # 1 + (1 - q)(1 - 2 q) >= 7/8). Above it the first part is clip^2 and the second at
            # most h^2 with h = 1/4 if the clip is at most 1/2, else clip (1 - clip).
            h = 0.25 if most <= 0.5 else most * (1 - most)
            return RowBound(1, 1, 1.0, l1=most + h, l2=math.hypot(most, h))
        if update == "gradient":
            # |g| <= clip beside a count of 1 that weighs half of it.
            return RowBound(1, 1, most / 2, l1=1.5 * most, l2=most * math.sqrt(1.25))
        if update == "slope":
            return RowBound(1, 0, 1.0, l1=most, l2=most)
        # A row adds 1 to the count of its class, or to the count of rows.
        return RowBound(1 if update == "count" else 2, 0, 1.0, l1=1.0, l2=1.0)

    def hessian_bound(self) -> float:
        return 0.25

    def start(self, counts: Floats, floor: float) -> Floats:
        negative, positive = np.maximum(counts, floor)
        return np.array([math.log(positive / negative)])

    def start_deviation(self, counts: Floats, floor: float, noise: float) -> Floats:
        return np.array([noise * math.sqrt(float(np.sum(np.maximum(counts, floor) ** -2.0)))])

    def predictions(self, scores: Floats, averaged: bool) -> Floats:
        if averaged:
            positive = np.clip(scores[:, 0], 0.0, 1.0)
        else:
            positive = 1.0 / (1.0 + np.exp(-np.clip(scores[:, 0], -700, 700)))
        return np.column_stack([1.0 - positive, positive])


@dataclass(frozen=True)
class Softmax:
    """Log loss over K >= 3 classes; one score a class, one tree structure for all of them.

    Let q = 1 - p_y. The row's own class has |g| = q and h = q (1 - q), every other class k has
    g = p_k and h = p_k (1 - p_k), and the p_k add up to q. With c = 2 the squared norm is
    f(q) + sum f(p_k) with f(x) = x^2 (1 + 4 (1 - x)^2). On [0, 1] we have f(x) <= x, because
    x - f(x) = x (1 - x) (1 - 2 x)^2. Hence it is at most q + sum p_k = 2 q <= 2 and the norm at
    most sqrt 2 (tight at p = (0, 1/2, 1/2), so a larger c breaks it). On the grid p_k is floored
    and q is the sum of the floored p_k, at most 1: a point of the same family.
    """

    n_outputs: int
    hessian_scale: float = 2.0
    code: int = kernels.SOFTMAX
    parameter: float = 0.0

    @property
    def name(self) -> str:
        return f"softmax-{self.n_outputs}"

    def bound(self, update: str, clip: float = math.inf) -> RowBound:
        k, c = self.n_outputs, self.hessian_scale
        norm = self._gradient_norm(min(clip, 1.0))
        if update == "newton" and clip >= 1.0:
            # Each of the two sums above: x + c x (1 - x) <= (1 + c)^2 / (4 c), and
            # sum p_k + c sum p_k (1 - p_k) <= 1 + c.
            return RowBound(k, k, c, l1=(1 + c) ** 2 / (4 * c) + 1 + c, l2=math.sqrt(2.0))
        if update == "newton":
            # Hessians weigh 1 here. Their squares: q^2 (1 - q)^2 <= 1/16 of the row's own class,
            # and sum p_k^2 (1 - p_k)^2 <= 4/27 sum p_k, since x (1 - x)^2 <= 4/27. Their sum: < 1.
            return RowBound(k, k, 1.0, l1=3.0, l2=math.sqrt(norm**2 + 1 / 16 + 4 / 27))
        if update == "gradient":
            # |g|_1 = 2 q <= 2; the count of 1 weighs half of the gradients' norm.
            return RowBound(k, 1, norm / 2, l1=2 + norm / 2, l2=norm * math.sqrt(1.25))
        if update == "slope":
            return RowBound(k, 0, 1.0, l1=2.0, l2=norm)
        return RowBound(1 if update == "count" else k, 0, 1.0, l1=1.0, l2=1.0)

    def _gradient_norm(self, clip: float) -> float:
        """The most that the clamped gradients of a row can be long.

        The row's own class adds at most clip^2. The others are at least 0 and add up to at most 1;
        a sum of squares is convex, so it is largest at a corner: as many as fit at the clip, and
        one with what is left.
        """
        full = min(math.floor(1 / clip), self.n_outputs - 1)
        rest = min(clip, max(0.0, 1 - full * clip)) if full < self.n_outputs - 1 else 0.0
        return math.sqrt(clip**2 + full * clip**2 + rest**2)

    def hessian_bound(self) -> float:
        # q (1 - q) + sum p_k (1 - p_k) = 1 - sum of all squares < 1.
        return 1.0

    def start(self, counts: Floats, floor: float) -> Floats:
        logs = np.log(np.maximum(counts, floor))
        # Subtracting the largest keeps the result independent of the order of the classes.
        return np.asarray(logs - logs.max())

    def start_deviation(self, counts: Floats, floor: float, noise: float) -> Floats:
        return np.asarray(noise / np.maximum(counts, floor))

    def predictions(self, scores: Floats, averaged: bool) -> Floats:
        if averaged:
            shares = np.clip(scores, 0.0, None) + 1e-12
        else:
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Hazards:
    """Time to an event in J public intervals; one score an interval, the logarithm of its hazard.

    The loss is that of grouped times under proportional hazards: d_k the hazard of interval k, a
    row survives it with probability exp(-d_k). All scores of a row move together, so it adds one
    number g, the slope of its loss along a common shift: D the hazards of the intervals it was seen
    through, D for a row that is still there at the last cut, D + d/2 for one censored within the
    next interval, and D - d/(e^d - 1) for one whose event happened there. As d/(e^d - 1) <= 1, g is
    at least -1; it is clamped to 1 (and to the clip) from above. Both ends are reached: by an event
    in an interval without hazard, and by a row that survives D >= 1. So |g| <= C, C the clip or 1.

    Where effects may change at a cut, with `n_first` intervals before it, the scores of each of the
    two periods move together, and a row adds two numbers (g1, g2), the slopes of its loss along
    these, each between -1 and 1 as above. With a clip they are held within a disk of radius C
    *jointly*, so that their norm is at most C as well, reached by the same rows: two numbers cost
    no more noise than one. That shortens rows that were at risk for long before; without a clip
    they are left alone, and the norm is at most sqrt 2, reached by surviving D >= 1 in both.

    Newton's h are the hazards that the row was seen through, D or D + d/2, in each period, at least
    0 and held within C as g is. A row that survives D >= C is as long in both, so nothing is free,
    and h weighs half.
    """

    n_outputs: int
    n_first: int = 0  # intervals of the first period; 0: effects are the same in all
    code: int = kernels.HAZARDS

    @property
    def name(self) -> str:
        return f"hazards-{self.n_outputs}" + (f"-{self.n_first}" if self.n_first else "")

    @property
    def parameter(self) -> float:
        return float(self.n_first)

    @property
    def periods(self) -> tuple[int, ...]:
        """How many intervals have their effects in common, in order."""
        first, all_of_them = self.n_first, self.n_outputs
        return (first, all_of_them - first) if first else (all_of_them,)

    def bound(self, update: str, clip: float = math.inf) -> RowBound:
        n = len(self.periods)
        most = math.sqrt(n) if math.isinf(clip) else min(clip, 1.0)
        l1 = most * math.sqrt(n)  # of a vector of n numbers that is no longer than `most`
        if update == "slope":
            return RowBound(n, 0, 1.0, l1=l1, l2=most)
        if update == "gradient":
            # |g| <= clip beside a count of 1 that weighs half of it.
            return RowBound(n, 1, most / 2, l1=l1 + most / 2, l2=most * math.sqrt(1.25))
        if update == "newton":
            return RowBound(n, n, 0.5, l1=1.5 * l1, l2=most * math.sqrt(1.25))
        if update in ("averaging", "count"):
            # A row adds 1 to the count of its cell of time and event, or to the count of rows.
            first = 2 * self.n_outputs + 1 if update == "averaging" else 1
            return RowBound(first, 0, 1.0, l1=1.0, l2=1.0)
        raise FormatError(f"times to an event have no {update} update")

    def hessian_bound(self) -> float:
        raise FormatError("times to an event have no bounded Hessians of all outputs together")

    def start(self, counts: Floats, floor: float) -> Floats:
        censored, events = counts[:-1:2], counts[1::2]
        at_risk = np.cumsum(counts[::-1])[::-1][:-1:2]  # at the start of each interval
        exposed = np.maximum(at_risk - censored / 2, floor)
        share = np.clip(np.maximum(events, floor) / exposed, 1e-9, 0.999)
        return np.asarray(np.log(-np.log1p(-share)))

    def start_deviation(self, counts: Floats, floor: float, noise: float) -> Floats:
        events, n_behind = np.maximum(counts[1::2], floor), 2 * np.arange(self.n_outputs, 0, -1) + 1
        at_risk = np.maximum(np.cumsum(counts[::-1])[::-1][:-1:2], floor)
        return np.asarray(noise * np.sqrt(events**-2.0 + n_behind * at_risk**-2.0))

    def predictions(self, scores: Floats, averaged: bool) -> Floats:
        """Probabilities to be without the event at every cut: (row, cut)."""
        return np.asarray(np.exp(-np.cumsum(np.exp(np.clip(scores, -700, 50)), axis=1)))


def loss_for(label: Label) -> Loss:
    """The loss that belongs to a label."""
    if label.task == "survival":
        return Hazards(len(label.cuts), label.n_first)
    if label.task == "binary":
        return Logistic()
    if label.task == "multiclass":
        return Softmax(len(label.classes))
    if label.loss == "poisson" and label.upper is not None:
        return Poisson(int(label.upper))
    if label.loss == "quantile" and label.quantile is not None:
        return Quantile(round(label.quantile * LEVELS))
    if label.loss == "huber" and label.huber is not None:
        assert label.lower is not None
        assert label.upper is not None
        # Rounded up: errors up to what the schema says are squared.
        return Huber(math.ceil(label.huber / (label.upper - label.lower) * BENDS))
    return Squared()


# By kind: what the number behind the name may be.
_NUMBERED: dict[str, tuple[Callable[[int], Loss], int, int]] = {
    "softmax": (Softmax, 3, 10_000),
    "hazards": (Hazards, 2, MAX_TIME_CUTS),
    "poisson": (Poisson, 1, MAX_COUNT),
    "quantile": (Quantile, 1, LEVELS - 1),
    "huber": (Huber, 1, BENDS),
}


def loss_named(name: str) -> Loss:
    """The inverse of `Loss.name`, for messages."""
    if not isinstance(name, str) or len(name) > 20:  # a message may say anything
        raise FormatError("a loss has no name that is known")
    kind, _, number = name.partition("-")
    if name == "logistic":
        return Logistic()
    if name == "squared":
        return Squared()
    if kind == "hazards" and "-" in number:
        return _changing_hazards(*number.split("-", 1))
    if kind in _NUMBERED and number.isdecimal():
        made, least, most = _NUMBERED[kind]
        if least <= int(number) <= most:
            return made(int(number))
    raise FormatError(f"unknown loss {name!r}")


def _changing_hazards(intervals: str, first: str) -> Loss:
    """Hazards whose effects change, from the two numbers of its name."""
    if intervals.isdecimal() and first.isdecimal():
        n, n_first = int(intervals), int(first)
        if 0 < n_first < n <= MAX_TIME_CUTS and f"{n}-{n_first}" == f"{intervals}-{first}":
            return Hazards(n, n_first)
    raise FormatError("a loss has no name that is known")
