"""Rounds of interaction tables on what main effects leave, their size set by a line search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.methods.auto.dictionary_rounds import add_dictionary
from hedgerow.methods.auto.interaction_tables import (
    TAUS,
    InteractionTables,
    Spread,
    chances,
    leading,
    line_factor,
    overlap,
    weigh,
)
from hedgerow.methods.auto.parts import Cut
from hedgerow.methods.auto.state import Measured, Run
from hedgerow.model.tree import Tree
from hedgerow.queries import LeafSums

Floats = NDArray[np.float64]
MOST_STEP = 3.0  # what one round may add to a score at most, in units of the label
STEP_RANGE = 2.0  # of several outputs: how far apart a row's steps may be and still be told


@dataclass
class _Steps:
    """What is learned about steps from round to round."""

    votes: Floats  # how likely each size of a table's weights was so far: (output, tau)
    gain: float = 1.0
    last: int = 0  # trees of the last round

    def learn(self, query: LeafSums, release: Measured, unit: float, row_hessian: float) -> None:
        """Change the gain by what a round says of the last one.

        Steps of several outputs meet where a class that was rare is not any more, so they ring:
        they grow less and are taken back faster.
        """
        least, most = (0.6, 4.0) if query.bound.first == 1 else (0.3, 2.0)
        slope, curve = -release.values[-2] / unit, row_hessian * release.values[-1]
        first, then = (part * release.unit for part in query.step_noise)
        self.gain *= line_factor(slope, curve, first / unit, row_hessian * then, least)
        self.gain = min(max(self.gain, 0.2), most)


def add_interactions(run: Run) -> None:
    """Random tables, all of a round at once; each round also says how good the last step was.

    Where rounds are free, many more follow over tables that are drawn once.
    """
    rule = run.rule
    if not rule.interaction_share:
        return
    interactions = _tables_of(run)
    if interactions is None:
        return
    _rounds_of_new_tables(run, interactions)
    if rule.dictionary_rounds:
        add_dictionary(run, interactions)


def _tables_of(run: Run) -> InteractionTables | None:
    """What tables are drawn from; None where fewer than two columns can be part of them."""
    known = run.known
    scores, hessians = [t.ravel() for t in run.theta], [h.ravel() for h in known.hessians]
    chance = chances(scores, hessians, known.counts, run.rule.explore)
    # A table could turn an effect around, so columns with a direction stay out of them.
    chance = np.where(np.array(run.direction) != 0, 0.0, chance)
    if np.count_nonzero(chance) < 2:
        return None
    spreads = [
        Spread.of(counts, grid.ordered, leading(theta, counts), run.rule.interaction_power)
        for counts, grid, theta in zip(known.counts, run.grid, run.theta, strict=True)
    ]
    cut = Cut.of(run.schema, run.grid, run.columns, [bins.cuts for bins in run.bins])
    return InteractionTables.of(chance / chance.sum(), cut, spreads)


def _rounds_of_new_tables(run: Run, interactions: InteractionTables) -> None:
    """Each round draws tables of its own."""
    rule = run.rule
    steps = _Steps(np.ones((1 if run.in_periods else run.n_effects, TAUS.size)))
    share = rule.interaction_share / rule.interaction_rounds
    update = "gradient" if run.task == "regression" else "newton"
    shapes = [rule.shapes[k % len(rule.shapes)] for k in range(rule.n_interaction_tables)]
    depth = float(np.mean([size for size, _ in shapes]))
    part = overlap(interactions.chance, rule.n_interaction_tables, depth)
    for number in range(rule.interaction_rounds):
        drawn = interactions.draw(run.gate.plan.seed, number, shapes)
        query = LeafSums(
            tuple(drawn), run.loss.name, run.gate.ensemble, update, run.clip,
            steps.last, run.spread if run.n_effects == 1 else STEP_RANGE,
        )  # fmt: skip
        release = run.release(query, share, f"tables {number + 1}")
        if release is None:
            steps.last = 0
            continue
        _add_round(run, query, release, steps, part)


def _add_round(run: Run, query: LeafSums, release: Measured, steps: _Steps, share: float) -> None:
    """Cell weights of one round's tables, as trees."""
    bound, values = query.bound, release.values
    noise = release.unit / run.gradient_unit
    floor = run.row_hessian * release.unit / bound.second_scale
    if query.step_trees:
        steps.learn(query, release, run.gradient_unit, run.row_hessian)
        values = values[:-2]
    damping = min(1.0, run.rule.overlap_gain * share * steps.gain)
    log_tau = np.log(steps.votes / steps.votes.sum(axis=1, keepdims=True))
    ends = np.cumsum([table.n_leaves for table in query.structures])
    sums = values.reshape(bound.width, -1)  # (number, leaf of all tables)
    if run.in_periods:  # what columns do together is the same in both
        sums, noise = sums.reshape(2, 2, -1).sum(axis=1), noise * 2**0.5
        floor *= 2**0.5
    half = 1 if run.in_periods else bound.first
    g = -sums[:half] / run.gradient_unit  # (effect, leaf)
    h = run.row_hessian * sums[half:]
    weights, noises, likely = weigh(g, h, ends, noise, damping, log_tau, floor)
    steps.votes += likely.sum(axis=1)
    first = np.append(0, ends[:-1])
    most = damping * float(np.maximum.reduceat(np.abs(weights).max(axis=0), first).sum())
    scale = run.spread * damping * min(1.0, MOST_STEP / most if most > 0 else 1.0)
    cells, deviations = (run.of_outputs(scale * p.T) for p in (weights, noises))
    covers = np.maximum(h.sum(axis=0), floor).astype(np.float32)
    for table, begin, end in zip(query.structures, first, ends, strict=True):
        tree = Tree(table, cells[begin:end], deviations[begin:end], covers[begin:end])
        run.interactions.append(tree)
        run.gate.publish(tree)
    # How good a step was is asked where a bound of it is proven: not of hazards in two periods.
    steps.last = 0 if run.in_periods else len(query.structures)
