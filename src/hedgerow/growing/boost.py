"""The boosting loop and its plan: batches of random trees with noisy leaves."""

from __future__ import annotations

import numpy as np

from hedgerow.binning import base_grid
from hedgerow.errors import PlanError, SettingsError, SlotSpent
from hedgerow.gate import Gate
from hedgerow.growing.candidates import CANDIDATES, Cuts, refine
from hedgerow.growing.leaves import average_values, shrunk, step_values
from hedgerow.growing.splits.totally_random import (
    columns_of_tree,
    columns_to_cut,
    totally_random,
)
from hedgerow.losses import Loss, loss_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Structure, Tree, single_leaf
from hedgerow.privacy.plan import Plan, Wish
from hedgerow.queries import ColumnHessians, LabelSums, LeafSums
from hedgerow.rng import stream
from hedgerow.schema import Numeric, Schema
from hedgerow.settings import Settings


def wishes(schema: Schema, settings: Settings) -> list[Wish]:
    """What the loop will ask: the base rate, then each round its cuts (if refined) and leaves."""
    if settings.features_per_tree > len(schema.columns):
        raise SettingsError(
            f"features_per_tree is {settings.features_per_tree}, but the schema has "
            f"{len(schema.columns)} columns; choose at most that, or 0 for all"
        )
    if not columns_to_cut(schema, CANDIDATES[settings.candidates](schema, settings.n_bins)):
        raise PlanError("no column of the schema can be cut: widen a bound or list more categories")
    batches, refined = _batches(settings), _refined_columns(schema)
    rounds = min(settings.candidate_rounds, len(batches)) if _refines(settings, schema) else 0
    start = settings.start_share if settings.update != "averaging" else 0.0
    cuts = settings.candidate_share if rounds else 0.0
    if start + cuts >= 1:
        raise SettingsError("start_share and candidate_share leave nothing for the trees")
    width = loss_for(schema.label).bound(settings.update).width
    wanted = [Wish("base rate", LabelSums.kind, start, max(2, len(schema.label.classes)))]
    for number, batch in enumerate(batches):
        if number < rounds:
            size = len(refined) * settings.n_bins
            wanted.append(Wish("cuts", ColumnHessians.kind, cuts / rounds, size))
        leaves = width * len(batch) * 2**settings.max_depth
        share = (1 - start - cuts) / len(batches)
        wanted.append(Wish(f"batch of {len(batch)}", LeafSums.kind, share, leaves))
    return wanted


def grow(gate: Gate) -> Ensemble:
    """Run the plan of `wishes` through the gate and return the model.

    Questions depend on the plan's seed and on releases only. A slot that an earlier process
    charged and lost is skipped: the model has one batch fewer.
    """
    plan, schema = gate.plan, gate.schema
    settings, loss = plan.settings, loss_for(schema.label)
    averaged = settings.update == "averaging"
    cuts = CANDIDATES[settings.candidates](schema, settings.n_bins)
    trees: list[Tree] = []
    if settings.start_share > 0 and not averaged:
        trees.append(_base_rate(gate, loss))
    for number, batch in enumerate(_batches(settings)):
        if not averaged:  # a forest asks about labels, not about gradients at the trees so far
            for tree in trees[gate.ensemble.length :]:
                gate.publish(tree)
        if _refines(settings, schema) and number < settings.candidate_rounds:
            cuts = _refined(gate, cuts, loss)
        structures = tuple(_structure(schema, plan, cuts, t) for t in batch)
        query = LeafSums(structures, loss.name, gate.ensemble, settings.update)
        try:
            trees += _with_leaves(gate, query, settings)
        except SlotSpent:
            continue
    if averaged:
        scale = np.float32(1 / max(1, len(trees)))
        trees = [Tree(tree.structure, tree.values * scale) for tree in trees]
    return Ensemble(tuple(trees), schema, gate.statement(), averaged, _record(plan))


def _batches(settings: Settings) -> list[range]:
    size = settings.trees_per_round
    return [
        range(first, min(first + size, settings.n_trees))
        for first in range(0, settings.n_trees, size)
    ]


def _base_rate(gate: Gate, loss: Loss) -> Tree:
    query = LabelSums(len(gate.schema.label.classes))
    # A count below its own noise says nothing; two deviations keep the start sensible. Taken from
    # the plan, not from the release, so that it is the same for any number of parties.
    floor = max(1.0, 2 * gate.unit(query))
    try:
        release = gate.release(query)
    except SlotSpent:
        return single_leaf(loss.start(np.zeros(query.blocks[0].size), floor))
    return single_leaf(loss.start(release.values, floor))


def _refines(settings: Settings, schema: Schema) -> bool:
    return settings.candidates == "iterative-hessian" and bool(_refined_columns(schema))


def _refined_columns(schema: Schema) -> list[int]:
    """Numeric columns with a choice of edges; ordinals keep their few cuts."""
    grid = base_grid(schema)
    columns = enumerate(schema.columns)
    return [j for j, column in columns if isinstance(column, Numeric) and len(grid[j].edges)]


def _refined(gate: Gate, cuts: Cuts, loss: Loss) -> Cuts:
    """New cuts from one release of Hessian histograms; the old ones if its slot was lost."""
    schema, grid = gate.schema, base_grid(gate.schema)
    columns = _refined_columns(schema)
    asked = tuple(cuts[j] for j in columns)
    query = ColumnHessians(tuple(columns), asked, loss.name, gate.ensemble)
    try:
        release = gate.release(query)
    except SlotSpent:
        return cuts
    parts = np.split(release.values, np.cumsum([len(c) + 1 for c in asked])[:-1])
    n_bins = gate.plan.settings.n_bins
    fresh = list(cuts)
    for j, hessians in zip(columns, parts, strict=True):
        fresh[j] = refine(grid[j], cuts[j], hessians, n_bins)
    return fresh


def _structure(schema: Schema, plan: Plan, cuts: Cuts, tree: int) -> Structure:
    settings = plan.settings
    rng = stream(plan.seed, "tree", tree)
    columns = columns_of_tree(
        columns_to_cut(schema, cuts),
        settings.features_per_tree,
        settings.feature_order,
        tree,
        rng,
    )
    return totally_random(schema, cuts, columns, settings.max_depth, settings.category_split, rng)


def _with_leaves(gate: Gate, query: LeafSums, settings: Settings) -> list[Tree]:
    """Ask for leaves; a batch adds the learning rate times the mean weight of its trees."""
    unit = gate.unit(query)
    bound = query.bound
    sums = gate.release(query).values.reshape(bound.width, -1)  # (number, leaf of all trees)
    ends = np.cumsum([structure.n_leaves for structure in query.structures])
    trees = []
    for structure, part in zip(query.structures, np.split(sums, ends[:-1], axis=1), strict=True):
        if settings.update == "averaging":
            values = average_values(part, bound, floor=max(1.0, 2 * unit))
        else:
            step = settings.learning_rate / len(query.structures)
            floor = settings.floor_deviations * unit / bound.second_scale
            if settings.shrinkage == "stein":
                part[: bound.first] = shrunk(part[: bound.first], unit)
            limits = (settings.reg_lambda, settings.leaf_clip, floor)
            values = step * step_values(part, bound, *limits)
        trees.append(Tree(structure, values.astype(np.float32)))
    return trees


def _record(plan: Plan) -> dict[str, object]:
    return {
        "method": plan.method,
        "run": plan.run,
        "plan": plan.hash,
        "settings": plan.settings.to_dict(),
        "rounds": len(plan.slots),
    }
