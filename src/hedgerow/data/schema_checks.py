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
