"""Measures of a multiclass model from noisy counts. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.values import Value
from hedgerow.evaluation.calibration import calibrated, calibration_error
from hedgerow.evaluation.result import Confusion, Findings, Measure, measure
from hedgerow.evaluation.smoothing import agreed

Floats = NDArray[np.float64]
_EDGES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


def confidence_edges(n_classes: int) -> tuple[float, ...]:
    """Edges of the probability of the likeliest class, which is at least one over the classes."""
    return tuple(edge for edge in _EDGES if edge > 1 / n_classes + 0.02)


def findings(
    confusion: Floats,
    by_bin: Floats,
    total_loss: float,
    noise: Sequence[float],
    edges: Sequence[float],
    most_loss: float,
    classes: Sequence[Value],
) -> Findings:
    """Everything there is to say from counts (true, predicted), (wrong | right, bin) and log loss.

    `noise` are the deviations of the three; that of the last in units of log loss.
    """
    right = np.eye(len(classes), dtype=bool)
    of_confusion, of_bins = noise[0] ** 2, noise[1] ** 2
    bins, counts, totals, variances = by_bin.copy(), confusion.copy(), [], []
    for row, cells in enumerate((~right, right)):
        both = agreed(by_bin[row], of_bins, confusion[cells], of_confusion)
        bins[row], counts[cells] = both.first, both.second
        totals.append(both.total)
        variances.append(both.variance)
    n, of_n = sum(totals), math.sqrt(sum(variances))
    told = tuple(tuple(float(max(0.0, c)) for c in row) for row in counts)
    shown = Confusion(tuple(classes), told, noise[0])
    rows = measure("rows", n, of_n)
    if n <= max(3 * of_n, 0.5):
        names = ("accuracy", "log_loss", "calibration_error")
        why = "The noise is as large as the table: too few rows for this epsilon."
        return Findings((rows, *(Measure(name, None) for name in names)), shown, notes=(why,))
    part, loss = totals[1] / n, total_loss / n
    of_part = math.hypot((1 - part) * math.sqrt(variances[1]), part * math.sqrt(variances[0])) / n
    accuracy = measure("accuracy", part, of_part, math.sqrt(max(0.0, part * (1 - part)) / n))
    of_loss = math.hypot(noise[2], loss * of_n) / n
    # A variable between 0 and M of mean m has a variance of at most m (M - m) (Bhatia and Davis).
    sampled = math.sqrt(max(0.0, loss * (most_loss - loss)) / n)
    ends = np.array([1 / len(classes), *edges, 1.0])
    groups = calibrated(bins, (ends[1:] + ends[:-1]) / 2, ends, noise[1])
    measures = (rows, accuracy, measure("log_loss", loss, of_loss, sampled))
    return Findings(
        (*measures, calibration_error(groups, n)), shown,
        calibration=tuple(group.shown for group in groups),
    )  # fmt: skip
