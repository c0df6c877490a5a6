"""Rounds of small tables on what the main effects leave, their size set by a line search."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow.growing.auto.parts import Parts, structure_of
from hedgerow.growing.auto.state import Run
from hedgerow.growing.auto.tables import (
    TAUS,
    Spread,
    cell_deviations,
    cell_weights,
    chances,
    draw_columns,
    line_factor,
    overlap,
)
from hedgerow.model.tree import Structure, Tree
from hedgerow.privacy.reservation import Release
from hedgerow.queries import LeafSums
from hedgerow.rng import Generator, stream

Floats = NDArray[np.float64]
MOST_STEP = 3.0  # what one round may add to a score at most, in units of the label


@dataclass
class _Steps:
    """What is learned about steps from round to round."""

    votes: Floats = field(default_factory=lambda: np.ones(TAUS.size))
    gain: float = 1.0
    last: int = 0  # trees of the last round


def table_rounds(run: Run) -> None:
    """Random tables, all of a round at once; each round also says how good the last step was."""
    rule, known = run.rule, run.known
    if not rule.table_rounds:
        return
    scores, hessians = [t.ravel() for t in run.theta], [h.ravel() for h in known.hessians]
    chance = chances(scores, hessians, known.counts)
    # A table could turn an effect around, so columns with a direction stay out of them.
    chance = np.where(np.array(run.direction) != 0, 0.0, chance)
    if np.count_nonzero(chance) < 2:
        return
    chance /= chance.sum()
    steps, share = _Steps(), rule.table_share / rule.table_rounds
    spreads = [
        Spread.of(counts, grid.ordered, theta[0], rule.table_power)
        for counts, grid, theta in zip(known.counts, run.grid, run.theta, strict=True)
    ]
    update = "gradient" if run.task == "regression" else "newton"
    for number in range(rule.table_rounds):
        rng = stream(run.gate.plan.seed, "tables", number)
        shapes = [rule.shapes[k % len(rule.shapes)] for k in range(rule.n_tables)]
        tables = [_table(run, rng, chance, spreads, *shape) for shape in shapes]
        query = LeafSums(
            tuple(tables), run.loss.name, run.gate.ensemble, update, rule.clip * run.spread,
            steps.last, run.spread,
        )  # fmt: skip
        release = run.release(query, share, f"tables {number + 1}")
        if release is None:
            steps.last = 0
            continue
        depth = float(np.mean([size for size, _ in shapes]))
        _add_round(run, query, release, steps, overlap(chance, rule.n_tables, depth))


def _table(
    run: Run, rng: Generator, chance: Floats, spreads: list[Spread], size: int, n_parts: int
) -> Structure:
    """Some columns by chance, each cut at places of its own."""
    parts = []
    for j in draw_columns(rng, chance, size):
        part = spreads[j].parts(n_parts, float(rng.random()) - 0.5)
        parts.append(Parts(j, run.bins[j].cuts, part))
    return structure_of(run.schema, run.grid, parts)[0]


def _add_round(run: Run, query: LeafSums, release: Release, steps: _Steps, share: float) -> None:
    """Cell weights of one round's tables, as trees."""
    bound, values = query.bound, release.values
    noise, floor = release.unit / run.spread, release.unit / bound.second_scale
    if query.step_trees:
        slope, curve = -values[-2] / run.spread, values[-1]
        values = values[:-2]
        steps.gain *= line_factor(slope, curve, noise, floor)
        steps.gain = min(max(steps.gain, 0.2), 4.0)
    damping = min(1.0, run.rule.overlap_gain * share * steps.gain)
    log_tau = np.log(steps.votes / steps.votes.sum())
    ends = np.cumsum([table.n_leaves for table in query.structures])
    sums = values.reshape(bound.width, -1)  # (number, leaf of all tables)
    weights, noises, rows = [], [], []
    for part in np.split(sums, ends[:-1], axis=1):
        g, h = -part[0] / run.spread, part[1]
        found, likely = cell_weights(g, h, noise, damping, log_tau, floor)
        steps.votes += likely
        weights.append(damping * found)
        noises.append(damping * cell_deviations(h, noise, damping, likely, floor))
        rows.append(np.maximum(h, floor).astype(np.float32))
    most = sum(float(np.abs(w).max()) for w in weights)
    scale = run.spread * min(1.0, MOST_STEP / most if most > 0 else 1.0)
    for table, found, own, cover in zip(query.structures, weights, noises, rows, strict=True):
        cells, deviation = ((scale * part)[:, None].astype(np.float32) for part in (found, own))
        tree = Tree(table, cells, deviation, cover)
        run.tables.append(tree)
        run.gate.publish(tree)
    steps.last = len(query.structures)
