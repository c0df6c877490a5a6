"""Rows grouped by what a model says of their risk, and the survival that it says of each group.

Where effects change at a cut, the risk does not tell a row's whole curve; groups then also say how
the hazards of the first period compare with those of the second. Pure functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hedgerow.model.ensemble import Ensemble

Floats = NDArray[np.float64]
FIRST_EDGES = 47  # of the grid on which risks are looked for
GROUPS = 24  # of rows by risk
FEWER_GROUPS, RATIOS = 12, 6  # by risk and by how both periods compare, where effects change
FARTHEST = 6.0  # from the base line: many tables add up to more than any row has
TAIL = 0.005  # of the rows, beyond the edges of groups
CLEAR = 8.0  # deviations of their noise that all rows together must be, to say where they lie
LIKELY = 3.0  # deviations of a model's risks, were its trees independent, that hold most rows


@dataclass(frozen=True, eq=False)
class Reach:
    """What a model can say of rows: between which risks they lie, and the base line."""

    low: float  # the logarithm of all hazards together
    high: float
    hazards: Floats  # (interval,) of a row that no tree but constants moves
    likely: tuple[float, float] = (-np.inf, np.inf)  # between which risks most rows are
    n_first: int = 0  # intervals before effects change; 0 if they do not
    ratios: tuple[float, float] = (0.0, 0.0)  # the logarithm of first over second period, ends

    @property
    def n_groups(self) -> int:
        """Of rows by risk."""
        return FEWER_GROUPS if self.n_first else GROUPS

    @property
    def ratio_edges(self) -> Floats:
        """Even edges between groups by how both periods compare; none where that is the same."""
        return np.linspace(*self.ratios, RATIOS + 1)[1:-1] if self.n_first else np.zeros(0)


@dataclass(frozen=True, eq=False)
class RiskGroups:
    """Groups of rising risk, each divided by how both periods compare, in that order."""

    reach: Reach
    edges: Floats  # of risks, even

    @property
    def n_risks(self) -> int:
        return len(self.edges) + 1

    @property
    def n_ratios(self) -> int:
        return len(self.reach.ratio_edges) + 1

    @cached_property
    def _risks(self) -> Floats:
        step = self.edges[1] - self.edges[0]
        return np.asarray(np.append(self.edges[0] - step, self.edges) + step / 2)

    @cached_property
    def _parts(self) -> Floats:
        """Of all hazards up to the horizon, the part of each interval: (ratio, interval)."""
        reach, hazards = self.reach, self.reach.hazards
        if not reach.n_first:
            return np.asarray(hazards / hazards.sum())[None, :]
        edges = np.linspace(*reach.ratios, RATIOS + 1)
        first = 1 / (1 + np.exp(-(edges[1:] + edges[:-1]) / 2))  # (ratio,)
        one, other = np.split(hazards, [reach.n_first])
        return np.hstack(
            [np.outer(first, one / one.sum()), np.outer(1 - first, other / other.sum())]
        )

    @cached_property
    def survival(self) -> Floats:
        """What the model says of each group: (group, cut)."""
        return np.asarray(np.exp(-np.cumsum(self._hazards, axis=2)).reshape(-1, self._n_cuts))

    @property
    def by_risk(self) -> Floats:
        """Hazards of groups by risk alone: (risk, interval)."""
        return np.asarray(self._hazards.mean(axis=1))

    @property
    def _n_cuts(self) -> int:
        return len(self.reach.hazards)

    @property
    def _hazards(self) -> Floats:
        """(risk, ratio, interval)"""
        return np.asarray(np.exp(np.minimum(self._risks, 50.0))[:, None, None] * self._parts)

    def added_up(self, counts: Floats) -> Floats:
        """Counts (cell, group) by risk alone: (cell, risk)."""
        return np.asarray(counts.reshape(len(counts), self.n_risks, -1).sum(axis=2))

    def ends(self, chosen: slice) -> tuple[float, float]:
        """Between which risks neighbouring groups lie."""
        step = self.edges[1] - self.edges[0]
        ends = np.concatenate([[self.edges[0] - step], self.edges, [self.edges[-1] + step]])
        first, last = chosen.start // self.n_ratios, (chosen.stop - 1) // self.n_ratios
        return float(ends[first]), float(ends[last + 1])


def reachable(model: Ensemble) -> Reach:
    """Between which risks a model's rows lie, and its base line.

    Every tree but those of one leaf moves all hazards of a period alike, so that the curve of a row
    follows from its risk, and from how both periods compare where there are two.
    """
    constant = sum(
        (tree.values[0].astype(np.float64) for tree in model.trees if len(tree.values) == 1),
        np.zeros(model.loss.n_outputs),
    )
    hazards = np.exp(np.clip(constant, -700, 50))
    base, n_first = float(np.log(hazards.sum())), model.schema.label.n_first
    others = [tree.values[:, [0, -1]] for tree in model.trees if len(tree.values) > 1]
    low = base + max(sum(float(values.min()) for values in others), -FARTHEST)
    high = base + min(sum(float(values.max()) for values in others), FARTHEST)
    likely = _likely(model, base)
    if not n_first:
        return Reach(low, high, hazards, likely)
    apart = [values[:, 0].astype(np.float64) - values[:, 1] for values in others]
    centre = math.log(hazards[:n_first].sum() / hazards[n_first:].sum())
    least = max(sum(float(of.min()) for of in apart), -FARTHEST)
    most = min(sum(float(of.max()) for of in apart), FARTHEST)
    slack = max(0.0, 0.1 - (most - least)) / 2
    ratios = (centre + least - slack, centre + most + slack)
    return Reach(low, high, hazards, likely, n_first, ratios)


def _likely(model: Ensemble, base: float) -> tuple[float, float]:
    """Where most risks lie by the trees' released covers, as if trees were independent."""
    mean, square = base, 0.0
    for tree in (tree for tree in model.trees if len(tree.values) > 1):
        values = tree.values.mean(axis=1, dtype=np.float64)
        weight = np.ones(len(values)) if tree.cover is None else tree.cover.astype(np.float64)
        share = weight / weight.sum()
        mean += float(share @ values)
        square += float(share @ values**2 - (share @ values) ** 2)
    half = max(LIKELY * math.sqrt(max(square, 0.0)), 0.1)
    return mean - half, mean + half


def first_grid(reach: Reach) -> Floats:
    """Even edges over all risks that a model can give."""
    middle, half = (reach.low + reach.high) / 2, max((reach.high - reach.low) / 2, 0.1)
    return np.linspace(middle - half, middle + half, FIRST_EDGES)


def edges_for(first: Floats, noise: float, grid: Floats, reach: Reach) -> Floats:
    """Even edges of the groups, where the first counts (cell, place) see rows.

    Where noise is large, the cells that rise above it are few and say little of where all rows are:
    then the model's own picture of its risks stands in.
    """
    rows, n_groups = first.sum(axis=0), reach.n_groups
    seen = np.where(rows > 2 * noise * math.sqrt(len(first)), rows, 0.0)
    if not seen.any() or rows.sum() < CLEAR * noise * math.sqrt(first.size):
        low, high = max(reach.likely[0], grid[0]), min(reach.likely[1], grid[-1])
        return np.linspace(low, max(high, low + 0.1), n_groups - 1)
    share = np.cumsum(seen) / seen.sum()
    step = grid[1] - grid[0]
    ends = np.append(grid, grid[-1] + step)
    low = ends[np.argmax(share > TAIL)] - step
    high = ends[np.argmax(share >= 1 - TAIL)]
    return np.linspace(low, max(high, low + step), n_groups - 1)
