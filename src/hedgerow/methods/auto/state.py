"""State of one run of the default method: what is known, the scores so far, and how it asks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid, fine_columns, fine_grid
from hedgerow.data.schema import Schema
from hedgerow.errors import SlotSpent
from hedgerow.methods.auto.bins import Bins
from hedgerow.methods.auto.parts import Parts, structure_of
from hedgerow.methods.auto.rule import Rule, rule_for
from hedgerow.methods.auto.start import Counted, Known
from hedgerow.model.losses import Hazards, loss_for
from hedgerow.model.rounding import rounded, rounded_down, rounded_number
from hedgerow.model.tree import Structure, Tree, single_leaf
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.reservation import Release
from hedgerow.queries import ColumnSums, FineColumnSums, SumQuery, n_bins_of
from hedgerow.queries.strategy import StrategyMatrix

Floats = NDArray[np.float64]
STRONG = 400.0  # events times mu over the root of the columns


def mu_of_a_row(plan: Plan, schema: Schema, n_rows: float) -> float:
    """mu of all later questions for one row: less for persons of several, or without trust."""
    mu = plan.budget.adaptive.mu / schema.unit.at_most
    return mu / plan.privacy.trusted.row_noise(n_rows)


@dataclass(frozen=True, eq=False)
class Measured:
    """What a release says, in rows of the largest weight: the noise is then that of rows as such.

    The rule and the priors compare rows with their noise. With the cap W as the unit, weights that
    are all twice as large under twice the cap are the same to them.
    """

    values: Floats
    unit: float  # noise deviation of a block of weight 1

    @staticmethod
    def of(release: Release, schema: Schema) -> Measured:
        cap = schema.max_weight
        return Measured(release.values / cap, release.unit / cap)


@dataclass
class Run:
    """Everything here follows from the plan, the schema and releases."""

    gate: Gate
    rule: Rule = field(init=False)
    n_rows: float = field(init=False)  # noisy or public; rows of the largest weight
    mu: float = field(init=False)  # of one row, for all later questions
    rates: Sequence[float] | None = field(init=False)  # shares of the classes, noisy, if known
    counted: Counted | None = None  # rows by class, noisy, if they were asked first
    known: Known = field(init=False)
    bins: list[Bins] = field(init=False)
    theta: list[Floats] = field(init=False)  # scores of a column: (effect, bin)
    deviations: list[Floats] | None = None  # of the noise in them, once they are learned
    intercept: Floats = field(init=False)  # (output,)
    spread: float = 1.0  # of the label, for regression: the unit of every score
    gradient_unit: float = 1.0  # of gradients; where an error is a gradient, that of scores
    # Of a row where it is counted instead: of survival the events' share, of counts their rate.
    row_hessian: float = 1.0
    interactions: list[Tree] = field(default_factory=list)
    slope: float = 1.0  # of all scores, by recalibration
    _steps: dict[int, tuple[Structure, NDArray[np.int64]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        schema, settings = self.gate.schema, self.gate.plan.settings
        self.schema, self.grid, self.is_fine = schema, base_grid(schema), False
        self.loss, self.task = loss_for(schema.label), schema.label.task
        self.columns = tuple(range(len(schema.columns)))
        self.intercept = np.zeros(self.loss.n_outputs)
        # Effects on hazards are the same in all intervals of a period: columns have one score each.
        hazards = self.loss.periods if isinstance(self.loss, Hazards) else ()
        self.outputs_of = hazards or (1,) * self.loss.n_outputs
        self.n_effects = len(self.outputs_of)
        self.in_periods = len(hazards) > 1  # effects on hazards change at a public cut
        signs = settings.directions
        self.direction = [signs.get(name, 0) for name in schema.names]  # of each column, 0 = any

    def settle(self, n_rows: float, rates: Sequence[float] | None) -> None:
        """Fix the settings by the public rule."""
        plan, self.n_rows, self.rates = self.gate.plan, n_rows, rates
        self.mu = mu = mu_of_a_row(plan, self.schema, n_rows)
        free = self.direction.count(0)
        n_fine = len(fine_columns(base_grid(self.schema)))
        about = (self.task, rates, free, n_fine, plan.settings.most_rounds)
        self.rule = rule_for(n_rows, len(self.columns), mu, *about)
        counts_rows = self.task in ("survival", "counts") or not plan.settings.public_rows
        self.gate.expect(self.rule.n_rounds - (not counts_rows))

    def to_fine_level(self) -> None:
        """From now on columns are cut at the edges of their finest levels."""
        self.grid, self.is_fine = fine_grid(self.schema), True

    @property
    def clip(self) -> float:
        """What gradients are clamped to; one alone is never larger than 1."""
        if self.in_periods and self.strong:
            return math.inf  # both numbers as they are
        return rounded_number(min(self.rule.clip * self.gradient_unit, 1.0))

    @property
    def strong(self) -> bool:
        """Whether shortening a row's numbers in two periods would cost more than their noise."""
        return self.rates is not None and self.rates[1] * self.rule.strength >= STRONG

    def release(self, query: SumQuery, share: float, name: str) -> Measured | None:
        """One question at a share of the budget; None if its slot was lost earlier."""
        mu = self.gate.plan.budget.adaptive.mu
        try:
            release = self.gate.release(query, rounded_down(mu * math.sqrt(share)), name)
        except SlotSpent:
            return None
        return Measured.of(release, self.schema)

    def question(
        self,
        cuts: Sequence[tuple[int, ...]],
        update: str,
        weights: Floats | None = None,
        clip: float = math.inf,
        matrices: tuple[StrategyMatrix, ...] = (),
        matrix_of: tuple[int, ...] = (),
    ) -> ColumnSums:
        """A query of every column's sums by bin, some of them times strategy matrices."""
        n_bins = tuple(n_bins_of(grid, c) for c, grid in zip(cuts, self.grid, strict=True))
        equal = np.ones(len(self.columns)) if weights is None else weights
        return (FineColumnSums if self.is_fine else ColumnSums)(
            self.columns, tuple(cuts), n_bins, tuple(float(w) for w in equal),
            self.loss.name, self.gate.ensemble, update, clip, matrices, matrix_of,
        )  # fmt: skip

    def move(self, step: list[Floats]) -> None:
        """Add a step (output, bin) to every column's scores and let the parties know."""
        for j, by in enumerate(step):
            if np.any(by):
                moved = rounded(by).astype(np.float64)  # what is published, and nothing else
                self.theta[j] = self.theta[j] + moved
                self.gate.publish(self.step_tree(j, moved))

    def shift(self, by: Floats) -> None:
        """Add to the intercept (output,), or what all outputs of an effect share: (effect,)."""
        if np.any(by):
            if len(by) == self.n_effects:
                by = np.repeat(by, self.outputs_of)
            by = np.broadcast_to(rounded(by).astype(np.float64), self.intercept.shape)
            self.intercept = self.intercept + by
            self.gate.publish(single_leaf(by))

    def step_tree(self, column: int, scores: Floats) -> Tree:
        """A column's scores (output, bin) as a tree with a leaf a bin."""
        bins = self.bins[column]
        if column not in self._steps:  # bins are set once
            parts = Parts(column, bins.cuts, np.arange(bins.n_bins))
            self._steps[column] = structure_of(self.schema, self.grid, [parts])
        structure, of_leaf = self._steps[column]
        return Tree(structure, self.of_outputs(scores.T[of_leaf]))

    def of_outputs(self, values: Floats) -> NDArray[np.float32]:
        """Values (leaf, effect) for every output, as leaves hold them; one effect is for all."""
        if values.shape[1] < self.n_effects:
            values = np.repeat(values, self.n_effects, axis=1)
        return np.repeat(rounded(values), self.outputs_of, axis=1)

    def column_tree(self, column: int) -> Tree:
        """A column's scores after recalibration, with what is known of their noise and rows."""
        tree = self.step_tree(column, self.slope * self.theta[column])
        of_leaf = self._steps[column][1]
        rows = self.known.counts[column] / np.bincount(of_leaf, minlength=self.bins[column].n_bins)
        noise = None
        if self.deviations is not None:
            noise = self.of_outputs((self.slope * self.deviations[column]).T[of_leaf])
        cover = rows[of_leaf].astype(np.float32)
        return replace(tree, deviation=noise, cover=cover, independent=False)
