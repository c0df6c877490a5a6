"""The many-run audit: one canary in or out of each run, looked for in the finished model alone.

It needs nothing of the noise or the questions, so it is for every method, those of pure epsilon
too; and it needs many runs to say little, since a model tells less than its releases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow.audit.bounds import clopper_pearson, repeated_bound, separation
from hedgerow.audit.made_up import joined, made_up_canaries, made_up_rows
from hedgerow.audit.result import BLACK_BOX, AuditResult
from hedgerow.coordinator.gate import Gate
from hedgerow.data.counts import refuse_unusual
from hedgerow.data.rng import fresh_seed, stream
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.engines.local import local_federation
from hedgerow.errors import SettingsError
from hedgerow.methods.registry import method_named
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tradeoff import EXACT_LIMIT, epsilon_of
from hedgerow.party.running_scores import RunningScores
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.queries import NO_TREES
from hedgerow.queries.calibration import made_for

Floats = NDArray[np.float64]
BASE_ROWS = 100  # few: among many rows one canary does not show in a model
LEAST_RUNS = 8


def black_box(
    plan: Plan,
    schema: Schema,
    *,
    runs: int = 200,
    rows: int = BASE_ROWS,
    confidence: float = 0.95,
    seed: int | None = None,
) -> AuditResult:
    """Audit a plan by many runs over made-up rows, with nothing seen but each run's model.

    The canary is one unit with the label that the other rows make unlikely; its score is how well
    the model fits it. Half of the runs choose from which score on it counts as in, the other half
    are counted (Clopper and Pearson 1934).

    Parameters
    ----------
    plan, schema : what is audited
    runs : how many models are trained, each on made-up rows with or without the canary
    rows : made-up rows besides the canary
    confidence : of the lower bound
    seed : of made-up rows and coins; never of the noise

    Examples
    --------
    >>> from hedgerow import Privacy, Schema, plan_for
    >>> schema = Schema.from_bounds({"age": (0, 110)}, classes=["no", "yes"])
    >>> plan = plan_for(schema, Privacy(2.0, 1e-6, "coordinator"), "dp-rf", {"n_trees": 2})
    >>> black_box(plan, schema, runs=12, rows=20).holds
    True
    """
    if not made_for(plan, schema):
        raise SettingsError("the plan was made for another schema. Nothing was audited.")
    refuse_unusual(schema.label, "a black-box audit")
    if plan.measures:
        raise SettingsError(
            "an evaluation grows no model to look for canaries in. Nothing was audited. Leave "
            "--black-box out: releases of an evaluation are audited in one run."
        )
    if plan.privacy.trusted.local:
        raise SettingsError(
            "where nobody is trusted the promise is about every message, and a model of many "
            "rows' noise shows no canary. Nothing was audited. Leave --black-box out."
        )
    if runs < LEAST_RUNS or rows < 1:
        raise SettingsError(
            f"a black-box audit needs at least {LEAST_RUNS} runs and 1 row, and has {runs} and "
            f"{rows}. Nothing was audited."
        )
    rng = stream(fresh_seed() if seed is None else seed, "black-box audit")
    base = made_up_rows(schema, rows, rng)
    canary = made_up_canaries(schema, 1, rng).rows
    coins = rng.permutation(np.arange(runs) % 2).astype(np.bool_)
    scores = np.array([_score(plan, schema, base, canary, bool(coin)) for coin in coins])
    return _result(plan, scores, coins, 1 - confidence)


def _score(plan: Plan, schema: Schema, base: Rows, canary: Rows, inside: bool) -> float:
    """How well the model of one more run fits the canary's label."""
    n_parties = max(1, plan.privacy.minimum_parties if plan.privacy.trusted.masked else 1)
    parts = base.split(np.arange(base.n_rows) % n_parties, n_parties)
    tables = {f"p{i}": part for i, part in enumerate(parts)}
    if inside:
        tables["p0"] = joined([tables["p0"], canary])
    privacy, ledger = plan.privacy, Ledger.in_memory()
    agreed = (privacy.colluding, privacy.minimum_parties, privacy.trust)
    federation = local_federation(tables, schema, ledger, *agreed)
    model = method_named(plan.method).grow(Gate(federation, plan, ledger))
    return fit_of(model, canary)


