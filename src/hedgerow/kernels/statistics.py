"""What every row adds to a sum: gradients and Hessians on an integer grid, counts, labels.

`row_statistics` is the one place where they are computed and clamped. Its losses with exponentials
are compiled; the others are a few steps of NumPy, which need no compiler and take as long.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels.arrays import Floats, Ints
from hedgerow.kernels.compiling import compiled
from hedgerow.kernels.hazards import hazards, hazards_by_period
from hedgerow.kernels.threads import BLOCK

LOGISTIC, SOFTMAX, SQUARED, HAZARDS, POISSON, QUANTILE, HUBER = range(7)
NEWTON, GRADIENT, AVERAGING, SLOPE, COUNT = 0, 1, 2, 3, 4
NO_CLIP = 1 << 62
EXPOSURE_STEPS = 1 << 16  # of the largest exposure, into which exposures are divided
UNWEIGHTED = np.zeros(0, np.uint16)  # the same type as weights: loops are compiled once for both


class Gradients(NamedTuple):
    """What every row adds to a sum: its score and label, and how statistics follow from them.

    `model.losses` says which statistics those are, and bounds them.
    """

    scores: Floats  # (row, output)
    # (row,): a class, a label scaled to [0, 1], a cell of time and event, or a count with exposure
    target: Floats
    bits: int  # statistics are integers on the grid 2**-bits
    loss: int  # LOGISTIC, SOFTMAX, SQUARED, HAZARDS, POISSON, QUANTILE or HUBER
    update: int  # NEWTON, GRADIENT, AVERAGING, SLOPE or COUNT
    clip: int  # gradients are clamped to +- so many steps of the grid
    width: int  # how many statistics a row adds
    weights: NDArray[np.uint16] = UNWEIGHTED  # (row,), in steps of 2**-weight_bits, or (0,)
    weight_bits: int = 0
    # Of the loss: the cap of counts, the quantile, where Huber bends, or how many intervals make
    # the first of two periods in which effects on hazards differ.
    parameter: float = 0.0

    @property
    def room(self) -> int:
        """How many statistics are written: a loss writes g and h of every output, asked or not.

        Hazards of all intervals have one gradient together, or one of each of two periods, and as
        many Hessians, or the row itself.
        """
        if self.loss == HAZARDS:
            return max(self.width, 4 if self.parameter else 2)
        return max(self.width, 2 * int(self.scores.shape[1]))

    @property
    def is_one_hot(self) -> bool:
        """Whether a row adds 1 to the sum of its class, and nothing to the others."""
        by_class = self.loss in (LOGISTIC, SOFTMAX, HAZARDS)
        return self.update == AVERAGING and by_class and not self.weights.size


@compiled(error_model="numpy")
def _logistic(
    scores: Floats, target: Floats, bits: int, most: int, power: Floats, power_bits: Ints,
    rest: Floats, out: Ints,
) -> None:  # fmt: skip
    """Do as `logistic`; `power` and `rest` are memory for a block, `power_bits` that of `power`.

    With x the score for y = 1 and its negative for y = 0, exp x = 2**k exp r, k the whole number
    nearest to x / log 2 and r the remainder, of which exp is a polynomial of degree 12. The first
    three loops have no call and no branch, so that the processor computes several rows at once.
    """
    one = np.int64(1) << bits
    whole = float(one)
    for begin in range(0, scores.size, BLOCK):
        first, size = (
            np.uint64(begin),
            np.uint64(BLOCK if scores.size - begin > BLOCK else scores.size - begin),
        )
        for i in range(size):
            score = scores[first + i]
            x = score if target[first + i] > 0.5 else -score
            x = 700.0 if x > 700.0 else x  # NaN ends at -700 and is left out in the end
            x = x if x > -700.0 else -700.0
            # A float of 1.5 * 2**52 has no bits behind the point: adding it rounds to a whole
            # number, which then stands in the lowest bits of the sum.
            k = x * 1.4426950408889634 + 6755399441055744.0
            power[i] = k
            k = k - 6755399441055744.0
            # log 2 in two parts: k times the first is exact, so r keeps all its bits.
            r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10
            p = 1.0 / 479001600
            p = p * r + 1.0 / 39916800
            p = p * r + 1.0 / 3628800
            p = p * r + 1.0 / 362880
            p = p * r + 1.0 / 40320
            p = p * r + 1.0 / 5040
            p = p * r + 1.0 / 720
            p = p * r + 1.0 / 120
            p = p * r + 1.0 / 24
            p = p * r + 1.0 / 6
            p = p * r + 0.5
            p = p * r + 1.0
            rest[i] = p * r + 1.0
        # The exponent of a float has 11 bits above 52 of the fraction, and 1023 stands for 2**0:
        # the bits of the float k + 1.5 * 2**52 become those of the float 2**k.
        for i in range(size):
            power_bits[i] = (power_bits[i] << 52) + (np.int64(1023) << 52)
        for i in range(size):
            rest[i] = whole / (1.0 + rest[i] * power[i])
        for i in range(size):
            steps = np.int64(rest[i])
            steps = steps if steps > 0 else np.int64(0)
            steps = steps if steps < one else one
            score = scores[first + i]
            steps = steps if score == score else np.int64(0)
            out[first + i, 1] = (steps * (one - steps)) >> bits
            steps = steps if steps < most else np.int64(most)
            out[first + i, 0] = -steps if target[first + i] > 0.5 else steps


def logistic(scores: Floats, target: Floats, bits: int, most: int, out: Ints) -> None:
    """Write g, clamped to +-most steps, and h of some rows on the grid 2**-bits: (row, 2).

    q = |p - y| is truncated, then h = q (1 - q) is computed in integers from that q and floored,
    so the pair is a point on or below the curve (q, q - q^2) for a q that is on the grid, however
    exact the exponential is. A score that is no number adds nothing.
    """
    power, rest = np.empty(BLOCK), np.empty(BLOCK)
    _logistic(scores, target, bits, most, power, power.view(np.int64), rest, out)


@compiled(error_model="numpy")
def softmax(scores: Floats, target: Floats, bits: int, out: Ints) -> None:
    """Write g and h of every class of some rows: out[i, k] and out[i, K + k].

    Everything after exp is integer: weights of 31 bits, their exact sum, floored quotients. So the
    probabilities of the other classes add up to at most 1 on the grid, |g| of the row's own class
    is exactly their sum, and the order of the classes does not matter. Scores that are not
    finite weigh nothing; where no class weighs anything the row adds nothing.
    """
    n, one = scores.shape[1], np.int64(1) << bits
    for i in range(scores.shape[0]):
        top = -math.inf
        for k in range(n):
            if scores[i, k] > top:
                top = scores[i, k]
        total = np.int64(0)
        for k in range(n):
            weight = math.exp(scores[i, k] - top)
            # Below 2**31, so that the shift by up to 32 bits further down stays within 63.
            out[i, k] = np.int64(weight * 2147483647.0) if weight == weight else np.int64(0)
            out[i, n + k] = 0
            total += out[i, k]
        if total == 0:
            continue
        label, rest = np.int64(target[i]), np.int64(0)
        for k in range(n):
            if k != label:
                steps = (out[i, k] << bits) // total
                rest += steps
                out[i, k] = steps
                out[i, n + k] = (steps * (one - steps)) >> bits
        out[i, label] = -rest
        out[i, n + label] = (rest * (one - rest)) >> bits


def _fixed(values: Floats, bits: int) -> Ints:
    """Truncate toward zero onto the grid; NaN becomes 0, so no row can exceed its bound."""
    return (np.where(values == values, values, 0.0) * float(1 << bits)).astype(np.int64)


def squared(scores: Floats, target: Floats, bits: int, out: Ints) -> None:
    """Write g = score - target, both between 0 and 1, and the row itself as h = 1: (row, 2)."""
    clipped = np.where(scores == scores, np.clip(scores, 0.0, 1.0), 0.5)
    out[:, 0], out[:, 1] = _fixed(clipped - target, bits), 1 << bits


def count_and_exposure(target: Floats) -> tuple[Floats, Floats]:
    """The count of every row, and its exposure as a part of the largest: (row,) each.

    Both are kept as one whole number: count * EXPOSURE_STEPS + steps of the exposure - 1. So an
    exposure is at least one step and at most 1.

    >>> count_and_exposure(np.array([0.0, 3 * EXPOSURE_STEPS + EXPOSURE_STEPS - 1]))[1].tolist()
    [1.52587890625e-05, 1.0]
    """
    counts = np.floor(target / EXPOSURE_STEPS)
    return counts, (target - counts * EXPOSURE_STEPS + 1.0) / EXPOSURE_STEPS


def poisson(
    scores: Floats, target: Floats, cap: float, bits: int, most: int, newton: bool, out: Ints
) -> None:
    """Write g, the expected count less the count, and h or the exposure: (row, 2).

    Counts are divided by their cap, and the score is the logarithm of the expected one at the
    largest exposure; it is at most 0. So both lie between 0 and 1, whatever the score is, and g
    between -1 and 1 before it is truncated toward zero. For Newton the second number is the
    expected count, clamped to `most` steps. What is no number adds nothing but exposure.
    """
    counts, exposure = count_and_exposure(target)
    counts, exposure = np.clip(counts / cap, 0.0, 1.0), np.clip(exposure, 0.0, 1.0)
    expected = exposure * np.exp(np.minimum(scores, 0.0))
    out[:, 0] = _fixed(np.where(scores == scores, expected - counts, 0.0), bits)
    out[:, 1] = np.minimum(_fixed(expected, bits), most) if newton else _fixed(exposure, bits)


def quantile(scores: Floats, target: Floats, level: float, bits: int, out: Ints) -> None:
    """Write g = 1 - level where the label is not above the score, else -level: (row, 2).

    The second is the row itself. A score that is no number adds no g.
    """
    clipped = np.clip(scores, 0.0, 1.0)
    slope = np.where(target <= clipped, 1.0 - level, -level)
    out[:, 0], out[:, 1] = _fixed(np.where(scores == scores, slope, 0.0), bits), 1 << bits


def huber(scores: Floats, target: Floats, bend: float, bits: int, out: Ints) -> None:
    """Write g = score - target, clamped to +-bend, and the row itself: (row, 2)."""
    clipped = np.where(scores == scores, np.clip(scores, 0.0, 1.0), 0.5)
    out[:, 0], out[:, 1] = _fixed(np.clip(clipped - target, -bend, bend), bits), 1 << bits


def _label_statistics(gradients: Gradients, target: Floats, out: Ints) -> None:
    """Write what rows add whatever their score: a count, or the class, or label and count.

    Of counts: the count, divided by its cap, and the exposure.
    """
    one = 1 << gradients.bits
    if gradients.update == COUNT:
        out[:, 0] = one
    elif gradients.loss == POISSON:
        counts, exposure = count_and_exposure(target)
        out[:, 0] = _fixed(np.clip(counts / gradients.parameter, 0.0, 1.0), gradients.bits)
        out[:, 1] = _fixed(np.clip(exposure, 0.0, 1.0), gradients.bits)
    elif gradients.loss in (SQUARED, QUANTILE, HUBER):
        out[:, 0], out[:, 1] = _fixed(np.clip(target, 0.0, 1.0), gradients.bits), one
    else:
        out[:, : gradients.width] = 0
        out[np.arange(len(out)), target.astype(np.int64)] = one


def _of_numbers(gradients: Gradients, scores: Floats, target: Floats, out: Ints) -> None:
    """Write g and the row itself, or its exposure, of rows whose label is a number."""
    bits, parameter = gradients.bits, gradients.parameter
    if gradients.loss == POISSON:
        newton, most = gradients.update == NEWTON, min(max(gradients.clip, 0), 1 << bits)
        poisson(scores, target, parameter, bits, most, newton, out)
    elif gradients.loss == QUANTILE:
        quantile(scores, target, parameter, bits, out)
    elif gradients.loss == HUBER:
        huber(scores, target, parameter, bits, out)
    else:
        squared(scores, target, bits, out)


def row_statistics(gradients: Gradients, first: int, size: int, out: Ints) -> None:
    """Write what rows first .. first + size add to their leaf or bin: (row, statistic).

    `hedgerow.model.losses` has the widths and bounds. Gradients are clamped to +-clip steps of the
    grid, Hessians are those of the row itself. There is room in `out` for what a loss writes.
    """
    rows, out, bits = slice(first, first + size), out[:size], gradients.bits
    target, n_outputs = gradients.target[rows], gradients.scores.shape[1]
    most = min(max(gradients.clip, 0), 1 << bits)  # no gradient is longer than one
    if gradients.update in (COUNT, AVERAGING):
        _label_statistics(gradients, target, out)
        return
    if gradients.loss == SOFTMAX:
        softmax(gradients.scores[rows], target, bits, out)
    elif gradients.loss == LOGISTIC:
        logistic(gradients.scores.reshape(-1)[rows], target, bits, most, out)
    elif gradients.loss == HAZARDS:
        newton, n_first = gradients.update == NEWTON, int(gradients.parameter)
        if n_first:
            free = gradients.clip >= NO_CLIP  # each of both between -1 and 1, whatever the other is
            radius = math.floor(math.sqrt(2.0) * (1 << bits)) if free else most
            hazards_by_period(gradients.scores[rows], target, n_first, bits, radius, newton, out)
        else:
            hazards(gradients.scores[rows], target, bits, most, newton, out)
        return
    else:
        _of_numbers(gradients, gradients.scores[rows, 0], target, out)
    if gradients.update == GRADIENT and gradients.loss != POISSON:
        out[:, n_outputs] = 1 << bits
    if most < 1 << bits and gradients.loss != LOGISTIC:
        np.clip(out[:, :n_outputs], -most, most, out=out[:, :n_outputs])


def weighed_statistics(gradients: Gradients, first: int, size: int, out: Ints) -> None:
    """Write `row_statistics` of rows first .. first + size, each times the row's weight.

    Every statistic is truncated toward zero after it was clipped, so a row of weight w adds no
    more than w times what bounds it, in every coordinate and so in every norm.
    """
    row_statistics(gradients, first, size, out)
    if gradients.weights.size:
        weights = gradients.weights[first : first + size, None].astype(np.int64)
        steps = out[:size, : gradients.width]
        # A shift floors, so it is applied to magnitudes: the sign comes back afterwards.
        sizes = (np.abs(steps) * weights) >> gradients.weight_bits
        np.copyto(steps, np.where(steps < 0, -sizes, sizes))
