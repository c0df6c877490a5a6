"""What an evaluation says: measures with their errors, curves with bands; as a file and in words.

An `Evaluation` holds released values and what follows from them, nothing else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from hedgerow.data.cards import Card, Shown
from hedgerow.data.documents import Document, named
from hedgerow.data.values import Value
from hedgerow.errors import FormatError
from hedgerow.model.statement import Statement

FORMAT = 1
KIND = "hedgerow evaluation"
_EVALUATION = Document("evaluation", format=FORMAT, open=True)
CONFIDENCE = 0.95
WIDTH = 1.959964  # deviations either side that hold 95 % of a Gaussian
TITLES = {
    "rows": "rows",
    "auc": "AUC",
    "accuracy": "accuracy",
    "log_loss": "log loss",
    "calibration_error": "calibration error",
    "rmse": "RMSE",
    "mae": "mean absolute error",
    "r2": "R²",
    "bias": "mean error (label less prediction)",
    "events": "events",
    "concordance": "concordance",
    "integrated_brier": "integrated Brier score",
    "log_rank": "log-rank statistic between groups by risk",
    "log_rank_p": "its p-value",
    "deviance": "mean deviance",
    "d2": "share of the deviance explained",
    "coverage": "share of labels not above the prediction",
    "pinball": "mean pinball loss",
}


@dataclass(frozen=True)
class Measure:
    """A number with two errors: of the noise, and of seeing a sample of all the rows there are.

    `value` is None where the noise leaves nothing to say. Both errors are standard deviations.
    """

    name: str
    value: float | None
    noise_error: float | None = None
    sampling_error: float | None = None
    lowest: float = -math.inf  # what the measure can be
    highest: float = math.inf

    @property
    def error(self) -> float | None:
        """Both errors together."""
        if self.noise_error is None:
            return None
        return math.hypot(self.noise_error, self.sampling_error or 0.0)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the measure lies with 95 % confidence, both errors counted."""
        if self.value is None or self.error is None:
            return None
        reach = WIDTH * self.error
        return max(self.lowest, self.value - reach), min(self.highest, self.value + reach)

    def in_words(self) -> tuple[str, str]:
        """The value and its 95 % interval, in few digits."""
        if self.value is None:
            return "unknown: the noise hides it", ""
        interval = self.interval
        return f"{self.value:.4g}", f"{interval[0]:.4g} to {interval[1]:.4g}" if interval else ""

    def to_dict(self) -> dict[str, Any]:
        low, high = self.interval or (None, None)
        return {
            "value": self.value,
            "noise_error": self.noise_error,
            "sampling_error": self.sampling_error,
            "low": low,
            "high": high,
        }


@dataclass(frozen=True)
class RocPoint:
    """One point of the ROC curve, with a 95 % band of the rate of true positives."""

    threshold: float  # rows of a higher probability count as the second class
    false_positive_rate: float
    true_positive_rate: float
    low: float
    high: float


@dataclass(frozen=True)
class CalibrationPoint:
    """Rows whose prediction lies between two edges: what was predicted, and what was seen.

    Binary: the share of the second class. Multiclass: how often the likeliest one was right.
    Numbers: the mean of the label. Counts: the mean count of a row. Times to an event: edges are
    those of the risk, and predicted and seen is the share without the event at the horizon. `low`
    and `high` are a 95 % band of what was seen.
    """

    lower: float
    upper: float
    rows: float
    predicted: float
    observed: float
    low: float
    high: float


@dataclass(frozen=True)
class SurvivalPoint:
    """One point of a Kaplan-Meier curve: of all rows (group 0), or of a group by rising risk.

    `predicted` is the mean of what the model says of its rows; `low` and `high` are a 95 % band of
    what was seen.
    """

    group: int
    time: float
    predicted: float
    observed: float
    low: float
    high: float


@dataclass(frozen=True)
class BrierPoint:
    """The Brier score of survival at one time, with a 95 % band."""

    time: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Confusion:
    """Noisy counts (true class, predicted class) and the deviation of their noise."""

    classes: tuple[Value, ...]
    counts: tuple[tuple[float, ...], ...]
    noise_error: float


@dataclass(frozen=True)
class Findings:
    """Measures and curves of one model, from released values."""

    measures: tuple[Measure, ...]
    confusion: Confusion | None = None
    roc: tuple[RocPoint, ...] = ()
    calibration: tuple[CalibrationPoint, ...] = ()
    notes: tuple[str, ...] = ()
    survival: tuple[SurvivalPoint, ...] = ()
    brier: tuple[BrierPoint, ...] = ()


