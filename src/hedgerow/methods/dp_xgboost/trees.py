"""One tree: a noisy choice of cuts level by level, then its leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid
from hedgerow.methods.dp_xgboost.rule import Shares, price_of
from hedgerow.methods.maddock.candidates import Cuts
from hedgerow.methods.maddock.growing_tree import GrowingTree
from hedgerow.methods.maddock.leaves import covers, step_deviations, step_values
from hedgerow.methods.maddock.splits.growth import Bools, cut_of, possible_bins
from hedgerow.model.tree import Tree
from hedgerow.privacy.settings import DPXGBoostSettings
from hedgerow.queries import LeafAverages, SplitChoices, n_bins_of
from hedgerow.queries.gradients import Gradients
from hedgerow.queries.split_choices import offered_ways


@dataclass
class TreeOfChoices:
    """A tree under construction, what it may ask, and which bins can hold rows of each node."""

    gate: Gate
    cuts: Cuts
    columns: tuple[int, ...]
    gradients: Gradients
    shares: Shares
    tree: GrowingTree = field(default_factory=GrowingTree)
    inside: dict[int, list[Bools]] = field(default_factory=dict)  # by node, of every column

    def __post_init__(self) -> None:
        grid, schema = base_grid(self.gate.schema), self.gate.schema
        self.n_bins = tuple(n_bins_of(grid[j], self.cuts[j]) for j in self.columns)
        columns = zip(self.columns, self.n_bins, strict=True)
        self.inside[0] = [possible_bins(schema, j, n) for j, n in columns]

    def add_level(self, level: int) -> None:
        """Cut every leaf that can be cut. Which can follows from the tree, not from the rows."""
        nodes = self._leaves_to_cut()
        if not nodes:
            self.gate.pass_over()
            return
        query = self._choices(nodes, self.shares.levels[level])
        for node, way in zip(nodes, self.gate.select(query), strict=True):
            self._cut(node, way)

    def _choices(self, nodes: Sequence[int], part: float) -> SplitChoices:
        settings = DPXGBoostSettings.of(self.gate.plan.settings)
        structure = self.tree.structure()
        return SplitChoices(
            structure,
            tuple(int(structure.leaf[node]) for node in nodes),
            np.stack([np.concatenate(self.inside[node]) for node in nodes]),
            self.columns,
            tuple(tuple(self.cuts[j]) for j in self.columns),
            self.n_bins,
            self.gradients,
            price_of(self.gate.plan, self.gate.slot, part),
            settings.reg_lambda,
            settings.selector,
            settings.utility,
        )

    def _leaves_to_cut(self) -> list[int]:
        leaves = list(self.tree.leaves)
        possible = np.stack([np.concatenate(self.inside[node]) for node in leaves])
        grid = base_grid(self.gate.schema)
        offered = offered_ways(possible, self.columns, self.n_bins, grid)
        return [node for node, ways in zip(leaves, offered, strict=True) if ways.any()]

    def _cut(self, node: int, way: int) -> None:
        schema, (bin_, missing_right) = self.gate.schema, divmod(way, 2)
        ends = np.cumsum(self.n_bins)
        place = int(np.searchsorted(ends, bin_, side="right"))
        n = self.n_bins[place]
        here = bin_ - (int(ends[place]) - n)
        j = self.columns[place]
        right = np.arange(n) > here if base_grid(schema)[j].ordered else np.arange(n) == here
        right[-1] = missing_right
        children = self.tree.split(node, cut_of(schema, self.cuts, j, right))
        for child, side in zip(children, (~right, right), strict=True):
            possible = list(self.inside[node])
            possible[place] = possible[place] & side
            self.inside[child] = possible

    def finished(self) -> Tree:
        """With leaf values: the learning rate times -G / (n + lambda), held within the clip."""
        settings = DPXGBoostSettings.of(self.gate.plan.settings)
        structure = self.tree.structure()
        price = price_of(self.gate.plan, self.gate.slot, self.shares.leaf)
        least, reg_lambda = settings.min_samples_leaf, settings.reg_lambda
        query = LeafAverages(
            structure, self.gradients, price, settings.leaf_rule, least, reg_lambda
        )
        release = self.gate.release(query)
        released = release.values.reshape(-1, structure.n_leaves)
        noise = np.full(structure.n_leaves, release.sigmas[0])
        cover = None
        if query.finishes:
            steps, noise = released.T, np.repeat(noise[:, None], len(released), axis=1)
        else:
            # What is below the least number of rows, or below its own noise, does not step far.
            bound = query.sums.bound
            floor = max(float(least), 2 * math.sqrt(2) * query.blocks[1].weight)
            steps = step_values(released, bound, reg_lambda, math.inf, floor)
            cover = covers(released, bound, noise).astype(np.float32)
            noise = step_deviations(released, bound, reg_lambda, math.inf, floor, noise)
        # An average of gradients is no longer than they are. A step divides it by the most that a
        # Hessian can be, 1 for regression and 1/4 for a class's log loss: counts stand for them.
        most = self.gradients.l2
        curvature = 1.0 if self.gradients.loss == "squared" else 0.25
        steps = np.clip(steps, -most, most) / curvature
        steps = np.clip(steps, -settings.leaf_clip, settings.leaf_clip)
        noise = np.minimum(noise / curvature, min(most / curvature, settings.leaf_clip))
        values, deviation = (
            (settings.learning_rate * part).astype(np.float32) for part in (steps, noise)
        )
        return Tree(structure, values, deviation, cover)
