"""Where the scores of a regression begin, and the units of scores and gradients. Pure functions.

A step of one unit of scores changes a row's gradient by one unit of gradients, about; so a column's
sum of gradients over its rows says how far to go. For the squared loss both units are the spread of
the label. Of quantiles a gradient is a share of rows, and how far the quantile is from there
follows from how densely labels lie around it; of Huber's loss only rows that are near enough count.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.methods.auto.bins import EMPTY
from hedgerow.methods.auto.start import Known, centre_and_spread
from hedgerow.model.losses import Huber, Loss, Quantile
from hedgerow.model.rounding import rounded_number

Floats = NDArray[np.float64]
REACH = 0.2  # either side of a quantile, over which the density of labels is averaged
LEAST_UNIT = 0.02  # of the label's range: no scale is finer than its histogram shows
FEW_CELLS = 32
LEAST_SHARE = 0.2  # of rows within reach of Huber's bend


def label_cells(loss: Loss, usual: int) -> int:
    """Cells of the label's histogram: quantiles need more of them than means do."""
    return max(usual, FEW_CELLS) if isinstance(loss, Quantile | Huber) else usual


def last_step(loss: Loss) -> float:
    """The part of the last correction of the intercept that is taken.

    Around the scores of a finished model labels lie denser than around one quantile for all.
    """
    return 0.6 if isinstance(loss, Quantile) else 1.0


def label_scale(loss: Loss, histogram: Floats, noise: float) -> tuple[float, float, float]:
    """Centre, unit of scores and unit of gradients, from a noisy histogram of the label."""
    if isinstance(loss, Quantile):
        found = _quantile_scale(loss.parameter, histogram, noise)
    elif isinstance(loss, Huber):
        found = _huber_scale(loss.parameter, histogram, noise)
    else:
        centre, spread = centre_and_spread(histogram, noise)
        found = centre, spread, spread
    centre, of_scores, of_gradients = (rounded_number(one) for one in found)
    return centre, of_scores, of_gradients


def by_chance_of(loss: Loss, known: Known) -> Known:
    """What is known, with the variance by chance of the loss's own gradients."""
    if not isinstance(loss, Quantile):
        return known
    variance = loss.parameter * (1 - loss.parameter)
    sampling = [variance * h for h in known.hessians]
    return replace(known, sampling=sampling)


def _quantile_scale(level: float, histogram: Floats, noise: float) -> tuple[float, float, float]:
    """The quantile of all rows, and how far it moves for a share of them: 1 / density."""
    law, trust = _law(histogram, noise)
    reach = min(REACH, 0.8 * level, 0.8 * (1 - level))
    low, centre, high = (law.at(part) for part in (level - reach, level, level + reach))
    # The nearer side: steps by the farther one overshoot where labels lie denser, again and again.
    unit = max(min(high - centre, centre - low) / reach, LEAST_UNIT)
    return trust * centre + (1 - trust) * level, trust * unit + (1 - trust) * 0.5, 1.0


def _huber_scale(bend: float, histogram: Floats, noise: float) -> tuple[float, float, float]:
    """The median, and a unit within the bend; what is beyond the bend does not pull."""
    law, trust = _law(histogram, noise)
    centre = trust * law.at(0.5) + (1 - trust) * 0.5
    spread = max((law.at(0.75) - law.at(0.25)) / 1.349, LEAST_UNIT)
    unit = min(bend, trust * spread + (1 - trust) * 0.2)
    share = max(law.below(centre + bend) - law.below(centre - bend), LEAST_SHARE)
    # Around the scores of columns more rows are within reach than around one median: steps by the
    # share of the latter overshoot.
    return centre, unit / math.sqrt(share), unit


class _Law:
    """How labels are spread, from the masses of even cells."""

    def __init__(self, mass: Floats) -> None:
        self._edges = np.linspace(0.0, 1.0, mass.size + 1)
        total = max(float(mass.sum()), 1e-12)
        self._up_to = np.append(0.0, np.cumsum(mass) / total)

    def at(self, part: float) -> float:
        """The label up to which this part of the rows lies, even within cells."""
        return float(np.interp(part, self._up_to + 1e-12 * self._edges, self._edges))

    def below(self, label: float) -> float:
        return float(np.interp(label, self._edges, self._up_to))


def _law(histogram: Floats, noise: float) -> tuple[_Law, float]:
    """How labels are spread, and how far that is to be trusted."""
    mass = np.where(histogram < EMPTY * noise, 0.0, np.maximum(histogram, 0.0))
    total = float(mass.sum())
    if total <= 0:
        return _Law(np.ones_like(mass)), 0.0
    return _Law(mass), total**2 / (total**2 + (3 * noise) ** 2)
