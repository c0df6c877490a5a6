"""Running scores of a party's rows: added in tree order, rebuilt from the trees after a loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.binning import ColumnGrid, base_grid
from hedgerow.losses import loss_for
from hedgerow.model.routing import Routes, shared_routes
from hedgerow.model.tree import Tree
from hedgerow.privacy.coins import Coins
from hedgerow.queries import NO_TREES, EnsembleRef, SumQuery, step_trees
from hedgerow.schema import Schema
from hedgerow.tables import Rows


class Holding(Protocol):
    """Rows with their running scores, wherever they lie: what a party takes exact sums from."""

    @property
    def n_rows(self) -> int: ...

    @property
    def ref(self) -> EnsembleRef:
        """The trees that the scores have."""
        ...

    def sync(
        self, wanted: EnsembleRef, first: int, trees: Sequence[Tree], step_trees: int = 0
    ) -> bool:
        """Reach `wanted` with trees number `first` and on; False if earlier ones are needed."""
        ...

    def check_samples(self) -> None:
        """Raise unless samples can be drawn of these rows; before anything is reserved."""
        ...

    def exact(self, query: SumQuery, bits: int, coins: Coins | None = None) -> NDArray[np.int64]:
        """The exact answer at the query's ensemble; `sync` comes first.

        It is over all rows, or over those that the coins of a round take.
        """
        ...


@dataclass(frozen=True, eq=False)
class _Sample:
    """The rows of the last round that was asked about; the questions of a round share them."""

    coins: Coins
    index: NDArray[np.int64]
    rows: Rows
    ensemble: EnsembleRef | None = None
    scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 1)))


class RunningScores:
    """Scores (row, output) in float64 at one known ensemble."""

    def __init__(self, rows: Rows, schema: Schema) -> None:
        self._rows, self._schema = rows, schema
        self._n_outputs = loss_for(schema.label).n_outputs
        self.reset()

    def reset(self) -> None:
        self.ref = NO_TREES
        self._sample: _Sample | None = None
        # (now | before the step, row, output): memory that is never written to is never taken.
        self._both = np.zeros((2, self._rows.n_rows, self._n_outputs))
        self._before_length = -1

    @property
    def n_rows(self) -> int:
        return self._rows.n_rows

    def check_samples(self) -> None:
        """Rows in one place can all be sampled."""

    def exact(self, query: SumQuery, bits: int, coins: Coins | None = None) -> NDArray[np.int64]:
        """The exact answer over these rows, or those of a sample; `sync` comes first."""
        rows, scores = self._rows, self.at(query.ensemble, step_trees(query))
        if coins is not None:
            rows, scores = self._sampled(coins, query.ensemble, scores)
        return query.answer(rows, scores, self._schema, bits)

    def _sampled(
        self, coins: Coins, ensemble: EnsembleRef, scores: NDArray[np.float64]
    ) -> tuple[Rows, NDArray[np.float64]]:
        known = self._sample
        if known is None or known.coins != coins:
            # Rows share a coin where they are protected together, and nowhere else.
            persons = self._rows.persons if self._schema.unit.kind == "person" else None
            index = coins.taken(self._rows.n_rows, persons)
            known = _Sample(coins, index, self._rows.take(index))
        if known.ensemble != ensemble:
            known = replace(known, ensemble=ensemble, scores=scores[known.index])
        self._sample = known
        return known.rows, known.scores

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
        begin, went_on = wanted.length - step_trees, self.ref != NO_TREES
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
        # What was here belonged to another run, perhaps. All trees are at hand: begin anew.
        return went_on and first == 0 and self.sync(wanted, first, trees, step_trees)

    def _add(self, trees: Sequence[Tree]) -> None:
        """Add trees in their order, all in one pass over the rows."""
        if not trees:
            return
        for tree in trees:
            tree.check(self._schema, self._n_outputs)
        routes, values = _compiled(tuple(trees), base_grid(self._schema))
        after = _after(self.ref, tuple(trees))
        try:
            routes.add_scores(self._rows.codes, self._both[0], values)
        except BaseException:
            self.reset()  # some rows may have their values already, and would get them again
            raise
        self.ref = after


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
