"""Running scores of a party's rows: added in tree order, rebuilt from the trees after a loss."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hedgerow.binning import ColumnGrid, base_grid
from hedgerow.losses import loss_for
from hedgerow.model.routing import Routes, shared_routes
from hedgerow.model.tree import Tree
from hedgerow.queries import NO_TREES, EnsembleRef
from hedgerow.schema import Schema
from hedgerow.tables import Rows


class RunningScores:
    """Scores (row, output) in float64 at one known ensemble."""

    def __init__(self, rows: Rows, schema: Schema) -> None:
        self._rows, self._schema = rows, schema
        self._n_outputs = loss_for(schema.label).n_outputs
        self.reset()

    def reset(self) -> None:
        self.ref = NO_TREES
        # (now | before the step, row, output): memory that is never written to is never taken.
        self._both = np.zeros((2, self._rows.n_rows, self._n_outputs))
        self._before_length = -1

    def at(self, wanted: EnsembleRef, step_trees: int = 0) -> NDArray[np.float64]:
        """The scores a question refers to: (row, output); `sync` comes first.

        With `step_trees`, a further column has the scores before that step; only losses of one
        output are asked about steps.
        """
        if wanted == NO_TREES and self.ref != NO_TREES:
            return np.zeros((self._rows.n_rows, self._n_outputs))
        return self._both[:, :, 0].T if step_trees else self._both[0]

    def sync(
        self, wanted: EnsembleRef, first: int, trees: Sequence[Tree], step_trees: int = 0
    ) -> bool:
        """Reach `wanted` with trees number `first` and on; False if earlier ones are needed.

        Scores without the last `step_trees` trees are kept as well, so these must be fresh: a step
        is asked about once, right after it was made.
        """
        begin = wanted.length - step_trees
        if wanted == NO_TREES or (wanted == self.ref and not step_trees):
            return True
        if wanted == self.ref and self._before_length == begin:
            return True
        if begin < self.ref.length or first > self.ref.length:
            self.reset()
        if first <= self.ref.length:
            fresh = trees[self.ref.length - first :][: wanted.length - self.ref.length]
            older = max(0, begin - self.ref.length)
            self._add(fresh[:older])
            if step_trees:
                self._both[1], self._before_length = self._both[0], self.ref.length
            self._add(fresh[older:])
        if self.ref == wanted and (not step_trees or self._before_length == begin):
            return True
        self.reset()
        return False

    def _add(self, trees: Sequence[Tree]) -> None:
        """Add trees in their order, all in one pass over the rows."""
        if not trees:
            return
        for tree in trees:
            tree.check(self._schema, self._n_outputs)
        routes, values = _compiled(tuple(trees), base_grid(self._schema))
        routes.add_scores(self._rows.codes, self._both[0], values)
        self.ref = _after(self.ref, tuple(trees))


@lru_cache(maxsize=4)
def _after(ref: EnsembleRef, trees: tuple[Tree, ...]) -> EnsembleRef:
    for tree in trees:
        ref = ref.then(tree.to_bytes())
    return ref


@lru_cache(maxsize=2)  # parties of one process get the same trees
def _compiled(
    trees: tuple[Tree, ...], grid: tuple[ColumnGrid, ...]
) -> tuple[Routes, NDArray[np.float32]]:
    routes = shared_routes([tree.structure for tree in trees], grid)
    return routes, np.concatenate([tree.values for tree in trees])
