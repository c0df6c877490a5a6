"""Random trees of times to an event: what they refuse, and the base line at the end.

Trees move all hazards of a row alike. Once rows differ, those still at risk are no longer like all
of them, and the curve of all rows is not that of the base line any more: rows counted by score,
time and event set it anew, as in the default method.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.gate import Gate
from hedgerow.data.schema import Schema
from hedgerow.errors import SettingsError, SlotSpent
from hedgerow.methods.auto.base_line import Outcomes, recalibrated
from hedgerow.model.losses import Hazards
from hedgerow.model.rounding import rounded, rounded_number, settled
from hedgerow.model.tree import Tree, single_leaf
from hedgerow.privacy.accounting.budget import DeclaredQuery
from hedgerow.privacy.settings import BoostingSettings
from hedgerow.queries import ScoreCounts

Floats = NDArray[np.float64]
FINAL_SHARE = 0.06  # of the budget
SCORE_BINS = 24
WIDEST = 3.0  # scores farther from the base line are few


def check_settings(settings: BoostingSettings) -> None:
    """Refuse what sums about times to an event cannot say: they have one bounded slope a row."""
    known = {
        "split": ("totally-random",), "update": ("newton", "gradient"),
        "candidates": ("uniform", "log", "quantiles", "quantiles-not-private"),
    }  # fmt: skip
    wrong = [name for name, words in known.items() if getattr(settings, name) not in words]
    if wrong:
        told = ", ".join(f"{name} = {getattr(settings, name)!r}" for name in wrong)
        raise SettingsError(
            f"trees of times to an event know nothing of {told}: they are totally random, with "
            "Newton or gradient leaves, cut where public facts or column counts say. Leave it out. "
            "Nothing was asked."
        )


def final_query(schema: Schema, rest: float) -> DeclaredQuery:
    """The question about the base line, its share beside `rest`, that of all others."""
    share = rest * FINAL_SHARE / (1 - FINAL_SHARE)
    size = schema.label.n_outcomes * SCORE_BINS
    return DeclaredQuery("base line", ScoreCounts.kind, share, size)


def of_all_intervals(tree: Tree, loss: Hazards) -> Tree:
    """A tree of one value a period as one of all intervals, whose hazards move alike."""
    assert tree.deviation is not None
    values, deviation = (np.repeat(v, loss.periods, axis=1) for v in (tree.values, tree.deviation))
    return replace(tree, values=values, deviation=deviation)


def with_base_line(gate: Gate, trees: Sequence[Tree]) -> list[Tree]:
    """The trees with a slope of their own, behind the base line that the last counts say."""
    for tree in trees[gate.ensemble.length :]:
        gate.publish(tree)
    label = gate.schema.label
    single = [tree.values[0].astype(np.float64) for tree in trees if len(tree.values) == 1]
    others = [tree for tree in trees if len(tree.values) > 1]
    hazards = np.exp(np.sum([np.zeros(len(label.cuts)), *single], axis=0))
    spread = max(sum(_deviation(tree) for tree in others), 0.1)
    half = min(2 * spread, WIDEST)
    edges = np.linspace(-half, half, SCORE_BINS - 1)
    places = settled(math.log(hazards.sum()) + edges)
    try:
        release = gate.release(ScoreCounts(label.n_outcomes, places, gate.ensemble))
    except SlotSpent:
        return list(trees)
    width = edges[1] - edges[0]
    u = np.append(edges[0] - width, edges) + width / 2
    law = np.exp(-0.5 * (u / (0.5 * spread)) ** 2) + 1e-6
    counts = release.values.reshape(-1, SCORE_BINS) / gate.schema.max_weight
    noise = release.unit / gate.schema.max_weight
    nothing = Outcomes(counts.sum(axis=1), 0.0, is_known=False)  # that the table does not say
    slope, hazards = recalibrated(counts, noise, u, law / law.sum(), nothing, label.cuts)
    slope = rounded_number(slope)
    return [single_leaf(rounded(np.log(hazards))), *(tree.scaled(slope) for tree in others)]


def _deviation(tree: Tree) -> float:
    """How far a tree's values are apart over the rows, by what is known of these."""
    values = tree.values[:, 0].astype(np.float64)
    weight = np.ones(len(values)) if tree.cover is None else tree.cover.astype(np.float64)
    share = weight / weight.sum()
    return float(np.sqrt(np.maximum(share @ values**2 - (share @ values) ** 2, 0.0)))
