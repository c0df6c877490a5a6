"""Measures of a model of counts from noisy counts and sums of clipped deviances. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.evaluation.result import WIDTH, CalibrationPoint, Findings, Measure, measure
from hedgerow.evaluation.smoothing import joined_bins, seen_range

Floats = NDArray[np.float64]
SIZES = tuple(float(2.0**j) for j in range(-6, 22))  # of deviances and errors, in counts
MEANS = tuple(float(2.0 ** (-j / 2)) for j in range(44, 0, -1))  # of expected counts over the cap
BINS = 8
TAIL = 0.002  # of rows, beyond which deviances and errors are clipped
TIMES = 15.0  # a group of bins holds so many times its own noise
# Parts of the question: rows by bin, errors by bin, sizes of errors, both deviances.
SHARES = (0.2, 0.25, 0.1, 0.225)
NAMES = ("deviance", "d2", "mae", "bias")


@dataclass(frozen=True)
class Frame:
    """How errors are asked about, from the first counts."""

    most_error: float  # counts
    most_deviance: float
    rate: float  # of all rows, at the largest exposure, over the cap
    edges: tuple[float, ...]  # of expected counts over the cap
    ends: tuple[float, float]  # between which they were seen


def frame_for(counts: Floats, noise: float) -> Frame:
    """From noisy rows by size of deviance and error and by expected count, and exposures."""
    n = len(SIZES) + 1
    sizes = [SIZES[-1], SIZES[-1]]
    for i in range(2):
        seen = seen_range(counts[i * n : (i + 1) * n], noise, TAIL)
        if seen is not None and seen[1] < len(SIZES):
            sizes[i] = SIZES[seen[1]]
    means = counts[2 * n : -1]
    low, high = 0, len(MEANS)
    if (seen := seen_range(means, noise, TAIL)) is not None:
        low, high = seen
    places = np.array([MEANS[0] / 2**0.5, *MEANS, 1.0])  # where the bins of means begin and end
    rows = np.maximum(means, 0.0)[low : high + 1]
    middle = np.sqrt(places[low : high + 1] * places[low + 1 : high + 2])
    exposure = max(float(counts[-1]), noise, 1e-9)
    rate = min(max(float(rows @ middle) / exposure, 2.0**-30), 1.0)
    edges = _edges(rows, low)
    return Frame(sizes[1], sizes[0], rate, edges, (float(places[low]), float(places[high + 1])))


def _edges(rows: Floats, low: int) -> tuple[float, ...]:
    """Edges of expected counts that part the rows about evenly."""
    up_to = np.cumsum(rows) / max(float(rows.sum()), 1e-12)
    chosen = np.searchsorted(up_to, np.arange(1, BINS) / BINS) + low
    inside = sorted({int(i) for i in chosen if low <= i < low + len(rows) - 1})
    return tuple(MEANS[i] for i in inside)


@dataclass(frozen=True)
class Sums:
    """Released sums in counts, and the deviations of their noise."""

    rows: Floats  # (bin,)
    errors: Floats  # (bin,) count less expected one
    size: float
    deviance: float
    of_one_rate: float  # the deviance of one rate for all
    noise: tuple[float, float, float, float]  # of rows, errors, size, deviances

    @staticmethod
    def of(values: Floats, sigmas: Sequence[float], frame: Frame) -> Sums:
        """From the values of a `DevianceSums` question."""
        n, error, deviance = len(frame.edges) + 1, frame.most_error, frame.most_deviance
        size, own, one = values[2 * n :]
        noise = (sigmas[0], sigmas[1] * error, sigmas[2] * error, sigmas[3] * deviance)
        return Sums(
            values[:n], values[n : 2 * n] * error, float(size * error), float(own * deviance),
            float(one * deviance), noise,
        )  # fmt: skip


def findings(sums: Sums, frame: Frame, cap: float) -> Findings:
    """Everything there is to say, in counts."""
    n = float(sums.rows.sum())
    of_n = sums.noise[0] * math.sqrt(len(sums.rows))
    rows = measure("rows", n, of_n)
    if n <= max(3 * of_n, 0.5):
        why = "The noise is as large as the table: too few rows for this epsilon."
        return Findings((rows, *(Measure(name, None) for name in NAMES)), notes=(why,))

    def mean(total: float, noise: float, terms: int = 1) -> tuple[float, float]:
        value = total / n
        return value, math.hypot(noise * math.sqrt(terms), value * of_n) / n

    def by_sample(value: float, most: float) -> float:
        # A variable between 0 and M of mean m has a variance of at most m (M - m).
        return math.sqrt(max(0.0, value * (most - value)) / n)

    deviance, of_deviance = mean(sums.deviance, sums.noise[3])
    mae, of_mae = mean(sums.size, sums.noise[2])
    bias, of_bias = mean(float(sums.errors.sum()), sums.noise[1], len(sums.errors))
    of_error = by_sample(max(mae, 0.0), frame.most_error)
    measures = (
        rows,
        measure("deviance", deviance, of_deviance, by_sample(deviance, frame.most_deviance)),
        _d2(sums),
        measure("mae", mae, of_mae, of_error),
        measure("bias", bias, of_bias, of_error),
    )
    points = calibration(sums, frame, cap, of_error * math.sqrt(n))
    note = (
        f"Errors beyond {frame.most_error:.4g} and deviances beyond {frame.most_deviance:.4g} "
        "count as so much. The share of the deviance that is explained is that of one rate for all "
        "rows, the mean of what the model expects."
    )
    return Findings(measures, calibration=tuple(points), notes=(note,))


def _d2(sums: Sums) -> Measure:
    """The share of the deviance of one rate for all that the model explains."""
    if sums.of_one_rate <= 3 * sums.noise[3]:
        return Measure("d2", None)
    part = sums.deviance / sums.of_one_rate
    return measure("d2", 1 - part, math.hypot(1, part) * sums.noise[3] / sums.of_one_rate)


def calibration(sums: Sums, frame: Frame, cap: float, spread: float) -> list[CalibrationPoint]:
    """Mean of the expected and of the seen counts by group of bins; `spread` is that of errors."""
    ends, points = cap * np.array([frame.ends[0], *frame.edges, frame.ends[1]]), []
    centres = np.sqrt(ends[1:] * ends[:-1])
    for group in joined_bins(np.maximum(sums.rows, 0.0), max(sums.noise[0], 1 / TIMES), TIMES):
        n, cells = float(sums.rows[group].sum()), group.stop - group.start
        if n <= 0:
            continue
        weights = np.maximum(sums.rows[group], 0.0)
        expected = float(weights @ centres[group] / weights.sum())
        gap = float(sums.errors[group].sum()) / n
        noise = math.sqrt(cells) * math.hypot(sums.noise[1], gap * sums.noise[0]) / n
        seen = min(max(expected + gap, 0.0), cap)
        reach = WIDTH * math.hypot(noise, spread / math.sqrt(n))
        points.append(
            CalibrationPoint(
                float(ends[group.start]),
                float(ends[group.stop]),
                n,
                expected,
                seen,
                max(0.0, seen - reach),
                min(cap, seen + reach),
            )
        )
    return points


def exact_measures(counts: Floats, expected: Floats, exposure: Floats) -> dict[str, float]:
    """Mean deviance, its explained share, and errors of counts in the table at hand: no noise."""
    one_rate = exposure * (float(counts.sum()) / max(float(exposure.sum()), 1e-12))
    deviance, of_one = (_mean_deviance(counts, mean) for mean in (expected, one_rate))
    return {
        "deviance": deviance,
        "d2": 1 - deviance / of_one if of_one > 0 else 0.0,
        "mae": float(np.mean(np.abs(counts - expected))),
        "bias": float(np.mean(counts - expected)),
    }


def _mean_deviance(counts: Floats, expected: Floats) -> float:
    mean, some = np.maximum(expected, 1e-9), counts > 0
    logs = np.where(some, counts * np.log(np.where(some, counts, 1.0) / mean), 0.0)
    return float(np.mean(2 * (logs - counts + mean)))
