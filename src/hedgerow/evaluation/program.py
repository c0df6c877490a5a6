"""Evaluation as a program of sum queries: where predictions lie, then how they turn out."""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.gate import Gate
from hedgerow.data.schema import Schema
from hedgerow.errors import SettingsError, SlotSpent
from hedgerow.evaluation import (
    binary,
    counts,
    multiclass,
    quantiles,
    regression,
    risk_groups,
    survival,
)
from hedgerow.evaluation.result import Evaluation, Findings
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.rounding import settled
from hedgerow.privacy.accounting.budget import DeclaredQuery
from hedgerow.privacy.accounting.plan import EVALUATION, Plan, make_plan
from hedgerow.privacy.settings import EvaluationSettings, Privacy
from hedgerow.queries import (
    ClassOutcomes,
    DevianceCounts,
    DevianceSums,
    ErrorCounts,
    ErrorSums,
    ScoreCounts,
)
from hedgerow.queries.calibration import check_unit

Floats = NDArray[np.float64]
LOOK_SHARE = 0.1  # of mu^2, binary: where the scores of the classes lie
SIZE_SHARE = 0.2  # regression: how large the errors are
# Parts of the question about classes: confusion, counts by probability, log loss.
CLASS_SHARES = (0.2, 0.6, 0.2)
LEAST_PROBABILITY = 0.01  # below it a probability counts as so much in the log loss


def declared_queries(schema: Schema) -> list[DeclaredQuery]:
    """What an evaluation asks: two questions, or one for a multiclass model."""
    k = len(schema.label.classes)
    if schema.label.task == "regression":
        sizes = len(regression.SIZE_EDGES) + 1 + regression.CELLS
        share = quantiles.COVERAGE_SHARE if schema.label.loss == "quantile" else 0.0
        rest = 1 - SIZE_SHARE - share
        return [
            DeclaredQuery("error sizes", ErrorCounts.kind, SIZE_SHARE, sizes),
            DeclaredQuery("errors", ErrorSums.kind, rest, 2 * regression.BINS + 4),
            *([DeclaredQuery("coverage", ScoreCounts.kind, share, 2)] if share else []),
        ]
    if schema.label.task == "counts":
        first = 2 * (len(counts.SIZES) + 1) + len(counts.MEANS) + 2
        return [
            DeclaredQuery("deviance sizes", DevianceCounts.kind, SIZE_SHARE, first),
            DeclaredQuery("deviances", DevianceSums.kind, 1 - SIZE_SHARE, 2 * counts.BINS + 3),
        ]
    if schema.label.task == "survival":
        cells = schema.label.n_outcomes
        first, n_groups = cells * (risk_groups.FIRST_EDGES + 1), risk_groups.GROUPS
        if schema.label.n_first:
            n_groups = risk_groups.FEWER_GROUPS * risk_groups.RATIOS
        size = cells * n_groups
        return [
            DeclaredQuery("scores", ScoreCounts.kind, LOOK_SHARE, first),
            DeclaredQuery("outcomes", ScoreCounts.kind, 1 - LOOK_SHARE, size),
        ]
    if k == 2:
        size = 4 + 2 * (binary.MOST_EDGES + 1) + 1
        return [
            DeclaredQuery("scores", ScoreCounts.kind, LOOK_SHARE, 2 * (binary.FIRST_EDGES + 1)),
            DeclaredQuery("outcomes", ClassOutcomes.kind, 1 - LOOK_SHARE, size),
        ]
    size = k * k + 2 * (len(multiclass.confidence_edges(k)) + 1) + 1
    return [DeclaredQuery("outcomes", ClassOutcomes.kind, 1.0, size)]


def evaluation_plan(model: Ensemble, privacy: Privacy, run: str | None = None) -> Plan:
    """What an evaluation of a model will ask and what it costs, from public facts alone."""
    if privacy.accounting == "pure":
        raise SettingsError(
            "an evaluation adds Gaussian noise, which promises no pure epsilon; give a delta above "
            "0 and accounting exact or renyi. Nothing was asked."
        )
    schema = model.schema
    check_unit(privacy.trusted, schema)
    settings = EvaluationSettings(warm_start=model.hash, warm_start_says=model.statement.promise())
    declared, unit = declared_queries(schema), schema.unit.text
    return make_plan(
        schema.hash, EVALUATION, settings, privacy, declared, 0, run, unit,
        max_weight=schema.max_weight,
    )  # fmt: skip


def evaluate(gate: Gate, model: Ensemble) -> Evaluation:
    """Run an evaluation's plan through a gate that started with the model.

    The first question only says how to ask the second: if its slot was charged and lost, public
    defaults stand in for it.
    """
    schema = model.schema
    by_task = {
        "regression": _regression, "binary": _binary, "multiclass": _multiclass,
        "survival": _survival, "counts": _counts,
    }  # fmt: skip
    try:
        findings = by_task[schema.label.task](gate, model)
    except SlotSpent as error:
        raise SlotSpent(
            f"{error}: the answer was lost before it was stored, and stays charged. Evaluate again "
            "as a new run, with a new plan (another --out)."
        ) from error
    return Evaluation(
        model.hash, schema.label.task, schema.label.name, gate.plan.run, findings, gate.statement()
    )


