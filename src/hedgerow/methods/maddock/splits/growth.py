"""A tree under construction whose splits are chosen by noisy gain, and what is known of its nodes.

How the sums come about (`histogram`, `partially_random`) is not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid
from hedgerow.data.rng import Generator
from hedgerow.data.schema import Categorical, Ordinal, Schema
from hedgerow.methods.maddock.candidates import Cuts
from hedgerow.methods.maddock.growing_tree import Cut, GrowingTree, member_set
from hedgerow.model.losses import RowBound, loss_for
from hedgerow.model.splitting import (
    BestSplit,
    GainRule,
    Histogram,
    best_split,
    category_cuts,
    ordered_cuts,
    reconciled,
)
from hedgerow.privacy.settings import BoostingSettings
from hedgerow.queries import n_bins_of

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of a node before it is asked about."""

    possible: tuple[Bools, ...]  # of each column of the tree, (bin,): where rows can be
    sums: Floats | None = None  # (number,), from the question that cut its parent
    variance: float = 0.0  # of the noise in their first part


@dataclass
class LearnedTree:
    """A tree with what the questions so far say of its nodes."""

    tree: GrowingTree = field(default_factory=GrowingTree)
    nodes: dict[int, Known] = field(default_factory=dict)
    root: Floats | None = None  # (number, bin of all columns) of the root, if it was asked

    @property
    def is_cut(self) -> bool:
        return len(self.nodes) > 1

    def leaf_sums(self) -> tuple[Floats, Floats]:
        """Sums (statistic, leaf) and their noise deviations (leaf,), leaves in node order."""
        leaves = [self.nodes[node] for node in self.tree.leaves]
        sums = [leaf.sums for leaf in leaves if leaf.sums is not None]
        return np.stack(sums, axis=1), np.sqrt([leaf.variance for leaf in leaves])


@dataclass(frozen=True, eq=False)
class Offer:
    """Some ways to cut a node at one column: what is known of the sides, and the cuts."""

    place: int  # of the column among those of the tree
    histogram: Histogram
    drawn: Bools | None = None  # (bin,) the bins that go right in the only cut; None = any cut
    way: Bools | None = None  # the same cut in bins of the histogram, if those are others


class Growth:
    """One tree under construction, and what it needs to ask."""

    def __init__(
        self,
        gate: Gate,
        settings: BoostingSettings,
        cuts: Cuts,
        columns: tuple[int, ...],
        rng: Generator,
    ) -> None:
        self.gate, self.schema, self.settings = gate, gate.schema, settings
        self.cuts, self.columns, self.rng = cuts, columns, rng
        grid = base_grid(gate.schema)
        self.n_bins = tuple(n_bins_of(grid[j], cuts[j]) for j in columns)
        self.bound: RowBound = loss_for(gate.schema.label).bound(settings.update)
        bins = zip(columns, self.n_bins, strict=True)
        possible = tuple(possible_bins(self.schema, j, n_bins) for j, n_bins in bins)
        self.grown = LearnedTree(nodes={0: Known(possible)})
        averaging = settings.update == "averaging"
        self.rule = GainRule(
            settings.reg_lambda,
            settings.gain_penalty,
            settings.split_caution,
            # A gain is that of the leaf to be: shares are at most 1, and counts below two
            # deviations of their noise are filled up (`average_values`).
            max(2.0, settings.floor_deviations) if averaging else settings.floor_deviations,
            self.bound.first,
            self.bound.second_scale,
            1.0 if averaging else settings.leaf_clip,
        )
        self.loss = loss_for(gate.schema.label).name
        self.variance = 0.0  # of the noise in one number of the first part of the last question

    def agreed(self, node: int, released: Sequence[Histogram]) -> list[Histogram]:
        """Histograms of a node that agree with each other and with what was known before."""
        if self.rule.caution == 0:
            return list(released)
        known = self.grown.nodes[node]
        earlier = None if known.sums is None else (known.sums, known.variance)
        return reconciled(released, earlier)

    def cut(self, node: int, offers: list[Offer]) -> tuple[int, ...]:
        """Cut a node at its best offer, if that gains; returns its children."""
        best: tuple[BestSplit, Offer] | None = None
        for offer in offers:
            candidate = self._best(offer)
            if candidate is not None and (best is None or candidate.gain > best[0].gain):
                best = candidate, offer
        if best is None or not best[0].gain > 0:
            return ()
        split, offer = best
        right = split.right if offer.drawn is None else offer.drawn
        column, known = self.columns[offer.place], self.grown.nodes[node]
        children = self.grown.tree.split(node, cut_of(self.schema, self.cuts, column, right))
        for child, side, i in zip(children, (~right, right), (0, 1), strict=True):
            inside = list(known.possible)
            inside[offer.place] = inside[offer.place] & side
            self.grown.nodes[child] = Known(tuple(inside), split.sums[i], split.variances[i])
        return children

    def _best(self, offer: Offer) -> BestSplit | None:
        histogram = offer.histogram
        if self._too_light(histogram.total):
            return None
        if offer.way is not None:
            return best_split(histogram, offer.way[None, :], self.rule)
        if isinstance(self.schema.columns[self.columns[offer.place]], Categorical):
            subsets = self.settings.category_split == "subset"
            return best_split(histogram, category_cuts(histogram, self.rule, subsets), self.rule)
        return best_split(histogram, ordered_cuts(histogram.possible), self.rule)

    def _too_light(self, total: Floats) -> bool:
        """Whether a node has too little (noisy) Hessian, or too few rows, to be cut."""
        rest = total[self.bound.first :] if self.bound.second else total
        return 0 < self.settings.min_hessian > float(rest.sum())


def possible_bins(schema: Schema, column: int, n_bins: int) -> Bools:
    """Bins of a column that can hold rows, by the schema: (bin,), the last one missing."""
    possible = np.ones(n_bins, np.bool_)
    description = schema.columns[column]
    if not description.missing:
        # An ordinal counts values outside its list as missing if the schema lets them in.
        possible[-1] = isinstance(description, Ordinal) and description.other == "category"
    return possible


def cut_of(schema: Schema, cuts: Cuts, column: int, right: Bools) -> Cut:
    """The cut that sends these bins right."""
    missing_left = not bool(right[-1])
    if isinstance(schema.columns[column], Categorical):
        return Cut(column, 0.0, member_set(schema, column, right[:-1]), missing_left)
    last = (
        len(right) - 2 - int(np.count_nonzero(right[:-1]))
    )  # the last bin that stays left ends at the cut
    edge = base_grid(schema)[column].edges[cuts[column][last]]
    return Cut(column, float(edge), np.zeros(0, np.uint64), missing_left)
