"""How a path's epsilon is shared out: from public facts (depth, columns) and settings alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Numeric, Schema
from hedgerow.errors import PlanError
from hedgerow.methods.maddock.candidates import Cuts, log, uniform
from hedgerow.privacy.settings import PrivateTreeSettings

COUNT_SHARE = 0.04  # of a path's epsilon: how many rows of each class there are at all
LEAF_SHARE = 0.2
BOUNDS_SHARE = 0.5
FIRST_SHARE = 0.8  # of a node's epsilon for histograms: the columns of the lowest bounds
FIRST_COLUMNS = 2  # how many those are
ENOUGH = 15.0  # rows of a node times its epsilon, below which a level is not worth its price
ENOUGH_OF_EACH = 0.3  # the same for every column, where all are asked: below it a cut is a guess
PLENTY = 150.0  # the same, from which on a node is asked about more than one column
RETRY_SHARE = 0.1  # the most that a spare attempt may cost, as a part of a path's epsilon


@dataclass(frozen=True)
class Rule:
    """Parts of epsilon. A node spends its level's part of what is left of its path."""

    max_depth: int
    leaf_share: float  # of a path, for the counts of its leaf
    bounds_share: float  # of a node, for ranking columns; 0 = none is ranked
    first_share: float
    first_columns: int
    count_share: float
    enough: float = ENOUGH

    def node_part(self, depth: int) -> float:
        """The part of what is left of a path that a node at this depth may spend."""
        level = (1 - self.leaf_share) / self.max_depth
        return level / (level * (self.max_depth - depth) + self.leaf_share)

    def for_rows(self, rows: float, epsilon: float) -> Rule:
        """With as many levels as so many rows can carry: the last ones would split noise.

        A level halves the rows of a node and takes a part of every path's epsilon. The last level
        that still has `enough` of both at its nodes is the last one that is asked.
        """
        levels = self.max_depth
        enough = self.enough  # times what a level's epsilon is shared out over
        while levels > 1 and rows / 2 ** (levels - 1) * self._level(levels) * epsilon < enough:
            levels -= 1
        return replace(self, max_depth=levels)

    def _level(self, levels: int) -> float:
        return (1 - self.leaf_share) / levels

    def columns_for(self, rows: float, budget: float) -> int:
        """How many columns a node is asked about first: one where each would cost the other."""
        return self.first_columns if rows * budget >= PLENTY else 1


def rule_of(schema: Schema, settings: PrivateTreeSettings) -> Rule:
    """The shares that a plan's settings mean; 0 stands for the rule's own choice."""
    leaf = settings.leaf_share or LEAF_SHARE
    if not settings.save_budget:
        n = len(schema.columns)
        return Rule(settings.max_depth, leaf, 0.0, 1.0, n, COUNT_SHARE, ENOUGH_OF_EACH * n)
    bounds = settings.bounds_share or BOUNDS_SHARE
    few = min(FIRST_COLUMNS, len(schema.columns))
    return Rule(settings.max_depth, leaf, bounds, FIRST_SHARE, few, COUNT_SHARE)


def tree_cuts(schema: Schema, n_bins: int) -> Cuts:
    """Half of the cuts of a numeric column evenly spaced, half denser toward zero, all public.

    Evenly spaced cuts alone say nothing of columns such as sums of money, log-spaced ones alone
    little of ages; the tree needs few cuts, and can have some of both.

    >>> schema = Schema.from_bounds({"gain": (0, 128)}, classes=[0, 1])
    >>> base_grid(schema)[0].edges[list(tree_cuts(schema, 8)[0])].round(2).tolist()
    [0.0, 0.35, 6.73, 32.0, 64.0, 96.0]
    """
    even, dense = uniform(schema, n_bins // 2 + 1), log(schema, n_bins - n_bins // 2)
    whole = uniform(schema, n_bins)
    return [
        tuple(sorted({*a, *b})) if isinstance(column, Numeric) else tuple(c)
        for column, a, b, c in zip(schema.columns, even, dense, whole, strict=True)
    ]


def usable_columns(schema: Schema, cuts: Cuts) -> tuple[int, ...]:
    """Columns that can be cut at all."""
    usable = tuple(
        j
        for j, (grid, chosen) in enumerate(zip(base_grid(schema), cuts, strict=True))
        if (len(chosen) if grid.ordered else grid.n_cells > 1) or schema.columns[j].missing
    )
    if not usable:
        raise PlanError("no column of the schema can be cut: widen a bound or list more categories")
    return usable
