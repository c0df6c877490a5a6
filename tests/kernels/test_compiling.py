"""Whoever is told of compiling may be gone by then; the loop is compiled all the same."""

from __future__ import annotations

import io
import logging

import numpy as np
import pytest
from numba import njit

from hedgerow.kernels import compiling
from hedgerow.kernels.arrays import Floats
from hedgerow.kernels.compiling import COMPILING, say_when_compiling


def _twice(values: Floats, out: Floats) -> None:
    for i in range(values.size):
        out[i] = 2 * values[i]


def test_a_screen_that_was_closed_does_not_stop_a_loop(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(compiling._watch, "n_compiled", 0)
    monkeypatch.setattr(compiling._watch, "say", compiling._watch.say)
    monkeypatch.setattr(_twice, "__module__", "hedgerow.made_up")
    say_when_compiling(lambda text: print(text, file=screen))
    screen.close()
    loop, out = njit(_twice), np.zeros(3)  # not kept on disk: it is compiled every time
    with caplog.at_level(logging.INFO, "hedgerow"):
        loop(np.arange(3.0), out)
    assert out.tolist() == [0.0, 2.0, 4.0]
    assert compiling._watch.n_compiled == 1
    assert COMPILING in caplog.text
