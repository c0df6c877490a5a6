"""Main effects: all columns at once, averaged over the rounds, stepping toward the average."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.growing.auto.deviations import smooth_deviation
from hedgerow.growing.auto.smoothing import centred, column_weights, directed, smooth
from hedgerow.growing.auto.state import Run

Floats = NDArray[np.float64]
INTERCEPT_STEP = 0.7
# Bands from a column's own noise held the noise-free shape in 83 to 93 % of the cells on the tables
# of benchmarks/bands.py; half as wide again, in 90 to 98 %.
OVERLAP = 1.5


class _Average:
    """What the rounds say of every column's H theta: mean and precision (output, bin)."""

    def __init__(self, run: Run) -> None:
        known, self._run = run.known, run
        weight = run.rule.start_weight
        self.precision = [weight / (known.z_noise[:, None] * b.n_cells) for b in run.bins]
        self.mean = [np.zeros_like(z) for z in known.z]
        self.variance = [known.z_noise[:, None] * b.n_cells for b in run.bins]  # of the mean
        self.empty = not bool(np.isfinite(known.z_noise).all())
        self.level = 0.0  # precision of the intercept of numbers
        if not self.empty:
            noise = np.repeat(known.z_noise[:, None], len(run.bins), axis=1)
            self.mean, shift = self._centred(known.z, noise)
            if run.task == "regression":
                self._shift(
                    shift, [n * b.n_cells.sum() for n, b in zip(noise[0], run.bins, strict=True)]
                )

    def add(self, sums: list[Floats], noise: Floats) -> None:
        """One round's sums (output, bin) at the scores now; the intercept follows at once."""
        run = self._run
        moved, shift = self._centred(sums, np.repeat(noise[None, :], len(sums[0]), axis=0))
        for j, fresh in enumerate(moved):
            z = fresh + run.known.hessians[j] * run.theta[j] / run.spread
            old, new = run.rule.memory * self.precision[j], 1.0 / noise[j]
            self.mean[j] = (old * self.mean[j] + new * z) / (old + new)
            known = np.where(old > 0, self.variance[j], 0.0)
            self.variance[j] = (old**2 * known + new**2 * noise[j]) / (old + new) ** 2
            self.precision[j] = old + new
        self.empty = False
        self._shift(shift, [n * b.n_bins for n, b in zip(noise, run.bins, strict=True)])

    def _shift(self, by: Floats, noise: list[float]) -> None:
        """Move the intercept; that of numbers to the average of what all rounds say of it.

        `noise` are the variances of the columns' totals. With classes the intercept must follow
        the scores as they spread out, so only the last rounds count.
        """
        run, part = self._run, INTERCEPT_STEP
        if run.task == "regression":
            rows = float(np.mean([h.sum() for h in run.known.hessians]))
            fresh = rows**2 * float(np.sum(1.0 / np.array(noise)))
            self.level += fresh
            part = fresh / self.level
        run.shift(part * run.spread * by)

    def target(self) -> list[Floats]:
        """Where the scores should be: the smoothed average, in units of the label."""
        run, caution = self._run, self._run.rule.caution
        if self.empty:
            return [np.zeros_like(t) for t in run.theta]
        columns = zip(
            self.mean, self.precision, run.known.hessians, run.grid, run.direction, strict=True
        )
        return [
            run.spread
            * np.stack(
                [
                    directed(smooth(z, 1 / p, h, grid.ordered, caution), h, sign)
                    for z, p, h in zip(mean, precision, hessians, strict=True)
                ]
            )
            for mean, precision, hessians, grid, sign in columns
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
        columns = zip(
            self.mean, self.precision, self.variance, run.known.hessians, run.grid, strict=True
        )
        return [
            OVERLAP
            * run.spread
            * np.stack(
                [
                    smooth_deviation(z, 1 / p, h, grid.ordered, caution, v)
                    for z, p, v, h in zip(mean, precision, variance, hessians, strict=True)
                ]
            )
            for mean, precision, variance, hessians, grid in columns
        ]

    def _centred(self, sums: list[Floats], noise: Floats) -> tuple[list[Floats], Floats]:
        """`centred` for every output; noise is (output, column)."""
        moved, shift = [np.zeros_like(s) for s in sums], np.zeros(len(noise))
        for k in range(len(noise)):
            hessians = [h[k] for h in self._run.known.hessians]
            of_output, shift[k] = centred([s[k] for s in sums], noise[k], hessians)
            for j, one in enumerate(of_output):
                moved[j][k] = one
        return moved, shift


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
        query = run.question(cuts, "slope", weights, rule.clip * run.spread)
        release = run.release(query, share, f"main effects {number + 1}")
        if release is None:
            step = [np.zeros_like(t) for t in run.theta]
            continue
        noise = (release.unit / weights / run.spread) ** 2  # (column,) variance of a sum
        sums = [-part / run.spread for part in query.split(release.values)]
        average.add(sums, noise)
        target = average.target()
        step = [rule.eta * (t - now) for t, now in zip(target, run.theta, strict=True)]
    run.move(step)
    run.deviations = average.deviations()


def _weights(run: Run, target: list[Floats]) -> Floats:
    """Columns that matter to any output get less noise."""
    hessians = [h.ravel() for h in run.known.hessians]
    return column_weights([t.ravel() for t in target], hessians, run.rule.uniform)
