"""How far the discrete Gaussian is from a rounded normal, and how it is added."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from hedgerow.privacy.noise.mechanisms import add_gaussian


def discrete_gaussian(sigma: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values and probabilities, cut where float64 no longer sees them."""
    k = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1, dtype=np.float64)
    weight = np.exp(-(k**2) / (2 * sigma**2))
    return k, weight / weight.sum()


def rounded_normal(k: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    side = -np.abs(k)  # the lower tail keeps its digits
    return np.asarray(ndtr((side + 0.5) / sigma) - ndtr((side - 0.5) / sigma))


@pytest.mark.parametrize("sigma", [2.0, 4.0, 8.0, 16.0])
def test_the_divergence_from_the_rounded_normal_is_the_accounted_one(sigma: float) -> None:
    k, p = discrete_gaussian(sigma)
    q = rounded_normal(k, sigma)
    keep = p > 1e-25
    expected = 1 / (576 * sigma**4)
    for one, two in ((p[keep], q[keep]), (q[keep], p[keep])):
        # KL as the sum of r - 1 - log r terms: no cancellation between large parts.
        ratio = two / one - 1
        divergence = float(np.sum(one * (ratio - np.log1p(ratio))))
        assert divergence == pytest.approx(expected, rel=2 / sigma**2)
        assert divergence < expected  # a bound, not only the leading order
    distance = float(np.sum(np.abs(p - q))) / 2
    assert distance <= math.sqrt(expected / 2) * (1 + 2 / sigma**2)  # Pinsker


def test_adding_wraps_and_does_not_saturate() -> None:
    """All on one side of a quarter of a deviation: a chance of 2 x 0.6^2000."""
    top = np.full(2000, 2**63 - 1, np.int64).view(np.uint64)
    noisy = add_gaussian(top, [2000], [2.0**30])
    noise = (noisy - top).view(np.int64)
    assert noise.min() < -(2**28) < 2**28 < noise.max()  # both sides survive at the edge of int64


def test_blocks_get_their_own_width() -> None:
    """A number is below 1/8 of its deviation with a chance of 0.1, half of 1,000 with one below
    2^1000 0.1^500 = 1e-199; one of 2,000 beyond sixteen deviations with one of 1e-53."""
    noisy = add_gaussian(np.zeros(3000, np.uint64), [1000, 2000], [2.0**30, 2.0**10])
    noise = np.abs(noisy.view(np.int64))
    assert np.median(noise[:1000]) > 2.0**27
    assert noise[1000:].max() < 2.0**14