@dataclass(frozen=True, repr=False)
class Evaluation(Shown):
    """How good a model is on the parties' rows, under the guarantee of `statement`."""

    model: str  # hash
    task: str
    label: str
    run: str
    findings: Findings
    statement: Statement
    format: int = field(default=FORMAT)

    def __getitem__(self, name: str) -> Measure:
        """The measure of that name."""
        return {measure.name: measure for measure in self.findings.measures}[name]

    def words(self) -> str:
        """The guarantee in plain sentences, and that training on the same rows comes on top."""
        return self.statement.words("evaluation")

    def _card(self) -> Card:
        measures = self.findings.measures
        values = "; ".join(f"{m.name} {m.value:.4g}" for m in measures if m.value is not None)
        facts = (
            ("measures", values),
            ("label", self.label),
            ("task", self.task),
            ("model", self.model[:12]),
            *self.statement.facts(),
        )
        rows = tuple((TITLES.get(m.name, m.name), *m.in_words()) for m in measures)
        head = ("measure", "value", "95 % interval")
        notes = (*self.findings.notes, self.words())
        return Card("Evaluation", facts, head, rows, notes, self.statement.alarm)

    def to_dict(self) -> dict[str, Any]:
        findings = self.findings
        private = self.statement.guarantee in ("epsilon-delta", "pure")
        return {
            "kind": KIND,
            "format": self.format,
            "private": private,
            "model": self.model,
            "task": self.task,
            "label": self.label,
            "run": self.run,
            "confidence": CONFIDENCE,
            "measures": {measure.name: measure.to_dict() for measure in findings.measures},
            "confusion": None if findings.confusion is None else _plain(findings.confusion),
            "roc": [asdict(point) for point in findings.roc],
            "calibration": [asdict(point) for point in findings.calibration],
            **_of_times(findings),
            "notes": list(findings.notes),
            "statement": self.statement.to_dict(),
            "words": self.words(),
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any], source: str = "evaluation") -> Evaluation:
        if not isinstance(values, Mapping) or values.get("kind") != KIND:
            raise FormatError(f"{source} is no hedgerow evaluation; `hedgerow evaluate` writes one")
        with named(source):
            return _evaluation(_EVALUATION.read(_File, values))

    def to_json(self) -> str:
        """The text of an evaluation's file."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=True, allow_nan=False) + "\n"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the evaluation as JSON."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @staticmethod
    def load(path: str | PathLike[str]) -> Evaluation:
        return Evaluation.from_dict(_EVALUATION.load(path, language="JSON"), str(path))


RANGES = {
    "rows": (0.0, math.inf), "auc": (0.0, 1.0), "accuracy": (0.0, 1.0), "log_loss": (0.0, math.inf),
    "calibration_error": (0.0, 1.0), "rmse": (0.0, math.inf), "mae": (0.0, math.inf),
    "r2": (-math.inf, 1.0), "events": (0.0, math.inf), "concordance": (0.0, 1.0),
    "integrated_brier": (0.0, 1.0), "deviance": (0.0, math.inf), "d2": (-math.inf, 1.0),
    "coverage": (0.0, 1.0), "pinball": (0.0, math.inf), "log_rank": (0.0, math.inf),
    "log_rank_p": (0.0, 1.0),
}  # fmt: skip


def measure(
    name: str, value: float, noise_error: float, sampling_error: float | None = None
) -> Measure:
    """A measure held to what it can be; nothing is said where a number is not finite."""
    low, high = RANGES.get(name, (-math.inf, math.inf))
    errors = (noise_error, sampling_error or 0.0)
    if not all(map(math.isfinite, (value, *errors))):
        return Measure(name, None, lowest=low, highest=high)
    return Measure(name, min(max(value, low), high), noise_error, sampling_error, low, high)


def _of_times(findings: Findings) -> dict[str, Any]:
    """What only evaluations of times to an event have."""
    if not findings.survival:
        return {}
    return {
        "survival": [asdict(point) for point in findings.survival],
        "brier": [asdict(point) for point in findings.brier],
    }


def _plain(confusion: Confusion) -> dict[str, Any]:
    counts = [list(row) for row in confusion.counts]
    return {**asdict(confusion), "classes": list(confusion.classes), "counts": counts}


@dataclass(frozen=True)
class _Measured:
    value: float | None
    noise_error: float | None
    sampling_error: float | None


@dataclass(frozen=True)
class _File:
    """What is read of an evaluation's file; all else in it follows from this."""

    model: str
    task: str
    label: str
    run: str
    measures: Mapping[str, _Measured]
    confusion: Confusion | None
    roc: tuple[RocPoint, ...]
    calibration: tuple[CalibrationPoint, ...]
    notes: tuple[str, ...]
    statement: Mapping[str, Any]
    survival: tuple[SurvivalPoint, ...] = ()
    brier: tuple[BrierPoint, ...] = ()


def _evaluation(told: _File) -> Evaluation:
    measures = tuple(
        Measure(
            name, of.value, of.noise_error, of.sampling_error,
            *RANGES.get(name, (-math.inf, math.inf)),
        )
        for name, of in told.measures.items()
    )  # fmt: skip
    findings = Findings(
        measures, told.confusion, told.roc, told.calibration, told.notes, told.survival, told.brier
    )
    statement = Statement.from_dict(told.statement)
    return Evaluation(told.model, told.task, told.label, told.run, findings, statement)
