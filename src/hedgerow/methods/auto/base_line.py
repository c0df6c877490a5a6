"""Hazards of all rows together, from noisy counts by cell of time and event. Pure functions.

Cells are those of `data.survival`: censored and event of every interval, and still there at the
end. `u` is the logarithm of a row's hazard ratio, `d` the hazards (interval,) of a row of ratio 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAST_SHARE, MOST_SHARE = 1e-6, 0.95  # of those at risk who have their event in one interval
PRIOR_SLOPE = 0.15  # how far a slope from 1 is expected
STEP = 0.02  # between scores that are told apart
TAIL, WIDER = 0.002, 1.2  # rows beyond the edges of scores, and how much wider these lie
STEPS = 60  # of the bisection for a cumulative hazard: more than a float has bits for


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Rows by cell (cell,), with the deviation of the noise in each."""

    counts: Floats
    noise: float
    is_known: bool = True  # False: nobody counted, these only stand in

    def together(self, other: Outcomes) -> Outcomes:
        """Two noisy counts of the same rows as one."""
        if not self.is_known:
            return other
        mine, theirs = (max(o.noise, 1e-9) ** -2 for o in (self, other))
        counts = (mine * self.counts + theirs * other.counts) / (mine + theirs)
        noise = (mine + theirs) ** -0.5 if self.noise > 0 and other.noise > 0 else 0.0
        return Outcomes(np.asarray(counts), noise)

    @property
    def n_rows(self) -> float:
        return max(float(self.counts.sum()), 1.0)

    def rates(self, periods: Sequence[int]) -> Floats:
        """Events of a row in each period of so many intervals, at least one of all rows."""
        parts = np.split(self.counts[1::2], np.cumsum(periods)[:-1])
        events = np.array([max(float(of.sum()), 1.0) for of in parts])
        return np.asarray(np.minimum(events, self.n_rows) / self.n_rows)

    @property
    def n_events(self) -> float:
        return min(max(float(self.counts[1::2].sum()), 0.0), self.n_rows)


def kaplan_meier(outcomes: Outcomes, cuts: Sequence[float]) -> Floats:
    """Hazards (interval,): events over those at risk, who leave in the middle if censored.

    Where noise is more than the events of an interval, the hazard per time of all of them stands
    in.
    """
    counts, noise = outcomes.counts, outcomes.noise
    floor = max(1.0, noise)
    events, censored = counts[1::2], counts[:-1:2]
    at_risk = np.maximum(np.cumsum(counts[::-1])[::-1][:-1:2], floor)
    exposed = np.maximum(at_risk - np.clip(censored, 0.0, at_risk) / 2, floor)
    width = np.diff(np.asarray(cuts, np.float64), prepend=0.0)
    pooled = max(outcomes.n_events, 0.5) / float(exposed @ width)
    expected = pooled * width * exposed
    trust = expected**2 / (expected**2 + noise**2)
    likely = np.maximum(trust * events + (1 - trust) * expected, 0.01 * expected)
    return np.asarray(-np.log1p(-np.clip(likely / exposed, LEAST_SHARE, MOST_SHARE)))


def residuals(hazards: Floats) -> Floats:
    """What a row of these hazards (..., interval) adds by cell, not clamped: (..., cell).

    The same as `kernels.statistics.hazards`.
    """
    seen = np.cumsum(hazards, axis=-1)
    before = seen - hazards
    out = np.empty((*hazards.shape[:-1], 2 * hazards.shape[-1] + 1))
    out[..., :-1:2] = before + hazards / 2
    small = np.maximum(hazards, 1e-12)
    out[..., 1::2] = before - small / np.expm1(np.minimum(small, 700.0))
    out[..., -1] = seen[..., -1]
    return out


def matched(survival: Floats, u: Floats, share: Floats) -> Floats:
    """Hazards (interval,) under which rows of ratios exp(u), in these shares, survive so (cut,).

    Those that are left are less at risk than all were, so the hazards of a model whose rows differ
    rise above those of the curve of all.
    """
    low, high = np.full(survival.shape, -30.0), np.full(survival.shape, 12.0)
    for _ in range(STEPS):
        middle = (low + high) / 2
        alive = np.exp(-np.exp(np.minimum(middle[:, None] + u, 50.0))) @ share  # (cut,)
        above = alive > survival
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    hazards = np.diff(np.maximum.accumulate(np.exp((low + high) / 2)), prepend=0.0)
    return np.asarray(np.maximum(hazards, 1e-9))


def matched_in_turn(survival: Floats, u: Floats, share: Floats) -> Floats:
    """Hazards (interval,) under which rows of ratios exp(u), (row, interval), survive so (cut,).

    As `matched`, one interval after another: rows change their order.
    """
    alive, hazards = share.astype(np.float64), np.empty(len(survival))
    for k, goal in enumerate(survival):
        low, high = -30.0, 12.0
        for _ in range(STEPS):
            middle = (low + high) / 2
            left = alive @ np.exp(-np.exp(np.minimum(middle + u[:, k], 50.0)))
            low, high = (middle, high) if left > goal else (low, middle)
        hazards[k] = max(float(np.exp((low + high) / 2)), 1e-9)
        alive = alive * np.exp(-np.exp(np.minimum(np.log(hazards[k]) + u[:, k], 50.0)))
    return hazards


