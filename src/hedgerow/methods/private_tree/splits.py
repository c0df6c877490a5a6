"""The best cut of a node at one column, from noisy class counts that allow for their noise."""

from __future__ import annotations

import numpy as np

from hedgerow.data.schema import Categorical, Schema
from hedgerow.methods.maddock.splits.growth import Bools, Floats
from hedgerow.methods.private_tree.nodes import Measured
from hedgerow.model.splitting import (
    BestSplit,
    GainRule,
    Histogram,
    best_split,
    category_cuts,
    ordered_cuts,
)
from hedgerow.privacy.settings import PrivateTreeSettings

CAUTION = 1.0  # how much of the noise's own gain is taken off a cut's


def gain_rule(n_classes: int, settings: PrivateTreeSettings) -> GainRule:
    """Gains are what a cut takes off the impurity, in the unit of `nodes.impurity`.

    Of each squared count the variance of its noise is taken off, and sides that may be empty, or
    have fewer rows than a leaf must, are not split off: all by released values. Without saving a
    histogram has the noise of all columns, and gains are taken as they are, as published: whoever
    doubts them has no tree.
    """
    caution = CAUTION if settings.save_budget else 0.0
    return GainRule(
        reg_lambda=0.0, penalty=0.0, caution=caution, floor_deviations=caution, first=n_classes,
        second_scale=1.0, clip=1.0, least_rows=float(settings.min_samples_leaf),
    )  # fmt: skip


def best_cut(
    schema: Schema,
    column: int,
    histogram: Histogram,
    known: Measured,
    rule: GainRule,
    subsets: bool,
) -> BestSplit | None:
    """The best cut of one column."""
    if not isinstance(schema.columns[column], Categorical):
        rights = ordered_cuts(histogram.possible)
    elif subsets:
        rights = ranked_cuts(histogram, known)
    else:
        rights = category_cuts(histogram, rule, subsets=False)
    return best_split(histogram, rights, rule)


def ranked_cuts(histogram: Histogram, known: Measured) -> Bools:
    """Sets of categories by their share of the second class, which for binary labels are the best.

    Categories with no more rows than noise are ranked where the node as a whole is: sorting them by
    their noise would make a set of lucky ones look like a find.
    """
    inside = np.flatnonzero(histogram.possible[:-1])
    share = _share(np.maximum(known.counts, 0.0)[:, None], 0.5, 1e-9)[0]
    weight = 2.0 * np.sqrt(len(known.counts) * histogram.variance)
    ranks = np.argsort(np.argsort(_share(histogram.sums[:, inside], share, weight), kind="stable"))
    right = np.zeros((max(0, len(inside) - 1), len(histogram.possible) - 1), np.bool_)
    right[:, inside] = ranks[None, :] > np.arange(len(right))[:, None]
    stays = np.concatenate([right, np.zeros((len(right), 1), np.bool_)], axis=1)
    if not histogram.possible[-1]:
        return stays
    goes = stays.copy()
    goes[:, -1] = True
    return np.concatenate([stays, goes])


def _share(counts: Floats, prior: float, weight: float) -> Floats:
    """Shares of the second class (bin,), drawn toward `prior` with the weight of so many rows."""
    rows = np.maximum(counts, 0.0)
    return np.asarray((rows[1] + weight * prior) / np.maximum(rows.sum(axis=0) + weight, 1e-9))
