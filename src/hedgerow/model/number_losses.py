"""Losses of numbers: squared, quantile and Huber of numbers between bounds, Poisson of counts.

Labels are scaled to [0, 1] by their public bounds. `losses` finds the loss of a label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.schema_checks import BENDS, LEVELS
from hedgerow.errors import FormatError
from hedgerow.model.row_bound import RowBound

Floats = NDArray[np.float64]


class _Numbers:
    """What losses of numbers between bounds share: their start, and predictions between 0 and 1."""

    def start(self, counts: Floats, floor: float) -> Floats:
        n_rows, total = counts
        # `floor` rows in the middle of the bounds are a weak, public prior.
        share = (total + 0.5 * floor) / (max(n_rows, 0.0) + floor)
        return np.array([min(max(share, 0.0), 1.0)])

    def start_deviation(self, counts: Floats, floor: float, noise: float) -> Floats:
        share = float(self.start(counts, floor)[0])
        return np.array([noise * math.hypot(1.0, share) / (max(counts[0], 0.0) + floor)])

    def predictions(self, scores: Floats, averaged: bool) -> Floats:
        return np.clip(scores, 0.0, 1.0)


@dataclass(frozen=True)
class Squared(_Numbers):
    """Squared error on labels scaled to [0, 1] by their public bounds; scores are clipped to it.

    |g| = |score - label| <= 1 and h = 1, the row itself, which weighs c = 1/2 (half of the clip, if
    gradients are clamped): norm sqrt(1 + c^2). Nothing is free here, because g and h can both be at
    their largest.
    """

    name: str = "squared"
    code: int = kernels.SQUARED
    n_outputs: int = 1
    hessian_scale: float = 0.5
    parameter: float = 0.0

    def bound(self, update: str, clip: float = math.inf) -> RowBound:
        most = min(clip, 1.0)
        if update == "slope":
            return RowBound(1, 0, 1.0, l1=most, l2=most)
        if update == "count":
            return RowBound(1, 0, 1.0, l1=1.0, l2=1.0)
        if update == "averaging":
            most = 1.0  # labels are not clamped, they lie between 0 and 1
        c = self.hessian_scale * most
        return RowBound(1, 1, c, l1=most + c, l2=math.hypot(most, c))

    def hessian_bound(self) -> float:
        return 1.0


def _beside_the_row(what: str, update: str, most: float) -> RowBound:
    """Of a row with |g| <= most beside a number of at most 1, which weighs half of it.

    Whatever g is, the second number can be 1 at the same time: the norm is sqrt(most^2 +
    (most / 2)^2), and nothing is free. Label and row of `averaging` are both at most 1.
    """
    if update == "slope":
        return RowBound(1, 0, 1.0, l1=most, l2=most)
    if update == "count":
        return RowBound(1, 0, 1.0, l1=1.0, l2=1.0)
    if update == "averaging":
        return RowBound(1, 1, 0.5, l1=1.5, l2=math.sqrt(1.25))
    if update == "gradient":
        return RowBound(1, 1, most / 2, l1=1.5 * most, l2=most * math.sqrt(1.25))
    raise FormatError(f"{what} have no {update} update")


@dataclass(frozen=True)
class Quantile(_Numbers):
    """Pinball loss: the score is the quantile of that level, in ten-thousandths.

    With t the level, g is 1 - t for a label that is not above the score and -t for one that is: at
    most max(t, 1 - t) in size, which is reached. `kernels.statistics.quantile` truncates both
    toward zero onto the grid, where they are no longer. The second number is the row itself.
    """

    steps: int
    code: int = kernels.QUANTILE
    n_outputs: int = 1

    @property
    def name(self) -> str:
        return f"quantile-{self.steps}"

    @property
    def parameter(self) -> float:
        return self.steps / LEVELS

    def bound(self, update: str, clip: float = math.inf) -> RowBound:
        most = min(clip, max(self.parameter, 1 - self.parameter))
        return _beside_the_row("quantiles", update, most)

    def hessian_bound(self) -> float:
        raise FormatError("quantiles have no Hessians")


@dataclass(frozen=True)
class Huber(_Numbers):
    """Huber's loss: squared up to errors of d, straight beyond; d in steps of the label's range.

    g is the error clamped to +-d, so |g| <= d <= 1, reached by every error beyond it. Clamping
    comes before truncation toward zero, so it holds on the grid. The second number is the row
    itself.
    """

    steps: int
    code: int = kernels.HUBER
    n_outputs: int = 1

    @property
    def name(self) -> str:
        return f"huber-{self.steps}"

    @property
    def parameter(self) -> float:
        return self.steps / BENDS

    def bound(self, update: str, clip: float = math.inf) -> RowBound:
        return _beside_the_row("robust regressions", update, min(clip, self.parameter))

    def hessian_bound(self) -> float:
        raise FormatError("robust regressions have no Hessians")


@dataclass(frozen=True)
class Poisson:
    """Counts y of at most C, the cap, seen for a part e of the largest exposure: 0 < e <= 1.

    The score is the logarithm of the expected count at the largest exposure, divided by C, and at
    most 0: the expected count of the row, divided by C, is m = e exp(score), between 0 and 1. So is
    y / C, and g = m - y / C, the slope of Poisson's loss (divided by C), lies between -1 and 1, and
    is clamped to +-clip. Both ends are reached: by a row with y = C where nothing is expected, and
    by one with y = 0 and e = 1 where C are. `kernels.statistics.poisson` clamps before it truncates
    toward zero, so |g| <= clip on the grid. The second number is e, at most 1. Both are largest at
    once in the last of these rows, so none of them is free. Newton's h is m, clamped to the clip
    as well; it weighs half, and is at its largest in the same row.
    """

    cap: int
    code: int = kernels.POISSON
    n_outputs: int = 1

    @property
    def name(self) -> str:
        return f"poisson-{self.cap}"

    @property
    def parameter(self) -> float:
        return float(self.cap)

    def bound(self, update: str, clip: float = math.inf) -> RowBound:
        most = min(clip, 1.0)
        if update == "newton":
            return RowBound(1, 1, 0.5, l1=1.5 * most, l2=most * math.sqrt(1.25))
        return _beside_the_row("counts", update, most)

    def hessian_bound(self) -> float:
        return 1.0

    def start(self, counts: Floats, floor: float) -> Floats:
        exposure, total = counts  # of all rows; the counts divided by their cap
        exposed, seen = max(float(exposure), floor), max(float(total), floor / self.cap)
        return np.array([math.log(min(seen / exposed, 1.0))])

    def start_deviation(self, counts: Floats, floor: float, noise: float) -> Floats:
        exposure, total = counts
        exposed, seen = max(float(exposure), floor), max(float(total), floor / self.cap)
        return np.array([noise * math.hypot(1 / exposed, 1 / seen)])

    def predictions(self, scores: Floats, averaged: bool) -> Floats:
        """Expected counts at the largest exposure, divided by the cap: (row, 1)."""
        return np.exp(np.minimum(scores, 0.0))
