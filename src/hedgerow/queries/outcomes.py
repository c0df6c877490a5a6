"""What questions about finished predictions share: scores that are safe to turn into them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.schema import Schema
from hedgerow.errors import FormatError
from hedgerow.model.losses import loss_for

Floats = NDArray[np.float64]
BLOCK = 1 << 16  # rows that are looked at together; memory does not grow with the table
MAX_EDGES = 1024
_FARTHEST = 1e6  # no sum of leaf values says more than this
_LEAST_MEAN = 1e-9  # a smaller expected count counts as so much in its deviance


def predictions_of(scores: Floats, schema: Schema, averaged: bool) -> Floats:
    """Probabilities (row, class) or values (row, 1) between 0 and 1, whatever the scores are."""
    far = np.nan_to_num(scores, nan=0.0, posinf=_FARTHEST, neginf=-_FARTHEST)
    finite = np.clip(far, -_FARTHEST, _FARTHEST)
    return np.clip(loss_for(schema.label).predictions(finite, averaged), 0.0, 1.0)


def check_edges(edges: tuple[float, ...], what: str) -> None:
    """Raise FormatError unless the edges rise between 0 and 1."""
    inside = all(0.0 < edge < 1.0 for edge in edges)
    rising = all(a < b for a, b in pairwise(edges))
    if len(edges) > MAX_EDGES or not inside or not rising:
        raise FormatError(f"{what} have edges that do not rise between 0 and 1")


def check_weights(weights: tuple[float, ...], n_blocks: int, what: str) -> None:
    """Raise FormatError unless every block has a noise unit of a sensible size."""
    if len(weights) != n_blocks or not all(1e-3 <= weight <= 1e3 for weight in weights):
        raise FormatError(f"{what} need {n_blocks} weights from 0.001 to 1000")


def whole_steps(parts: Floats, bits: int) -> NDArray[np.int64]:
    """Numbers of at most 1 in size as steps of the grid, truncated toward zero row by row."""
    return (np.clip(parts, -1.0, 1.0) * 2.0**bits).astype(np.int64)


def expected_counts(target: Floats, scores: Floats, cap: float) -> tuple[Floats, Floats, Floats]:
    """Counts, exposures and expected counts of rows, all between 0 and 1, whatever the scores are.

    Counts are divided by their cap, exposures by the largest: (row,) each.
    """
    counts, exposure = kernels.count_and_exposure(target)
    exposure = np.clip(exposure, 0.0, 1.0)
    far = np.nan_to_num(scores[:, 0], nan=-_FARTHEST, posinf=0.0, neginf=-_FARTHEST)
    return np.clip(counts / cap, 0.0, 1.0), exposure, exposure * np.exp(np.minimum(far, 0.0))


def deviances(counts: Floats, expected: Floats) -> Floats:
    """Poisson's unit deviance 2 (y log(y / m) - y + m), at least 0 and finite: (row,)."""
    mean = np.maximum(expected, _LEAST_MEAN)
    ratio = np.where(counts > 0, counts, 1.0) / mean
    return np.maximum(2 * (np.where(counts > 0, counts * np.log(ratio), 0.0) - counts + mean), 0.0)
