"""Defects that an audit must find: planted for the time of a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from hedgerow.kernels import NO_CLIP
from hedgerow.privacy.noise import mechanisms
from hedgerow.queries import column_sums, leaf_sums


@contextmanager
def noise_halved() -> Iterator[None]:
    class Half(mechanisms.SecureSource):
        def gaussian(self, size: int, sigma: Any) -> Any:
            return super().gaussian(size, np.asarray(sigma) / 2)

    with mechanisms.noise_from(Half()):
        yield


@contextmanager
def block_without_noise() -> Iterator[None]:
    """The last block of every release that has several, such as one column of many."""
    true = mechanisms.add_gaussian

    def add(values: Any, blocks: Any, sigmas: Any, share: float = 1.0) -> Any:
        noisy = true(values, blocks, sigmas, share)
        if len(blocks) > 1:
            noisy[-blocks[-1] :] = values[-blocks[-1] :]
        return noisy

    with patch.object(mechanisms, "add_gaussian", add):
        yield


@contextmanager
def clip_forgotten() -> Iterator[None]:
    def forgotten(clip: float, bits: int) -> int:
        return NO_CLIP

    with (
        patch.object(column_sums, "clip_steps", forgotten),
        patch.object(leaf_sums, "clip_steps", forgotten),
    ):
        yield


DEFECTS = {
    "noise halved": noise_halved,
    "one block without noise": block_without_noise,
    "clip forgotten": clip_forgotten,
}
