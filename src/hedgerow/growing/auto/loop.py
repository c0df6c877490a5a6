"""The default method as a program of sum queries: counts, main effects, tables, recalibration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.binning import base_grid
from hedgerow.errors import SettingsError, SlotSpent
from hedgerow.gate import Gate
from hedgerow.growing.auto.bins import Bins, bins_of, cell_cuts
from hedgerow.growing.auto.calibration import SCORE_EDGES, recalibrate
from hedgerow.growing.auto.parts import Parts, structure_of
from hedgerow.growing.auto.rule import COUNT_SHARE, MOST_ROUNDS, Rule, rule_for
from hedgerow.growing.auto.smoothing import centred, column_weights, directed, smooth
from hedgerow.growing.auto.start import (
    LABEL_CELLS,
    Known,
    centre_and_spread,
    class_rates,
    known_classes,
    known_rows,
)
from hedgerow.growing.auto.tables import (
    TAUS,
    cell_weights,
    chances,
    cut_parts,
    draw_columns,
    overlap,
)
from hedgerow.losses import loss_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Structure, Tree, single_leaf
from hedgerow.privacy.plan import Later, Wish
from hedgerow.privacy.reservation import Release
from hedgerow.queries import ColumnSums, LabelSums, LeafSums, ScoreCounts, SumQuery
from hedgerow.rng import stream
from hedgerow.schema import Schema
from hedgerow.settings import Settings

Floats = NDArray[np.float64]
MOST_TABLE_CELLS = 8192  # of one round
RETRY_SHARE = 0.15  # of mu^2: what a further attempt at a question may take
INTERCEPT_STEP = 0.7


def wishes(schema: Schema, settings: Settings) -> list[Wish]:
    """The listed part of the plan: a noisy row count, unless the number of rows is public."""
    check_directions(schema, settings)
    if settings.rows_hint:
        return []
    size = max(2, len(schema.label.classes))
    return [Wish("row count", LabelSums.kind, COUNT_SHARE, size)]


def check_directions(schema: Schema, settings: Settings) -> None:
    """Refuse directions that a model could not keep."""
    for name in settings.directions:
        if name not in schema.names:
            raise SettingsError(
                f"monotone names the column {name!r}, which the schema does not have; it has "
                f"{', '.join(schema.names)}"
            )
        if schema.columns[schema.names.index(name)].kind == "categorical":
            raise SettingsError(
                f"monotone names {name!r}, a column without order; make it ordinal in the schema, "
                "or leave it out"
            )
    if settings.directions and schema.label.task == "multiclass":
        raise SettingsError(
            "monotone has no meaning for more than two classes; leave it out, or predict one "
            "class against the rest"
        )


def later(schema: Schema, settings: Settings) -> Later:
    """The part that is priced once the row count is known: everything else."""
    width = max(1, len(schema.label.classes))
    cells = sum(grid.n_codes for grid in base_grid(schema))
    largest = max(width * cells, 2 * width * MOST_TABLE_CELLS)
    kinds = (ColumnSums.kind, LabelSums.kind, LeafSums.kind, ScoreCounts.kind)
    share = 1.0 - (0.0 if settings.rows_hint else COUNT_SHARE)
    return Later(share, RETRY_SHARE, largest * MOST_ROUNDS, MOST_ROUNDS, kinds)


def grow(gate: Gate) -> Ensemble:
    """Run the plan through the gate and return the model."""
    run = _Run(gate)
    n_rows = run.count()
    run.settle(n_rows)
    run.learn_label()
    run.learn_counts(n_rows)
    run.main_rounds()
    run.table_rounds()
    run.recalibrate()
    return run.ensemble()


@dataclass
class _Run:
    """State of one run: what is known, the scores of every column, the trees so far."""

    gate: Gate
    rule: Rule = field(init=False)
    known: Known = field(init=False)
    bins: list[Bins] = field(init=False)
    intercept: Floats = field(init=False)  # (output,)
    spread: float = 1.0  # of the label, for numbers: the unit of every score
    theta: list[Floats] = field(init=False)  # a column: (output, bin)
    tables: list[Tree] = field(default_factory=list)
    slope: float = 1.0

    def __post_init__(self) -> None:
        schema = self.gate.schema
        self.schema, self.grid = schema, base_grid(schema)
        self.loss, self.task = loss_for(schema.label), schema.label.task
        self.columns = tuple(range(len(schema.columns)))
        self.intercept = np.zeros(self.loss.n_outputs)
        signs = self.gate.plan.settings.directions
        self.direction = [signs.get(name, 0) for name in schema.names]  # of each column, 0 = any
        self.warm = len(self.gate.start)

    # -- questions

    def release(self, query: SumQuery, share: float, name: str) -> Release | None:
        """One question at a share of the budget; None if its slot was lost earlier."""
        rest = self.gate.plan.rest
        assert rest is not None
        try:
            return self.gate.release(query, rest.mu * math.sqrt(share) * (1 - 1e-9), name)
        except SlotSpent:
            return None

    def effective_mu(self, n_rows: float) -> float:
        """mu of all questions for one row: less for persons of several, or if nobody is trusted."""
        rest = self.gate.plan.rest
        assert rest is not None
        mu = rest.mu / self.schema.unit.at_most
        return mu / (2 * math.sqrt(max(n_rows, 1.0))) if self._local else mu

    @property
    def _local(self) -> bool:
        return self.gate.plan.privacy.trust == "nobody"

    def count(self) -> float:
        """The row count: declared public, or noisy."""
        hint = self.gate.plan.settings.rows_hint
        if hint:
            return float(hint)
        query = LabelSums(len(self.schema.label.classes))
        try:
            values = self.gate.release(query, name="row count").values
        except SlotSpent:
            return 1.0
        return float(values.sum() if self.schema.label.classes else values[0])

    def settle(self, n_rows: float, rate: float | None = None) -> None:
        self.rule = rule_for(n_rows, len(self.columns), self.effective_mu(n_rows), self.task, rate)

    def learn_label(self) -> None:
        """Numbers: centre and spread from a noisy histogram of the label."""
        if self.task != "regression":
            return
        query = LabelSums(0, LABEL_CELLS)
        release = self.release(query, self.rule.label_share, "label")
        centre, self.spread = 0.5, 0.25
        if release is not None:
            centre, self.spread = centre_and_spread(release.values, release.unit)
        self.intercept[0] = centre

    def learn_counts(self, n_rows: float) -> None:
        """Counts by class and cell of every column; bins, base rate, denominators follow."""
        rule, classes = self.rule, len(self.schema.label.classes)
        cuts = [cell_cuts(grid, rule.n_bins) for grid in self.grid]
        query = self._question(cuts, "averaging" if classes else "count")
        release = self.release(query, rule.start_share, "counts")
        noise = release.unit if release is not None else 1.0
        values = (
            release.values if release is not None else np.zeros(sum(b.size for b in query.blocks))
        )
        cells = query.split(values)
        rates = class_rates(cells) if classes else np.ones(1)
        self.settle(n_rows, float(rates[1]) if classes == 2 else None)
        total_noise = noise * math.sqrt(max(classes, 1))
        self.bins = [
            bins_of(grid, c, of.sum(axis=0), total_noise, self.rule.n_bins, self.rule.heavy)
            for grid, c, of in zip(self.grid, cuts, cells, strict=True)
        ]
        if classes:
            self.known = known_classes(cells, self.bins, rates, noise, self.rule.floor)
            self.intercept = _log_odds(rates)
        else:
            self.known = known_rows(cells, self.bins, noise, self.rule.floor)
        self.theta = [np.zeros_like(h) for h in self.known.hessians]
        if self.warm:  # the model that the run builds on knows the base rate and more
            self.intercept = np.zeros_like(self.intercept)
            self.known = replace(self.known, z_noise=np.full(self.loss.n_outputs, np.inf))
        else:
            self.gate.publish(single_leaf(self.intercept))

    def _question(
        self,
        cuts: Sequence[tuple[int, ...]],
        update: str,
        weights: Floats | None = None,
        clip: float = math.inf,
    ) -> ColumnSums:
        n_bins = tuple(
            (len(c) + 1 if grid.ordered else grid.n_cells) + 1
            for c, grid in zip(cuts, self.grid, strict=True)
        )
        equal = np.ones(len(self.columns)) if weights is None else weights
        return ColumnSums(
            self.columns, tuple(cuts), n_bins, tuple(float(w) for w in equal),
            self.loss.name, self.gate.ensemble, update, clip,
        )  # fmt: skip

    # -- main effects

    def main_rounds(self) -> None:
        """All columns at once: average what every round says of the scores, step toward it."""
        rule, known = self.rule, self.known
        prec = [
            rule.start_weight / (known.z_noise[:, None] * b.n_cells) for b in self.bins
        ]  # (output, bin) of each column
        mean = [z.copy() for z in known.z]
        for k in range(self.loss.n_outputs):
            one, _ = centred(
                [z[k] for z in mean],
                np.full(len(mean), known.z_noise[k])
                if np.isfinite(known.z_noise[k])
                else np.ones(len(mean)),
                [h[k] for h in known.hessians],
            )
            for z, moved in zip(mean, one, strict=True):
                z[k] = moved
        target = self._smoothed(mean, prec) if np.isfinite(known.z_noise).all() else self.theta
        step = [rule.first_step * t for t in target]
        share = rule.main_share / rule.main_rounds
        cuts = [b.cuts for b in self.bins]
        clip = rule.clip * self.spread
        for number in range(rule.main_rounds):
            self._move(step, np.zeros_like(self.intercept))
            weights = self._weights(target)
            query = self._question(cuts, "slope", weights, clip)
            release = self.release(query, share, f"main effects {number + 1}")
            if release is None:
                step = [np.zeros_like(t) for t in self.theta]
                continue
            noise = (release.unit / weights / self.spread) ** 2  # (column,) variance of a sum
            sums = [-part / self.spread for part in query.split(release.values)]
            shift = np.zeros_like(self.intercept)
            for k in range(self.loss.n_outputs):
                moved, by = centred([s[k] for s in sums], noise, [h[k] for h in known.hessians])
                shift[k] = INTERCEPT_STEP * by * self.spread
                for j, one in enumerate(moved):
                    z = one + known.hessians[j][k] * self.theta[j][k] / self.spread
                    old, new = rule.memory * prec[j][k], 1.0 / noise[j]
                    mean[j][k] = (old * mean[j][k] + new * z) / (old + new)
                    prec[j][k] = old + new
            target = [t * self.spread for t in self._smoothed(mean, prec)]
            self._move([np.zeros_like(t) for t in target], shift)
            step = [rule.eta * (t - now) for t, now in zip(target, self.theta, strict=True)]
        self._move(step, np.zeros_like(self.intercept))

    def _smoothed(self, mean: list[Floats], prec: list[Floats]) -> list[Floats]:
        columns = zip(mean, prec, self.known.hessians, self.grid, self.direction, strict=True)
        return [
            np.stack(
                [
                    directed(smooth(z, 1 / p, h, grid.ordered), h, sign)
                    for z, p, h in zip(zs, ps, hs, strict=True)
                ]
            )
            for zs, ps, hs, grid, sign in columns
        ]

    def _weights(self, target: list[Floats]) -> Floats:
        """Columns that matter to any output get less noise."""
        flat = [t.ravel() for t in target]
        return column_weights(flat, [h.ravel() for h in self.known.hessians], self.rule.uniform)

    def _move(self, step: list[Floats], shift: Floats) -> None:
        """Add a step to every column's scores and let the parties know."""
        if np.any(shift):
            self.intercept = self.intercept + shift
            self.gate.publish(single_leaf(shift))
        for j, moved in enumerate(step):
            if np.any(moved):
                self.theta[j] = self.theta[j] + moved
                self.gate.publish(self._step_tree(j, moved))

    def _step_tree(self, column: int, scores: Floats) -> Tree:
        """A column's scores (output, bin) as a tree with a leaf a bin."""
        bins = self.bins[column]
        parts = Parts(column, bins.cuts, np.arange(bins.n_bins))
        structure, of_leaf = structure_of(self.schema, self.grid, [parts])
        return Tree(structure, scores.T[of_leaf].astype(np.float32))

    # -- tables

    def table_rounds(self) -> None:
        """Rounds of small tables on what main effects leave; steps shrink by noise and overlap."""
        rule, known = self.rule, self.known
        if not rule.table_rounds:
            return
        flat = [t.ravel() for t in self.theta]
        chance = chances(flat, [h.ravel() for h in known.hessians], known.counts)
        # A table could turn an effect around, so columns with a direction stay out of them.
        chance = np.where(np.array(self.direction) != 0, 0.0, chance)
        if np.count_nonzero(chance) < 2:
            return
        chance /= chance.sum()
        votes = np.ones(TAUS.size)
        share = rule.table_share / rule.table_rounds
        update = "gradient" if self.task == "regression" else "newton"
        for number in range(rule.table_rounds):
            rng = stream(self.gate.plan.seed, "tables", number)
            shapes = [
                rule.shapes[(number if rule.old_steps else k) % len(rule.shapes)]
                for k in range(rule.n_tables)
            ]
            tables = [
                self._table(draw_columns(rng, chance, size), n_parts) for size, n_parts in shapes
            ]
            query = LeafSums(
                tuple(tables), self.loss.name, self.gate.ensemble, update, rule.clip * self.spread
            )
            release = self.release(query, share, f"tables {number + 1}")
            if release is None:
                continue
            depth = float(np.mean([size for size, _ in shapes]))
            damping = min(1.0, rule.overlap_gain * overlap(chance, rule.n_tables, depth))
            self._add_tables(tables, query, release, damping, votes)

    def _table(self, columns: NDArray[np.int64], n_parts: int) -> Structure:
        known, rule = self.known, self.rule
        parts = []
        for j in columns:
            scores = self.theta[j][0]
            ordered = self.grid[j].ordered
            part = cut_parts(known.counts[j], n_parts, ordered, scores, rule.table_power)
            parts.append(Parts(int(j), self.bins[j].cuts, part))
        return structure_of(self.schema, self.grid, parts)[0]

    def _add_tables(
        self,
        tables: list[Structure],
        query: LeafSums,
        release: Release,
        damping: float,
        votes: Floats,
    ) -> None:
        rule, bound = self.rule, query.bound
        sums = release.values.reshape(bound.width, -1)  # (number, leaf of all tables)
        noise = release.unit / self.spread
        floor = release.unit / bound.second_scale
        ends = np.cumsum([table.n_leaves for table in tables])
        log_tau = np.zeros_like(votes) if rule.old_steps else np.log(votes / votes.sum())
        for table, part in zip(tables, np.split(sums, ends[:-1], axis=1), strict=True):
            weights = []
            for k in range(self.loss.n_outputs):
                h = part[bound.first + min(k, bound.second - 1)]
                found, likely = cell_weights(
                    -part[k] / self.spread, h, noise,
                    1.0 if rule.old_steps else damping, log_tau, floor,
                )  # fmt: skip
                votes += likely
                weights.append(damping * self.spread * found)
            tree = Tree(table, np.stack(weights, axis=1).astype(np.float32))
            self.tables.append(tree)
            self.gate.publish(tree)

    # -- the end

    def recalibrate(self) -> None:
        """Clamped gradients bias probabilities; a few counts by score set slope and intercept."""
        if not self.rule.final_share:
            return
        if self.task == "binary":
            asked = ScoreCounts(2, SCORE_EDGES, self.gate.ensemble)
            release = self.release(asked, self.rule.final_share, "recalibration")
            if release is not None:
                counts = release.values.reshape(2, -1)
                shift, self.slope = recalibrate(counts[1], counts[0], release.unit)
                self.intercept = self.slope * self.intercept + shift
            return
        update = "gradient" if self.task == "regression" else "newton"
        leaf = single_leaf(self.intercept).structure
        query_ = LeafSums((leaf,), self.loss.name, self.gate.ensemble, update)
        release = self.release(query_, self.rule.final_share, "recalibration")
        if release is not None:
            sums, bound = release.values, query_.bound
            n = np.maximum(sums[bound.first :], 10 * release.unit / bound.second_scale)
            self.intercept = self.intercept - sums[: bound.first] / n

    def ensemble(self) -> Ensemble:
        """One constant, one tree a column, and the tables."""
        start = [Tree(t.structure, t.values * np.float32(self.slope)) for t in self.gate.start]
        trees = [*start, single_leaf(self.intercept)]
        for j, scores in enumerate(self.theta):
            if np.any(scores):
                trees.append(self._step_tree(j, self.slope * scores))
        factor = np.float32(self.slope)
        trees += [Tree(tree.structure, tree.values * factor) for tree in self.tables]
        plan, statement = self.gate.plan, self.gate.statement()
        record = {
            "method": plan.method,
            "run": plan.run,
            "plan": plan.hash,
            "settings": plan.settings.to_dict(),
            "rounds": statement.releases,
            "strength": self.rule.strength,
        }
        return Ensemble(tuple(trees), self.schema, statement, False, record)


def _log_odds(rates: Floats) -> Floats:
    """Scores of a constant model: (output,)."""
    return np.array([math.log(rates[1] / rates[0])]) if len(rates) == 2 else np.log(rates)
