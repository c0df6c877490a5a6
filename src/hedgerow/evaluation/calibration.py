"""What was predicted beside what was seen, by group of bins wide enough for the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.evaluation.result import WIDTH, CalibrationPoint, Measure, measure
from hedgerow.evaluation.smoothing import joined_bins

Floats = NDArray[np.float64]
TIMES = 15.0  # a group holds so many times its own noise
FEWEST_ROWS = 1.0


@dataclass(frozen=True)
class Group:
    """A group of bins, before its share is held between 0 and 1."""

    shown: CalibrationPoint
    gap: float  # seen less predicted
    variance: float  # of the noise in it


def calibrated(by_bin: Floats, means: Floats, ends: Floats, noise: float) -> list[Group]:
    """Groups of noisy counts (no | yes, bin) with mean predictions and ends of the bins."""
    n = by_bin.sum(axis=0)
    groups = []
    for group in joined_bins(np.maximum(n, 0.0), max(noise, FEWEST_ROWS / TIMES), TIMES):
        cells = group.stop - group.start
        rows, yes = float(n[group].sum()), float(by_bin[1, group].sum())
        if rows <= 0:
            continue
        weights = np.maximum(n[group], 0.0)
        predicted, seen = float(weights @ means[group] / weights.sum()), yes / rows
        variance = cells * noise**2 * ((1 - seen) ** 2 + seen**2) / rows**2
        observed = min(max(seen, 0.0), 1.0)
        reach = WIDTH * math.sqrt(variance + observed * (1 - observed) / rows)
        point = CalibrationPoint(
            float(ends[group.start]), float(ends[group.stop]), rows, predicted, observed,
            max(0.0, observed - reach), min(1.0, observed + reach),
        )  # fmt: skip
        groups.append(Group(point, seen - predicted, variance))
    return groups


def calibration_error(groups: list[Group], n: float) -> Measure:
    """Mean distance of seen from predicted, over rows; the part that noise alone adds is taken off.

    E d^2 is the true square and the variance of the noise, so the root of d^2 less that variance
    (0 if it is negative) replaces |d|.
    """
    if not groups:
        return Measure("calibration_error", None)
    shares = [group.shown.rows / n for group in groups]
    sizes = [math.sqrt(max(0.0, group.gap**2 - group.variance)) for group in groups]
    value = math.fsum(share * size for share, size in zip(shares, sizes, strict=True))
    squares = zip(shares, groups, strict=True)
    noise = math.sqrt(math.fsum(share**2 * group.variance for share, group in squares))
    of_sample = math.fsum(
        share**2 * group.shown.observed * (1 - group.shown.observed) / group.shown.rows
        for share, group in zip(shares, groups, strict=True)
    )
    return measure("calibration_error", value, noise, math.sqrt(of_sample))


def odds_fit(by_bin: Floats, logits: Floats, noise: float) -> tuple[float, float]:
    """Intercept and slope of log-odds by score: 0 and 1 where the model is calibrated.

    A logistic fit to noisy counts (no | yes, bin) at scores `logits`, in which bins count less
    where noise outweighs what they say; with little to say the slope stays near 1.
    """
    scale = max(float(np.ptp(logits)) / 4, 1e-6)
    x, n = (logits - logits.mean()) / scale, np.maximum(by_bin.sum(axis=0), 0.0)
    fit = np.array([0.0, scale])  # at the middle, and by scale
    priors = np.array([1 / 25.0, 1.0])
    for _ in range(40):
        p = 1 / (1 + np.exp(-(fit[0] + fit[1] * x)))
        weight = n * p * (1 - p)
        trust = weight / np.maximum(noise**2 * ((1 - p) ** 2 + p**2) + weight, 1e-9)
        off = trust * (by_bin[1] * (1 - p) - by_bin[0] * p)
        gradient = np.array([off.sum(), off @ x]) - priors * (fit - [0.0, scale])
        known = trust * weight
        cross = float(known @ x)
        hessian = np.array([[known.sum(), cross], [cross, known @ x**2]]) + np.diag(priors)
        fit = fit + np.clip(np.linalg.solve(hessian, gradient), -0.5, 0.5)
        fit = np.clip(fit, [-12.0, 0.0], [12.0, 12.0])
    slope = float(fit[1] / scale)
    return float(fit[0]) - slope * float(logits.mean()), slope
