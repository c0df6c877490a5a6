"""Accuracy against epsilon, tried out on a public or synthetic sample with real noise.

The sample is read freely and nothing is charged for it: it must not hold private rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.coordinator.gate import Gate
from hedgerow.data.rng import Generator, stream
from hedgerow.data.tables import Rows
from hedgerow.engines.local import local_federation
from hedgerow.errors import SettingsError
from hedgerow.evaluation.smoothing import rising
from hedgerow.inspection.advice.expected import Facts
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.party.running_scores import RunningScores
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from hedgerow.queries import NO_TREES

Floats = NDArray[np.float64]
METRICS = {  # by task, the default first; whether more is better
    "binary": {"auc": True, "accuracy": True, "log_loss": False},
    "multiclass": {"accuracy": True, "log_loss": False},
    "regression": {"rmse": False, "mae": False, "r2": True},
}
HELD_OUT = 0.3  # of the sample, for measuring
LEAST_SAMPLE = 50
NO_PRIVACY = 1e3  # epsilon at which noise does not matter
MOST_EPSILON = 1e6


@dataclass(frozen=True)
class Point:
    """What runs at one epsilon reached on held-out rows of the sample."""

    epsilon: float
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def deviation(self) -> float:
        """Between runs: noise, and which rows were drawn."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0


@dataclass(frozen=True)
class Curve:
    """A measure against epsilon, and what the same method reaches without noise to speak of."""

    metric: str
    rising: bool  # whether more is better
    points: tuple[Point, ...]
    without: Point
    n_rows: int
    n_sample: int

    def epsilon_for(self, target: float) -> float | None:
        """Where the curve, smoothed to be monotone, reaches a target; None if it does not."""
        sign = 1.0 if self.rising else -1.0
        means = rising(np.array([sign * point.mean for point in self.points]))
        logs = np.log([point.epsilon for point in self.points])
        if means[-1] < sign * target:
            return None
        first = int(np.argmax(means >= sign * target))
        if first == 0:
            return self.points[0].epsilon
        part = (sign * target - means[first - 1]) / (means[first] - means[first - 1])
        return float(math.exp(logs[first - 1] + part * (logs[first] - logs[first - 1])))

    def to_dict(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "rows": self.n_rows,
            "sample_rows": self.n_sample,
            "without_noise": {"values": list(self.without.values), "mean": self.without.mean},
            "points": [
                {**asdict(point), "mean": point.mean, "deviation": point.deviation}
                for point in self.points
            ],
        }


def metric_for(task: str, name: str | None) -> tuple[str, bool]:
    """A measure by name, or the task's own, and whether more of it is better."""
    known = METRICS[task]
    chosen = next(iter(known)) if name is None else name
    if chosen not in known:
        raise SettingsError(
            f"no measure {chosen!r} for this label; known: {', '.join(known)}. Nothing was asked."
        )
    return chosen, known[chosen]


def simulate(
    facts: Facts,
    sample: Rows,
    privacy: Privacy,
    epsilons: Sequence[float],
    metric: str | None = None,
    repeats: int = 3,
    observe: Callable[[], None] = lambda: None,
    seed: int = 1,
) -> Curve:
    """Train on rows of the sample with the noise of each epsilon, and measure on held-out rows.

    Each repeat holds out other rows. Where the sample has fewer rows than stated, all the rest are
    trained on and the noise is scaled down with them, so that it weighs as much as it would among
    `n_rows`; rows drawn several times over would be learned by heart instead. `observe` is called
    after every training.
    """
    chosen, better = metric_for(facts.task, metric)
    if sample.n_rows < LEAST_SAMPLE:
        raise SettingsError(
            f"the sample has {sample.n_rows} rows; at least {LEAST_SAMPLE} are needed to hold some "
            "out. Nothing was asked."
        )
    if not epsilons or repeats < 1:
        raise SettingsError("a curve needs at least one epsilon and one repeat")

    def point(epsilon: float, given: Privacy) -> Point:
        values = []
        for repeat in range(repeats):
            rng = stream(seed, "advice", repeat)  # the same rows at every epsilon
            drawn, held_out = _drawn(sample, facts.n_rows, rng)
            model = _trained(facts, drawn, scaled(facts, given, drawn.n_rows), repeat)
            values.append(measured(model, held_out, chosen))
            observe()
        return Point(epsilon, tuple(values))

    points = [point(e, replace(privacy, epsilon=e)) for e in sorted(set(epsilons))]
    without = point(math.inf, replace(privacy, epsilon=NO_PRIVACY))
    return Curve(chosen, better, tuple(points), without, facts.n_rows, sample.n_rows)


