"""Measures of a regression model from noisy counts and sums of clipped errors. Pure functions.

Labels and errors are scaled to 0 .. 1 by the label's public bounds until they are shown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.evaluation.result import WIDTH, CalibrationPoint, Findings, Measure, measure
from hedgerow.evaluation.smoothing import joined_bins, seen_range

Floats = NDArray[np.float64]
SIZE_EDGES = tuple(float(2.0**-j) for j in range(12, 0, -1))
CELLS = 24  # of the label
BINS = 8  # of predictions
TAIL = 0.005  # of rows, beyond which errors and labels are clipped
MARGIN = 1.5  # the clip, beside the largest size that rises above the noise
TIMES = 15.0  # a group of bins holds so many times its own noise
# Parts of the question: rows by bin, errors by bin, size and square, label and square.
SHARES = (0.2, 0.2, 0.175, 0.125)


@dataclass(frozen=True)
class Frame:
    """How errors are asked about: where they and labels are clipped, and bins of predictions."""

    clip: float
    centre: float
    spread: float
    edges: tuple[float, ...]
    ends: tuple[float, float]  # between which labels were seen


def frame_for(counts: Floats, noise: float) -> Frame:
    """From noisy counts by size of the error, then by cell of the label."""
    sizes, cells = np.split(counts, [len(SIZE_EDGES) + 1])
    clip, low, high = 1.0, 0.0, 1.0
    if (seen := seen_range(sizes, noise, TAIL)) is not None and seen[1] < len(SIZE_EDGES):
        clip = min(1.0, MARGIN * SIZE_EDGES[seen[1]])
    if (seen := seen_range(cells, noise, TAIL)) is not None:
        low, high = max(0, seen[0] - 1) / CELLS, min(CELLS, seen[1] + 2) / CELLS
    edges = np.linspace(low, high, BINS + 1)[1:-1]
    centre, spread = (low + high) / 2, (high - low) / 2
    return Frame(clip, centre, spread, tuple(map(float, edges)), (low, high))


@dataclass(frozen=True)
class Sums:
    """Released sums in units of the label's range, and the deviations of their noise."""

    rows: Floats  # (bin of the prediction,)
    errors: Floats  # (bin,) label less prediction
    size: float
    square: float
    label: float  # distance from the centre
    label_square: float
    noise: tuple[float, float, float, float, float, float]  # in this order

    @staticmethod
    def of(values: Floats, sigmas: Sequence[float], frame: Frame) -> Sums:
        """From the values of an `ErrorSums` question."""
        n, clip, spread = len(frame.edges) + 1, frame.clip, frame.spread
        rows, errors, rest = values[:n], values[n : 2 * n] * clip, values[2 * n :]
        units = (clip, clip**2, spread, spread**2)
        size, square, label, label_square = (float(r * u) for r, u in zip(rest, units, strict=True))
        noise = (
            sigmas[0], sigmas[1] * clip, sigmas[2] * clip, sigmas[2] * clip**2,
            sigmas[3] * spread, sigmas[3] * spread**2,
        )  # fmt: skip
        return Sums(rows, errors, size, square, label, label_square, noise)


def findings(sums: Sums, frame: Frame, lower: float, upper: float) -> Findings:
    """Everything there is to say, in units of the label between its bounds."""
    n = float(sums.rows.sum())
    of_n = sums.noise[0] * math.sqrt(len(sums.rows))
    rows, scale = measure("rows", n, of_n), upper - lower
    if n <= max(3 * of_n, 0.5):
        names = ("rmse", "mae", "r2", "bias")
        why = "The noise is as large as the table: too few rows for this epsilon."
        return Findings((rows, *(Measure(name, None) for name in names)), notes=(why,))

    def mean(total: float, noise: float, terms: int = 1) -> tuple[float, float]:
        value = total / n
        return value, math.hypot(noise * math.sqrt(terms), value * of_n) / n

    mae, of_mae = mean(sums.size, sums.noise[2])
    mse, of_mse = mean(sums.square, sums.noise[3])
    bias, of_bias = mean(float(sums.errors.sum()), sums.noise[1], len(sums.errors))
    mse = max(mse, 0.0)
    # A variable between 0 and M of mean m has a variance of at most m (M - m) (Bhatia and Davis).
    of_sample = math.sqrt(max(0.0, mse * (frame.clip**2 - mse)) / n)
    root = math.sqrt(mse)
    rmse = Measure("rmse", None)
    if mse > 2 * of_mse:
        per = scale / (2 * root)
        rmse = measure("rmse", scale * root, per * of_mse, per * of_sample)
    measures = (
        rows,
        rmse,
        measure("mae", scale * mae, scale * of_mae, scale * math.sqrt(max(0.0, mse - mae**2) / n)),
        _r2(sums, n, of_n, (mse, of_mse, of_sample), frame.spread),
        measure("bias", scale * bias, scale * of_bias, scale * math.sqrt(mse / n)),
    )
    note = f"Errors beyond {scale * frame.clip:.4g} count as so much."
    points = calibration(sums, frame, mse)
    shown = tuple(_scaled(point, lower, scale) for point in points)
    return Findings(measures, calibration=shown, notes=(note,) if frame.clip < 1 else ())


def _r2(
    sums: Sums, n: float, of_n: float, mse: tuple[float, float, float], spread: float
) -> Measure:
    far, square = sums.label / n, sums.label_square / n
    variance = square - far**2
    of_variance = math.hypot(sums.noise[5], 2 * far * sums.noise[4], (square - 2 * far**2) * of_n)
    of_variance /= n
    if variance <= max(3 * of_variance, 1e-12):
        return Measure("r2", None)
    value = mse[0] / variance
    noise = math.hypot(mse[1], value * of_variance) / variance
    of_label = math.sqrt(max(0.0, square * (spread**2 - square)) / n)
    sampled = math.hypot(mse[2], value * of_label) / variance
    return measure("r2", 1 - value, noise, sampled)


def calibration(sums: Sums, frame: Frame, mse: float) -> list[CalibrationPoint]:
    """Mean prediction and mean label by group of bins, scaled to 0 .. 1."""
    ends = np.array([frame.ends[0], *frame.edges, frame.ends[1]])
    centres, points = (ends[1:] + ends[:-1]) / 2, []
    for group in joined_bins(np.maximum(sums.rows, 0.0), max(sums.noise[0], 1 / TIMES), TIMES):
        n, cells = float(sums.rows[group].sum()), group.stop - group.start
        if n <= 0:
            continue
        weights = np.maximum(sums.rows[group], 0.0)
        predicted = float(weights @ centres[group] / weights.sum())
        gap = float(sums.errors[group].sum()) / n
        noise = math.sqrt(cells) * math.hypot(sums.noise[1], gap * sums.noise[0]) / n
        seen = min(max(predicted + gap, 0.0), 1.0)
        reach = WIDTH * math.hypot(noise, math.sqrt(mse / n))
        band = (max(0.0, seen - reach), min(1.0, seen + reach))
        points.append(
            CalibrationPoint(
                float(ends[group.start]), float(ends[group.stop]), n, predicted, seen, *band
            )
        )
    return points


def _scaled(point: CalibrationPoint, lower: float, scale: float) -> CalibrationPoint:
    def shown(value: float) -> float:
        return lower + scale * value

    return CalibrationPoint(
        shown(point.lower), shown(point.upper), point.rows, shown(point.predicted),
        shown(point.observed), shown(point.low), shown(point.high),
    )  # fmt: skip
