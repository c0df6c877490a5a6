"""Cost before paying: what noise does at each epsilon, from public facts or a public sample."""

from __future__ import annotations

from hedgerow.inspection.advice.expected import Expected, Facts, epsilon_for_error, expected_error
from hedgerow.inspection.advice.simulation import Curve, Point, simulate

__all__ = [
    "Curve",
    "Expected",
    "Facts",
    "Point",
    "epsilon_for_error",
    "expected_error",
    "simulate",
]
