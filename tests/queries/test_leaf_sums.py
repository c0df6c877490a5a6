"""Slope and curvature of the softmax loss along a step: right, within their bound, and tight."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.queries.leaf_sums import STEP_CURVE_SCALE

Floats = NDArray[np.float64]
GOLDEN = (1 + math.sqrt(5)) / 2


def step_of_a_row(
    scores: Floats, step: Floats, own: int, bits: int = 26, scale: float = 1.0
) -> tuple[float, float]:
    now = np.ascontiguousarray(scores[None, :])
    gradients = kernels.Gradients(
        now, np.array([float(own)]), bits, kernels.SOFTMAX, kernels.NEWTON, kernels.NO_CLIP,
        2 * now.shape[1],
    )  # fmt: skip
    found = kernels.step_sums(gradients, now - scale * step, scale)
    slope, curve = (found / 2.0**bits).tolist()
    return slope, curve


def expected(scores: Floats, step: Floats, own: int) -> tuple[float, float]:
    p = np.exp(scores - scores.max())
    p /= p.sum()
    centred = np.clip(step - (step.max() + step.min()) / 2, -0.5, 0.5)
    mean = float(p @ centred)
    return mean - float(centred[own]), float(p @ (centred - mean) ** 2)


@pytest.mark.parametrize("n_classes", [3, 4, 7])
@pytest.mark.parametrize("bits", [16, 26, 31])
def test_slope_and_curvature_are_right_and_never_beyond_their_bound(
    n_classes: int, bits: int
) -> None:
    rng = np.random.default_rng(n_classes)
    for spread in (0.3, 1.0, 4.0, 30.0):
        for size in (0.05, 0.4, 3.0):
            for _ in range(60):
                scores, own = rng.normal(0, spread, n_classes), int(rng.integers(n_classes))
                step = size * rng.normal(0, 1, n_classes) + rng.normal()  # a level of its own
                slope, curve = step_of_a_row(scores, step, own, bits)
                near = expected(scores, step, own)
                assert slope == pytest.approx(near[0], abs=2e-6 + n_classes * 2.0**-bits)
                assert curve == pytest.approx(near[1], abs=4e-6 + 3 * n_classes * 2.0**-bits)
                assert slope**2 + (STEP_CURVE_SCALE * curve) ** 2 <= 1.0
                assert curve >= 0.0


def test_the_worst_rows_reach_the_bound() -> None:
    """A class of probability 1 - 1 / golden ratio against one, or several, of all others."""
    for n_classes in (3, 5):
        others = [math.log(1 / GOLDEN / (n_classes - 1))] * (n_classes - 1)
        scores = np.array([math.log(1 - 1 / GOLDEN), *others])
        step = np.array([-0.5, *[0.5] * (n_classes - 1)])
        for sign in (1, -1):
            slope, curve = step_of_a_row(scores, sign * step, 0)
            assert sign * slope == pytest.approx(1 / GOLDEN, abs=1e-5)
            assert math.hypot(slope, STEP_CURVE_SCALE * curve) == pytest.approx(1.0, abs=1e-4)
    slope, _ = step_of_a_row(np.array([-60.0, 0.0, 0.0]), np.array([-9.0, 9.0, 9.0]), 0)
    assert slope == pytest.approx(1.0)


def test_the_order_of_the_classes_and_a_common_shift_play_no_part() -> None:
    rng = np.random.default_rng(8)
    for scores, step in rng.normal(0, 1, (200, 2, 5)):
        order, own = rng.permutation(5), 3
        there = int(np.flatnonzero(order == own)[0])
        found = step_of_a_row(scores, step, own)
        assert step_of_a_row(scores[order], step[order], there) == pytest.approx(found, abs=1e-6)
        assert step_of_a_row(scores, step + 0.25, own) == pytest.approx(found, abs=4e-6)
        assert step_of_a_row(scores, step, own, scale=4.0) == pytest.approx(found, abs=4e-6)


@pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf, 1e308])
def test_steps_that_are_no_numbers_stay_within_the_bound(strange: float) -> None:
    for own in range(3):
        for steps in ([strange, 0.1, 0.2], [strange] * 3, [0.0, strange, -strange]):
            slope, curve = step_of_a_row(np.zeros(3), np.array(steps), own)
            assert slope**2 + (STEP_CURVE_SCALE * curve) ** 2 <= 1.0
