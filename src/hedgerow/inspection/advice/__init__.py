"""Cost before paying: what noise does at each epsilon, from public facts or a public sample.

expected.py    expected error of leaf weights, from public facts
simulation.py  accuracy against epsilon, on a public sample with real noise
answers.py     a range of the measure asked for, from a sample or from public tables
chart.py       the picture of either
"""

from __future__ import annotations

from hedgerow.inspection.advice.answers import Answer, from_public_tables, from_sample
from hedgerow.inspection.advice.expected import Expected, Facts, epsilon_for_error, expected_error
from hedgerow.inspection.advice.simulation import Curve, Point, simulate

__all__ = [
    "Answer",
    "Curve",
    "Expected",
    "Facts",
    "Point",
    "epsilon_for_error",
    "expected_error",
    "from_public_tables",
    "from_sample",
    "simulate",
]
