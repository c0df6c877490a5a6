"""The default method as sum queries: counts, main effects, interactions, recalibration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid, fine_columns
from hedgerow.data.schema import Schema
from hedgerow.errors import SettingsError, SlotSpent
from hedgerow.kernels.threads import one_blas_thread
from hedgerow.methods.auto.bins import cell_cuts
from hedgerow.methods.auto.calibration import SCORE_EDGES, recalibrate
from hedgerow.methods.auto.counts import grow_counts
from hedgerow.methods.auto.fine_cells import MOST_FINE_BINS
from hedgerow.methods.auto.first_counts import binned, first_counts
from hedgerow.methods.auto.interaction_rounds import add_interactions
from hedgerow.methods.auto.label_scale import by_chance_of, label_cells, label_scale, last_step
from hedgerow.methods.auto.main_effects import main_rounds
from hedgerow.methods.auto.rule import (
    COUNT_SHARE,
    DICTIONARY_TABLES,
    LABEL_CELLS,
    MOST_ROUNDS,
    Rule,
    events_needed,
    rule_for,
)
from hedgerow.methods.auto.start import (
    Counted,
    class_rates,
    counted_by_columns,
    known_classes,
    known_for_regression,
)
from hedgerow.methods.auto.state import Measured, Run, mu_of_a_row
from hedgerow.methods.auto.survival import (
    COUNTED,
    MOST_MAIN_ROUNDS,
    MOST_TABLE_ROUNDS,
    OUTCOME_SHARE,
    SCORE_BINS,
    check_start,
    grow_survival,
)
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.rounding import rounded, rounded_number
from hedgerow.model.tree import single_leaf
from hedgerow.privacy.accounting.budget import DeclaredQuery
from hedgerow.privacy.accounting.gaussian_budget import AdaptiveQueries
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.settings import AutoSettings, Settings, settings_table
from hedgerow.queries import ColumnSums, FineColumnSums, LabelSums, LeafSums, ScoreCounts, n_bins_of

Floats = NDArray[np.float64]
MOST_BINS, MOST_CELLS, MOST_TABLE_COORDINATES = 66, 32, 2 * 12 * 625
FINE_TASKS = ("binary", "multiclass", "regression")  # that look for heavy fine cells
MOST_BLOCK_COORDINATES = DICTIONARY_TABLES * 216
FEW_ROUNDS_TASKS = {"survival": "times to an event", "counts": "counts"}
RETRY_SHARE = 0.15  # of mu^2: what a further attempt at a question may take


def declared_queries(schema: Schema, settings: Settings) -> list[DeclaredQuery]:
    """The listed part of the plan: a noisy row count, unless the number of rows is public."""
    settings = AutoSettings.of(settings)
    _check_directions(schema, settings)
    _check_rounds(schema, settings)
    if schema.label.task == "survival":
        check_start(settings, "times to an event")
        outcomes = schema.label.n_outcomes
        return [DeclaredQuery(COUNTED, LabelSums.kind, OUTCOME_SHARE, outcomes)]
    if schema.label.task == "counts":
        check_start(settings, "counts")
    elif settings.rows_hint:
        return []
    size = max(2, len(schema.label.classes))
    return [DeclaredQuery("row count", LabelSums.kind, COUNT_SHARE, size)]


def adaptive_queries(schema: Schema, settings: Settings) -> AdaptiveQueries:
    """The part that is priced once the row count is known: everything else."""
    settings = AutoSettings.of(settings)
    task, classes = schema.label.task, len(schema.label.classes)
    outputs = classes if task == "multiclass" else 1
    cells = bins = 0
    has_fine = False
    for grid in base_grid(schema):
        n = n_bins_of(grid, cell_cuts(grid, MOST_CELLS))
        cells, bins = cells + n, bins + (min(n, MOST_BINS) if grid.ordered else n)
        if grid.fine.size and task in FINE_TASKS:
            cells, bins = cells + grid.fine.size + 2, bins + MOST_FINE_BINS - MOST_BINS
            has_fine = True
    if task == "survival":
        outcomes, n = schema.label.n_outcomes, 1 + (schema.label.n_first > 0)  # periods
        coordinates = (n + 1) * cells + MOST_MAIN_ROUNDS * n * bins + outcomes * SCORE_BINS
        coordinates += MOST_TABLE_ROUNDS * MOST_TABLE_COORDINATES
        asked = (ColumnSums.kind, LabelSums.kind, LeafSums.kind, ScoreCounts.kind)
        slots = MOST_ROUNDS - 1
        return AdaptiveQueries(1.0 - OUTCOME_SHARE, RETRY_SHARE, coordinates, slots, asked)
    coordinates = (
        cells * max(2, classes) + 10 * bins * outputs + LABEL_CELLS + 4 * max(2, classes) + 64
    )
    coordinates += 9 * (outputs * MOST_TABLE_COORDINATES + 2)
    more = settings.rounds - MOST_ROUNDS
    coordinates += more * outputs * MOST_BLOCK_COORDINATES
    kinds: tuple[str, ...] = (ColumnSums.kind, LabelSums.kind, LeafSums.kind, ScoreCounts.kind)
    if has_fine:
        kinds = (FineColumnSums.kind, *kinds)
    counted = task == "counts" or not settings.public_rows
    share = 1.0 - (COUNT_SHARE if counted else 0.0)
    slots = settings.rounds - (1 if counted else 0)
    return AdaptiveQueries(share, RETRY_SHARE, coordinates, slots, kinds)


def events_of_plan(plan: Plan, schema: Schema) -> float | None:
    """How many events a model of times needs to be more than one curve; None if that is unknown.

    Where every row has noise of its own it takes the number of rows to know.
    """
    n_rows = plan.settings.public_rows
    if plan.privacy.trusted.local and not n_rows:
        return None
    return events_needed(len(schema.columns), mu_of_a_row(plan, schema, n_rows or 1))


def rule_of_plan(plan: Plan, schema: Schema) -> Rule | None:
    """The settings of a plan before it is run, if it says how many rows there are."""
    n_rows = plan.settings.public_rows
    if not n_rows:
        return None
    mu = mu_of_a_row(plan, schema, n_rows)
    classes = len(schema.label.classes)
    equal = [1 / classes] * classes if classes else None  # nothing is known of them yet
    free = len(schema.columns) - len(plan.settings.directions)
    about = (schema.label.task, equal, free, len(fine_columns(base_grid(schema))))
    return rule_for(n_rows, len(schema.columns), mu, *about, plan.settings.most_rounds)


def grow(gate: Gate) -> Ensemble:
    """Run the plan through the gate and return the model.

    A slot that an earlier process charged and lost is skipped; what it would have said is missing.
    """
    with one_blas_thread():
        run = Run(gate)
        if run.task == "survival":
            grow_survival(run)
            return _ensemble(run)
        if run.task == "counts":
            grow_counts(run)
            return _ensemble(run)
        run.settle(*_count(run))
        _learn_label(run)
        _learn_counts(run)
        main_rounds(run)
        add_interactions(run)
        _recalibrate(run)
        return _ensemble(run)


def _check_directions(schema: Schema, settings: AutoSettings) -> None:
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
            "monotone has no meaning for multiclass labels; leave it out, or predict one "
            "class against the rest"
        )


def _check_rounds(schema: Schema, settings: AutoSettings) -> None:
    """Refuse rounds that would never be used."""
    if settings.rounds > MOST_ROUNDS and schema.label.task in FEW_ROUNDS_TASKS:
        raise SettingsError(
            f"rounds is {settings.rounds}, and {FEW_ROUNDS_TASKS[schema.label.task]} are asked in "
            f"at most {MOST_ROUNDS} rounds; leave rounds out. Nothing was asked."
        )


def _count(run: Run) -> tuple[float, Sequence[float] | None]:
    """Rows, and the shares of the classes: noisy, unless the rows are public."""
    hint, classes = run.gate.plan.settings.public_rows, run.schema.label.classes
    if hint:
        return float(hint), None
    try:
        release = run.gate.release(LabelSums(len(classes)), name="row count")
    except SlotSpent:
        return 1.0, None
    counted = Measured.of(release, run.schema)
    values = counted.values
    n_rows = max(float(values.sum() if classes else values[0]), 1.0)
    if not classes:
        return n_rows, None
    run.counted = Counted(values, max(counted.unit, 1e-9) ** 2)
    if len(classes) == 2:
        rate = min(max(float(values[1]) / n_rows, 0.02), 0.98)
        return n_rows, (1 - rate, rate)
    return n_rows, class_rates([run.counted]).tolist()


def _learn_label(run: Run) -> None:
    """Numbers: centre and spread from a noisy histogram of the label."""
    if run.task != "regression":
        return
    cells = label_cells(run.loss, run.rule.label_cells)
    release = run.release(LabelSums(0, cells), run.rule.label_share, "label")
    centre, run.spread, run.gradient_unit = 0.5, 0.25, 0.25
    if release is not None:
        found = label_scale(run.loss, release.values, release.unit)
        centre, run.spread, run.gradient_unit = found
    if not run.gate.start:
        run.shift(np.array([centre]))


def _learn_counts(run: Run) -> None:
    """Counts by class and cell of every column; bins, base rate and denominators follow."""
    rule, classes = run.rule, len(run.schema.label.classes)
    first = first_counts(run)
    noise, cells = first.noise, first.cells
    rates = np.zeros(0)
    if classes:
        counted = [run.counted] if run.counted is not None and first.said else []
        rates = class_rates([*counted_by_columns(cells, noise), *counted])
    if classes and run.gate.plan.settings.public_rows:  # no count has told the classes' shares yet
        run.settle(float(run.gate.plan.settings.public_rows), rates.tolist())
        rule = run.rule
    run.bins, cells = binned(run, first)
    if classes:
        steep = classes > 2 and rule.interaction_share > 0
        run.known = known_classes(cells, run.bins, rates, noise, rule.floor, rule.clip, steep)
        start = np.array([math.log(rates[1] / rates[0])]) if classes == 2 else np.log(rates)
    else:
        known = (noise / run.gradient_unit, first.of_count, run.gradient_unit, rule.clip)
        run.known = by_chance_of(run.loss, known_for_regression(cells, run.bins, *known))
        start = np.zeros(1)
    run.theta = [np.zeros_like(h) for h in run.known.hessians]
    builds_on = bool(run.gate.start) and classes > 0  # that knows the base rate and more
    if builds_on or not first.said:
        run.known = replace(run.known, z_noise=np.full_like(run.known.z_noise, np.inf))
    if not builds_on:
        run.shift(start)


def _recalibrate(run: Run) -> None:
    """Clamped gradients bias probabilities; a few counts by score set slope and intercept."""
    share = run.rule.final_share
    if run.task == "binary":
        counted = run.release(
            ScoreCounts(2, SCORE_EDGES, run.gate.ensemble), share, "recalibration"
        )
        if counted is not None:
            zeros, ones = counted.values.reshape(2, -1)
            shift, slope = recalibrate(ones, zeros, counted.unit)
            run.slope = rounded_number(slope)
            run.intercept = run.slope * run.intercept + shift
        return
    update = "gradient" if run.task == "regression" else "newton"
    leaf = single_leaf(run.intercept).structure
    clip = run.clip if run.task == "regression" else math.inf
    query = LeafSums((leaf,), run.loss.name, run.gate.ensemble, update, clip)
    release = run.release(query, share, "recalibration")
    if release is not None:
        bound, sums = query.bound, release.values
        n = np.maximum(sums[bound.first :], 10 * release.unit / bound.second_scale)
        run.intercept = run.intercept - last_step(run.loss) * (
            run.spread / run.gradient_unit * sums[: bound.first] / n
        )


def _ensemble(run: Run) -> Ensemble:
    """What the run builds on, one constant, one tree a column, and the interaction tables."""
    trees = [tree.scaled(run.slope) for tree in run.gate.start]
    trees.append(single_leaf(rounded(run.intercept)))
    for j, scores in enumerate(run.theta):
        if np.any(scores):
            trees.append(run.column_tree(j))
    trees += [tree.scaled(run.slope) for tree in run.interactions]
    plan, statement = run.gate.plan, run.gate.statement()
    record = {
        "method": plan.method,
        "run": plan.run,
        "plan": plan.hash,
        "settings": settings_table(plan.settings),
        "rounds": statement.releases,
        "strength": run.rule.strength,
        **({"curve_for_all": not run.rule.main_rounds} if run.task == "survival" else {}),
    }
    return Ensemble(tuple(trees), run.schema, statement, False, record)
