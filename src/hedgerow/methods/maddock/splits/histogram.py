"""Histogram trees: the best cut of noisy histograms of every column in every open node."""

from __future__ import annotations

import numpy as np

from hedgerow.methods.maddock.splits.growth import Growth, Offer
from hedgerow.model.splitting import Histogram
from hedgerow.queries import NodeHistograms


def histogram_offers(growth: Growth, nodes: list[int], asks: bool) -> dict[int, list[Offer]]:
    """Ask about all open nodes at once; or read the histogram that a tree of one column asked."""
    if not asks:
        return {node: _from_root(growth, node) for node in nodes}
    structure = growth.grown.tree.structure()
    chosen = tuple(growth.cuts[j] for j in growth.columns)
    query = NodeHistograms(
        structure, growth.columns, chosen, growth.n_bins, growth.loss, growth.gate.ensemble,
        growth.settings.update,
    )  # fmt: skip
    release = growth.gate.release(query)
    growth.variance = release.unit**2
    shape = (growth.bound.width, structure.n_leaves, sum(growth.n_bins))
    answer = release.values.reshape(shape)  # (number, leaf, bin of all columns)
    if nodes == [0]:
        growth.grown.root = answer[:, 0]
    ends = np.cumsum(growth.n_bins)[:-1]
    offers = {}
    for node in nodes:
        parts = np.split(answer[:, structure.leaf[node]], ends, axis=1)
        released = [
            Histogram.of(part, possible, growth.variance)
            for part, possible in zip(parts, growth.grown.nodes[node].possible, strict=True)
        ]
        agreed = growth.agreed(node, released)
        offers[node] = [Offer(place, histogram) for place, histogram in enumerate(agreed)]
    return offers


def _from_root(growth: Growth, node: int) -> list[Offer]:
    """The root's histogram of one column says all of a node: the bins that can hold its rows."""
    root = growth.grown.root
    if root is None:
        return []
    possible = growth.grown.nodes[node].possible[0]
    return [Offer(0, Histogram.of(root, possible, growth.variance))]
