"""Times to an event: a base line of hazards, effects of all columns at once, recalibration.

A person is in one cell of every column with one number between -1 and 1: the hazards it was seen
through less its event; where effects may change at a cut, with two numbers, no longer together. So
it is in the cells of interaction tables, where there are events enough.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import SettingsError, SlotSpent
from hedgerow.methods.auto.base_line import (
    Outcomes,
    Scores,
    kaplan_meier,
    recalibrated,
)
from hedgerow.methods.auto.bins import bins_of, cell_cuts
from hedgerow.methods.auto.interaction_rounds import add_interactions
from hedgerow.methods.auto.main_effects import main_rounds
from hedgerow.methods.auto.periods import spread_scores
from hedgerow.methods.auto.start import Known, even_counts, known_for_regression
from hedgerow.methods.auto.state import Measured, Run
from hedgerow.model.rounding import rounded_number, settled
from hedgerow.privacy.settings import AutoSettings
from hedgerow.queries import LabelSums, ScoreCounts

Floats = NDArray[np.float64]
COUNTED = "times and events"
OUTCOME_SHARE = 0.05  # of mu^2, for the first counts of times and events
MOST_MAIN_ROUNDS, MOST_TABLE_ROUNDS = 6, 9
SCORE_BINS = 16
LEAST_RATIO, MOST_RATIO = 0.2, 5.0  # of a bin's events to what the base line says


def check_start(settings: AutoSettings, what: str) -> None:
    """Refuse what a model of times to an event, or of counts, cannot do."""
    if settings.warm_start:
        raise SettingsError(
            f"a model of {what} cannot build on another; leave warm_start_from out. "
            "Nothing was asked."
        )


def grow_survival(run: Run) -> None:
    """Ask and learn; what was learned stands in the run."""
    outcomes = _count(run)
    rate = outcomes.n_events / outcomes.n_rows
    run.settle(outcomes.n_rows, (1 - rate, rate))
    cuts = run.schema.label.cuts
    if not run.rule.main_rounds:
        again = run.release(LabelSums(run.schema.label.n_outcomes), 1.0, "curve for all")
        if again is not None:
            outcomes = outcomes.together(Outcomes(again.values, again.unit))
        run.bins, run.theta = [], []
        run.shift(np.log(kaplan_meier(outcomes, cuts)))
        return
    run.shift(np.log(kaplan_meier(outcomes, cuts)))
    _learn_counts(run, outcomes.rates(run.outputs_of))
    main_rounds(run)
    run.row_hessian = 1.0  # tables ask for the hazards that rows were seen through themselves
    add_interactions(run)
    _recalibrate(run, outcomes)


def _count(run: Run) -> Outcomes:
    """Rows by cell of time and event; a curve that falls by half, of few rows, if they are lost."""
    n = run.schema.label.n_outcomes
    try:
        release = run.gate.release(LabelSums(n), name=COUNTED)
    except SlotSpent:
        return Outcomes(np.full(n, 1.0), 0.0, is_known=False)
    counted = Measured.of(release, run.schema)
    return Outcomes(counted.values, counted.unit)


def _learn_counts(run: Run, rates: Floats) -> None:
    """Rows, and events that the base line does not expect, by cell of every column."""
    rule = run.rule
    cuts = [cell_cuts(grid, rule.n_cells) for grid in run.grid]
    query = run.question(cuts, "gradient", clip=run.clip)
    release = run.release(query, rule.start_share, "counts")
    if release is not None:
        noise, cells = release.unit, query.split(release.values)  # (g of each period.. | n, cell)
    else:
        even = even_counts(query.n_bins, run.n_rows, None, 0)
        noise, cells = 0.0, [np.vstack([of[:1]] * (run.n_effects - 1) + [of]) for of in even]
    of_count = noise / query.bound.second_scale
    run.bins = [
        bins_of(grid, c, of[-1], of_count, rule.n_bins, rule.heavy)
        for grid, c, of in zip(run.grid, cuts, cells, strict=True)
    ]
    known = known_for_regression(cells, run.bins, noise, of_count, 1.0, rule.clip)
    known = replace(known, z_noise=np.repeat(known.z_noise, run.n_effects))
    run.known = with_hessians(run, known, rates)
    run.theta = [np.zeros_like(h) for h in run.known.hessians]
    if release is None:
        run.known = replace(run.known, z_noise=np.full_like(run.known.z_noise, np.inf))


def with_hessians(run: Run, known: Known, rates: Floats) -> Known:
    """Denominators: how fast the expected events of a bin rise with its score, on its way.

    `rates` (effect,) are the events that a row is expected to have. E0 events are expected by the
    base line and E are seen. At the score t it expects E0 e^t, so it gets there at log(E / E0), and
    rises by (E - E0) / log(E / E0) on average. E is known with noise: what does not surely differ
    from E0 is taken for it.
    """
    hessians = []
    before = float(np.exp(run.intercept[: run.outputs_of[0]]).sum())  # hazards of the first period
    for counts, z, bins in zip(known.counts, known.z, run.bins, strict=True):
        expected = np.maximum(rates[:, None] * counts, 1e-9)  # (effect, bin)
        noise = known.z_noise[:, None] * bins.n_cells
        ratio = _ratio(z, expected, noise)
        if run.in_periods:
            # Where more had their event in the first period, fewer are at risk in the second.
            expected[1] *= np.exp(-before * (ratio[0] - 1))
            ratio[1] = _ratio(z[1], expected[1], noise[1])
        apart = np.abs(ratio - 1) > 1e-6
        mean = np.where(apart, (ratio - 1) / np.where(apart, np.log(ratio), 1.0), 1.0)
        hessians.append(expected * mean)
    # Events of a bin vary from sample to sample about as counts do: by their expectation.
    return replace(known, hessians=hessians, sampling=hessians)


def _ratio(z: Floats, expected: Floats, noise: Floats) -> Floats:
    """Events seen to those expected, as far as they surely differ."""
    trust = np.maximum(0.0, 1 - noise / np.maximum(z**2, 1e-12))
    return np.asarray(np.clip(1 + trust * z / expected, LEAST_RATIO, MOST_RATIO))


def _recalibrate(run: Run, outcomes: Outcomes) -> None:
    """Clamping makes scores of high risk too high; counts by score set slope and base line."""
    hazards = np.exp(run.intercept)
    base, cuts = float(np.log(hazards.sum())), run.schema.label.cuts
    if run.in_periods:
        by_period = np.add.reduceat(hazards, [0, run.outputs_of[0]])
        edges, u, law = spread_scores(run.theta, run.known.counts, by_period, SCORE_BINS)
        u = np.repeat(u, run.outputs_of, axis=1)  # (score bin, interval)
    else:
        scores = Scores.of([t[0] for t in run.theta], run.known.counts)
        edges = scores.edges(SCORE_BINS)
        u, law = scores.by_bin(edges)
    query = ScoreCounts(run.schema.label.n_outcomes, settled(base + edges), run.gate.ensemble)
    counted = run.release(query, run.rule.final_share, "recalibration")
    if counted is not None:
        table = counted.values.reshape(-1, SCORE_BINS)
        slope, hazards = recalibrated(table, counted.unit, u, law, outcomes, cuts)
        run.slope = rounded_number(slope)
        run.intercept = np.log(hazards)
