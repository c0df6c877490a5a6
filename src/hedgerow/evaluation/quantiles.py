"""Measures of a model of quantiles: coverage from two noisy counts, pinball loss from errors.

The pinball loss of an error e (label less prediction) at the level t is (t - 1/2) e + |e| / 2, so
its sum follows from the sums of clipped errors and of their sizes. Pure functions.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hedgerow.evaluation.regression import Frame, Sums
from hedgerow.evaluation.result import Findings, Measure, measure

Floats = NDArray[np.float64]
COVERAGE_SHARE = 0.3  # of mu^2: how many labels lie above the prediction, and how many do not
NAMES = ("coverage", "pinball", "mae", "bias")


def findings(
    sums: Sums, frame: Frame, covered: Floats, noise: float, level: float, span: float
) -> Findings:
    """Everything there is to say, in units of the label.

    `covered` are rows whose label is above the prediction, and rows whose label is not, with the
    deviation of their noise.
    """
    n, of_n = float(covered.sum()), noise * math.sqrt(2)
    if n <= max(3 * of_n, 0.5):
        why = "The noise is as large as the table: too few rows for this epsilon."
        rows = measure("rows", n, of_n)
        return Findings((rows, *(Measure(name, None) for name in NAMES)), notes=(why,))
    share = min(max(float(covered[1]) / n, 0.0), 1.0)
    of_share = noise * math.hypot(1 - share, share) / n
    bias, mae = span * float(sums.errors.sum()) / n, span * sums.size / n
    of_bias = span * math.hypot(sums.noise[1] * math.sqrt(len(sums.errors)), bias / span * of_n) / n
    of_mae = span * math.hypot(sums.noise[2], mae / span * of_n) / n
    spread = span * math.sqrt(max(sums.square / n, 0.0) / n)
    pinball = (level - 0.5) * bias + mae / 2
    of_pinball = math.hypot((level - 0.5) * of_bias, of_mae / 2)
    sampled = max(level, 1 - level) * spread
    note = f"Errors beyond {span * frame.clip:.4g} count as so much."
    return Findings(
        (
            measure("rows", n, of_n),
            measure("coverage", share, of_share, math.sqrt(share * (1 - share) / n)),
            measure("pinball", pinball, of_pinball, sampled),
            measure("mae", mae, of_mae, spread),
            measure("bias", bias, of_bias, spread),
        ),
        notes=(note,) if frame.clip < 1 else (),
    )
