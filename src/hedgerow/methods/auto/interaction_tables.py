"""Interaction tables: which columns they are of, where these are cut, what the cells weigh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.rng import stream
from hedgerow.kernels import cells
from hedgerow.methods.auto.parts import Cut
from hedgerow.methods.auto.smoothing import importance
from hedgerow.model.tree import Structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TAUS = np.array([0.0, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0])


def gini(counts: Floats) -> float:
    """1 - sum of squared shares of a column's bins: nothing for a column with one value."""
    rows = np.maximum(counts, 0.0)
    share = rows / max(float(rows.sum()), 1e-9)
    return float(1 - share @ share)


def chances(
    theta: list[Floats], hessians: list[Floats], counts: list[Floats], explore: float = 0.1
) -> Floats:
    """How often a column is drawn: the root of its importance times its Gini, a part by Gini."""
    spread = np.array([gini(c) for c in counts]) + 1e-12
    drawn = np.sqrt(np.maximum(importance(theta, hessians), 1e-12)) * spread
    weights = (1 - explore) * drawn / drawn.sum() + explore * spread / spread.sum()
    return np.asarray(weights / weights.sum())


def leading(theta: Floats, counts: Floats) -> Floats:
    """One score a bin by which categories are sorted: (bin,), from (output, bin).

    Of several outputs it is the direction in which their scores vary most, with the sign that
    makes its largest score positive: the order of the classes plays no part.
    """
    if len(theta) == 1:
        return np.asarray(theta[0])
    weight = np.maximum(counts, 0.0) / max(float(np.maximum(counts, 0.0).sum()), 1e-12)
    off = (theta - (theta @ weight)[:, None]).T * np.sqrt(weight)[:, None]  # (bin, output)
    direction = np.linalg.eigh(off.T @ off)[1][:, -1]
    scores = direction @ theta
    return np.asarray(scores if scores[np.argmax(np.abs(scores))] >= 0 else -scores)


@dataclass(frozen=True, eq=False)
class Spread:
    """Where a column's bins lie if it is cut by mass^power: places between 0 and 1, in order.

    Categories are sorted by their scores first.
    """

    order: Ints  # (bin,)
    place: Floats  # (bin,) in that order

    @staticmethod
    def of(counts: Floats, ordered: bool, theta: Floats, power: float) -> Spread:
        mass = np.maximum(counts, 0.0) ** power
        order = np.arange(counts.size) if ordered else np.argsort(theta, kind="stable")
        centre = np.cumsum(mass[order]) - mass[order] / 2
        return Spread(order, np.maximum.accumulate(centre / max(float(mass.sum()), 1e-12)))


@dataclass(frozen=True, eq=False)
class InteractionTables:
    """What interaction tables are drawn from: columns by chance, and where their bins lie."""

    chance: Floats  # (column,)
    cut: Cut
    place: Floats  # (bin of all columns,) in the order of `order`
    order: Ints

    @staticmethod
    def of(chance: Floats, cut: Cut, spreads: Sequence[Spread]) -> InteractionTables:
        place = np.concatenate([spread.place for spread in spreads])
        return InteractionTables(
            chance, cut, place, np.concatenate([spread.order for spread in spreads])
        )

    def draw(self, seed: int, number: int, shapes: Sequence[tuple[int, int]]) -> list[Structure]:
        """The tables of one round, each of some columns cut into some parts at places of its own.

        Columns are drawn as `Generator.choice` would, and then where each is cut.
        """
        assert bool((self.chance >= 0).all())  # nor is any NaN
        some = int(np.count_nonzero(self.chance))
        sizes, n_parts = np.array([(min(size, some), n) for size, n in shapes], np.int64).T
        cut, most = self.cut, int((sizes * (sizes + 3) // 2).sum())
        uniform = stream(seed, "tables", number).random(most)
        places = cells.BinPlaces(cut.first, self.place, self.order, cut.edges)
        columns, starts, part, edges = cells.draw_tables(
            uniform, self.chance, sizes, n_parts, places
        )
        return cut.take(columns).trees(sizes.tolist(), starts, part, edges)


def overlap(chance: Floats, n_interaction_tables: int, depth: float) -> float:
    """The part of a Newton step that each of several tables of one round may take.

    Tables share columns, so their steps overlap; 1/sum(chance^2) columns are drawn effectively.
    """
    return min(1.0, 1.0 / float(np.sum(chance**2)) / (n_interaction_tables * depth))


def line_factor(
    slope: float, curve: float, slope_noise: float, curve_noise: float, least: float
) -> float:
    """By how much the next steps should grow: 1 + what is left along the last one, less its noise.

    With slope = -sum g u and curve = sum h u^2, the best multiple of a step already taken is
    1 + slope / curve.
    """
    curve = max(curve, 2 * curve_noise)
    trust = curve**2 / (curve**2 + 4 * slope_noise**2 + 1e-12)
    return min(max(1.0 + trust * slope / curve, least), 1.6)


def weigh(
    g: Floats, h: Floats, ends: Ints, noise: float, share: float, log_tau: Floats, floor: float
) -> tuple[Floats, Floats, Floats]:
    """Weights of the cells of several tables, their deviations, and how likely each tau is.

    Empirical Bayes, table by table, averaged over tau: tau^2 H G / (share noise^2 + H + tau^2 H^2),
    with g the sums of -gradients of the cells, (output, cell of all tables), which end at `ends`;
    deviations are those by the noise in g. The last is (output, table, tau).
    """
    likely = np.empty((len(g), len(ends), TAUS.size))
    out = cells.CellWeights(np.empty_like(g), np.empty_like(g), likely)
    prior = cells.EffectPrior(TAUS, log_tau, floor)
    cells.weigh(cells.CellSums(g, h, ends), noise, share, prior, out)
    return out
