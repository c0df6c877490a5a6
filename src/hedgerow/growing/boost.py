"""The boosting loop and its plan: batches of random trees with Newton leaves."""

from __future__ import annotations

import numpy as np

from hedgerow.errors import PlanError, SettingsError, SlotSpent
from hedgerow.gate import Gate
from hedgerow.growing.candidates import CANDIDATES
from hedgerow.growing.leaves import newton
from hedgerow.growing.splits.totally_random import (
    columns_of_tree,
    columns_to_cut,
    totally_random,
)
from hedgerow.losses import Loss, loss_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Structure, Tree, single_leaf
from hedgerow.privacy.plan import Plan, Wish
from hedgerow.privacy.reservation import Release
from hedgerow.queries import LabelSums, LeafSums
from hedgerow.rng import stream
from hedgerow.schema import Schema
from hedgerow.settings import Settings


def wishes(schema: Schema, settings: Settings) -> list[Wish]:
    """What the loop will ask: the base rate once, then leaf sums once a batch."""
    if settings.features_per_tree > len(schema.columns):
        raise SettingsError(
            f"features_per_tree is {settings.features_per_tree}, but the schema has "
            f"{len(schema.columns)} columns; choose at most that, or 0 for all"
        )
    if not columns_to_cut(schema, CANDIDATES["uniform"](schema, settings.n_bins)):
        raise PlanError("no column of the schema can be cut: widen a bound or list more categories")
    loss = loss_for(schema.label)
    batches = [len(batch) for batch in _batches(settings)]
    leaves = 2**settings.max_depth
    start, rest = settings.start_share, (1 - settings.start_share) / len(batches)
    wanted = [Wish("base rate", LabelSums.kind, start, len(schema.label.classes))]
    wanted += [
        Wish(f"batch of {size}", LeafSums.kind, rest, 2 * leaves * size * loss.n_outputs)
        for size in batches
    ]
    return wanted


def grow(gate: Gate) -> Ensemble:
    """Run the plan of `wishes` through the gate and return the model.

    Questions depend on the plan's seed and on releases only. A slot that an earlier process
    charged and lost is skipped: the model has one batch fewer.
    """
    plan, schema = gate.plan, gate.schema
    settings, loss = plan.settings, loss_for(schema.label)
    trees: list[Tree] = []
    if settings.start_share > 0:
        trees.append(_base_rate(gate, loss))
    for batch in _batches(settings):
        structures = tuple(_structure(schema, plan, t) for t in batch)
        for tree in trees[gate.ensemble.length :]:
            gate.publish(tree)
        try:
            release = gate.release(LeafSums(structures, loss.name, gate.ensemble))
        except SlotSpent:
            continue
        trees += _with_leaves(structures, release, settings, loss)
    return Ensemble(tuple(trees), schema, gate.statement(), _record(plan))


def _batches(settings: Settings) -> list[range]:
    size = settings.batch_size
    return [
        range(first, min(first + size, settings.n_trees))
        for first in range(0, settings.n_trees, size)
    ]


def _base_rate(gate: Gate, loss: Loss) -> Tree:
    n_classes = len(gate.schema.label.classes)
    try:
        release = gate.release(LabelSums(n_classes))
    except SlotSpent:
        return single_leaf(np.zeros(loss.n_outputs))
    # A count below its own noise says nothing; two deviations keep the log-odds sensible. Taken
    # from the plan, not from the release, so that it is the same for any number of parties.
    floor = max(1.0, 2 / gate.plan.slots[0].mu)
    return single_leaf(loss.start(release.values, floor))


def _structure(schema: Schema, plan: Plan, tree: int) -> Structure:
    settings = plan.settings
    rng = stream(plan.seed, "tree", tree)
    candidates = CANDIDATES["uniform"](schema, settings.n_bins)
    columns = columns_of_tree(
        columns_to_cut(schema, candidates),
        settings.features_per_tree,
        settings.feature_order,
        tree,
        rng,
    )
    return totally_random(
        schema, candidates, columns, settings.max_depth, settings.category_split, rng
    )


def _with_leaves(
    structures: tuple[Structure, ...], release: Release, settings: Settings, loss: Loss
) -> list[Tree]:
    """Newton leaves; a batch adds the learning rate times the mean leaf weight of its trees."""
    sums = release.values.reshape(2, -1, loss.n_outputs)  # (g|h, leaf of all trees, output)
    weights = newton(sums[0], sums[1], settings.reg_lambda, settings.leaf_clip)
    step = settings.learning_rate / len(structures)
    ends = np.cumsum([structure.n_leaves for structure in structures])
    parts = np.split((step * weights).astype(np.float32), ends[:-1])
    return [Tree(s, values) for s, values in zip(structures, parts, strict=True)]


def _record(plan: Plan) -> dict[str, object]:
    return {
        "method": plan.method,
        "run": plan.run,
        "plan": plan.hash,
        "settings": plan.settings.to_dict(),
        "rounds": len(plan.slots),
    }
