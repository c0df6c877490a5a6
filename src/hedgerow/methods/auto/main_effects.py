"""Main effects: all columns at once, averaged over the rounds, stepping toward the average."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hedgerow.methods.auto.deviations import smooth_deviation
from hedgerow.methods.auto.evidence import (
    Evidence,
    Said,
    nothing,
    pooled,
    said_by_bins,
    said_by_coordinates,
)
from hedgerow.methods.auto.periods import Shared, Smooth
from hedgerow.methods.auto.smoothing import column_weights, directed, importance, smooth
from hedgerow.methods.auto.state import Run
from hedgerow.methods.auto.strategies import (
    GUESS,
    LEAST,
    Strategy,
    is_wide,
    level_share,
    plain,
    strategy_for,
)
from hedgerow.queries.strategy import MOST, PLAIN, StrategyMatrix

Floats = NDArray[np.float64]
INTERCEPT_STEP = 0.7
MOST_SHIFT = 1.0  # of the intercept in a round, in log-odds
# Bands half as wide again as a column's own noise held the noise-free shape in 86 to 98 % of the
# cells on the tables of benchmarks/bands.py.
OVERLAP = 1.5


class _Average:
    """What the first counts and all rounds say of every column's H theta: (column, output)."""

    def __init__(self, run: Run) -> None:
        known, self._run = run.known, run
        outputs = range(run.n_effects)
        wide = [is_wide(b.n_bins, grid.ordered) for b, grid in zip(run.bins, run.grid, strict=True)]
        self.columns = [
            [nothing(b.n_bins, w) for _ in outputs] for b, w in zip(run.bins, wide, strict=True)
        ]
        self.empty = not bool(np.isfinite(known.z_noise).all())
        # Regression: precision of the intercept, in deviations of the label: a guess at first.
        self.level = 1.0
        if not self.empty:
            said = [
                [said_by_bins(z[k], known.z_noise[k] * b.n_cells, w) for k in outputs]
                for z, b, w in zip(known.z, run.bins, wide, strict=True)
            ]
            start, total, variance = self._pooled(said)
            trusted = [[one.times(run.rule.start_weight) for one in of] for of in start]
            self.columns = trusted
            if run.task == "regression":
                self._shift(total, variance)

    def add(self, said: list[list[Said]]) -> None:
        """One round's answers at the scores now; the intercept follows at once."""
        run = self._run
        fresh, total, variance = self._pooled(said)
        for j, of in enumerate(fresh):
            at = run.known.hessians[j] * run.theta[j] / run.spread  # (output, bin)
            self.columns[j] = [
                old.times(run.rule.memory).plus(new.moved(here))
                for old, new, here in zip(self.columns[j], of, at, strict=True)
            ]
        self.empty = False
        self._shift(total, variance)

    def _pooled(self, said: list[list[Said]]) -> tuple[list[list[Evidence]], Floats, Floats]:
        """`pooled` for every output: evidence (column, output), totals and their variances."""
        outputs = range(self._run.n_effects)
        hessians = self._run.known.hessians
        by_output = [pooled([of[k] for of in said], [h[k] for h in hessians]) for k in outputs]
        columns = [[by_output[k][0][j] for k in outputs] for j in range(len(said))]
        return columns, np.array([f[1] for f in by_output]), np.array([f[2] for f in by_output])

    def _shift(self, total: Floats, variance: Floats) -> None:
        """Move the intercept; that of a regression to the average of what all rounds say of it.

        With classes the intercept must follow the scores as they spread out, so only the last
        rounds count; of two by no more than `MOST_SHIFT` at once, because denominators may be far
        off where a class is rare, and steps that overshoot grow. Numbers lie between 0 and 1, and
        so does their mean; what a run builds on may be off by as much.
        """
        run, part = self._run, INTERCEPT_STEP
        rows = np.mean([h.sum(axis=1) for h in run.known.hessians], axis=0)  # (output,)
        if run.task == "regression":
            fresh = float(rows[0] ** 2 / variance[0])
            self.level += fresh
            part = fresh / self.level
        step = part * run.spread * total / rows
        if run.task == "regression":
            least = -1.0 if run.gate.start else 0.0
            run.shift(np.clip(run.intercept + step, least, 1.0) - run.intercept)
        else:
            most = np.inf if run.task == "multiclass" else MOST_SHIFT
            run.shift(np.clip(step, -most, most))

    def target(self) -> list[Floats]:
        """Where the scores should be: the smoothed average, in units of the label.

        Labels of a regression lie between 0 and 1; no column moves one further than that.
        """
        run, caution = self._run, self._run.rule.caution
        if self.empty:
            return [np.zeros_like(t) for t in run.theta]
        most = 1.0 if run.task == "regression" else np.inf
        if run.in_periods:
            return [
                np.stack([directed(one, h, sign) for one, h in zip(scores, hessians, strict=True)])
                for scores, hessians, sign in zip(
                    (shared.scores(smooth) for shared, smooth, _ in self._shared()),
                    run.known.hessians, run.direction, strict=True,
                )
            ]  # fmt: skip
        about = (run.grid, run.direction, run.bins)
        columns = zip(self._of_a_sample(), run.known.hessians, *about, strict=True)
        targets = [
            run.spread
            * np.stack(
                [
                    directed(smooth(one, h, grid.ordered, caution, bins.apart), h, sign)
                    for one, h in zip(of, hessians, strict=True)
                ]
            )
            for of, hessians, grid, sign, bins in columns
        ]
        return [np.clip(scores, -most, most) for scores in targets]

    def _shared(self) -> Iterator[tuple[Shared, Smooth, Smooth]]:
        """Of every column: what both periods say of it, and how that is smoothed."""
        run, known = self._run, self._run.known
        caution = run.rule.caution
        about = (self.columns, known.hessians, known.sampling, run.grid, run.bins)
        for of, hessians, sampling, grid, bins in zip(*about, strict=True):
            like = partial(smooth, ordered=grid.ordered, caution=caution, apart=bins.apart)
            noise = partial(
                smooth_deviation, ordered=grid.ordered, caution=caution, apart=bins.apart
            )
            yield Shared(of, hessians, sampling), like, noise

    def _of_a_sample(self) -> list[list[Evidence]]:
        """What is known of every column, (column, output), beyond the rows that happen to be here.

        Shrinking by privacy noise alone fits the sample, and the more so the larger epsilon is.
        """
        return [
            [one.of_a_sample(variance) for one, variance in zip(of, by_chance, strict=True)]
            for of, by_chance in zip(self.columns, self._run.known.sampling, strict=True)
        ]

    def deviations(self) -> list[Floats] | None:
        """Deviations (output, bin) of the target by the noise of all rounds; None if none came.

        Sums are taken at scores that earlier noise has moved. To first order a column's own scores
        cancel; noise of other columns comes through rows that both share, and noise of the first
        counts through bins. No release says how much that is: `OVERLAP` stands for it.
        """
        run, caution = self._run, self._run.rule.caution
        if self.empty:
            return None
        if run.in_periods:
            return [OVERLAP * shared.deviations(noise) for shared, _, noise in self._shared()]
        columns = zip(self._of_a_sample(), run.known.hessians, run.grid, run.bins, strict=True)
        return [
            OVERLAP
            * run.spread
            * np.stack(
                [
                    smooth_deviation(one, h, grid.ordered, caution, bins.apart)
                    for one, h in zip(of, hessians, strict=True)
                ]
            )
            for of, hessians, grid, bins in columns
        ]


