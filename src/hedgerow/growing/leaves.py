"""Leaf values from noisy sums: pure functions of releases."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hedgerow.losses import RowBound

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
    held = np.broadcast_to(np.maximum(second, floor), first.shape)
    weights = np.divide(-first, held + reg_lambda, out=np.zeros_like(first), where=held > 0)
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


def average_values(sums: Floats, bound: RowBound, floor: float | Floats) -> Floats:
    """Leaf averages (leaf, output): class shares, or the mean scaled label of each leaf.

    Counts below `floor` (the size of their noise, of all leaves or of each) are filled up with the
    sums of all leaves, so a nearly empty leaf says what the whole table says.
    """
    if bound.second:  # numbers: sum of labels, count
        total, count = sums[0], np.maximum(sums[1], 0.0)
        share = np.clip(total.sum() / max(float(count.sum()), float(np.max(floor))), 0.0, 1.0)
        missing = np.maximum(floor - count, 0.0)
        mean = np.clip((total + missing * share) / (count + missing), 0.0, 1.0)
        return np.asarray(mean[:, None])
    counts = np.maximum(sums, 0.0)  # (class, leaf)
    overall = counts.sum(axis=1, keepdims=True) / max(float(counts.sum()), 1e-12)
    missing = np.maximum(floor - counts.sum(axis=0), 0.0)
    shares = (counts + missing * overall) / np.maximum(counts.sum(axis=0) + missing, 1e-12)
    # Two classes need one number, the share of the second.
    return np.asarray(shares[1:].T if len(shares) == 2 else shares.T)
