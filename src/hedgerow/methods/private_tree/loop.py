"""What the one readable tree asks, in order, and the model that comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Schema
from hedgerow.errors import SettingsError
from hedgerow.methods.maddock.splits.growth import Floats
from hedgerow.methods.private_tree.growth import Growth
from hedgerow.methods.private_tree.nodes import Node, Settled, settle
from hedgerow.methods.private_tree.pruning import pruned
from hedgerow.methods.private_tree.rule import RETRY_SHARE, rule_of, tree_cuts, usable_columns
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Tree
from hedgerow.privacy.accounting.budget import DeclaredQuery
from hedgerow.privacy.accounting.path_budget import PathQueries
from hedgerow.privacy.settings import PrivateTreeSettings, Settings
from hedgerow.queries import ClassHistograms, ImpurityBounds, n_bins_of

SHRINK = 1.0  # leaves lean toward their parent with the weight of so many deviations of noise


def declared_queries(schema: Schema, settings: Settings) -> list[DeclaredQuery]:
    """One slot a question. What each costs is settled during the run, on the paths of the tree."""
    settings = PrivateTreeSettings.of(settings)
    if schema.label.task == "regression":
        raise SettingsError(
            "the readable tree tells classes apart, and the label is a number; choose another "
            "method, or give the label classes"
        )
    cuts, k = tree_cuts(schema, settings.n_bins), len(schema.label.classes)
    usable, grid = usable_columns(schema, cuts), base_grid(schema)
    bins = k * sum(n_bins_of(grid[j], cuts[j]) for j in usable)
    kind = ClassHistograms.kind
    declared = [DeclaredQuery("rows", kind, 1.0, k)]
    for level in range(settings.max_depth):
        nodes = 2**level
        if rule_of(schema, settings).bounds_share:
            few = _widest(schema, settings)
            declared.append(DeclaredQuery("bounds", ImpurityBounds.kind, 1.0, nodes * len(usable)))
            declared.append(DeclaredQuery("histograms", kind, 1.0, nodes * few))
        name = "further histograms" if settings.save_budget else "histograms"
        declared.append(DeclaredQuery(name, kind, 1.0, nodes * bins))
    declared.append(DeclaredQuery("leaves", kind, 1.0, k * 2**settings.max_depth))
    return declared


def adaptive_queries(schema: Schema, settings: Settings) -> PathQueries:
    slots = sum(query.repeat for query in declared_queries(schema, settings))
    return PathQueries(RETRY_SHARE, ((slots, 1.0, 1.0),))  # one tree, of all rows


def _widest(schema: Schema, settings: PrivateTreeSettings) -> int:
    """Numbers of the columns that a node is asked about first, at most."""
    cuts, k = tree_cuts(schema, settings.n_bins), len(schema.label.classes)
    widths = [n_bins_of(g, c) for g, c in zip(base_grid(schema), cuts, strict=True)]
    return k * sum(sorted(widths, reverse=True)[: rule_of(schema, settings).first_columns])


def grow(gate: Gate) -> Ensemble:
    """Ask what `declared_queries` says through the gate and return a model of one tree.

    A question that is not worth asking passes its slot over. One that was charged and lost ends its
    branch there, or leaves the leaves with what the histograms said of them.
    """
    growth = Growth(gate)
    settings = growth.settings
    growth.count_root()
    for depth in range(settings.max_depth):
        nodes = growth.open_nodes(depth)
        if growth.rule.bounds_share:
            growth.rank(nodes)
        growth.ask_first(nodes)
        if settings.save_budget:
            growth.ask_more(nodes)
        growth.cut(nodes)
    growth.count_leaves()
    return _model(gate, growth)


def caution_of(model: Ensemble) -> str:
    """What whoever paid for a tree should be told of it; "" where there is nothing to tell."""
    if len(model.trees) != 1 or len(model.trees[0].structure.feature) > 1:
        return ""
    saves = model.record.get("settings", {}).get("save_budget", True)
    more = "" if saves else ", or save_budget, which asks fewer columns"
    return (
        f"the tree has one leaf, and epsilon = {model.statement.epsilon:g} is spent: no split was "
        "borne out by the noisy counts, and every row is predicted alike. It takes more rows or "
        f"epsilon, fewer columns{more}."
    )


def _model(gate: Gate, growth: Growth) -> Ensemble:
    measured = [node.measured for node in growth.nodes]
    whole = settle(measured, growth.tree.children, growth.n_classes)
    small = pruned(growth.tree, whole, growth.gains)
    settled = Settled(whole.counts[small.was], whole.deviations[small.was])
    shares = _shares(settled, small.tree.children, growth.n_classes)
    structure = small.tree.structure()
    values = shares[structure.feature < 0]
    outputs = values[:, 1:] if growth.n_classes == 2 else values
    nodes = [growth.nodes[number] for number in small.was]
    facts = {**_nodes(nodes, settled, shares), "dearest_path": _dearest(growth)}
    record = {**gate.plan.record(), "tree": facts}
    noise, cover = _leaf_noise(settled, shares, structure.feature < 0)
    tree = Tree(structure, outputs.astype(np.float32), noise[:, -outputs.shape[1] :], cover)
    return Ensemble((tree,), gate.schema, gate.statement(), averaged=True, record=record)


def _shares(settled: Settled, children: list[tuple[int, int]], n_classes: int) -> Floats:
    """Class shares (node, class): counts leaning toward the parent by the size of their noise."""
    shares = np.full((len(children), n_classes), 1 / n_classes)
    parents = {child: node for node, pair in enumerate(children) for child in pair if child >= 0}
    for node in range(len(children)):
        prior = shares[parents[node]] if node in parents else shares[node]
        noise = settled.deviations[node]
        if not np.isfinite(noise):
            shares[node] = prior
            continue
        counts = np.maximum(settled.counts[node], 0.0)
        weight = SHRINK * np.sqrt(n_classes) * noise
        total = float(counts.sum()) + weight
        shares[node] = (counts + weight * prior) / total if total > 0 else prior
    return shares


def _leaf_noise(
    settled: Settled, shares: Floats, leaves: NDArray[np.bool_]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Deviations (leaf, class) of the shares, to first order, and rows; NaN where nothing is known.

    As if a leaf's parent, toward which it leans, had no noise.
    """
    counts, noise, share = settled.counts[leaves], settled.deviations[leaves], shares[leaves]
    noise = np.where(np.isfinite(noise), noise, np.nan)[:, None]
    n_classes = counts.shape[1]
    noise_of_rows = np.sqrt(n_classes) * noise[:, 0]
    rows = np.maximum(counts, 0.0).sum(axis=1)
    below = np.maximum(rows + SHRINK * noise_of_rows, 1e-12)[:, None]
    deviations = noise * np.sqrt((1 - share) ** 2 + (n_classes - 1) * share**2) / below
    covers = np.maximum(rows, noise_of_rows)
    return np.minimum(deviations, 1.0).astype(np.float32), covers.astype(np.float32)


def _dearest(growth: Growth) -> float:
    """What the dearest path has spent, branches that were taken back included."""
    ceiling = growth.epsilon
    return round(max(ceiling - growth.nodes[leaf].left for leaf in growth.tree.leaves), 9)


def _nodes(nodes: Sequence[Node], settled: Settled, shares: Floats) -> dict[str, Any]:
    """Released values for the pictures, in the order of the tree's nodes."""
    finite = np.where(np.isfinite(settled.deviations), settled.deviations, -1.0)
    return {
        "counts": np.round(settled.counts, 3).tolist(),
        "deviations": np.round(finite, 3).tolist(),  # below 0 where nothing was released
        "shares": np.round(shares, 6).tolist(),
        "spent": [round(node.spent, 9) for node in nodes],
    }
