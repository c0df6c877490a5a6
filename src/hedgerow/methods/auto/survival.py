"""Times to an event: a base line of hazards, effects of all columns at once, recalibration.

A person is in one cell of every column with one number between -1 and 1: the hazards it was seen
through less its event. So it is in the cells of interaction tables, where there are events enough.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import SettingsError, SlotSpent
from hedgerow.methods.auto.base_line import Outcomes, Scores, kaplan_meier, recalibrated
from hedgerow.methods.auto.bins import bins_of, cell_cuts
from hedgerow.methods.auto.interaction_rounds import add_interactions
from hedgerow.methods.auto.main_effects import main_rounds
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
    _learn_counts(run, max(rate, 1 / outcomes.n_rows))
    main_rounds(run)
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


def _learn_counts(run: Run, rate: float) -> None:
    """Rows, and events that the base line does not expect, by cell of every column."""
    rule, run.row_hessian = run.rule, rate
    cuts = [cell_cuts(grid, rule.n_cells) for grid in run.grid]
    query = run.question(cuts, "gradient", clip=rule.clip)
    release = run.release(query, rule.start_share, "counts")
    if release is not None:
        noise, cells = release.unit, query.split(release.values)  # (g | n, cell)
    else:
        noise, cells = 0.0, even_counts(query.n_bins, run.n_rows, None, 0)
    of_count = noise / query.bound.second_scale
    run.bins = [
        bins_of(grid, c, of[1], of_count, rule.n_bins, rule.heavy)
        for grid, c, of in zip(run.grid, cuts, cells, strict=True)
    ]
    known = known_for_regression(cells, run.bins, noise, of_count, 1.0, rule.clip)
    run.known = with_hessians(run, known, rate)
    run.theta = [np.zeros_like(h) for h in run.known.hessians]
    if release is None:
        run.known = replace(run.known, z_noise=np.full_like(run.known.z_noise, np.inf))


def with_hessians(run: Run, known: Known, rate: float) -> Known:
    """Denominators: how fast the expected events of a bin rise with its score, on its way.

    E0 events are expected by the base line and E are seen. At the score t it expects E0 e^t, so it
    gets there at log(E / E0), and rises by (E - E0) / log(E / E0) on average. E is known with
    noise: what does not surely differ from E0 is taken for it.
    """
    hessians = []
    for counts, z, bins in zip(known.counts, known.z, run.bins, strict=True):
        expected = np.maximum(rate * counts, 1e-9)  # (bin,)
        variance = known.z_noise[0] * bins.n_cells
        trust = np.maximum(0.0, 1 - variance / np.maximum(z[0] ** 2, 1e-12))
        ratio = np.clip(1 + trust * z[0] / expected, LEAST_RATIO, MOST_RATIO)
        apart = np.abs(ratio - 1) > 1e-6
        mean = np.where(apart, (ratio - 1) / np.where(apart, np.log(ratio), 1.0), 1.0)
        hessians.append((expected * mean)[None, :])
    # Events of a bin vary from sample to sample about as counts do: by their expectation.
    return replace(known, hessians=hessians, sampling=hessians)


def _recalibrate(run: Run, outcomes: Outcomes) -> None:
    """Clamping makes scores of high risk too high; counts by score set slope and base line."""
    base = float(np.log(np.exp(run.intercept).sum()))
    scores = Scores.of([t[0] for t in run.theta], run.known.counts)
    edges = scores.edges(SCORE_BINS)
    u, law = scores.by_bin(edges)
    label, places = run.schema.label, settled(base + edges)
    query = ScoreCounts(label.n_outcomes, places, run.gate.ensemble)
    counted = run.release(query, run.rule.final_share, "recalibration")
    if counted is not None:
        table = counted.values.reshape(-1, SCORE_BINS)
        slope, hazards = recalibrated(table, counted.unit, u, law, outcomes, label.cuts)
        run.slope = rounded_number(slope)
        run.intercept = np.log(hazards)