@dataclass(frozen=True, eq=False)
class Scores:
    """How scores would be spread over rows if columns had nothing to do with each other."""

    values: Floats  # (place,), evenly apart
    share: Floats  # (place,)

    @staticmethod
    def of(theta: Sequence[Floats], counts: Sequence[Floats]) -> Scores:
        """The sum of a score (bin,) of every column, bins as frequent as their counts."""
        low, share = 0.0, np.ones(1)
        for scores, n in zip(theta, counts, strict=True):
            first = np.floor(scores.min() / STEP)
            place = np.rint(scores / STEP - first).astype(np.int64)
            share = np.convolve(share, np.bincount(place, n / n.sum()))
            low += float(first)
        values = STEP * (low + np.arange(share.size, dtype=np.float64))
        return Scores(values, np.asarray(share, np.float64))

    def edges(self, n_bins: int) -> Floats:
        """Even edges of so many bins, the outer ones of few rows."""
        seen = np.cumsum(self.share)
        low, high = (float(self.values[np.searchsorted(seen, tail)]) for tail in (TAIL, 1 - TAIL))
        return edges_between(low, high, n_bins)

    def by_bin(self, edges: Floats) -> tuple[Floats, Floats]:
        """A score for each bin, that of their mean hazard ratio, and its share of the rows."""
        place = np.searchsorted(edges, self.values, side="right")
        width = edges[1] - edges[0]
        share = np.bincount(place, self.share, len(edges) + 1)
        ratio = np.bincount(place, self.share * np.exp(self.values), len(edges) + 1)
        middle = np.append(edges[0] - width, edges) + width / 2
        seen = share > 1e-9
        u = np.where(seen, np.log(np.where(seen, ratio, 1.0) / np.where(seen, share, 1.0)), middle)
        return u, np.maximum(share, 1e-6)


def edges_between(low: float, high: float, n_bins: int) -> Floats:
    """Even edges of so many bins, a little beyond these ends."""
    half = max((high - low) / 2, n_bins * STEP) * WIDER  # columns go together
    middle = (low + high) / 2
    return np.linspace(middle - half, middle + half, n_bins - 1)


def recalibrated(
    table: Floats, noise: float, u: Floats, law: Floats, known: Outcomes, cuts: Sequence[float]
) -> tuple[float, Floats]:
    """A slope of all scores and hazards (interval,), from noisy counts (cell, score bin).

    `u` are the scores of the bins (bin,), or (bin, interval) where they change, and `law` the
    shares that they are likely to have. `known` are other counts of the same rows. The slope is
    where rows of high and low scores have as many events as their hazards say, as far as it rises
    above noise and is likely beforehand.
    """
    marginal = known.together(Outcomes(table.sum(axis=1), noise * table.shape[1] ** 0.5))
    survival = np.exp(-np.cumsum(kaplan_meier(marginal, cuts)))
    share = _shares(table.sum(axis=0), noise * table.shape[0] ** 0.5, law, marginal.n_rows)
    slope, prior = 1.0, PRIOR_SLOPE**-2
    match = matched if u.ndim == 1 else matched_in_turn
    hazards = match(survival, u, share)
    for _ in range(8):
        ratio = np.exp(np.clip(slope * u, -20.0, 20.0)).reshape(len(u), -1)
        of_row = residuals(ratio * hazards)  # (score bin, cell)
        risk = u if u.ndim == 1 else np.log(np.exp(u) @ hazards / hazards.sum())
        events = table[1::2].sum(axis=0)
        excess = -float(risk @ np.sum(table.T * of_row, axis=1))
        curve = max(float(risk**2 @ np.maximum(events, share)), 1e-9)
        variance = noise**2 * float(risk**2 @ np.sum(of_row**2, axis=1)) + curve
        precision = curve**2 / variance
        likely = slope + excess / curve
        best = (precision * likely + prior) / (precision + prior)
        slope = slope + 0.7 * float(np.clip(best - slope, -0.2, 0.2))
        hazards = match(survival, slope * u, share)
    return slope, hazards


def _shares(counts: Floats, noise: float, law: Floats, n_rows: float) -> Floats:
    """How many of the rows have each score, pulled toward a law by how noisy counts are."""
    off = n_rows * (law + 0.5 / law.size)  # by how much the law may be wrong
    trust = off**2 / (off**2 + noise**2)
    share = np.maximum(trust * counts + (1 - trust) * n_rows * law, 0.0)
    return np.asarray(share / max(float(share.sum()), 1e-12))
