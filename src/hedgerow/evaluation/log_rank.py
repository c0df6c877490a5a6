"""The log-rank test from noisy counts: whether groups survive alike. Pure functions.

Counts (cell,) of a group are those of `data.survival`. Noise in them is added to the variance of
the statistic, so that groups that survive alike are told apart no more often than the test says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.evaluation.result import Measure, measure

Floats = NDArray[np.float64]


def log_rank(groups: Sequence[Floats], noise: Sequence[float]) -> tuple[Measure, Measure]:
    """The statistic, chi-squared with a degree less than there are groups, and its p-value.

    `noise` is the deviation in a count of each group. By interval the events of a group are
    compared with its share of those at risk, of whom the censored ones leave in the middle.
    """
    from scipy.stats import chi2

    if len(groups) < 2:
        return measure("log_rank", math.nan, math.nan), measure("log_rank_p", math.nan, math.nan)
    counts = np.stack(groups)  # (group, cell)
    excess, variance = _excess(counts)
    for place in range(counts.size):  # what noise in one count does, to first order
        moved = [counts.copy(), counts.copy()]
        moved[0].flat[place] += 0.5
        moved[1].flat[place] -= 0.5
        slope = _excess(moved[0])[0] - _excess(moved[1])[0]
        variance = variance + noise[place // counts.shape[1]] ** 2 * np.outer(slope, slope)
    # The excesses add up to nothing, so the last one says nothing new.
    part, square = excess[:-1], variance[:-1, :-1]
    statistic = float(part @ np.linalg.pinv(square, hermitian=True) @ part)
    p_value = float(chi2.sf(statistic, len(part)))
    return Measure("log_rank", statistic, lowest=0.0), Measure(
        "log_rank_p", p_value, lowest=0.0, highest=1.0
    )


def _excess(counts: Floats) -> tuple[Floats, Floats]:
    """Events beyond those expected if all survived alike (group,), and their covariance."""
    events, censored = counts[:, 1::2], counts[:, :-1:2]  # (group, interval)
    at_risk = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1][:, :-1:2] - censored / 2
    at_risk = np.maximum(at_risk, 1e-9)
    total, together = np.maximum(events.sum(axis=0), 0.0), at_risk.sum(axis=0)
    share = at_risk / together  # (group, interval)
    excess = np.sum(events - share * events.sum(axis=0), axis=1)
    spread = total * np.clip((together - total) / np.maximum(together - 1, 1e-9), 0.0, 1.0)
    covariance = np.diag(share @ spread) - (share * spread) @ share.T
    return excess, covariance
