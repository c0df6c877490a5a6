"""Many cheap rounds over one dictionary of interaction tables, where more than 16 are wanted.

Its tables are drawn once and asked block after block, for sums of gradients alone. Each round is a
plain step of gradient descent; how far all of them go together follows from their noise.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.rng import stream
from hedgerow.methods.auto.dictionary import (
    KEPT,
    Dictionary,
    Response,
    Step,
    TableBlock,
    class_response,
    codes_of,
    made_up_bins,
    noise_left,
    variance_of,
)
from hedgerow.methods.auto.interaction_tables import InteractionTables
from hedgerow.methods.auto.rule import DICTIONARY_BLOCKS, DICTIONARY_SHAPES, DICTIONARY_TABLES
from hedgerow.methods.auto.state import Measured, Run
from hedgerow.model.tree import Tree
from hedgerow.queries import LeafSums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CLIP = 0.5  # of gradients of classes: a step is small, and the next one sees what it has done
SIZE = 0.6  # deviation of what interactions add to a score, in units of the label: a guess
LONGEST = 30.0  # of a round, in Newton steps of one table


class _Descent:
    """What the blocks have been given so far, and how far the next round may go."""

    def __init__(self, run: Run, dictionary: Dictionary) -> None:
        rule, known, self._run = run.rule, run.known, run
        self.dictionary = dictionary
        self.clip = run.clip if run.task == "regression" else min(run.clip, CLIP)
        # Of all rows: (effect,)
        self.hessian = np.mean([h.sum(axis=1) for h in known.hessians], axis=0)
        bound = run.loss.bound("slope", self.clip).l2
        # Noise of all rounds in a cell, were there one table: what a score is known by.
        noise = bound / (run.mu * math.sqrt(rule.dictionary_share)) / run.gradient_unit
        reach = math.log(2) * SIZE * float(self.hessian.mean()) / noise
        self._pace = min(reach / rule.dictionary_rounds, LONGEST, 1 / dictionary.closeness)
        self.weights = [np.zeros((len(b.share), run.n_effects)) for b in dictionary.blocks]
        self.variances = [np.zeros(run.n_effects) for _ in dictionary.blocks]
        self.steps = list[Step]()

    def step(self, number: int, release: Measured) -> Floats:
        """The step of a block by what a round says of it: (cell, effect)."""
        run, block = self._run, self.dictionary.blocks[number]
        n_tables, noise = len(block.structures), release.unit / run.gradient_unit
        sums = -release.values.reshape(run.n_effects, -1) / run.gradient_unit
        # What all rows have in common is the intercept's; every table shows it once.
        sums = sums - block.share * (sums.sum(axis=1, keepdims=True) / n_tables)
        scale = self._pace / (n_tables * self.hessian)  # (effect,)
        step = np.asarray((scale[:, None] * sums).T)
        self.weights[number] += step
        self.variances[number] += (scale * noise) ** 2
        self.steps.append(Step(number, float(scale.mean()), noise))
        return step

    def trust(self, response: Response, seed: int) -> float:
        """The part of the steps' variance that noise alone would not have made."""
        if not self.steps:
            return 0.0
        noise = noise_left(self.dictionary, self.steps, response, stream(seed, "noise alone"))
        by_effect = zip(*(w.T for w in self.weights), strict=True)  # of each effect, by block
        total = float(np.mean([variance_of(self.dictionary, of) for of in by_effect]))
        return max(0.0, 1 - noise / total) if total > 0 else 0.0


def add_dictionary(run: Run, interactions: InteractionTables) -> None:
    """Round after round over the blocks; the tables become trees of the model at the end."""
    rule, seed = run.rule, run.gate.plan.seed
    shapes = [DICTIONARY_SHAPES[k % len(DICTIONARY_SHAPES)] for k in range(DICTIONARY_TABLES)]
    first = rule.interaction_rounds  # those rounds have drawn tables of their own
    drawn = [interactions.draw(seed, first + k, shapes) for k in range(DICTIONARY_BLOCKS)]
    made_up = made_up_bins(stream(seed, "made-up rows"), run.known.counts)
    codes = codes_of(made_up, run.grid, run.bins)
    descent = _Descent(run, Dictionary.of(drawn, run.grid, codes))
    response = _response(run, made_up, descent.clip)  # at the scores of main effects
    share = rule.dictionary_share / rule.dictionary_rounds
    for number in range(rule.dictionary_rounds):
        at = number % DICTIONARY_BLOCKS
        block = descent.dictionary.blocks[at]
        about = (block.structures, run.loss.name, run.gate.ensemble, "slope", descent.clip)
        release = run.release(LeafSums(*about), share, f"dictionary {number + 1}")
        if release is not None:
            _publish(run, block, descent.step(at, release))
    _keep(run, descent, descent.trust(response, seed))


def _response(run: Run, made_up: Ints, clip: float) -> Response:
    """How made-up rows respond to scores, from what is known of all columns alone."""
    if run.task == "regression":
        hessians, sampling = run.known.hessians, run.known.sampling
        of_all = (float(np.mean([a.sum() for a in arrays])) for arrays in (hessians, sampling))
        return Response(*(np.full(KEPT, total / KEPT) for total in of_all))
    scores = np.repeat(run.intercept[None], made_up.shape[1], axis=0)  # (row, output)
    for theta, drawn in zip(run.theta, made_up, strict=True):
        scores += theta.T[drawn]
    chances = run.loss.predictions(scores, averaged=False)
    n_rows = float(np.mean([counts.sum() for counts in run.known.counts]))
    return class_response(chances[:, 1:] if run.task == "binary" else chances, clip, n_rows)


def _publish(run: Run, block: TableBlock, weights: Floats) -> None:
    for structure, of in zip(block.structures, block.split(weights), strict=True):
        run.gate.publish(Tree(structure, run.of_outputs(run.spread * of)))


def _keep(run: Run, descent: _Descent, trust: float) -> None:
    """One tree a table for the model: its steps add up, as far as they are more than noise."""
    rows = float(descent.hessian.sum())
    for block, weights, variance in zip(
        descent.dictionary.blocks, descent.weights, descent.variances, strict=True
    ):
        _publish(run, block, (trust - 1) * weights)  # what is not trusted is taken back
        noise = np.broadcast_to(trust * np.sqrt(variance), weights.shape)
        parts = (block.split(a) for a in (trust * weights, noise, rows * block.share))
        for structure, of, deviation, cover in zip(block.structures, *parts, strict=True):
            values, spread = (run.of_outputs(run.spread * a) for a in (of, deviation))
            run.interactions.append(Tree(structure, values, spread, cover.astype(np.float32)))
