"""What a run may reach at an epsilon, in the measure that was asked for: a range and its source.

From a public sample it is where trainings with the noise of the run ended; without one, what the
default method reached on public tables that had as much signal. `public_tables.json` is written by
benchmarks/public_tables.py from the results of accuracy.py, and by nothing else.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from hedgerow.errors import HedgerowError
from hedgerow.inspection.advice.expected import Facts, expected_error
from hedgerow.inspection.advice.simulation import Curve
from hedgerow.privacy.accounting.gaussian import mu_of
from hedgerow.privacy.settings import Privacy

NAMES = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "log_loss": "log loss",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
}
_ENDS = {"auc": (0.0, 1.0), "accuracy": (0.0, 1.0), "r2": (-math.inf, 1.0)}
_VALUES = 50_000  # released in a run, about: what discreteness adds to mu is far below a digit


@dataclass(frozen=True)
class Answer:
    """Where a measure will about be at an epsilon, and how that is known."""

    metric: str
    epsilon: float
    low: float
    high: float
    source: str

    @property
    def words(self) -> str:
        """The answer as a sentence.

        >>> Answer("auc", 1.0, 0.8, 0.8312, "your public sample").words
        'about 0.80 to 0.83 AUC at epsilon 1, from your public sample'
        """
        low, high = (_shown(self.metric, value) for value in (self.low, self.high))
        value = low if low == high else f"{low} to {high}"
        return f"about {value} {NAMES[self.metric]} at epsilon {self.epsilon:g}, from {self.source}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def from_sample(curve: Curve, epsilon: float) -> Answer:
    """Two deviations between trainings either side of their mean; one training has no range."""
    point = next(point for point in curve.points if point.epsilon == epsilon)
    least, most = _ends(curve.metric)
    ends = (point.mean - 2 * point.deviation, point.mean + 2 * point.deviation)
    low, high = (min(max(end, least), most) for end in ends)
    n = len(point.values)
    times = "1 training, so without a range" if n == 1 else f"{n} trainings"
    return Answer(curve.metric, epsilon, low, high, f"your public sample ({times})")


def from_public_tables(facts: Facts, privacy: Privacy, epsilon: float) -> Answer | None:
    """AUC of the default method on public tables with the S of this run; None where none has it.

    S, rows times mu over the root of the columns, is how much signal there is beside the noise. How
    hard the label is to predict it does not say, so the range is wide; the distance to a model
    without privacy, which the source tells, is what carries over best.
    """
    if facts.task != "binary" or facts.method != "auto":
        return None
    try:
        plan = facts.plan(replace(privacy, epsilon=epsilon))
    except HedgerowError:  # too small to plan with
        return None
    expected = expected_error(facts, plan)
    strength = 0.0 if expected is None else expected.strength
    near = [
        (float(np.interp(math.log(strength), np.log(table.strengths), table.auc)), table.plain)
        for table in public_tables()
        if table.strengths[0] <= strength <= table.strengths[-1]
    ]
    if not near:
        return None
    low, high = min(auc for auc, _ in near), max(auc for auc, _ in near)
    lost = [max(0.0, plain - auc) for auc, plain in near]
    source = (
        f"{len(near)} public tables with as much signal (S = {strength:,.0f}), where it was "
        f"{min(lost):.2f} to {max(lost):.2f} below XGBoost without privacy"
    )
    return Answer("auc", epsilon, low, high, source)


@dataclass(frozen=True)
class PublicTable:
    """What the default method reached on a public table, by S."""

    name: str
    strengths: tuple[float, ...]  # rising
    auc: tuple[float, ...]
    plain: float  # XGBoost's, without privacy


@cache
def public_tables() -> tuple[PublicTable, ...]:
    text = files(__package__).joinpath("public_tables.json").read_text("utf-8")
    return tuple(_table(name, told) for name, told in json.loads(text).items())


def _table(name: str, told: dict[str, Any]) -> PublicTable:
    rows, columns = told["rows"], told["columns"]
    mus = [mu_of(epsilon, 1 / rows, _VALUES) for epsilon in told["epsilon"]]
    strengths = tuple(rows * mu / math.sqrt(columns) for mu in mus)
    return PublicTable(name, strengths, tuple(told["auc"]), told["auc_without_privacy"])


def _ends(metric: str) -> tuple[float, float]:
    return _ENDS.get(metric, (0.0, math.inf))


def _shown(metric: str, value: float) -> str:
    return f"{value:.3g}" if metric in ("rmse", "mae") else f"{value:.2f}"
