"""Rounding to few significant bits: near, idempotent, and blind to last bits."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.model.rounding import BITS, rounded, rounded_down, rounded_number, settled

NUMBERS = st.floats(-1e30, 1e30).filter(lambda x: x == 0 or abs(x) > 1e-30)
PRICES = st.floats(1e-9, 1e3)


@given(NUMBERS)
def test_a_number_moves_by_half_a_step_at_most_and_then_no_more(value: float) -> None:
    once = rounded_number(value)
    assert abs(once - value) <= abs(value) * 2.0**-BITS
    assert rounded_number(once) == once
    (array,) = rounded(np.array([value]))
    assert abs(float(array) - value) <= abs(value) * 2.0**-BITS
    assert rounded(np.array([array])) == array


@given(PRICES)
def test_a_price_never_grows_and_loses_next_to_nothing(price: float) -> None:
    assert price * (1 - 2.0 ** (2 - BITS)) < rounded_down(price) < price


def test_what_is_not_finite_stays() -> None:
    assert rounded_number(math.inf) == math.inf
    found = rounded(np.array([np.inf, -np.inf, np.nan, 0.0, np.finfo(np.float32).max]))
    assert found[:2].tolist() == [math.inf, -math.inf]
    assert np.isnan(found[2])
    assert found[3] == 0
    assert np.isfinite(found[4])


def test_last_bits_of_arithmetic_do_not_show() -> None:
    values = np.random.default_rng(1).normal(0, 1, 20_000)
    other = values * (1 + 4 * np.finfo(float).eps)
    assert np.array_equal(rounded(values), rounded(other))
    assert settled(values[:2000]) == settled(other[:2000])
    assert [*map(rounded_down, abs(values))] == [*map(rounded_down, abs(other))]
