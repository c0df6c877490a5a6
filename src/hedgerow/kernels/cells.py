"""Compiled loops over the bins and cells of the default method's small tables.

They see released values only, no row.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels.arrays import Floats, Int32s, Ints
from hedgerow.kernels.compiling import compiled


class BinPlaces(NamedTuple):
    """Where bins of columns lie between 0 and 1, one column after another."""

    first: Ints  # (column + 1,): where the bins of each column begin
    place: Floats  # (bin of all columns,): by column, in the order of `order`, not falling
    order: Ints  # (bin of all columns,): bins, counted in their column
    edges: NDArray[np.float32]  # (bin of all columns,): the edge behind it


class CellSums(NamedTuple):
    """Noisy sums of the cells of several tables, one table after another."""

    g: Floats  # (output, cell of all tables): sums of -gradients
    h: Floats  # (output, cell of all tables): sums of Hessians
    ends: Ints  # (table,): where its cells end


class EffectPrior(NamedTuple):
    """What the effects of cells are taken for: normal, of one of several deviations tau."""

    taus: Floats  # (tau,)
    log_weights: Floats  # (output, tau)
    floor: float  # Hessians count as at least so much


class CellWeights(NamedTuple):
    """What `weigh` writes of the cells of several tables."""

    weights: Floats  # (output, cell of all tables)
    deviations: Floats  # (output, cell of all tables): of the weights, by the noise in g
    likely: Floats  # (output, table, tau): how likely each tau is


def _drawn_columns(uniform: Floats, chance: Floats, sizes: list[int]) -> tuple[list[int], Floats]:
    """Draw columns of tables, in none of them twice, as `Generator.choice` does; and shifts.

    Where some came twice, the rest is drawn of the other columns. Every pass yields a new one at
    least, so all of a table take no more than size (size + 1) / 2 values of `uniform`.
    """
    # Tables have two or three columns: lists are quicker than calls of NumPy for so few numbers.
    columns, shifts, used = list[int](), list[float](), 0
    values, every = uniform.tolist(), chance.tolist()
    all_shares = _shares(every)
    for size in sizes:
        drawn, chances, shares = list[int](), every, all_shares
        while True:
            wanted = size - len(drawn)
            for value in values[used : used + wanted]:
                column = bisect_right(shares, value)
                # None of chance 0, which a share rounded up might hit; none twice.
                if chances[column] > 0.0 and column not in drawn:
                    drawn.append(column)
            used += wanted
            if len(drawn) == size:
                break
            chances = [0.0 if j in drawn else c for j, c in enumerate(every)]
            shares = _shares(chances)
        columns += drawn
        shifts += values[used : used + size]
        used += size
    return columns, np.array(shifts) - 0.5


def _shares(chances: list[float]) -> list[float]:
    """Return how likely a column up to each of them is drawn, added up in their order."""
    ends = list(accumulate(chances))
    return [end / ends[-1] for end in ends]


def draw_tables(
    uniform: Floats, chance: Floats, sizes: Ints, n_parts: Ints, bins: BinPlaces
) -> tuple[Int32s, Ints, Ints, NDArray[np.float32]]:
    """Draw tables of so many columns, each cut into so many parts at places of its own: (table,).

    Returned are columns; where their bins begin, and where all of them end; the part and the edge
    of every bin: one table after another. Column j has the chance[j] to be drawn. A table
    of s columns takes at most s (s + 3) / 2 values of `uniform`, in the order in which columns
    and then shifts are drawn: the same seed gives the same tables.
    """
    drawn, shifts = _drawn_columns(uniform, chance, sizes.tolist())
    columns, table = np.array(drawn, np.int32), np.repeat(np.arange(len(sizes)), sizes)
    lengths = np.diff(bins.first)[columns]  # (column of all tables,)
    ends = np.cumsum(lengths)
    which = np.repeat(np.arange(len(columns)), lengths)  # (bin of all tables,)
    begin = ends - lengths
    of = bins.first[columns][which] + np.arange(int(ends[-1])) - begin[which]
    part = np.empty(len(of), np.int64)
    part[begin[which] + bins.order[of]] = parts_by_place(
        bins.place[of], n_parts[table][which], shifts[which], begin
    )
    return columns, np.append(begin, len(of)), part, bins.edges[of]


def parts_by_place(place: Floats, n_parts: Ints, shift: Floats, begin: Ints) -> Ints:
    """Return the part of each bin, numbered without gaps, by places that do not fall: (bin,).

    Bins of columns lie one after another, each column's from `begin` on. `shift` (in parts, between
    -1/2 and 1/2) moves all cuts: tables that cut a column at different places add up to a finer
    function of it.
    """
    cell = np.clip(np.floor(place * n_parts + shift), 0, n_parts - 1)
    is_new = np.empty(len(cell), np.bool_)
    is_new[1:] = cell[1:] != cell[:-1]
    is_new[begin] = True
    part = np.cumsum(is_new)
    return np.asarray(part - np.repeat(part[begin], np.diff(begin, append=len(part))))


@compiled(error_model="numpy")
def _weigh(
    g: Floats, h: Floats, ends: Ints, noise: float, share: float, taus: Floats,
    log_weights: Floats, floor: float, weights: Floats, deviations: Floats, likely: Floats,
) -> None:  # fmt: skip
    """Do as `weigh` for the cells of all tables of one output.

    Given tau, the sum g of a cell with Hessian h is normal with mean 0 and variance
    noise^2 + h + tau^2 h^2: the noise, the rows' own scatter, and the effect times h. That makes
    the posterior probability of each tau by the cells of one table: (table, tau).
    """
    first, own = np.int64(0), noise * noise
    for table in range(ends.size):
        stop, top, total = ends[table], -math.inf, 0.0
        for t in range(taus.size):
            evidence, square = 0.0, taus[t] * taus[t]
            for i in range(first, stop):
                hessian = h[i] if h[i] > floor else floor
                variance = own + hessian + square * (hessian * hessian)
                evidence += math.log(variance) + g[i] * g[i] / variance
            likely[table, t] = log_weights[t] - 0.5 * evidence
            top = likely[table, t] if likely[table, t] > top else top
        for t in range(taus.size):  # the largest is taken off, so that no exponential overflows
            likely[table, t] = math.exp(likely[table, t] - top)
            total += likely[table, t]
        for t in range(taus.size):
            likely[table, t] /= total
        for i in range(first, stop):
            hessian, trust = h[i] if h[i] > floor else floor, 0.0
            for t in range(taus.size):
                square = taus[t] * taus[t] * hessian
                trust += likely[table, t] * square / (share * own + hessian + square * hessian)
            weights[i], deviations[i] = trust * g[i], trust * noise
        first = stop


def weigh(sums: CellSums, noise: float, share: float, prior: EffectPrior, out: CellWeights) -> None:
    """Write weights of the cells of several tables, and their noise.

    `methods.auto.interaction_tables` has the formula. Noise has the deviation `noise` in g.
    """
    for k in range(len(sums.g)):
        _weigh(
            np.ascontiguousarray(sums.g[k]), np.ascontiguousarray(sums.h[k]), sums.ends,
            float(noise), float(share), prior.taus, np.ascontiguousarray(prior.log_weights[k]),
            float(prior.floor), out.weights[k], out.deviations[k], out.likely[k],
        )  # fmt: skip


def recalibrate(
    ones: Floats, zeros: Floats, noise: float, centres: Floats, prior_shift: float,
    prior_slope: float,
) -> tuple[float, float]:  # fmt: skip
    """Return the most likely shift and slope of scores, given noisy counts by class: (score bin,).

    `methods.auto.calibration` says more. `centres` are the scores of the bins' middles. It is asked
    once a model, of some bins: that needs no compiler.
    """
    shift, slope = 0.0, 1.0
    bins = list(zip(ones.tolist(), zeros.tolist(), centres.tolist(), strict=True))
    for _ in range(30):  # Newton's steps, each held to a length at which they cannot run away
        by_shift, by_slope = -shift / prior_shift**2, (1 - slope) / prior_slope**2
        first, cross, second = 1 / prior_shift**2, 0.0, 1 / prior_slope**2  # the Hessian
        for one, zero, centre in bins:
            p, rows = 1 / (1 + math.exp(-(shift + slope * centre))), one + zero
            off, w = one - rows * p, max(rows, 0.0) * p * (1 - p)
            # A bin counts by the share of its variance that is not noise.
            trust = w / max(noise**2 * ((1 - p) ** 2 + p**2) + w, 1e-9)
            by_shift += trust * off
            by_slope += trust * off * centre
            first += trust * w
            cross += trust * w * centre
            second += trust * w * centre**2
        determinant = first * second - cross**2
        by_shift, by_slope = (  # the inverse of a 2 x 2 matrix, times the gradient
            (second * by_shift - cross * by_slope) / determinant,
            (first * by_slope - cross * by_shift) / determinant,
        )
        before = shift, slope
        shift += min(max(by_shift, -1.0), 1.0)
        slope = min(max(slope + min(max(by_slope, -0.3), 0.3), 0.4), 2.5)
        if (shift, slope) == before:  # and so would be all steps that follow
            break
    return shift, slope
