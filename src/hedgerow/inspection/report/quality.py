"""How well the model predicts, where a private evaluation was paid for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.data.values import text_of
from hedgerow.evaluation.result import (
    TITLES,
    CalibrationPoint,
    Confusion,
    Evaluation,
    Measure,
    RocPoint,
    SurvivalPoint,
)
from hedgerow.inspection.drawing import Axes, Canvas, Picture, Region, Scale
from hedgerow.inspection.drawing.canvas import LETTER
from hedgerow.inspection.drawing.words import number
from hedgerow.inspection.report.overview import Tile
from hedgerow.model.ensemble import Ensemble

MOST_CLASSES = 12  # of a confusion matrix that is shown
CURVE_WIDTH, CURVE_HEIGHT = 296.0, 270.0


@dataclass(frozen=True)
class ConfusionTable:
    """Noisy counts of rows by true and predicted class."""

    classes: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # a class and its counts
    note: str
    size: str  # a rule of the style sheet: how wide the table is


@dataclass(frozen=True)
class Quality:
    """Measures with their intervals, and curves with bands."""

    lead: str
    tiles: tuple[Tile, ...]
    roc: Picture | None
    calibration: Picture | None
    confusion: ConfusionTable | None
    survival: Picture | None
    notes: tuple[str, ...]
    statement: tuple[str, ...]  # paragraphs


def quality_of(evaluation: Evaluation, model: Ensemble) -> Quality:
    findings, label = evaluation.findings, model.schema.label
    is_share = label.task not in ("regression", "counts")
    calibration, confusion = findings.calibration, findings.confusion
    small = confusion is not None and len(confusion.classes) <= MOST_CLASSES
    return Quality(
        "Measured on the parties' rows by noisy sums, at epsilon = "
        f"{evaluation.statement.epsilon:g} on top of training. Intervals and bands are 95 %; they "
        "cover the noise and the sampling error of the rows.",
        tuple(_tile(measure) for measure in findings.measures),
        roc_picture(findings.roc) if findings.roc else None,
        calibration_picture(calibration, is_share) if calibration else None,
        _confusion(confusion) if confusion is not None and small else None,
        survival_picture(findings.survival, label.name) if findings.survival else None,
        tuple(findings.notes),
        tuple(evaluation.words().split("\n")),
    )


def _tile(measure: Measure) -> Tile:
    value = "unknown" if measure.value is None else number(measure.value)
    remark = ""
    if measure.interval is not None:
        low, high = measure.interval
        remark = f"95 %: {number(low)} to {number(high)}"
    return Tile(TITLES.get(measure.name, measure.name), value, remark)


def _confusion(confusion: Confusion) -> ConfusionTable:
    classes = tuple(text_of(value) for value in confusion.classes)
    rows = tuple(
        (name, *(f"{count:,.0f}" for count in counts))
        for name, counts in zip(classes, confusion.counts, strict=True)
    )
    letters = sum(max(len(name), 6) for name in classes)
    size = "" if letters <= 14 else "wide" if letters <= 46 else "full"
    noise = f"Each count has noise with a standard deviation of {number(confusion.noise_error)}."
    return ConfusionTable(classes, rows, noise, size)


def roc_picture(points: Sequence[RocPoint]) -> Picture:
    """The curve of true over false positive rates with its band."""
    canvas = Canvas(CURVE_WIDTH, CURVE_HEIGHT, "ROC curve")
    axes = _square(canvas, (0.0, 1.0))
    ordered = sorted(points, key=lambda p: (p.false_positive_rate, p.true_positive_rate))
    x = [p.false_positive_rate for p in ordered]
    axes.band(x, [p.low for p in ordered], [p.high for p in ordered])
    axes.curve(x, [p.true_positive_rate for p in ordered])
    axes.names("false positive rate")
    return canvas.picture()


def calibration_picture(points: Sequence[CalibrationPoint], is_rate: bool) -> Picture:
    """What was predicted and what was observed, with bands; on the diagonal both agree."""
    values = [v for p in points for v in (p.predicted, p.observed, p.low, p.high)]
    low, high = (0.0, 1.0) if is_rate else (min(values), max(values))
    room = 0.0 if is_rate else 0.05 * (high - low)
    canvas = Canvas(CURVE_WIDTH, CURVE_HEIGHT, "Calibration")
    axes = _square(canvas, (low - room, high + room))
    for p in points:
        told = f"predicted {number(p.predicted)}, observed {number(p.observed)}"
        axes.dot_upward(p.predicted, p.observed, (p.low, p.high), title=told)
    axes.names("predicted")
    return canvas.picture()


def survival_picture(points: Sequence[SurvivalPoint], name: str) -> Picture:
    """Survival by rising risk: curves are what the model says, dots with bands what was seen."""
    canvas = Canvas(CURVE_WIDTH, CURVE_HEIGHT, "Survival by risk")
    left = 14 + LETTER * 3
    region = Region(left, 8.0, canvas.width - 14, canvas.height - 42)
    axes = Axes.within(canvas, region, (0.0, max(p.time for p in points)), (0.0, 1.0))
    axes.grid_across()
    axes.ticks_below(5, 16)
    groups = sorted({p.group for p in points} - {0})
    for series, group in enumerate(groups):
        here = [p for p in points if p.group == group]
        axes.curve([0.0, *(p.time for p in here)], [1.0, *(p.predicted for p in here)], series)
        for p in here:
            told = f"group {group}: predicted {number(p.predicted)}, observed {number(p.observed)}"
            axes.dot_upward(p.time, p.observed, (p.low, p.high), series, told)
    axes.names(name)
    return canvas.picture()


def _square(canvas: Canvas, ends: tuple[float, float]) -> Axes:
    """Axes with the same ends both ways, and their diagonal."""
    left = 14 + LETTER * max(len(words) for _, words in Scale(*ends, 0, 1).ticks())
    region = Region(left, 8.0, canvas.width - 14, canvas.height - 42)
    axes = Axes.within(canvas, region, ends, ends)
    axes.grid_across()
    axes.diagonal()
    axes.ticks_below(5, 16)
    return axes
