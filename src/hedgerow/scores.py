"""Running scores of a party's rows: added in tree order, rebuilt from the trees after a loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.binning import base_grid
from hedgerow.losses import loss_for
from hedgerow.model.routing import routes_of
from hedgerow.model.tree import Tree
from hedgerow.queries import NO_TREES, EnsembleRef
from hedgerow.schema import Schema
from hedgerow.tables import Rows


class RunningScores:
    """Scores (row, output) in float64 at one known ensemble."""

    def __init__(self, rows: Rows, schema: Schema) -> None:
        self._rows, self._schema = rows, schema
        self.reset()

    def reset(self) -> None:
        self.ref = NO_TREES
        self._scores = self._zeros()

    def at(self, wanted: EnsembleRef) -> NDArray[np.float64]:
        """The scores a question refers to; `sync` must have reached them."""
        return self._zeros() if wanted == NO_TREES else self._scores

    def sync(self, wanted: EnsembleRef, first: int, trees: Sequence[Tree]) -> bool:
        """Reach `wanted` with trees number `first` and on; False if earlier ones are needed."""
        if wanted in (NO_TREES, self.ref):
            return True
        if wanted.length <= self.ref.length or first > self.ref.length:
            self.reset()
        if first <= self.ref.length:
            fresh = trees[self.ref.length - first :]
            self._add(fresh[: wanted.length - self.ref.length])
        if self.ref == wanted:
            return True
        self.reset()
        return False

    def _add(self, trees: Sequence[Tree]) -> None:
        """Add trees in their order, all in one pass over the rows."""
        if not trees:
            return
        for tree in trees:
            tree.check(self._schema, self._scores.shape[1])
        routes = routes_of([tree.structure for tree in trees], base_grid(self._schema))
        values = np.concatenate([tree.values for tree in trees])
        routes.add_scores(self._rows.codes, self._scores, values)
        for tree in trees:
            self.ref = self.ref.then(tree.to_bytes())

    def _zeros(self) -> NDArray[np.float64]:
        return np.zeros((self._rows.n_rows, loss_for(self._schema.label).n_outputs))
