"""What columns, labels and units of a schema must be, and what a mistake in them is told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import numpy as np

from hedgerow.data.documents import Document, Within, shown
from hedgerow.data.values import Value, key_of, plain_value
from hedgerow.errors import SchemaError

Bound = Annotated[float, Within(-1e37, 1e37)]
MAX_CATEGORIES = 65_000
UNIFORM_CELLS = 128  # of equal width, into which bounds are divided
MAX_NUMERIC_CELLS = 254
MAX_TIME_CUTS = 64
MAX_COUNT = 1_000_000
LEVELS = 10_000  # quantiles are whole multiples of 1 / LEVELS
BENDS = 1 << 20  # where Huber's loss bends, in steps of the label's range
SCHEMA = Document(
    "schema",
    SchemaError,
    format=1,
    absent=". It is a public fact that must be written down: take it from documentation, or agree "
    "on it with the other parties.",
)


def make_plain(facts: Any, *names: str) -> None:
    """Turn scalars of numpy into Python's own, and lists and arrays of them into tuples."""
    for name in names:
        value = getattr(facts, name)
        if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
            object.__setattr__(facts, name, tuple(plain_value(item) for item in value))
        else:
            object.__setattr__(facts, name, plain_value(value))


def check_order(place: str, lower: float, upper: float) -> None:
    if not lower < upper:
        raise SchemaError(f"{place} has lower = {lower} and upper = {upper}; swap or widen them")


def check_categories(column: Any) -> None:
    place = f"column {shown(column.name)}"
    make_plain(column, "categories")
    SCHEMA.check(column, place)
    categories = column.categories
    if not categories:
        raise SchemaError(f"{place} has no categories; list them, they are never read from rows")
    if len(categories) > MAX_CATEGORIES:
        raise SchemaError(f"{place} has {len(categories)} categories; at most {MAX_CATEGORIES}")
    check_unique(place, "category", categories)


def check_unique(place: str, what: str, values: Iterable[Value]) -> None:
    """Refuse a list in which one value of a row could match two entries, see `values`."""
    seen: dict[str, Value] = {}
    for value in values:
        key = key_of(value)
        if key is None:
            raise SchemaError(
                f"{place} has the {what} {value!r}; an empty field is a missing value, so leave it "
                "out of the list"
            )
        if key in seen:
            raise SchemaError(
                f"{place} lists {shown(seen[key])} and {shown(value)}, which are the same {what} "
                "twice, in whatever way a table writes it; keep one"
            )
        seen[key] = value


def check_time_to_event(label: Any, place: str) -> None:
    """Refuse a label of times and events that leaves something open; codes unsaid are 0 and 1."""
    if label.event is None or not label.cuts:
        raise SchemaError(
            f"{place} is a time to an event and needs both: event = the column that says whether "
            "it happened, and cuts = [...], public times of which the last is the horizon. They "
            "are never read from the rows."
        )
    cuts, codes = label.cuts, label.event_codes or (0, 1)
    object.__setattr__(label, "event_codes", codes)
    rising = all(a < b for a, b in zip((0.0, *cuts), cuts, strict=False))
    if not rising or not 2 <= len(cuts) <= MAX_TIME_CUTS:
        raise SchemaError(
            f"{place} has {len(cuts)} cuts; give 2 to {MAX_TIME_CUTS} times above 0 that rise"
        )
    if len(codes) > 2:
        raise SchemaError(
            f"{place} has {len(codes)} event codes: one for censored rows and several events. "
            "Competing events are not modelled. Choose one event, give [censored, event] as "
            "event_codes, and decide at each site what the other events are: end of observation "
            "(then write them as censored, and the model is one of the hazard of your event while "
            "nothing else has happened), or part of one combined event"
        )
    if len(codes) != 2:
        raise SchemaError(f"{place} has one event code; give [censored, event], such as [0, 1]")
    check_unique(place, "event code", codes)
    if label.change_at is not None and label.change_at not in cuts[:-1]:
        raise SchemaError(
            f"{place} has change_at = {shown(label.change_at)}; effects may change at one of its "
            f"cuts before the last: {', '.join(f'{cut:g}' for cut in cuts[:-1])}"
        )


