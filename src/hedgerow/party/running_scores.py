"""Running scores of a party's rows: added in tree order, rebuilt from the trees after a loss."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.errors import TableError
from hedgerow.model.losses import loss_for
from hedgerow.model.routing import Routes, shared_routes
from hedgerow.model.tree import Tree, check_trees
from hedgerow.privacy.noise.poisson_sampling import PoissonSampler
from hedgerow.queries import NO_TREES, EnsembleRef, SumQuery


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

    def exact(
        self, query: SumQuery, bits: int, sampler: PoissonSampler | None = None
    ) -> NDArray[np.int64]:
        """The exact answer at the query's ensemble; `sync` comes first.

        It is over all rows, or over the sample of a round.
        """
        ...


@dataclass(frozen=True, eq=False)
class _Sample:
    """The rows of the last round that was asked about; the questions of a round share them."""

    sampler: PoissonSampler
    index: NDArray[np.int64]
    rows: Rows
    ensemble: EnsembleRef | None = None
    scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 1)))


class RunningScores:
    """Scores (row, output) in float64 at one known ensemble."""

    def __init__(self, rows: Rows, schema: Schema) -> None:
        if rows.weights.size and int(rows.weights.max()) > schema.weight_steps:
            raise TableError("rows have weights above the schema's cap. Nothing was asked.")
        self._rows, self._schema = rows, schema
        self._n_outputs = loss_for(schema.label).n_outputs
        # A thread that an interrupted question left behind still adds its trees; whoever comes next
        # waits for it, or they would be added twice.
        self._busy = threading.RLock()
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

    def exact(
        self, query: SumQuery, bits: int, sampler: PoissonSampler | None = None
    ) -> NDArray[np.int64]:
        """The exact answer over these rows, or those of a sample; `sync` comes first."""
        with self._busy:
            return self._exact(query, bits, sampler)

    def _exact(
        self, query: SumQuery, bits: int, sampler: PoissonSampler | None
    ) -> NDArray[np.int64]:
        rows, scores = self._rows, self.at(query.ensemble, query.step_trees)
        if sampler is not None:
            rows, scores = self._sampled(sampler, query.ensemble, scores)
        return query.answer(rows, scores, self._schema, bits)

    def _sampled(
        self, sampler: PoissonSampler, ensemble: EnsembleRef, scores: NDArray[np.float64]
    ) -> tuple[Rows, NDArray[np.float64]]:
        known = self._sample
        if known is None or known.sampler != sampler:
            # Rows share a draw where they are protected together, and nowhere else.
            persons = self._rows.persons if self._schema.unit.kind == "person" else None
            index = sampler.taken(self._rows.n_rows, persons)
            known = _Sample(sampler, index, self._rows.take(index))
        if known.ensemble != ensemble:
            known = replace(known, ensemble=ensemble, scores=scores[known.index])
        self._sample = known
        return known.rows, known.scores

    def at(self, wanted: EnsembleRef, step_trees: int = 0) -> NDArray[np.float64]:
        """The scores a question refers to: (row, output); `sync` comes first.

        With `step_trees`, as many further columns have the scores before that step.
        """
        if wanted == NO_TREES and self.ref != NO_TREES:
            return np.zeros((self._rows.n_rows, self._n_outputs))
        now, before = self._both
        if not step_trees:
            return np.asarray(now)
        return np.asarray(
            self._both[:, :, 0].T if self._n_outputs == 1 else np.hstack([now, before])
        )

    def sync(
        self, wanted: EnsembleRef, first: int, trees: Sequence[Tree], step_trees: int = 0
    ) -> bool:
        """Reach `wanted` with trees number `first` and on; False if earlier ones are needed.

        Scores without the last `step_trees` trees are kept as well, so these must be fresh: a step
        is asked about once, right after it was made.
        """
        with self._busy:
            return self._sync(wanted, first, trees, step_trees)

    def _sync(
        self, wanted: EnsembleRef, first: int, trees: Sequence[Tree], step_trees: int
    ) -> bool:
        begin, went_on = wanted.length - step_trees, self.ref != NO_TREES
        if wanted == NO_TREES or (wanted == self.ref and not step_trees):
            return True
        if wanted == self.ref and self._before_length == begin:
            return True
        if begin < self.ref.length or first > self.ref.length:
            self.reset()
        if first <= self.ref.length:
            stop = wanted.length - first
            middle = max(self.ref.length - first, begin - first)
            self._add(trees, self.ref.length - first, middle)
            if step_trees:
                self._both[1], self._before_length = self._both[0], self.ref.length
            self._add(trees, middle, stop)
        if self.ref == wanted and (not step_trees or self._before_length == begin):
            return True
        self.reset()
        # What was here belonged to another run, perhaps. All trees are at hand: begin anew.
        return went_on and first == 0 and self._sync(wanted, first, trees, step_trees)

    def _add(self, trees: Sequence[Tree], first: int, stop: int) -> None:
        """Add trees first .. stop - 1 in their order, all in one pass over the rows."""
        if first >= min(stop, len(trees)):
            return
        step = _step_of(trees, first, stop, self._schema, self._n_outputs)
        after = step.after(self.ref)
        try:
            step.routes.add_scores(self._rows.codes, self._both[0], step.values)
        except BaseException:
            self.reset()  # some rows may have their values already, and would get them again
            raise
        self.ref = after


@dataclass(frozen=True, eq=False)
class _Step:
    """Some trees of a message, checked and ready to be added to scores."""

    trees: Sequence[Tree]  # of the message
    chosen: Sequence[Tree]
    routes: Routes
    values: kernels.LeafValues
    refs: dict[EnsembleRef, EnsembleRef] = field(default_factory=dict)

    def after(self, ref: EnsembleRef) -> EnsembleRef:
        """The reference when these trees follow `ref`."""
        if ref not in self.refs:
            self.refs[ref] = reduce(
                lambda so_far, tree: so_far.then(tree.to_bytes()), self.chosen, ref
            )
        return self.refs[ref]


_STEPS: OrderedDict[tuple[int, int, int, str, int], _Step] = OrderedDict()
MAX_STEPS = 4


def _step_of(trees: Sequence[Tree], first: int, stop: int, schema: Schema, n_outputs: int) -> _Step:
    """Trees first .. stop - 1 of a message; parties of one process get the same ones."""
    key = (id(trees), first, stop, schema.hash, n_outputs)
    if (known := _STEPS.get(key)) is not None and known.trees is trees:
        return known
    chosen = trees[first:stop]
    check_trees(chosen, schema, n_outputs)
    routes = shared_routes([tree.structure for tree in chosen], base_grid(schema))
    values = np.concatenate([tree.values for tree in chosen])
    step = _Step(trees, chosen, routes, routes.laid_out(values))
    while len(_STEPS) >= MAX_STEPS:
        with suppress(KeyError):  # another thread was quicker
            _STEPS.popitem(last=False)
    if isinstance(trees, tuple):  # else it may have other trees the next time
        _STEPS[key] = step  # holds the trees, so that their id belongs to no others
    return step
