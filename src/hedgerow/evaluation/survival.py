"""Measures of times to an event: of rows, and from noisy counts by cell and risk. Pure functions.

Counts are (cell, group): cells of time and event as in `data.survival`, groups of rising risk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.evaluation.log_rank import log_rank
from hedgerow.evaluation.result import (
    WIDTH,
    BrierPoint,
    CalibrationPoint,
    Findings,
    Measure,
    SurvivalPoint,
    measure,
)
from hedgerow.evaluation.risk_groups import RiskGroups

Floats = NDArray[np.float64]
SHOWN_GROUPS = 5  # whose curves are shown
_FEW = 256  # rows that are compared with each other at once


def concordance(risk: Floats, times: Floats, events: NDArray[np.bool_]) -> float:
    """Harrell's concordance: of pairs whose order is known, the share that `risk` orders alike.

    A pair is comparable if the earlier of the two had its event, or if both have one time and one
    of them its event; equal risks count half. NaN if there is no such pair.

    >>> risk, times = np.array([3.0, 2.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])
    >>> round(concordance(risk, times, np.array([True, True, False, True])), 3)
    0.9
    """
    order = np.lexsort((~events, times))  # at one time events come first
    risk, times, events = risk[order], times[order], events[order]
    agreed, n_pairs = _later(risk, events)
    # Two events at one time say nothing about who is at higher risk: taken out again.
    starts = np.flatnonzero(np.append(True, np.diff(times) > 0))
    for begin, end in zip(starts, np.append(starts[1:], len(times)), strict=True):
        tied = risk[begin:end][events[begin:end]]
        if len(tied) > 1:
            again, pairs = _later(tied, np.ones(len(tied), np.bool_))
            agreed, n_pairs = agreed - again, n_pairs - pairs
    return agreed / n_pairs if n_pairs else float("nan")


def _later(risk: Floats, events: NDArray[np.bool_]) -> tuple[float, int]:
    """Pairs of an event and a row behind it, and how many of them `risk` orders alike."""
    n = len(risk)
    if n <= _FEW:
        behind = np.triu(np.ones((n, n), np.bool_), 1) & events[:, None]
        alike = (risk[:, None] > risk) + 0.5 * (risk[:, None] == risk)
        return float(alike[behind].sum()), int(behind.sum())
    half = n // 2
    first, second = np.sort(risk[:half][events[:half]]), np.sort(risk[half:])
    below = np.searchsorted(second, first, side="left")
    up_to = np.searchsorted(second, first, side="right")
    across = 0.5 * float(below.sum() + up_to.sum())
    left, right = _later(risk[:half], events[:half]), _later(risk[half:], events[half:])
    return left[0] + right[0] + across, left[1] + right[1] + len(first) * len(second)


def grouped_concordance(counts: Floats, first: Floats, noise: float = 0.0) -> float:
    """The concordance of rows known by interval and group.

    An event and a row that outlived its interval are in order. Of two events in one interval
    `first` (interval, group, group) says how likely that of the first group came first; an event
    and a censored row of one interval are in order half of the time. `noise` is taken out of
    squares, which it makes larger.
    """
    events, censored, later = counts[1::2], counts[:-1:2], _behind(counts)
    pairs = float(events.sum(axis=1) @ (later + censored / 2).sum(axis=1))
    rest = later + censored / 2
    agreed = float(np.sum(events * (np.cumsum(rest, axis=1) - rest / 2)))
    both = events[:, :, None] * events[:, None, :]  # (interval, group, group)
    groups = np.arange(counts.shape[1])
    both[:, groups, groups] = (events**2 - events - noise**2) / 2
    lower = np.tril(np.ones(both.shape[1:]))  # the first of higher risk, or of the same
    pairs += float(np.sum(both * lower))
    agreed += float(np.sum(both * lower * first))
    return agreed / pairs if pairs > 0 else math.nan


def earlier(hazards: Floats) -> Floats:
    """How likely an event of hazard a was before one of hazard b, both in an interval.

    From hazards (group, interval), each even within the interval: (interval, group, group).
    """
    a = np.clip(hazards.T[:, :, None], 1e-4, 50.0)
    b = np.clip(hazards.T[:, None, :], 1e-4, 50.0)
    joint = a / (a + b) * -np.expm1(-(a + b)) + np.exp(-b) * np.expm1(-a)
    return np.asarray(joint / (np.expm1(-a) * np.expm1(-b)))


def _behind(counts: Floats) -> Floats:
    """Rows seen beyond the end of each interval: (interval, ...)."""
    from_here = np.cumsum(counts[::-1], axis=0)[::-1]
    return np.asarray(from_here[2::2])


def survival_of(counts: Floats) -> Floats:
    """The Kaplan-Meier curve at the cuts, censored rows leaving in the middle: (cut,)."""
    at_risk = np.cumsum(counts[::-1])[::-1][:-1:2]
    exposed = np.maximum(at_risk - counts[:-1:2] / 2, 0.5)
    return np.asarray(np.cumprod(1 - np.clip(counts[1::2] / exposed, 0.0, 1.0)))


def brier_scores(counts: Floats, predicted: Floats) -> Floats:
    """Brier scores at the cuts, of survival (group, cut): (cut,).

    Rows that were censored earlier do not count; the others count for them, by how many were not
    censored until then (Graf et al. 1999).
    """
    total = counts.sum(axis=1)  # (cell,)
    events, censored = total[1::2], total[:-1:2]
    at_risk = np.cumsum(total[::-1])[::-1][:-1:2]
    leaving = np.clip(censored / np.maximum(at_risk - events / 2, 0.5), 0.0, 0.99)
    kept = np.maximum(np.cumprod(1 - leaving), 0.01)  # not censored by the end of an interval
    middle = np.sqrt(kept * np.append(1.0, kept[:-1]))
    n = max(float(total.sum()), 1.0)
    gone = np.cumsum(counts[1::2] / middle[:, None], axis=0)  # (cut, group)
    lives = _behind(counts) / kept[:, None]
    return np.asarray(np.sum(gone * predicted.T**2 + lives * (1 - predicted.T) ** 2, axis=1) / n)


def integrated(scores: Floats, cuts: Sequence[float]) -> float:
    """The mean of Brier scores over time up to the horizon; nobody has had the event at 0."""
    times = np.append(0.0, np.asarray(cuts, np.float64))
    values = np.append(0.0, scores)
    return float(np.sum(np.diff(times) * (values[1:] + values[:-1]) / 2) / times[-1])


def risks(survival: Floats) -> Floats:
    """Logarithms of the hazards up to the horizon together, from survival (row, cut): (row,)."""
    return np.asarray(np.log(np.maximum(-np.log(np.maximum(survival[:, -1], 1e-300)), 1e-300)))


def medians(survival: Floats, cuts: Sequence[float]) -> Floats:
    """When half of such rows have had the event: (row,); infinite beyond the horizon.

    Between cuts hazards are constant.
    """
    at_cuts = -np.log(np.maximum(survival, 1e-300))
    before = np.hstack([np.zeros((len(at_cuts), 1)), at_cuts])
    half, n, rows = math.log(2.0), at_cuts.shape[1], np.arange(len(at_cuts))
    place = np.sum(at_cuts < half, axis=1)  # the interval in which half is reached
    inside = np.minimum(place, n - 1)
    begins = np.append(0.0, np.asarray(cuts, np.float64))
    hazard = at_cuts[rows, inside] - before[rows, inside]
    part = (half - before[rows, inside]) / np.maximum(hazard, 1e-300)
    reached = begins[inside] + np.diff(begins)[inside] * part
    return np.where(place < n, reached, np.inf)


def exact_measures(
    survival: Floats, times: Floats, events: NDArray[np.bool_], cells: Floats, cuts: Sequence[float]
) -> dict[str, float | None]:
    """Concordance and integrated Brier score of rows whose survival (row, cut) was predicted.

    Concordance is None where no two rows can be compared.
    """
    counts = np.zeros((2 * len(cuts) + 1, len(cells)))
    counts[cells.astype(np.int64), np.arange(len(cells))] = 1.0
    order = concordance(risks(survival), times, events)
    return {
        "concordance": None if math.isnan(order) else order,
        "integrated_brier": integrated(brier_scores(counts, survival), cuts),
    }


def findings(counts: Floats, noise: float, groups: RiskGroups, cuts: Sequence[float]) -> Findings:
    """Everything there is to say from counts (cell, group) with noise of this deviation."""
    predicted = groups.survival
    n, n_events = float(counts.sum()), float(counts[1::2].sum())
    of_n = noise * math.sqrt(counts.size)
    of_events = noise * math.sqrt(counts[1::2].size)
    rows, events = measure("rows", n, of_n), measure("events", n_events, of_events)
    names = ("concordance", "integrated_brier", "calibration_error", "log_rank", "log_rank_p")
    if n <= max(3 * of_n, 0.5) or n_events <= max(3 * of_events, 0.5):
        why = "The noise is as large as the events: too few rows for this epsilon."
        nothing = tuple(measure(name, math.nan, math.nan) for name in names)
        return Findings((rows, events, *nothing), notes=(why,))
    first, of_risk = earlier(groups.by_risk), noise * math.sqrt(groups.n_ratios)

    def values(c: Floats) -> Floats:
        scores = brier_scores(c, predicted)
        order = grouped_concordance(groups.added_up(c), first, of_risk)
        return np.concatenate([[order, integrated(scores, cuts)], scores])

    found = values(counts)
    by_noise, by_sampling = _errors(counts, noise, values)
    measures = [
        measure(name, float(found[i]), float(by_noise[i]), float(by_sampling[i]))
        for i, name in enumerate(names[:2])
    ]
    points, calibration, off = _curves(counts, noise, groups, cuts)
    bands = _bands(found[2:], by_noise[2:], by_sampling[2:])
    merged = [counts[:, chosen] for chosen in _merged(counts)]
    told = log_rank(
        [of.sum(axis=1) for of in merged], [noise * of.shape[1] ** 0.5 for of in merged]
    )
    return Findings(
        (rows, events, *measures, off, *told),
        calibration=calibration,
        survival=points,
        brier=tuple(BrierPoint(float(cut), *one) for cut, one in zip(cuts, bands, strict=True)),
        notes=(f"Concordance is that of {groups.n_risks} groups by risk, up to the horizon.",),
    )


def _errors(
    counts: Floats, noise: float, function: Callable[[Floats], Floats]
) -> tuple[Floats, Floats]:
    """Deviations of values by the noise of counts and by sampling of rows, to first order.

    With psi the slope of a value by a count, noise adds sigma^2 psi^2, and rows that come and go,
    each on its own, the count times psi^2.
    """
    slopes = []
    for place in range(counts.size):
        moved = [counts.copy(), counts.copy()]
        moved[0].flat[place] += 0.5
        moved[1].flat[place] -= 0.5
        slopes.append(function(moved[0]) - function(moved[1]))
    squares = np.array(slopes) ** 2  # (count, value)
    sampled = np.maximum(counts, 0.0).ravel() @ squares
    return noise * np.sqrt(squares.sum(axis=0)), np.sqrt(sampled)


def _bands(values: Floats, by_noise: Floats, by_sampling: Floats) -> list[tuple[float, ...]]:
    """Each value with its 95 % band, held between 0 and 1."""
    reach = WIDTH * np.hypot(by_noise, by_sampling)
    low, high = np.maximum(values - reach, 0.0), np.minimum(values + reach, 1.0)
    return list(zip(values.tolist(), low.tolist(), high.tolist(), strict=True))


def _merged(counts: Floats) -> list[slice]:
    """Neighbouring groups put together, so that each has about as many rows."""
    share = np.cumsum(np.maximum(counts.sum(axis=0), 0.0))
    share = share / max(float(share[-1]), 1e-12)
    of = np.minimum((share - 1e-9) * SHOWN_GROUPS, SHOWN_GROUPS - 1).astype(int)
    ends = np.append(np.flatnonzero(np.diff(of)) + 1, len(of))
    return [slice(int(a), int(b)) for a, b in zip(np.append(0, ends[:-1]), ends, strict=True)]


def _curves(
    counts: Floats, noise: float, groups: RiskGroups, cuts: Sequence[float]
) -> tuple[tuple[SurvivalPoint, ...], tuple[CalibrationPoint, ...], Measure]:
    """Kaplan-Meier curves of all rows (group 0) and by risk, with what the model says of them."""
    points, calibration = list[SurvivalPoint](), list[CalibrationPoint]()
    off = list[tuple[float, float, float, float]]()  # rows, distance, errors of the groups
    predicted = groups.survival
    for number, chosen in enumerate([slice(0, counts.shape[1]), *_merged(counts)]):
        here = counts[:, chosen].sum(axis=1)
        rows = counts[:, chosen].sum(axis=0)
        if rows.sum() < noise * math.sqrt(counts[:, chosen].size):  # mostly noise: some below 0
            rows = np.maximum(rows, 1e-9)
        # Noise below 0 stays: without it groups of few rows would count as many.
        says = np.clip(rows @ predicted[chosen] / rows.sum(), 0.0, 1.0)  # (cut,)
        errors = _errors(here, noise * math.sqrt(len(rows)), survival_of)
        for cut, mean, band in zip(cuts, says, _bands(survival_of(here), *errors), strict=True):
            points.append(SurvivalPoint(number, float(cut), float(mean), *band))
        if number:
            last, between = points[-1], groups.ends(chosen)
            seen = (last.predicted, last.observed, last.low, last.high)
            calibration.append(CalibrationPoint(*between, float(rows.sum()), *seen))
            apart = abs(last.predicted - last.observed)
            off.append((float(rows.sum()), apart, float(errors[0][-1]), float(errors[1][-1])))
    return tuple(points), tuple(calibration), _calibration_error(np.array(off))


def _calibration_error(off: Floats) -> Measure:
    """The mean distance of curves at the horizon; what is no more than errors is not counted."""
    rows, apart, by_noise, by_sampling = off.T
    share = rows / rows.sum()
    beyond = np.sqrt(np.maximum(apart**2 - by_noise**2 - by_sampling**2, 0.0))
    errors = (math.sqrt(float(share**2 @ e**2)) for e in (by_noise, by_sampling))
    return measure("calibration_error", float(share @ beyond), *errors)
