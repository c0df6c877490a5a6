"""What dp-xgboost asks, tree by tree: where columns are cut, the cut of each node, its leaves."""

from __future__ import annotations

import numpy as np

from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.errors import PlanError, SlotSpent
from hedgerow.methods.dp_xgboost.rule import RETRY_SHARE, Shares, loss_of, price_of, rounds_of
from hedgerow.methods.dp_xgboost.trees import TreeOfChoices
from hedgerow.methods.maddock.candidates import Cuts, uniform
from hedgerow.methods.maddock.candidates.quantiles import equal_mass
from hedgerow.methods.maddock.splits.totally_random import columns_to_cut
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Tree, single_leaf
from hedgerow.privacy.accounting.budget import DeclaredQuery
from hedgerow.privacy.accounting.path_budget import PathQueries
from hedgerow.privacy.settings import DPXGBoostSettings, Settings
from hedgerow.queries import ColumnCounts, LeafAverages, SplitChoices, n_bins_of, size_of
from hedgerow.queries.gradients import Gradients


def declared_queries(schema: Schema, settings: Settings) -> list[DeclaredQuery]:
    """The questions of every tree: a sketch, a choice a level, the leaves."""
    settings = DPXGBoostSettings.of(settings)
    if not columns_to_cut(schema, uniform(schema, settings.n_bins)):
        raise PlanError("no column of the schema can be cut: widen a bound or list more categories")
    shares, grid = Shares.of(schema, settings), base_grid(schema)
    width = loss_of(schema, settings).bound("gradient").width
    most = [settings.n_bins + 1 if g.ordered else n_bins_of(g, ()) for g in grid]
    tree = []
    if shares.sketch:
        counted = ColumnCounts.for_cuts(schema, settings.n_bins)
        tree.append(DeclaredQuery("cuts", ColumnCounts.kind, 1.0, size_of(counted)))
    for level in range(settings.max_depth):
        numbers = width * 2**level * sum(most)
        tree.append(DeclaredQuery(f"level {level}", SplitChoices.kind, 1.0, numbers))
    tree.append(DeclaredQuery("leaves", LeafAverages.kind, 1.0, width * 2**settings.max_depth))
    return tree * settings.n_trees


def adaptive_queries(schema: Schema, settings: Settings) -> PathQueries:
    settings = DPXGBoostSettings.of(settings)
    return PathQueries(RETRY_SHARE, rounds_of(Shares.of(schema, settings), settings))


def grow(gate: Gate) -> Ensemble:
    """Ask what `declared_queries` says through the gate and return the model.

    Scores start in the middle, which is public. A slot that was charged and lost ends its tree:
    the model has one tree fewer.
    """
    schema, settings = gate.schema, DPXGBoostSettings.of(gate.plan.settings)
    loss = loss_of(schema, settings)
    squared = loss.name == "squared"
    trees: list[Tree] = [single_leaf(np.full(1, 0.5))] if squared else []
    sketch = _Sketch(gate)
    for _ in range(settings.n_trees):
        for tree in trees[gate.ensemble.length :]:
            gate.publish(tree)
        first = gate.slot
        try:
            trees.append(_one_tree(gate, sketch, loss.name))
        except SlotSpent:
            per_tree = gate.plan.n_slots // settings.n_trees
            while gate.slot < first + per_tree:
                gate.pass_over()
    averaged = squared and schema.label.task != "regression"  # scores are shares, not log-odds
    return Ensemble(tuple(trees), schema, gate.statement(), averaged, gate.plan.record())


def _one_tree(gate: Gate, sketch: _Sketch, loss: str) -> Tree:
    settings = DPXGBoostSettings.of(gate.plan.settings)
    cuts = sketch.asked()
    clip = settings.gradient_bound if settings.gradient_bound < 1 else np.inf
    drop = settings.gradient_rule == "filter"
    gradients = Gradients(loss, gate.ensemble, float(clip), drop)
    columns = tuple(columns_to_cut(gate.schema, cuts))
    growing = TreeOfChoices(gate, cuts, columns, gradients, sketch.shares)
    for level in range(settings.max_depth):
        growing.add_level(level)
    return growing.finished()


class _Sketch:
    """Noisy counts of all trees so far, on the base grid: what later trees know, they know better.

    Counts are the Hessians of the squared loss; gains divide by counts under every loss.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate, settings = gate, DPXGBoostSettings.of(gate.plan.settings)
        self.shares = Shares.of(gate.schema, settings)
        self._cuts: Cuts = uniform(gate.schema, settings.n_bins)
        self._n_bins = settings.n_bins
        self._query = ColumnCounts.for_cuts(gate.schema, settings.n_bins)
        self._sums, self._variance = np.zeros(0), 0.0

    def asked(self) -> Cuts:
        """Cuts at equal mass of the mean of all sketches; public ones where nothing is asked."""
        if not self.shares.sketch:
            return self._cuts
        gate, n_bins = self._gate, self._n_bins
        price = price_of(gate.plan, gate.slot, self.shares.sketch) / len(self._query.columns)
        release = gate.release(ColumnCounts.for_cuts(gate.schema, n_bins, price))
        self._sums = self._sums + release.values if self._sums.size else release.values
        self._variance += release.sigmas[0] ** 2
        fresh = list(self._cuts)
        parts = np.split(self._sums, np.cumsum(self._query.n_codes)[:-1])
        for j, counts in zip(self._query.columns, parts, strict=True):
            # The last code is that of missing values, which no cut parts.
            fresh[j] = equal_mass(counts[:-1], self._variance**0.5, n_bins) or self._cuts[j]
        return fresh
