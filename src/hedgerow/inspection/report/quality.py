"""How good the model is, where a private evaluation was paid for."""

from __future__ import annotations

from hedgerow.data.schema import text_of
from hedgerow.evaluation.result import TITLES, Confusion, Evaluation
from hedgerow.inspection.report.charts import calibration_svg, roc_svg
from hedgerow.inspection.report.marks import number, table, tag, text
from hedgerow.model.ensemble import Ensemble

MOST_CLASSES = 12  # of a shown table of counts
_HINT = (
    "Not measured. Looking at private rows costs budget: "
    "<code>hedgerow evaluate MODEL --data FILE --epsilon E</code>, then "
    "<code>hedgerow report MODEL</code> again."
)


def quality_section(evaluation: Evaluation | None, model: Ensemble) -> str:
    """Measures with their intervals, calibration and ROC with bands."""
    if evaluation is None:
        return tag("section", tag("h2", "How good it is"), tag("p", _HINT, class_="lead"))
    found = evaluation.findings
    tiles = []
    for measure in found.measures:
        value = "unknown" if measure.value is None else number(measure.value)
        between = ""
        if measure.interval is not None:
            low, high = measure.interval
            between = f"95 %: {number(low)} to {number(high)}"
        tiles.append(
            tag(
                "div", tag("span", text(TITLES.get(measure.name, measure.name))),
                tag("b", text(value)), tag("small", text(between)), class_="card tile",
            )
        )  # fmt: skip
    parts = [
        tag("h2", "How good it is"),
        tag("p", text(_lead(evaluation)), class_="lead"),
        tag("div", "".join(tiles), class_="tiles"),
        tag("div", _curves(evaluation, model), class_="grid", style="margin-top:1rem"),
    ]
    notes = [tag("li", text(note)) for note in found.notes]
    if notes:
        parts.append(tag("ul", *notes, class_="notes"))
    words = "".join(tag("p", text(line)) for line in evaluation.words().split("\n"))
    told = tag("summary", "What the evaluation promises, word for word")
    return tag("section", *parts, tag("details", told, tag("div", words, class_="card promise")))


def _lead(evaluation: Evaluation) -> str:
    says = evaluation.statement
    return (
        "Measured on the parties' rows by noisy sums, which cost "
        f"epsilon = {says.epsilon:g} on top of training. Intervals and bands hold the noise and "
        "the chance in the rows, 95 %."
    )


def _curves(evaluation: Evaluation, model: Ensemble) -> str:
    found, drawn = evaluation.findings, []
    if found.roc:
        drawn.append(_figure("ROC", "true over false positive rate", roc_svg(found.roc)))
    if found.calibration:
        is_share = bool(model.schema.label.classes)
        svg = calibration_svg(found.calibration, is_share)
        drawn.append(_figure("Calibration", "seen over predicted", svg))
    if found.confusion is not None and len(found.confusion.classes) <= MOST_CLASSES:
        n_classes = len(found.confusion.classes)
        size = "" if n_classes <= 3 else " wide" if n_classes <= 7 else " full"
        counts = _counts(found.confusion)
        drawn.append(_figure("Counts", "true class down, predicted across", counts, size))
    return "".join(drawn)


def _figure(name: str, more: str, inside: str, size: str = "") -> str:
    caption = tag("figcaption", tag("span", name), tag("small", more))
    return tag("figure", caption, inside, class_=f"card{size}")


def _counts(confusion: Confusion) -> str:
    names = [text(text_of(value)) for value in confusion.classes]
    rows = [
        (name, *(f"{n:,.0f}" for n in counts))
        for name, counts in zip(names, confusion.counts, strict=True)
    ]
    noise = f"Each count has noise of deviation {number(confusion.noise_error)}."
    return table(("", *names), rows, range(1, len(names) + 1)) + tag("p", noise, class_="hint")