def fit_of(model: Ensemble, rows: Rows) -> float:
    """How far a model leans to the labels of rows, on the scale of its own scores."""
    scores, wanted = RunningScores(rows, model.schema), NO_TREES
    for tree in model.trees:
        wanted = wanted.then(tree.to_bytes())
    scores.sync(wanted, 0, model.trees)
    values, target = scores.at(wanted), rows.target  # (row, output)
    if not model.schema.label.classes:
        return -float(np.abs(values[:, 0] - target).mean())
    if values.shape[1] == 1:
        return float((values[:, 0] * (2 * target - 1)).mean())
    own = values[np.arange(len(target)), target.astype(np.int64)]
    return float((own - values.mean(axis=1)).mean())


def _result(plan: Plan, scores: Floats, coins: NDArray[np.bool_], alpha: float) -> AuditResult:
    half = len(scores) // 2
    threshold = _best_threshold(scores[:half], coins[:half])
    counted, of = scores[half:], coins[half:]
    pure = plan.privacy.accounting == "pure"
    lower = repeated_bound(counted[of], counted[~of], threshold, alpha)
    epsilon = _pure_bound(counted, of, threshold, alpha) if pure else _epsilon(lower, plan)
    exceeded = epsilon > plan.privacy.epsilon if pure else lower > plan.mu
    return AuditResult(
        method=plan.method,
        plan=plan.hash,
        kind=BLACK_BOX,
        trust=plan.privacy.trust,
        unit=plan.unit,
        runs=len(scores),
        releases=0,
        canaries=1,
        confidence=1 - alpha,
        delta=plan.privacy.delta,
        claimed_mu=plan.mu,
        claimed_epsilon=plan.privacy.epsilon,
        largest_mu=0.0,
        estimated_mu=separation(scores, coins),
        estimate_error=2 / math.sqrt(len(scores)),
        lower_mu=lower,
        lower_epsilon=epsilon,
        any_lower_mu=lower,
        any_lower_epsilon=epsilon,
        right_guesses=int(((counted > threshold) == of).sum()),
        violation=_violation(plan, epsilon, alpha) if exceeded else "",
    )


def _violation(plan: Plan, epsilon: float, alpha: float) -> str:
    return (
        f"the plan promises epsilon = {plan.privacy.epsilon:.3g}, and it is at least "
        f"{epsilon:.3g} with {1 - alpha:.0%} confidence."
    )


def _best_threshold(scores: Floats, coins: NDArray[np.bool_]) -> float:
    """Where true and false positives are furthest apart, of thresholds at the scores."""

    def apart(threshold: float) -> float:
        above = scores > threshold
        return float(above[coins].mean() - above[~coins].mean())

    candidates: Sequence[float] = np.unique(scores).tolist()
    return max(candidates, key=apart) if coins.any() and not coins.all() else candidates[0]


def _pure_bound(scores: Floats, coins: NDArray[np.bool_], threshold: float, alpha: float) -> float:
    """epsilon >= log of the ratio of either rate: true over false positives, and of negatives."""
    above = scores > threshold
    true, false = int(above[coins].sum()), int(above[~coins].sum())
    n_in, n_out = int(coins.sum()), int((~coins).sum())
    bounds = [0.0]
    for hits, tries, misses, others in (
        (true, n_in, false, n_out),
        (n_out - false, n_out, n_in - true, n_in),
    ):
        least = clopper_pearson(hits, tries, alpha / 4)[0]
        most = clopper_pearson(misses, others, alpha / 4)[1]
        if least > 0 and most > 0:
            bounds.append(math.log(least / most))
    return max(bounds)


def _epsilon(mu: float, plan: Plan) -> float:
    accounting = plan.privacy.accounting if mu <= EXACT_LIMIT else "renyi"
    return epsilon_of(mu, plan.privacy.delta, 0, accounting)
