"""The boosting loop and its plan: batches of random trees with noisy leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid
from hedgerow.data.rng import Generator, stream
from hedgerow.data.schema import Schema
from hedgerow.errors import PlanError, SettingsError, SlotSpent
from hedgerow.methods.maddock import times
from hedgerow.methods.maddock.candidates import Cuts, first_cuts, refine
from hedgerow.methods.maddock.candidates.iterative_hessian import refined, refined_columns
from hedgerow.methods.maddock.candidates.quantiles import quantiles
from hedgerow.methods.maddock.leaves import (
    average_deviations,
    average_values,
    covers,
    shrunk,
    shrunk_deviations,
    step_deviations,
    step_values,
)
from hedgerow.methods.maddock.splits.growth import LearnedTree
from hedgerow.methods.maddock.splits.learned import grow_tree, levels_of
from hedgerow.methods.maddock.splits.totally_random import (
    columns_of_tree,
    columns_to_cut,
    totally_random,
)
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.losses import Hazards, Loss, RowBound, loss_for
from hedgerow.model.tree import Structure, Tree, single_leaf
from hedgerow.privacy.accounting.budget import DeclaredQuery
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.settings import BoostingSettings, Settings
from hedgerow.queries import (
    ColumnCounts,
    ColumnHessians,
    LabelSums,
    LeafSums,
    NodeHistograms,
    n_bins_of,
    size_of,
)


def declared_queries(schema: Schema, settings: Settings) -> list[DeclaredQuery]:
    """What the loop will ask: the base rate, then each round its cuts (if refined) and trees.

    A column of a question about cuts or splits costs as much as the leaves of one tree, and a
    batch as much as its trees one by one.
    """
    settings = BoostingSettings.of(settings)
    if schema.label.task == "survival":
        times.check_settings(settings)
    if settings.features_per_tree > len(schema.columns):
        raise SettingsError(
            f"features_per_tree is {settings.features_per_tree}, but the schema has "
            f"{len(schema.columns)} columns; choose at most that, or 0 for all"
        )
    if not columns_to_cut(schema, first_cuts(schema, settings)):
        raise PlanError("no column of the schema can be cut: widen a bound or list more categories")
    batches = _batches(settings)
    question, rounds = _cut_question(schema, settings)
    trees = [_tree_queries(schema, settings, len(batch)) for batch in batches]
    weight = sum(query.share for tree in trees for query in tree)
    start = settings.start_share if settings.update != "averaging" else 0.0
    cuts = settings.candidate_share if rounds else 0.0
    if start + cuts >= 1:
        raise SettingsError("start_share and candidate_share leave nothing for the trees")
    scale = weight / (1 - start - cuts)  # all shares in units of the leaves of one tree
    n_counts = max(2, schema.label.n_outcomes)
    declared = [DeclaredQuery("base rate", LabelSums.kind, start * scale, n_counts)]
    for number, tree in enumerate(trees):
        share = cuts * scale / rounds if cuts else question.share
        refining = _refining_before(number, rounds, len(batches))
        declared += [replace(question, share=share)] * refining + tree
    if schema.label.task == "survival":
        declared.append(times.final_query(schema, sum(query.share for query in declared)))
    total = sum(query.share for query in declared)
    return [replace(query, share=query.share / total) for query in declared]


def adaptive_queries(schema: Schema, settings: Settings) -> None:
    """Nothing is priced during the run: every slot is listed."""


def _cut_question(schema: Schema, settings: BoostingSettings) -> tuple[DeclaredQuery, int]:
    """What is asked about cuts, a column weighing as much as a tree, and in how many rounds."""
    if settings.candidates == "quantiles":
        query = ColumnCounts.for_cuts(schema, settings.n_bins)
        k = len(query.columns)
        return DeclaredQuery("cuts", ColumnCounts.kind, float(k), size_of(query)), min(1, k)
    columns = refined_columns(schema)
    rounds = settings.candidate_rounds if _asks_cuts(settings, schema) else 0
    size = len(columns) * settings.n_bins
    return DeclaredQuery("cuts", ColumnHessians.kind, float(len(columns)), size), rounds


def _refining_before(batch: int, rounds: int, n_batches: int) -> int:
    """Rounds about cuts before a batch: one while they last, the surplus before the first."""
    surplus = max(0, rounds - n_batches) if batch == 0 else 0
    return surplus + (batch < rounds)


def _tree_queries(schema: Schema, settings: BoostingSettings, size: int) -> list[DeclaredQuery]:
    """The questions of one round of `size` trees; a question about k columns weighs k."""
    grid = base_grid(schema)
    width, depth = loss_for(schema.label).bound(settings.update).width, settings.max_depth
    if settings.split == "totally-random":
        numbers = width * size * 2**depth
        return [DeclaredQuery(f"batch of {size}", LeafSums.kind, float(size), numbers)]
    usable = columns_to_cut(schema, first_cuts(schema, settings))
    k = min(settings.features_per_tree or len(usable), len(usable))
    declared = []
    for level in range(levels_of(settings, k)):
        if settings.split == "histogram":
            most = (settings.n_bins if grid[j].ordered else grid[j].n_cells for j in usable)
            bins = sum(sorted((n + 1 for n in most), reverse=True)[:k])
            kind, numbers = NodeHistograms.kind, width * 2**level * bins
        else:
            leaves = 2 ** (level + 1) if k > 1 else 2**depth  # one column is asked at once
            kind, numbers = LeafSums.kind, width * k * leaves
        declared.append(DeclaredQuery(f"level {level}", kind, float(k), numbers))
    if not settings.reuse_histogram:
        declared.append(DeclaredQuery("leaves", LeafSums.kind, 1.0, width * 2**depth))
    return declared


def grow(gate: Gate) -> Ensemble:
    """Ask what `declared_queries` says through the gate and return the model.

    Questions depend on the plan's seed and on releases only. A slot that an earlier process
    charged and lost is skipped: the model has one batch fewer.
    """
    plan, schema = gate.plan, gate.schema
    settings, loss = BoostingSettings.of(plan.settings), loss_for(schema.label)
    averaged = settings.update == "averaging"
    cuts = first_cuts(schema, settings)
    trees: list[Tree] = []
    if not averaged:
        trees += _start(gate, loss)
    batches = _batches(settings)
    for number, batch in enumerate(batches):
        if not averaged:  # a forest asks about labels, not about gradients at the trees so far
            for tree in trees[gate.ensemble.length :]:
                gate.publish(tree)
        if _asks_cuts(settings, schema):
            for _ in range(_refining_before(number, settings.candidate_rounds, len(batches))):
                cuts = refined(gate, cuts)
        if number == 0 and _asks_counts(settings, schema):
            cuts = quantiles(gate, cuts, settings.n_bins)
        if settings.split == "totally-random":
            trees += _random_trees(gate, settings, cuts, batch)
        else:
            fresh, cuts = _learned_tree(gate, settings, cuts, batch[0])
            trees += fresh
    if schema.label.task == "survival":
        trees = times.with_base_line(gate, trees)
    if averaged:
        trees = [tree.scaled(1 / max(1, len(trees))) for tree in trees]
    return Ensemble(tuple(trees), schema, gate.statement(), averaged, plan.record())


def _batches(settings: BoostingSettings) -> list[range]:
    size = settings.trees_per_round
    return [
        range(first, min(first + size, settings.n_trees))
        for first in range(0, settings.n_trees, size)
    ]


def _start(gate: Gate, loss: Loss) -> list[Tree]:
    """A constant: the noisy base rate, or what public facts say if it is not bought or was lost."""
    query = LabelSums(gate.schema.label.n_outcomes)
    values = loss.start(np.zeros(query.blocks[0].size), floor=1.0)
    if BoostingSettings.of(gate.plan.settings).start_share > 0:
        try:
            release = gate.release(query)
        except SlotSpent:
            return [single_leaf(values)]
        # A count below its own noise says nothing; two deviations keep the start sensible.
        floor, counts = max(1.0, 2 * release.unit), release.values
        noise = loss.start_deviation(counts, floor, release.unit)
        rows = max(float(counts.sum() if query.n_classes else counts[0]), floor)
        return [single_leaf(loss.start(counts, floor), noise, rows)]
    return [single_leaf(values)] if np.any(values) else []


def _asks_cuts(settings: BoostingSettings, schema: Schema) -> bool:
    """Whether cuts are refined by questions of their own; histogram trees know enough already."""
    if settings.candidates != "iterative-hessian" or settings.split == "histogram":
        return False
    return bool(refined_columns(schema))


def _asks_counts(settings: BoostingSettings, schema: Schema) -> bool:
    counted = ColumnCounts.for_cuts(schema, settings.n_bins).columns
    return settings.candidates == "quantiles" and bool(counted)


def _columns(
    schema: Schema, settings: BoostingSettings, cuts: Cuts, tree: int, rng: Generator
) -> list[int]:
    usable = columns_to_cut(schema, cuts)
    per_tree, order = settings.features_per_tree, settings.feature_order
    return columns_of_tree(usable, per_tree, order, tree, rng)


def _structure(schema: Schema, plan: Plan, cuts: Cuts, tree: int) -> Structure:
    settings = BoostingSettings.of(plan.settings)
    rng = stream(plan.seed, "tree", tree)
    columns = _columns(schema, settings, cuts, tree, rng)
    return totally_random(schema, cuts, columns, settings.max_depth, settings.category_split, rng)


def _random_trees(gate: Gate, settings: BoostingSettings, cuts: Cuts, batch: range) -> list[Tree]:
    """A batch adds the learning rate times the mean weight of its trees; none if it was lost."""
    structures = tuple(_structure(gate.schema, gate.plan, cuts, t) for t in batch)
    loss = loss_for(gate.schema.label)
    query = LeafSums(structures, loss.name, gate.ensemble, settings.update)
    try:
        sums, unit = _leaf_sums(gate, query)
    except SlotSpent:
        return []
    ends = np.cumsum([structure.n_leaves for structure in structures])
    parts = np.split(sums, ends[:-1], axis=1)
    trees = [
        _tree(structure, part, np.full(structure.n_leaves, unit), query.bound, settings, len(batch))
        for structure, part in zip(structures, parts, strict=True)
    ]
    return (
        [times.of_all_intervals(tree, loss) for tree in trees]
        if isinstance(loss, Hazards)
        else trees
    )


def _learned_tree(
    gate: Gate, settings: BoostingSettings, cuts: Cuts, number: int
) -> tuple[list[Tree], Cuts]:
    """One tree with chosen splits, and the cuts for the next one; no tree if nothing gained."""
    schema, loss = gate.schema, loss_for(gate.schema.label)
    rng = stream(gate.plan.seed, "tree", number)
    columns = _columns(schema, settings, cuts, number, rng)
    grown = grow_tree(gate, settings, cuts, columns, rng)
    fresh = _cuts_from_root(schema, settings, cuts, columns, grown)
    if not grown.is_cut:
        if not settings.reuse_histogram:
            gate.pass_over()
        return [], fresh
    structure = grown.tree.structure()
    sums, deviations = grown.leaf_sums()
    if not settings.reuse_histogram:
        query = LeafSums((structure,), loss.name, gate.ensemble, settings.update)
        try:
            sums, unit = _leaf_sums(gate, query)
        except SlotSpent:
            return [], fresh
        deviations = np.full(structure.n_leaves, unit)
    bound = loss.bound(settings.update)
    return [_tree(structure, sums, deviations, bound, settings, 1)], fresh


def _cuts_from_root(
    schema: Schema, settings: BoostingSettings, cuts: Cuts, columns: list[int], grown: LearnedTree
) -> Cuts:
    """A histogram tree's root already holds the Hessians that refine cuts: nothing is asked."""
    if settings.candidates != "iterative-hessian" or grown.root is None:
        return cuts
    grid, first = base_grid(schema), loss_for(schema.label).bound(settings.update).first
    ends = np.cumsum([n_bins_of(grid[j], cuts[j]) for j in columns])
    fresh = list(cuts)
    for j, part in zip(columns, np.split(grown.root, ends[:-1], axis=1), strict=True):
        if j in refined_columns(schema):
            hessians = part[first:, :-1].sum(axis=0)  # without the bin of missing values
            fresh[j] = refine(grid[j], cuts[j], hessians, settings.n_bins)
    return fresh


