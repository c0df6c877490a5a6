"""Bands of explanations cover the shapes of training without noise."""

from __future__ import annotations

import numpy as np

from hedgerow.inspection.explain import BAND, Explanation, explain
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import noise_off
from tests.conftest import MIXED, mixed_rows, mixed_table, train

SETTINGS = {"n_trees": 10, "max_depth": 2, "features_per_tree": 1, "batch_fraction": 1.0}
TRAININGS, LEAST = 20, 9


def test_bands_cover_the_shapes_of_training_without_noise() -> None:
    """Judged training by training: all categories of a wide column share a leaf or two.

    If that leaf is outside of its band, nearly all cells are, with a chance of 0.05. Twelve of
    twenty trainings are, with a chance below 125970 x 0.05^12 = 3.1e-11.
    """
    parts = {"all": mixed_rows(mixed_table(3000, seed=2))}

    def shapes() -> Explanation:
        method = "dp-ebm-newton"
        return explain(train(parts, MIXED, Privacy(3.0, 1e-5), SETTINGS, method=method)[0])

    with noise_off():
        exact = shapes()
    assert sum(covers(shapes(), exact) for _ in range(TRAININGS)) >= LEAST


def covers(noisy: Explanation, exact: Explanation) -> bool:
    """Whether 85 of 100 cells of the exact shapes lie in the noisy ones' bands."""
    inside, n = 0, 0
    for own, true in zip(noisy.shapes, exact.shapes, strict=True):
        moved = true.values - (true.values @ own.weights)[:, None]  # around the same weights
        used = own.shown[own.deviation[0, own.shown] > 0]
        off = np.abs(own.values - moved)[0, used]
        inside += int((off <= BAND * own.deviation[0, used]).sum())
        n += len(used)
    assert n > 300
    return inside / n >= 0.85
