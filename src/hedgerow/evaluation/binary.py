"""Measures of a binary model from noisy counts by class and probability. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.values import Value
from hedgerow.evaluation.calibration import calibrated, calibration_error, odds_fit
from hedgerow.evaluation.result import WIDTH, Confusion, Findings, Measure, RocPoint, measure
from hedgerow.evaluation.smoothing import agreed, group_means, rising, variance_along

Floats = NDArray[np.float64]
FIRST_EDGES = 33  # of the grid on which scores are looked for
FARTHEST = 10.0  # logits; beyond it probabilities hardly differ
FEWEST_STEPS, MOST_STEPS = 12, 28  # bins over the stretch in which classes overlap
FULL = 300.0  # rows over the noise of a count from which on more bins than the fewest pay
MOST_EDGES = MOST_STEPS + 2
TAIL = 0.02  # of a class, beyond which no finer bins are needed; less where noise is small
MARGIN = 1.5  # cells of the grid, around what the first counts say
_UNSEEN = (-4.0, 4.0)  # where scores are expected if nothing is seen


def sigmoid(logits: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-logits)))


def first_grid(low: float, high: float) -> Floats:
    """Even edges (logits) between the least and the largest score that a model can give."""
    low, high = (min(max(end, -FARTHEST), FARTHEST) for end in (low, high))
    if high - low < 1e-3:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, FIRST_EDGES)


def _centres(grid: Floats) -> Floats:
    """Of the cells between edges, and of those beyond them."""
    half = (grid[1] - grid[0]) / 2
    return np.asarray(np.append(grid - half, grid[-1] + half))


def edges_for(first: Floats, noise: float, grid: Floats) -> Floats:
    """Edges (logits) of bins over the stretch in which both classes lie, and one at 0.

    `first` are noisy counts (class, cell of the grid). Order within the rest says next to nothing
    about the AUC, and each bin there would only add its noise. Which class lies where follows from
    the model's own probabilities, fitted to the counts: that is steadier than the counts, and only
    says where to look.
    """
    rows, centres = seen_cells(first, noise), _centres(grid)
    low, high = max(_UNSEEN[0], grid[0]), min(_UNSEEN[1], grid[-1])
    both, steps = np.zeros(len(rows)), _steps(rows.sum(), noise)
    if rows.any():
        intercept, slope = odds_fit(first, centres, noise)
        ones = rows * sigmoid(intercept + slope * centres)
        zeros, tail = rows - ones, TAIL * (FEWEST_STEPS / steps) ** 2
        from_below = np.cumsum(ones) > tail * ones.sum()
        from_above = np.cumsum(zeros[::-1]) > tail * zeros.sum()
        ends = (centres[np.argmax(from_below)], centres[::-1][np.argmax(from_above)])
        margin = MARGIN * (grid[1] - grid[0])
        low, high = min(ends) - margin, max(ends) + margin
        both = np.sqrt(ones * zeros)
    if high - low < 1e-3:
        low, high = low - 0.5, high + 0.5
    return np.unique(np.append(_cut(low, high, grid, both, steps), 0.0))


def _steps(rows: float, noise: float) -> int:
    """Bins cost noise, and few bins blur: as many as rows over noise can carry."""
    carried = FEWEST_STEPS * math.sqrt(rows / max(FULL * noise, 1e-9))
    return int(min(max(carried, FEWEST_STEPS), MOST_STEPS))


def _cut(low: float, high: float, grid: Floats, mass: Floats, steps: int) -> Floats:
    """Edges from low to high: half of what decides is even width, half an even part of the mass."""
    ends = np.concatenate([[low], grid[(grid > low) & (grid < high)], [high]])
    here = mass[np.searchsorted(grid, (ends[1:] + ends[:-1]) / 2)] * np.diff(ends)
    width = np.append(0.0, np.cumsum(np.diff(ends))) / (high - low)
    share = np.append(0.0, np.cumsum(here)) / here.sum() if here.sum() > 0 else width
    even = np.linspace(0.0, 1.0, steps + 1)
    return np.asarray(np.interp(even, (width + share) / 2, ends))


def seen_cells(first: Floats, noise: float) -> Floats:
    """Rows by cell, without those that could be noise alone."""
    rows = first.sum(axis=0)
    return np.where(rows > 2 * math.sqrt(2) * noise, np.maximum(rows, 0.0), 0.0)


@dataclass(frozen=True)
class Counts:
    """Counts (class, bin) that agree with the confusion, and what their noise is."""

    by_bin: Floats
    confusion: Floats
    logits: Floats  # edges of the bins
    variance: float  # of the noise of a count, before it agreed with the rest
    totals: Floats  # variance of each number of the confusion

    @property
    def cut(self) -> int:
        """The first bin whose rows are predicted to be of the second class."""
        return int(np.searchsorted(self.logits, 0.0)) + 1

    @property
    def sides(self) -> tuple[slice, slice]:
        return slice(0, self.cut), slice(self.cut, None)

    def variance_of(self, gradient: Floats) -> float:
        """Noise variance of a number whose derivatives by counts (class, bin) are given."""
        return math.fsum(
            variance_along(gradient[k, side], self.variance, self.totals[k, d])
            for k in (0, 1)
            for d, side in enumerate(self.sides)
        )

    @property
    def is_seen(self) -> bool:
        """Whether both classes rise above three deviations of their noise."""
        sizes, noise = self.by_bin.sum(axis=1), np.sqrt(self.totals.sum(axis=1))
        return bool(np.all(sizes > np.maximum(3 * noise, 0.5)))


def counts_of(
    confusion: Floats, by_bin: Floats, logits: Floats, noise: tuple[float, ...]
) -> Counts:
    """Put the two tellings of the same counts together; `noise` is that of each."""
    of_confusion, of_bins = noise[0] ** 2, noise[1] ** 2
    empty = Counts(by_bin.copy(), confusion.copy(), logits, of_bins, np.zeros((2, 2)))
    for k in (0, 1):
        for d, side in enumerate(empty.sides):
            both = agreed(by_bin[k, side], of_bins, confusion[k, d : d + 1], of_confusion)
            empty.by_bin[k, side], empty.confusion[k, d] = both.first, both.total
            empty.totals[k, d] = both.variance
    return empty


def auc(counts: Counts) -> Measure:
    """The area under the ROC curve, with scores taken for even within a bin.

    Among rows of one bin of width w, with scores even and odds that rise as exp(slope score), the
    AUC is 1/2 + slope w/12 to second order. The sampling error is DeLong's.
    """
    middle = (counts.logits[1:] + counts.logits[:-1]) / 2
    inner = counts.by_bin[:, 1:-1]
    slope = odds_fit(inner, middle, math.sqrt(counts.variance))[1] if len(middle) else 1.0
    zeros, ones = counts.by_bin
    n_zeros, n_ones = zeros.sum(), ones.sum()
    within = np.zeros(len(ones))
    within[1:-1] = np.minimum(slope * np.diff(counts.logits) / 12, 0.25)
    below = np.cumsum(zeros) - zeros + (0.5 + within) * zeros
    above = ones.sum() - np.cumsum(ones) + (0.5 + within) * ones
    area = float(ones @ below / (n_zeros * n_ones))
    of_ones, of_zeros = below / n_zeros, above / n_ones  # how often a row wins its comparisons
    gradient = np.stack([(of_zeros - area) / n_zeros, (of_ones - area) / n_ones])
    shares = [np.maximum(c, 0.0) / n for c, n in ((zeros, n_zeros), (ones, n_ones))]
    spread = shares[0] @ (of_zeros - area) ** 2 / n_zeros
    spread += shares[1] @ (of_ones - area) ** 2 / n_ones
    return measure("auc", area, math.sqrt(counts.variance_of(gradient)), math.sqrt(spread))


def roc(counts: Counts) -> tuple[RocPoint, ...]:
    """The curve from (0, 0) to (1, 1), made to rise, with a band of noise and sampling."""
    rates, deviations = [], []
    for of_class, k in zip(counts.by_bin, (0, 1), strict=True):
        total = of_class.sum()
        rate = np.cumsum(of_class[::-1])[:-1] / total  # above the highest edge, then lower ones
        rates.append(np.clip(rising(rate), 0.0, 1.0))
        gradient = np.zeros((len(rate), *counts.by_bin.shape))
        for i in range(len(rate)):
            gradient[i, k] = -rate[i] / total
            gradient[i, k, len(of_class) - 1 - i :] += 1 / total
        noise = np.array([counts.variance_of(g) for g in gradient])
        deviations.append(np.sqrt(noise + rates[-1] * (1 - rates[-1]) / total))
    points = [RocPoint(1.0, 0.0, 0.0, 0.0, 0.0)]
    thresholds = sigmoid(counts.logits[::-1])
    for threshold, x, y, d in zip(thresholds, *rates, deviations[1], strict=True):
        band = (max(0.0, y - WIDTH * d), min(1.0, y + WIDTH * d))
        points.append(RocPoint(float(threshold), float(x), float(y), *map(float, band)))
    return (*points, RocPoint(0.0, 1.0, 1.0, 1.0, 1.0))


def mean_probabilities(logits: Floats, first: Floats, noise: float, grid: Floats) -> Floats:
    """Mean probability of the rows of each bin, from the first counts by cell of the grid."""
    centres = _centres(grid)
    places = np.searchsorted(logits, centres)
    step = float(np.diff(logits).max()) if len(logits) > 1 else 1.0
    ends = np.concatenate([[logits[0] - step], logits, [logits[-1] + step]])
    defaults = sigmoid((ends[1:] + ends[:-1]) / 2)
    inside = np.zeros(len(defaults), bool)
    inside[1:-1] = np.diff(logits) <= 1.0  # narrow bins need no cells, and cells blur their ends
    rows = seen_cells(first, noise)
    means = group_means(rows, sigmoid(centres), places, defaults, math.sqrt(2) * noise)
    return np.where(inside, defaults, means)


def findings(
    counts: Counts, loss: float, loss_noise: float, means: Floats, classes: Sequence[Value]
) -> Findings:
    """Everything there is to say; `loss` is the sum of log losses, `means` probabilities by bin."""
    n, noise = counts.confusion.sum(), math.sqrt(counts.totals.sum())
    rows = measure("rows", float(n), noise)
    told = tuple(tuple(float(max(0.0, c)) for c in row) for row in counts.confusion)
    confusion = Confusion(tuple(classes), told, math.sqrt(float(counts.totals.mean())))
    if not counts.is_seen:
        names = ("auc", "accuracy", "log_loss", "calibration_error")
        nothing = tuple(Measure(name, None) for name in names)
        why = "The noise is as large as a class: too few rows for this epsilon."
        return Findings((rows, *nothing), confusion, notes=(why,))
    right = float(np.trace(counts.confusion) / n)
    of_right = (np.eye(2) - right) / n
    accuracy = measure(
        "accuracy", right, math.sqrt(float((of_right**2 * counts.totals).sum())),
        math.sqrt(max(0.0, right * (1 - right)) / n),
    )  # fmt: skip
    points = calibrated(
        counts.by_bin, means, np.concatenate([[0.0], sigmoid(counts.logits), [1.0]]),
        math.sqrt(counts.variance),
    )  # fmt: skip
    measures = (rows, auc(counts), accuracy, _log_loss(counts, loss, loss_noise, means))
    return Findings(
        (*measures, calibration_error(points, float(n))), confusion, roc(counts),
        tuple(point.shown for point in points),
    )  # fmt: skip


def _log_loss(counts: Counts, total: float, noise: float, means: Floats) -> Measure:
    n = counts.confusion.sum()
    loss = float(total / n)
    of_noise = math.hypot(noise, loss * math.sqrt(counts.totals.sum())) / n
    each = np.stack([np.log(np.maximum(1 - means, 0.01)), np.log(np.maximum(means, 0.01))])
    squares = float((np.maximum(counts.by_bin, 0.0) * each**2).sum() / n)
    return measure("log_loss", loss, of_noise, math.sqrt(max(squares - loss**2, 0.0) / n))