def check_loss(label: Any, place: str) -> None:
    """Refuse a loss that the label cannot have, and facts that belong to another one.

    The squared loss is the usual one of numbers and is kept as None: a label has one spelling.
    """
    if label.loss == "squared":
        object.__setattr__(label, "loss", None)
    if label.loss == "poisson" and label.lower is None:
        object.__setattr__(label, "lower", 0)
    belongs = {"quantile": "quantile", "huber": "huber", "exposure": "poisson"}
    for name, loss in {**belongs, "max_exposure": "poisson"}.items():
        if getattr(label, name) is not None and label.loss != loss:
            raise SchemaError(f'{place} has {name}, which belongs to loss = "{loss}"; keep both')
    if label.loss is None:
        return
    if label.classes or label.event is not None:
        raise SchemaError(f"{place} has loss = {label.loss!r}, which is for numbers; leave it out")
    checks = {"poisson": _check_counts, "quantile": _check_quantile, "huber": _check_huber}
    checks[label.loss](label, place)


def _check_counts(label: Any, place: str) -> None:
    cap = label.upper
    if cap is None or label.lower != 0 or cap != int(cap) or not 1 <= cap <= MAX_COUNT:
        raise SchemaError(
            f"{place} is a count: it needs upper = a whole number from 1 to {MAX_COUNT}, the cap "
            "above which counts are clipped, a public fact, and no lower but 0"
        )
    if (label.exposure is None) != (label.max_exposure is None):
        raise SchemaError(
            f"{place} needs both or none: exposure = the column of how long rows were seen, and "
            "max_exposure = its public cap"
        )
    if label.max_exposure is not None and not label.max_exposure > 0:
        raise SchemaError(f"{place} has max_exposure = {label.max_exposure:g}; it must be above 0")


def _check_quantile(label: Any, place: str) -> None:
    level = label.quantile
    if level is None or not 0 < level < 1:
        raise SchemaError(
            f"{place} has quantile = {shown(level)}; give the quantile to predict, above 0 and "
            "below 1, such as 0.5 for the median"
        )
    if abs(level * LEVELS - round(level * LEVELS)) > 1e-6:
        raise SchemaError(
            f"{place} has quantile = {shown(level)}; give at most four digits behind the point"
        )


def _check_huber(label: Any, place: str) -> None:
    if label.lower is None or label.upper is None:
        return  # what is missing is told where bounds are
    span, bend = label.upper - label.lower, label.huber
    if bend is None or not span / BENDS <= bend <= span:
        raise SchemaError(
            f"{place} has huber = {shown(bend)}; give the error, in units of the label, beyond "
            f"which rows pull no further: above 0 and at most upper - lower, {span:g}"
        )


def check_told_apart(place: str, lower: float, upper: float, integer: bool) -> None:
    """Refuse bounds between which 32-bit floats cannot tell the edges of cells apart.

    Edges and values are compared in 32-bit floats, see `binning`: where neighbouring edges are one
    float, rows on both sides of them are one cell, whatever they hold.
    """
    by_one = integer and upper - lower < MAX_NUMERIC_CELLS
    width = 1.0 if by_one else (upper - lower) / UNIFORM_CELLS
    apart = float(np.spacing(np.float32(max(abs(lower), abs(upper)))))
    if width < apart:
        raise SchemaError(
            f"{place} has lower = {lower:.17g} and upper = {upper:.17g}, too close together for "
            f"numbers of their size: models compare 32-bit floats, which are {apart:g} apart "
            f"there, and the column's cells would be {width:g} wide. Subtract a public number "
            "from the column, such as its lower bound (or multiply tiny numbers by one), and give "
            "the bounds of the result"
        )