def reachable(model: Ensemble) -> tuple[float, float]:
    """Between which log-odds a model's predictions lie, whatever the rows: sums of leaf values."""
    low = sum(float(tree.values[:, 0].min()) for tree in model.trees)
    high = sum(float(tree.values[:, 0].max()) for tree in model.trees)
    if not model.averaged:
        return low, high
    ends = np.clip([low, high], 1e-4, 1 - 1e-4)
    logits = np.log(ends / (1 - ends))
    return float(logits[0]), float(logits[1])


def _binary(gate: Gate, model: Ensemble) -> Findings:
    grid = binary.first_grid(*reachable(model))
    scores = binary.sigmoid(grid) if model.averaged else grid
    first, noise = np.zeros((2, len(grid) + 1)), 0.0
    with suppress(SlotSpent):
        once = model.schema.weight is not None  # where there are none, the query says nothing of it
        asked = ScoreCounts(2, settled(scores), gate.ensemble, once)
        release = gate.release(asked)
        first, noise = release.values.reshape(2, -1), release.sigmas[0]
    edges = binary.edges_for(first, noise, grid)
    probabilities = settled(binary.sigmoid(edges))
    (confusion, by_bin, loss), sigmas = _outcomes(gate, model, probabilities)
    counted = binary.counts_of(confusion, by_bin, edges, sigmas)
    means = binary.mean_probabilities(edges, first, noise, grid)
    return binary.findings(counted, loss, sigmas[2], means, model.schema.label.classes)


def _multiclass(gate: Gate, model: Ensemble) -> Findings:
    classes = model.schema.label.classes
    edges = multiclass.confidence_edges(len(classes))
    outcomes, sigmas = _outcomes(gate, model, edges)
    most = -math.log(LEAST_PROBABILITY)
    return multiclass.findings(*outcomes, sigmas, edges, most, classes)


def _outcomes(
    gate: Gate, model: Ensemble, edges: tuple[float, ...]
) -> tuple[tuple[Floats, Floats, float], tuple[float, ...]]:
    """Confusion, counts by probability and log loss, with the deviations of their noise."""
    confusion, by_bin, loss = (share**-0.5 for share in CLASS_SHARES)
    query = ClassOutcomes(
        len(model.schema.label.classes), edges, LEAST_PROBABILITY, (confusion, by_bin, loss),
        gate.ensemble, model.averaged,
    )  # fmt: skip
    release = gate.release(query)
    counted = release.sigmas[:2]
    return query.split(release.values), (*counted, release.sigmas[2] * query.most_loss)


def _regression(gate: Gate, model: Ensemble) -> Findings:
    label, averaged = model.schema.label, model.averaged
    assert label.lower is not None
    assert label.upper is not None
    first, noise = np.zeros(len(regression.SIZE_EDGES) + 1 + regression.CELLS), 0.0
    with suppress(SlotSpent):
        asked = ErrorCounts(regression.SIZE_EDGES, regression.CELLS, gate.ensemble, averaged)
        release = gate.release(asked)
        first, noise = release.values, release.sigmas[0]
    frame = regression.frame_for(first, noise)
    weights = tuple(share**-0.5 for share in regression.SHARES)
    query = ErrorSums(
        frame.edges, frame.clip, frame.centre, frame.spread, weights, gate.ensemble, averaged
    )
    release = gate.release(query)
    sums = regression.Sums.of(release.values, release.sigmas, frame)
    if label.loss != "quantile" or label.quantile is None:
        return regression.findings(sums, frame, label.lower, label.upper)
    once = model.schema.weight is not None
    covered = gate.release(ScoreCounts(2, (), gate.ensemble, once))
    told = (covered.values, covered.sigmas[0], label.quantile, label.upper - label.lower)
    return quantiles.findings(sums, frame, *told)


def _survival(gate: Gate, model: Ensemble) -> Findings:
    label, once = model.schema.label, model.schema.weight is not None
    reach = risk_groups.reachable(model)
    grid = risk_groups.first_grid(reach)
    first, noise = np.zeros((label.n_outcomes, len(grid) + 1)), 0.0
    with suppress(SlotSpent):
        asked = ScoreCounts(label.n_outcomes, settled(grid), gate.ensemble, once)
        release = gate.release(asked)
        first, noise = release.values.reshape(first.shape), release.sigmas[0]
    edges = risk_groups.edges_for(first, noise, grid, reach)
    query = ScoreCounts(
        label.n_outcomes, settled(edges), gate.ensemble, once,
        settled(reach.ratio_edges),
    )  # fmt: skip
    release = gate.release(query)
    seen = release.values.reshape(label.n_outcomes, -1)
    groups = risk_groups.RiskGroups(reach, edges)
    return survival.findings(seen, release.sigmas[0], groups, label.cuts)


def _counts(gate: Gate, model: Ensemble) -> Findings:
    cap = float(model.schema.label.upper or 1)
    first, noise = np.zeros(2 * (len(counts.SIZES) + 1) + len(counts.MEANS) + 2), 0.0
    with suppress(SlotSpent):
        release = gate.release(DevianceCounts(counts.SIZES, counts.MEANS, gate.ensemble))
        first, noise = release.values, release.sigmas[0]
    frame = counts.frame_for(first, noise)
    weights = tuple(share**-0.5 for share in counts.SHARES)
    query = DevianceSums(
        frame.edges, frame.most_error, frame.most_deviance, frame.rate, weights, gate.ensemble
    )
    release = gate.release(query)
    return counts.findings(counts.Sums.of(release.values, release.sigmas, frame), frame, cap)
