"""Arrays of trees, stacked: their shapes are known before they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from hedgerow.model.stacking import stack_trees, stacked_shapes
from hedgerow.model.tree import Tree, single_leaf

USUAL = single_leaf(np.array([[0.5]], np.float32))
WIDE = replace(USUAL, structure=replace(USUAL.structure, feature=np.array([-1], np.int64)))
EXACT = replace(USUAL, values=np.array([[0.5]], np.float64))


@pytest.mark.parametrize(
    "trees", [(USUAL,), (USUAL, USUAL), (USUAL, WIDE), (WIDE, WIDE), (USUAL, EXACT), (WIDE, EXACT)]
)
def test_shapes_are_those_of_the_arrays_whatever_types_the_trees_have(
    trees: Sequence[Tree],
) -> None:
    made = {name: (array.dtype.name, array.shape) for name, array in stack_trees(trees).items()}
    assert stacked_shapes(trees) == made
