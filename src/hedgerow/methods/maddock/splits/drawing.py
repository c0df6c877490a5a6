"""One random cut of a column in a node, among those that part what can still be there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.rng import Generator, one_of

Bools = NDArray[np.bool_]


def can_be_cut(possible: Bools) -> bool:
    """Whether two bins or categories are left; missing values (the last bin) are no reason."""
    return int(np.count_nonzero(possible[:-1])) > 1


def drawn_edge(first: int, stop: int, rng: Generator) -> tuple[int, bool]:
    """Where to cut bins first .. stop - 1 of an ordered column: the first bin that goes right.

    Also, whether missing values go left. It draws what `drawn_sides` does, in the same order.
    """
    missing_left = not rng.integers(2)
    return first + 1 + int(rng.integers(stop - first - 1)), missing_left


def drawn_sides(possible: Bools, ordered: bool, category_split: str, rng: Generator) -> Bools:
    """Which bins go right, from those that can hold rows: both (bin,), the last one missing.

    Both sides keep a bin. An ordered column is cut at one of the candidates inside what is left;
    of categories that are left, one goes right, or about half of them.
    """
    inside = possible[:-1].nonzero()[0]
    right = np.zeros(len(possible), np.bool_)
    right[-1] = rng.integers(2)  # missing values go to a random side
    if ordered:
        right[one_of(rng, inside[1:]) : -1] = True
        return right
    right[one_of(rng, inside)] = True
    if category_split == "subset":
        right[inside] |= rng.integers(2, size=len(inside)).astype(np.bool_)
    if right[inside].all():
        right[one_of(rng, inside)] = False
    return right
