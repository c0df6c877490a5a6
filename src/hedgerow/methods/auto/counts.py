"""Counts with exposure: one rate for all, effects of all columns at once, then the mean anew.

A row is in one cell of every column with one number: what is expected of it less its count, clamped
to a size that a noisy histogram of the counts says. Scores are logarithms, so effects multiply.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.counts import count_edges
from hedgerow.errors import SlotSpent
from hedgerow.methods.auto.bins import EMPTY, bins_of, cell_cuts
from hedgerow.methods.auto.interaction_rounds import add_interactions
from hedgerow.methods.auto.main_effects import main_rounds
from hedgerow.methods.auto.start import even_counts, known_for_regression
from hedgerow.methods.auto.state import Measured, Run
from hedgerow.methods.auto.survival import with_hessians
from hedgerow.model.rounding import rounded_number
from hedgerow.model.tree import single_leaf
from hedgerow.queries import LabelSums, LeafSums

Floats = NDArray[np.float64]
CLIP = 1.5  # deviations of the counts to which gradients are clamped, at least one count
MOST_CORRECTION = 1.0  # of the intercept, at the end


@dataclass(frozen=True)
class Seen:
    """What the first questions say of the counts."""

    exposure: float  # of all rows, in units of the largest
    mean: float  # count of a row
    variance: float
    largest: float  # a count that few rows exceed

    @property
    def clip(self) -> float:
        """What a row's gradient is clamped to, in counts."""
        return max(1.0, CLIP * math.sqrt(self.variance))


def grow_counts(run: Run) -> None:
    """Ask and learn; what was learned stands in the run."""
    cap = run.loss.parameter
    n_rows, exposure = _count(run)
    run.settle(n_rows, None)
    run.gradient_unit = 1 / cap  # gradients are counts
    seen = _learn_label(run, n_rows, exposure)
    rate = seen.mean * n_rows / seen.exposure  # at the largest exposure
    run.row_hessian = rate
    share = min(seen.mean / min(seen.clip, cap), 1.0)
    run.settle(n_rows, (1 - share, share))
    run.rule = replace(run.rule, clip=min(seen.clip, cap))
    run.shift(np.array([min(math.log(rate / cap), 0.0)]))
    _learn_cells(run, rate, seen)
    main_rounds(run)
    run.row_hessian = 1 / run.gradient_unit  # tables ask for expected counts themselves
    add_interactions(run)
    _recalibrate(run, seen, n_rows)


def _count(run: Run) -> tuple[float, float]:
    """Rows (public if they are), and their exposures together; a guess if that was lost."""
    hint = run.gate.plan.settings.public_rows
    try:
        release = run.gate.release(LabelSums(0), name="row count")
    except SlotSpent:
        return float(hint or 1), float(hint or 1)
    counted = Measured.of(release, run.schema)
    rows = float(hint) if hint else max(float(counted.values[0]), 1.0)
    least = max(0.01 * rows, min(counted.unit, 0.5 * rows))
    return rows, min(max(float(counted.values[1]), least), rows)


def _learn_label(run: Run, n_rows: float, exposure: float) -> Seen:
    """Mean and variance of the counts from a noisy histogram; one count a row if it was lost."""
    edges = count_edges(run.loss.parameter)
    release = run.release(LabelSums(0, len(edges)), run.rule.label_share, "label")
    if release is None:
        return Seen(exposure, 1.0, 1.0, run.loss.parameter)
    return seen_in(release, edges, run.loss.parameter, n_rows, exposure)


def seen_in(
    release: Measured, edges: NDArray[np.int64], cap: float, n_rows: float, exposure: float
) -> Seen:
    """What a noisy histogram by cells of counts says; cells that are mostly noise count nothing."""
    ends = np.append(edges[1:] - 1, cap)
    middles = (edges + np.minimum(ends, 1.25 * edges)) / 2
    mass = np.where(release.values < EMPTY * release.unit, 0.0, np.maximum(release.values, 0.0))
    total = float(mass.sum())
    if total <= 0 or not np.any(mass[1:]):  # no count rises above the noise: at most so many do
        mean = max(release.unit, 1.0) / max(n_rows, 1.0)
        return Seen(exposure, min(mean, 1.0), min(mean, 1.0), 1.0)
    mean = float(mass @ middles) / total
    variance = float(mass @ (middles - mean) ** 2) / total
    return Seen(exposure, mean, variance, float(ends[np.flatnonzero(mass)[-1]]))


def _learn_cells(run: Run, rate: float, seen: Seen) -> None:
    """Exposures, and counts that one rate does not expect, by cell of every column."""
    rule = run.rule
    cuts = [cell_cuts(grid, rule.n_cells) for grid in run.grid]
    query = run.question(cuts, "gradient", clip=run.clip)
    release = run.release(query, rule.start_share, "counts")
    if release is not None:
        noise, cells = release.unit, query.split(release.values)  # (g | exposure, cell)
    else:
        noise, cells = 0.0, even_counts(query.n_bins, seen.exposure, None, 0)
    of_count = noise / query.bound.second_scale
    run.bins = [
        bins_of(grid, c, of[1], of_count, rule.n_bins, rule.heavy)
        for grid, c, of in zip(run.grid, cuts, cells, strict=True)
    ]
    unit = run.gradient_unit
    known = known_for_regression(cells, run.bins, noise / unit, of_count, unit, rule.clip)
    run.known = with_hessians(run, known, np.array([rate]))
    # Counts of a bin vary from sample to sample by their mean, and more where rows differ; a
    # clamped row by no more than twice its clip times its mean.
    wide = min(max(seen.variance / seen.mean, 0.5), 2 * rule.clip)
    run.known = replace(run.known, sampling=[wide * h for h in run.known.hessians])
    run.theta = [np.zeros_like(h) for h in run.known.hessians]
    if release is None:
        run.known = replace(run.known, z_noise=np.full_like(run.known.z_noise, np.inf))


def _recalibrate(run: Run, seen: Seen, n_rows: float) -> None:
    """Clamping leaves out what is beyond; a sum that clamps hardly anything sets the mean."""
    clip = min(max(seen.largest, run.rule.clip), run.loss.parameter) * run.gradient_unit
    leaf = single_leaf(run.intercept).structure
    query = LeafSums(
        (leaf,), run.loss.name, run.gate.ensemble, "slope", rounded_number(clip)
    )  # fmt: skip
    release = run.release(query, run.rule.final_share, "recalibration")
    if release is None:
        return
    total = max(seen.mean * n_rows, 1.0)
    over, noise = (float(of) / run.gradient_unit for of in (release.values[0], release.unit))
    trust = total**2 / (total**2 + noise**2)
    ratio = max(1 - over / total, math.exp(-MOST_CORRECTION))
    run.intercept = run.intercept + trust * min(math.log(ratio), MOST_CORRECTION)
