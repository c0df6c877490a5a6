"""Compiled loops over the bins and cells of the default method's small tables.

They see released values only, no row.
"""

from __future__ import annotations

import math
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


@compiled()
def _drawn(uniform: Floats, used: int, chance: Floats, size: int, columns: Int32s) -> int:
    """Draw columns of one table, none twice, as `Generator.choice` does; return what is used.

    Where some came twice, the rest is drawn of the other columns. Every pass yields a new one at
    least, so all of them take no more than size (size + 1) / 2 values of `uniform`.
    """
    chances, ends, n_drawn = chance.copy(), np.empty(chance.size), 0
    while n_drawn < size:
        total, wanted = 0.0, size - n_drawn
        for j in range(chance.size):
            total += chances[j]
            ends[j] = total
        for k in range(used, used + wanted):
            j = 0
            while ends[j] / total <= uniform[k]:
                j += 1
            if chances[j] > 0.0:
                columns[n_drawn], chances[j] = j, 0.0
                n_drawn += 1
        used += wanted
    return used


@compiled()
def draw_tables(
    uniform: Floats, chance: Floats, sizes: Ints, n_parts: Ints, bins: BinPlaces
) -> tuple[Int32s, Ints, Ints, NDArray[np.float32]]:
    """Draw tables of so many columns, each cut into so many parts at places of its own: (table,).

    Returned are columns; where their bins begin, counted in each table; the part and the edge of
    every bin: all of them one table after another. Column j has the chance[j] to be drawn. A table
    of s columns takes at most s (s + 3) / 2 values of `uniform`, in the order in which columns
    and then shifts are drawn: the same seed gives the same tables.
    """
    first, place, order, edges = bins.first, bins.place, bins.order, bins.edges
    n_tables, total, n_bins = sizes.size, np.int64(0), np.int64(0)
    for table in range(n_tables):
        total += sizes[table]
    columns, shifts = np.empty(total, np.int32), np.empty(total)
    at, used = 0, 0
    for table in range(n_tables):
        used = _drawn(uniform, used, chance, sizes[table], columns[at:])
        for k in range(sizes[table]):
            shifts[at + k] = uniform[used + k] - 0.5
            n_bins += first[columns[at + k] + 1] - first[columns[at + k]]
        at, used = at + sizes[table], used + sizes[table]
    starts, part = np.zeros(total + n_tables, np.int64), np.empty(n_bins, np.int64)
    after, at, bin_ = np.empty(n_bins, edges.dtype), 0, np.int64(0)
    for table in range(n_tables):
        for _ in range(sizes[table]):
            begin, n = first[columns[at]], first[columns[at] + 1] - first[columns[at]]
            bins_of = slice(begin, begin + n)
            cut_by_place(
                place[bins_of], order[bins_of], n_parts[table], shifts[at], part[bin_ : bin_ + n]
            )
            for i in range(n):
                after[bin_ + i] = edges[begin + i]
            at, bin_ = at + 1, bin_ + n
            starts[at + table] = starts[at + table - 1] + n
    return columns, starts, part, after


@compiled()
def cut_by_place(place: Floats, order: Ints, n_parts: int, shift: float, out: Ints) -> None:
    """Write the part of each bin, numbered without gaps, by places that do not fall: (bin,).

    `shift` (in parts, between -1/2 and 1/2) moves all cuts: tables that cut a column at different
    places add up to a finer function of it.
    """
    part, last = np.int64(-1), np.int64(-1)
    for i in range(place.size):
        here = np.int64(min(max(math.floor(place[i] * n_parts + shift), 0), n_parts - 1))
        part += here != last
        last = here
        out[order[i]] = part


@compiled(error_model="numpy")
def _likely(
    g: Floats, h: Floats, noise: float, taus: Floats, log_weights: Floats, floor: float,
    likely: Floats,
) -> None:  # fmt: skip
    """Write the posterior probability of each tau by the cells of one table: (tau,).

    Given tau, the sum g of a cell with Hessian h is normal with mean 0 and variance
    noise^2 + h + tau^2 h^2: the noise, the rows' own scatter, and the effect times h.
    """
    for t in range(taus.size):
        evidence, square = 0.0, taus[t] ** 2
        for i in range(g.size):
            hessian = max(h[i], floor)
            variance = noise**2 + hessian + square * hessian**2
            evidence += math.log(variance) + g[i] ** 2 / variance
        likely[t] = log_weights[t] - 0.5 * evidence
    top = likely.max()  # taken off, so that no exponential overflows
    for t in range(taus.size):
        likely[t] = math.exp(likely[t] - top)
    likely /= likely.sum()


@compiled(error_model="numpy")
def weigh(sums: CellSums, noise: float, share: float, prior: EffectPrior, out: CellWeights) -> None:
    """Write weights of the cells of several tables, and their noise.

    `methods.auto.interaction_tables` has the formula. Noise has the deviation `noise` in g.
    """
    g, h, ends = sums.g, sums.h, sums.ends
    taus, floor = prior.taus, prior.floor
    weights, deviations, likely = out.weights, out.deviations, out.likely
    for k in range(g.shape[0]):
        first = 0
        for table in range(ends.size):
            stop, chance = ends[table], likely[k, table]
            logs = prior.log_weights[k]
            _likely(g[k, first:stop], h[k, first:stop], noise, taus, logs, floor, chance)
            for i in range(first, stop):
                hessian, trust = max(h[k, i], floor), 0.0
                for t in range(taus.size):
                    square = taus[t] ** 2 * hessian
                    trust += chance[t] * square / (share * noise**2 + hessian + square * hessian)
                weights[k, i], deviations[k, i] = trust * g[k, i], trust * noise
            first = stop


@compiled(error_model="numpy")
def recalibrate(
    ones: Floats, zeros: Floats, noise: float, centres: Floats, prior_shift: float,
    prior_slope: float,
) -> tuple[float, float]:  # fmt: skip
    """Return the most likely shift and slope of scores, given noisy counts by class: (score bin,).

    `methods.auto.calibration` says more. `centres` are the scores of the bins' middles.
    """
    shift, slope = 0.0, 1.0
    for _ in range(30):  # Newton's steps, each held to a length at which they cannot run away
        by_shift, by_slope = -shift / prior_shift**2, (1 - slope) / prior_slope**2
        first, cross, second = 1 / prior_shift**2, 0.0, 1 / prior_slope**2  # the Hessian
        for i in range(ones.size):
            p, rows = 1 / (1 + math.exp(-(shift + slope * centres[i]))), ones[i] + zeros[i]
            off, w = ones[i] - rows * p, max(rows, 0.0) * p * (1 - p)
            # A bin counts by the share of its variance that is not noise.
            trust = w / max(noise**2 * ((1 - p) ** 2 + p**2) + w, 1e-9)
            by_shift += trust * off
            by_slope += trust * off * centres[i]
            first += trust * w
            cross += trust * w * centres[i]
            second += trust * w * centres[i] ** 2
        determinant = first * second - cross**2
        by_shift, by_slope = (  # the inverse of a 2 x 2 matrix, times the gradient
            (second * by_shift - cross * by_slope) / determinant,
            (first * by_slope - cross * by_shift) / determinant,
        )
        shift += min(max(by_shift, -1.0), 1.0)
        slope = min(max(slope + min(max(by_slope, -0.3), 0.3), 0.4), 2.5)
    return shift, slope
