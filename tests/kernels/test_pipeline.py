"""Loops are compiled by fewer passes where Numba's version was tried, and to the same results."""

from __future__ import annotations

from typing import Any, cast

import numba
import numpy as np
import pytest
from numba import njit

from hedgerow.kernels import pipeline


def sums_by_code(codes: Any, values: Any, out: Any) -> None:
    for i in range(len(codes)):
        if codes[i] > 0:
            out[codes[i]] += values[i] / codes[i]


def test_the_pinned_version_was_tried() -> None:
    assert pipeline.options(allocates=False)["pipeline_class"] is pipeline.LoopPipeline


@pytest.mark.parametrize("version", ["0.61.2", "0.69.0", "1.0.0"])
def test_other_versions_compile_as_numba_does(version: str) -> None:
    assert pipeline.options(allocates=True, version=version) == {}


def test_both_ways_give_the_same_bits() -> None:
    rng = np.random.default_rng(5)
    codes, values = rng.integers(0, 9, 4000, np.uint8), rng.normal(size=4000)
    outs = []
    for options in (pipeline.options(allocates=False), pipeline.options(False, "0.61.2")):
        loop: Any = cast(Any, njit)(nogil=True, **options)(sums_by_code)
        outs.append(np.zeros(9))
        loop(codes, values, outs[-1])
    assert outs[0].tobytes() == outs[1].tobytes()
    assert outs[0].any()


def test_a_loop_that_allocates_has_to_say_so() -> None:
    def squares(n: int) -> Any:
        return np.arange(n) ** 2

    loop: Any = cast(Any, njit)(**pipeline.options(allocates=False))(squares)
    with pytest.raises(numba.errors.NumbaError):
        loop(3)