def main_rounds(run: Run) -> None:
    """Gradient sums of all columns, round after round."""
    rule, average = run.rule, _Average(run)
    target = average.target()
    step = [rule.first_step * t for t in target]
    share = rule.main_share / rule.main_rounds
    cuts = [b.cuts for b in run.bins]
    for number in range(rule.main_rounds):
        run.move(step)
        weights = _weights(run, target)
        strategies = _strategies(run, weights, target)
        query = run.question(cuts, "slope", weights, run.clip, *_matrices(strategies))
        release = run.release(query, share, f"main effects {number + 1}")
        if release is None:
            step = [np.zeros_like(t) for t in run.theta]
            continue
        noise = (release.unit / weights / run.gradient_unit) ** 2  # (column,) of a coordinate
        coordinates = [-part / run.gradient_unit for part in query.split(release.values)]
        average.add(
            [said_by_coordinates(*of) for of in zip(coordinates, strategies, noise, strict=True)]
        )
        target = average.target()
        step = [rule.eta * (t - now) for t, now in zip(target, run.theta, strict=True)]
    run.move(step)
    run.deviations = average.deviations()


def _weights(run: Run, target: list[Floats]) -> Floats:
    """Columns that matter to any output get less noise."""
    hessians = [h.ravel() for h in run.known.hessians]
    return column_weights([t.ravel() for t in target], hessians, run.rule.uniform)


def _strategies(run: Run, weights: Floats, target: list[Floats]) -> list[Strategy]:
    """How each column is asked, by how far its effect rises above the noise of all rounds."""
    hessians, level = run.known.hessians, level_share(len(run.bins))
    unit, bound = run.gradient_unit, run.loss.bound("slope", run.clip)
    noise = bound.l2 / (run.mu * math.sqrt(run.rule.main_share) * weights) / unit  # (column,)
    seen = importance([t.ravel() / run.spread for t in target], [h.ravel() for h in hessians])
    strategies = []
    for j, bins in enumerate(run.bins):
        size = LEAST + math.sqrt(max(float(seen[j]), 0.0)) if np.any(target[j]) else GUESS
        rows = float(hessians[j].sum(axis=1).mean()) / bins.n_bins
        strength = rows * size / float(noise[j])
        ordered = run.grid[j].ordered
        strategies.append(strategy_for(bins.n_bins, ordered, strength, level, bins.apart))
    return strategies


def _matrices(
    strategies: list[Strategy],
) -> tuple[tuple[StrategyMatrix, ...], tuple[int, ...]]:
    """The distinct matrices of a query, and the index of each column's, or PLAIN.

    Columns whose matrix would be one more than `MOST` become plain, in place.
    """
    matrices: dict[int, StrategyMatrix] = {}  # by identity: columns share them
    for j, strategy in enumerate(strategies):
        matrix = strategy.integer_matrix
        if matrix is not None and id(matrix) not in matrices:
            if len(matrices) == MOST:
                strategies[j] = plain(strategy.n_bins, ordered=True)
                continue
            matrices[id(matrix)] = matrix
    index = {key: place for place, key in enumerate(matrices)}
    asked = [strategy.integer_matrix for strategy in strategies]
    return tuple(matrices.values()), tuple(PLAIN if m is None else index[id(m)] for m in asked)