def scaled(facts: Facts, privacy: Privacy, n_rows: int) -> Privacy:
    """The promise whose noise weighs as much among `n_rows` as this one's among all rows stated.

    Noise weighs 1 / (mu n); where nobody is trusted, it grows with the root of the rows.
    """
    ratio = facts.n_rows / n_rows
    if ratio <= 1:
        return privacy
    ratio /= privacy.trusted.row_noise(facts.n_rows) / privacy.trusted.row_noise(n_rows)
    epsilon = facts.plan(privacy).budget.epsilon_of_less_noise(ratio)
    return replace(privacy, epsilon=min(epsilon, MOST_EPSILON))


def _drawn(sample: Rows, n_rows: int, rng: Generator) -> tuple[Rows, Rows]:
    """Rows to train on, at most as many as stated, and rows to measure on: none of the others."""
    order = rng.permutation(sample.n_rows)
    n_held = max(1, round(HELD_OUT * sample.n_rows))
    return _alone(sample.take(order[n_held:][:n_rows])), sample.take(order[:n_held])


def _alone(rows: Rows) -> Rows:
    """Every row a person: what a bound on persons costs is their noise, and it is there."""
    if rows.persons is None:
        return rows
    return replace(rows, persons=np.arange(rows.n_rows, dtype=np.uint64))


def _trained(facts: Facts, rows: Rows, privacy: Privacy, repeat: int) -> Ensemble:
    parts = facts.n_parties if privacy.trusted.masked else 1
    tables = {f"p{i}": rows.take(np.arange(i, rows.n_rows, parts)) for i in range(parts)}
    asked = (privacy.colluding, privacy.minimum_parties, privacy.trust)
    ledger = Ledger.in_memory()  # of this simulation: the sample is public
    federation = local_federation(tables, facts.schema, ledger, *asked)
    settings = dict(facts.settings)
    if settings.get("rows_hint"):
        settings["rows_hint"] = rows.n_rows
    plan = plan_for(facts.schema, privacy, facts.method, settings, seed=repeat)
    return method_named(plan.method).grow(Gate(federation, plan, ledger))


def measured(model: Ensemble, rows: Rows, metric: str) -> float:
    """An exact measure of a model on public rows."""
    scores, reference, label = RunningScores(rows, model.schema), NO_TREES, model.schema.label
    for tree in model.trees:
        reference = reference.then(tree.to_bytes())
    scores.sync(reference, 0, model.trees)
    predictions = model.loss.predictions(scores.at(reference), model.averaged)
    value = _measure(predictions, rows.target, metric)
    if metric in ("rmse", "mae") and label.lower is not None and label.upper is not None:
        return value * (label.upper - label.lower)
    return value


def _measure(found: Floats, target: Floats, metric: str) -> float:
    if metric in ("rmse", "mae", "r2"):
        error = target - found[:, 0]
        square = float(np.mean(error**2))
        if metric == "r2":
            return 1.0 - square / max(float(np.var(target)), 1e-12)
        return math.sqrt(square) if metric == "rmse" else float(np.mean(np.abs(error)))
    true = target.astype(np.int64)
    if metric == "accuracy":
        return float(np.mean(found.argmax(axis=1) == true))
    if metric == "log_loss":
        return float(-np.mean(np.log(np.maximum(found[np.arange(len(true)), true], 1e-15))))
    return _auc(found[:, 1], true)


def _auc(likely: Floats, true: NDArray[np.int64]) -> float:
    """By ranks, ties counted half; one half where only one class is there."""
    _, place, counts = np.unique(likely, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    ones = int(true.sum())
    pairs = ones * (len(true) - ones)
    if not pairs:
        return 0.5
    return float((ranks[true == 1].sum() - ones * (ones + 1) / 2) / pairs)
