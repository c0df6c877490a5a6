"""What a row adds to sums about times to an event, in one number or in one of each of two periods.

`model.losses.Hazards` says which numbers these are, and bounds them.
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow.kernels.arrays import Floats, Ints
from hedgerow.kernels.compiling import compiled


@compiled(error_model="numpy")
def hazards(scores: Floats, target: Floats, bits: int, most: int, newton: bool, out: Ints) -> None:
    """Write g of all intervals together, clamped to +-most steps, and the row or h: (row, 2).

    A score is the logarithm of the hazard d_k of interval k. A row that was seen through k
    intervals adds d_1 + ... + d_k; where it was censored within the next one, half of that hazard
    more; where its event happened there, less d / (exp d - 1), which is between 0 and 1. So g is at
    least -1. It is clamped before it is truncated toward zero; what is no number adds nothing.
    For Newton the second number are the hazards it was seen through, half of that of the interval
    in which it left among them, clamped to `most` steps as well.
    """
    n, one = scores.shape[1], np.int64(1) << bits
    whole = float(one)
    for i in range(scores.shape[0]):
        cell = np.int64(target[i])
        last = cell >> 1
        total = 0.0
        for k in range(last):
            total += math.exp(scores[i, k])
        seen = total
        if last < n:
            d = math.exp(scores[i, last])
            seen += 0.5 * d
            if cell & 1 == 0:
                total += 0.5 * d
            elif d > 700.0:  # the quotient below is nothing, and would be no number
                total += 0.0
            elif d > 1e-12:
                total -= d / math.expm1(d)
            else:
                total -= 1.0
        total = total if total == total else 0.0
        total = total if total < 1.0 else 1.0
        total = total if total > -1.0 else -1.0
        steps = np.int64(total * whole)
        steps = steps if steps < most else np.int64(most)
        out[i, 0] = steps if steps > -most else np.int64(-most)
        out[i, 1] = one
        if newton:
            seen = seen if seen == seen else 0.0
            steps = np.int64((seen if seen < 1.0 else 1.0) * whole)
            out[i, 1] = steps if steps < most else np.int64(most)


@compiled(error_model="numpy", helper=True)
def _within(
    first: float, second: float, radius: float, whole: float, out: Ints, i: int, at: int
) -> None:
    """Write two numbers, shortened to a length of at most `radius`, on a grid: (row, number).

    Where neither is 0 and both are longer than they may be, they end 2**-40 short of the edge,
    far more than floats are off; one number alone is clamped, and reaches it.
    """
    if first == 0.0 or second == 0.0:
        first = min(max(first, -radius), radius)
        second = min(max(second, -radius), radius)
    square, edge = first * first + second * second, radius * (1.0 - 2.0**-40)
    if square > edge * edge and first != 0.0 and second != 0.0:
        first, second = first * edge / math.sqrt(square), second * edge / math.sqrt(square)
    out[i, at] = np.int64(first * whole)
    out[i, at + 1] = np.int64(second * whole)


@compiled(error_model="numpy")
def hazards_by_period(
    scores: Floats, target: Floats, n_first: int, bits: int, most: int, newton: bool, out: Ints
) -> None:
    """Do as `hazards` for the first `n_first` intervals and for the others: (row, 3 or 4).

    Each slope is clamped to 1, and both together are held within a disk of radius `most` steps, see
    `_within`, and truncated toward zero. So are Newton's two numbers; otherwise the row stands
    behind the slopes.
    """
    n, one = scores.shape[1], np.int64(1) << bits
    radius = float(most) / float(one)
    for i in range(scores.shape[0]):
        cell = np.int64(target[i])
        last, slope, curve = cell >> 1, 0.0, 0.0
        for period in range(2):
            begin, stop = (0, n_first) if period == 0 else (n_first, n)
            total = 0.0
            for k in range(begin, min(last, stop)):
                total += math.exp(scores[i, k])
            seen = total
            if begin <= last < stop:
                d = math.exp(scores[i, last])
                seen += 0.5 * d
                if cell & 1 == 0:
                    total += 0.5 * d
                elif d > 700.0:
                    total += 0.0
                elif d > 1e-12:
                    total -= d / math.expm1(d)
                else:
                    total -= 1.0
            total = total if total == total else 0.0
            total = total if total < 1.0 else 1.0
            seen = seen if seen == seen else 0.0
            seen = seen if seen < 1.0 else 1.0
            if period == 0:
                slope, curve = total, seen
            else:
                _within(slope, total, radius, float(one), out, i, 0)
                if newton:
                    _within(curve, seen, radius, float(one), out, i, 2)
                else:
                    out[i, 2] = one


@compiled(error_model="numpy")
def log_risks(scores: Floats, out: Floats) -> None:
    """Write the logarithm of the hazards of all intervals together: (row,)."""
    for i in range(scores.shape[0]):
        total = 0.0
        for k in range(scores.shape[1]):
            total += math.exp(scores[i, k])
        out[i] = math.log(total) if total > 0.0 else -math.inf
        if total != total:
            out[i] = math.nan
