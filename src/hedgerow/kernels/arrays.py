"""Arrays that always travel together, as the compiled loops of several files take them.

Numba passes a NamedTuple field by field, at no cost. Its cache on disk tells NamedTuples apart by
class and types of fields, not by their names, and notices changes of a loop's own file only. So
groups that one file alone uses are defined in that file, and whoever swaps two fields of one type
here deletes the caches (`*.nbi`, `*.nbc`) by hand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]
Words = NDArray[np.uint64]
Int = int | np.int64  # compiled loops know one kind of whole number


class CodeArrays(NamedTuple):
    """A table's codes, column by column, so that a loop over rows reads memory in order."""

    narrow: NDArray[np.uint8]  # (narrow column, row)
    wide: NDArray[np.uint16]  # (wide column, row): columns with more than 256 codes
    place: Int32s  # (column,): k >= 0 is narrow[k], k < 0 is wide[-1 - k]


class TreeArrays(NamedTuple):
    """A tree without leaf values, in the order of `model.tree.Structure`; parents come first."""

    feature: Int32s  # (node,): column of a split, -1 at leaves
    threshold: NDArray[np.float32]  # (node,): x < threshold goes left
    missing_left: NDArray[np.uint8]  # (node,)
    left: Int32s  # (node,): -1 at leaves
    right: Int32s  # (node,)
    member_start: Int32s  # (node + 1,): where the category set of each node begins in `members`
    members: Words  # bit sets, 64 categories a word: those that go right
