"""Numbers that follow from releases, rounded so that every processor finds the same ones.

Libraries of linear algebra, exponentials and logarithms choose their loops by the processor, and
their last bits differ. Whoever resumes a run or verifies a model elsewhere must ask the same
questions and find the same trees, byte by byte. Leaves are of 32 bits, which hides last bits of
sums and quotients; where matrices are solved, as in `auto`, errors are larger, and what a question,
a price or a tree takes over keeps 16 significant bits. Then last bits decide nothing but for one
number in tens of millions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

BITS = 16  # significant ones; a step is 0.0015 to 0.003 % of a number


def rounded(values: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Numbers with `BITS` significant bits, halves away from zero; what is not finite stays.

    >>> rounded(np.array([0.1, -3.0, np.inf])).tolist()
    [0.10000038146972656, -3.0, inf]
    """
    values = np.asarray(values, np.float32)
    below = np.uint32(24 - BITS)  # bits of a float32 that go
    half, kept = np.uint32(1) << (below - np.uint32(1)), ~((np.uint32(1) << below) - np.uint32(1))
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    whole = ((bits + half) & kept).view(np.float32)
    return np.where(np.isfinite(values) & np.isfinite(whole), whole, values)


def rounded_number(value: float, bits: int = BITS) -> float:
    """One number with so many significant bits; what is not finite stays.

    >>> rounded_number(0.7), rounded_number(0.5)
    (0.70001220703125, 0.5)
    """
    if not math.isfinite(value):
        return value
    part, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(part, bits)), exponent - bits)


def settled(edges: NDArray[np.float64]) -> tuple[float, ...]:
    """Edges of a question with 32 significant bits: probabilities near 1 lie close together."""
    return tuple(rounded_number(float(edge), 32) for edge in edges)


def rounded_down(value: float) -> float:
    """The next smaller number with `BITS` significant bits: for a price, which must not grow.

    A number that stands on a step, or nearly so, goes to the one below.

    >>> 0.7 - 1e-4 < rounded_down(0.7) < 0.7 and rounded_down(0.5) < 0.5
    True
    """
    part, exponent = math.frexp(value)
    return math.ldexp(math.floor(math.ldexp(part, BITS) - 0.25), exponent - BITS)
