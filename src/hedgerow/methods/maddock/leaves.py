"""Leaf values from noisy sums, and how noisy they are: pure functions of releases.

Deviations are to first order (the delta method) and lean to the wide side: what shrinks, clips or
fills up a value brings it nearer to another one, and is not counted as less noise.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hedgerow.model.losses import RowBound

Floats = NDArray[np.float64]


def step_values(
    sums: Floats, bound: RowBound, reg_lambda: float, clip: float, floor: float | Floats = 0.0
) -> Floats:
    """Boosting steps (leaf, output) of Newton and gradient updates from sums (number, leaf).

    -G / (H + lambda), the weight clipped to +-clip. A noisy H (or count) is held at `floor` or
    above: where it is no larger than its own noise, the leaf is nearly empty and must not step far.
    Where that is not above 0 the leaf looks empty, and does not step.
    """
    first, second = sums[: bound.first], sums[bound.first :]  # (output, leaf), (output or 1, leaf)
    floored = np.broadcast_to(np.maximum(second, floor), first.shape)
    weights = np.divide(-first, floored + reg_lambda, out=np.zeros_like(first), where=floored > 0)
    return np.asarray(np.clip(weights, -clip, clip).T)


def shrunk(gradients: Floats, deviations: Floats) -> Floats:
    """Gradient sums of one tree, shrunk by how much of them is noise (positive-part James-Stein).

    Gradients are (output, leaf), deviations (leaf,). With leaf sums G + N(0, s^2), the factor
    1 - sum s^2 / sum G^2 estimates the part of their energy that is signal; a tree of pure noise
    becomes a tree of zeros.
    """
    energy = math.fsum((gradients**2).ravel())  # the same whatever the order of the classes
    noise = len(gradients) * math.fsum(deviations**2)
    return gradients * (max(0.0, 1.0 - noise / energy) if energy > 0 else 0.0)


def shrunk_deviations(gradients: Floats, deviations: Floats) -> Floats:
    """Deviations (output, leaf) of `shrunk`, to first order.

    With f = 1 - noise / |G|^2, d(f G) = f dG + 2 (1 - f) G (G . dG) / |G|^2; where f would be below
    0 it counts as 0, though the slope ends there, because it might as well have been above.
    """
    energy = max(math.fsum((gradients**2).ravel()), 1e-300)
    noise = len(gradients) * math.fsum(deviations**2)
    factor = max(0.0, 1.0 - noise / energy)
    along = 4 * (1 - factor) * gradients**2 / energy
    return np.asarray(deviations * np.sqrt(factor**2 + along))


def average_values(sums: Floats, bound: RowBound, floor: float | Floats) -> Floats:
    """Leaf averages (leaf, output): class shares, or the mean scaled label of each leaf.

    Counts below `floor` (the size of their noise, of all leaves or of each) are filled up with the
    sums of all leaves, so a nearly empty leaf says what the whole table says.
    """
    if bound.second:  # regression: sum of labels, count
        total, count = sums[0], np.maximum(sums[1], 0.0)
        share = np.clip(total.sum() / max(float(count.sum()), float(np.max(floor))), 0.0, 1.0)
        missing = np.maximum(floor - count, 0.0)
        mean = np.clip((total + missing * share) / (count + missing), 0.0, 1.0)
        return np.asarray(mean[:, None])
    counts = np.maximum(sums, 0.0)  # (class, leaf)
    overall = counts.sum(axis=1, keepdims=True) / max(float(counts.sum()), 1e-12)
    missing = np.maximum(floor - counts.sum(axis=0), 0.0)
    shares = (counts + missing * overall) / np.maximum(counts.sum(axis=0) + missing, 1e-12)
    # A binary label needs one value, the share of the second class.
    return np.asarray(shares[1:].T if len(shares) == 2 else shares.T)


def step_deviations(
    sums: Floats, bound: RowBound, reg_lambda: float, clip: float, floor: float | Floats,
    deviations: Floats, first_deviations: Floats | None = None,
) -> Floats:  # fmt: skip
    """Deviations (leaf, output) of `step_values`, first parts having noise of `deviations`.

    With D = H + lambda, -G / D has the variance (s^2 + (G / D)^2 s_H^2) / D^2. D is held at one
    deviation of its noise or above; and no value lies farther from another than the clip allows.
    `first_deviations` (output, leaf) are those of shrunk first parts.
    """
    first, second = sums[: bound.first], sums[bound.first :]
    second_noise = deviations / bound.second_scale
    below = np.maximum(second, np.maximum(floor, second_noise)) + reg_lambda  # (output or 1, leaf)
    below = np.broadcast_to(np.maximum(below, 1e-300), first.shape)
    weights = np.clip(first / below, -clip, clip)
    first_noise = deviations if first_deviations is None else first_deviations
    of_weights = np.hypot(first_noise, weights * second_noise) / below
    return np.asarray(np.minimum(of_weights, clip).T)


def average_deviations(
    sums: Floats, bound: RowBound, floor: float | Floats, deviations: Floats
) -> Floats:
    """Deviations (leaf, output) of `average_values`, with noise of `deviations` (leaf,)."""
    shares = average_values(sums, bound, floor).T  # (output, leaf)
    if bound.second:
        rows = np.maximum(np.maximum(sums[1], floor), 1e-12)
        of_shares = deviations * np.hypot(1.0, shares / bound.second_scale) / rows
    else:
        rows = np.maximum(np.maximum(sums, 0.0).sum(axis=0), np.maximum(floor, 1e-12))
        others = len(sums) - 1
        # Of n_k / n: (1 - p) / n by the class's own count, -p / n by every other one.
        of_shares = deviations * np.sqrt((1 - shares) ** 2 + others * shares**2) / rows
    return np.asarray(np.minimum(of_shares, 1.0).T)


def covers(sums: Floats, bound: RowBound, deviations: Floats) -> Floats:
    """Hessians or rows of each leaf, no less than one deviation of their noise: (leaf,)."""
    rows = sums[bound.first :] if bound.second else sums
    scale = bound.second_scale if bound.second else 1.0
    return np.asarray(np.maximum(rows.sum(axis=0), np.sqrt(len(rows)) * deviations / scale))