def _leaf_sums(gate: Gate, query: LeafSums) -> tuple[NDArray[np.float64], float]:
    """Sums (number, leaf of all trees) and the noise deviation of their first part."""
    release = gate.release(query)
    return release.values.reshape(query.bound.width, -1), release.unit


def _tree(
    structure: Structure,
    sums: NDArray[np.float64],
    deviations: NDArray[np.float64],
    bound: RowBound,
    settings: BoostingSettings,
    batch: int,
) -> Tree:
    """Leaf values from sums (number, leaf) and their noise deviations (leaf,)."""
    cover = covers(sums, bound, deviations).astype(np.float32)
    if settings.update == "averaging":
        floors = np.maximum(1.0, 2 * deviations)
        noise = average_deviations(sums, bound, floors, deviations).astype(np.float32)
        values = average_values(sums, bound, floors).astype(np.float32)
        return Tree(structure, values, noise, cover)
    sums, left = sums.copy(), None
    if settings.shrinkage == "stein":
        left = shrunk_deviations(sums[: bound.first], deviations)
        sums[: bound.first] = shrunk(sums[: bound.first], deviations)
    floors = settings.floor_deviations * deviations / bound.second_scale
    rate, rule = settings.learning_rate / batch, (bound, settings.reg_lambda, settings.leaf_clip)
    values = (rate * step_values(sums, *rule, floors)).astype(np.float32)
    noise = (rate * step_deviations(sums, *rule, floors, deviations, left)).astype(np.float32)
    return Tree(structure, values, noise, cover)
