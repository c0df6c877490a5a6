"""Times and events of a label: how they are read, and the cell of both that a row is kept as.

With J cuts there are 2 J + 1 cells: 2 k for a row censored in interval k, 2 k + 1 for one whose
event happened there, 2 J for one that is still under observation at the last cut, the horizon.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.columns import Numbers, positions_in
from hedgerow.data.csv_format import PLAIN, CsvFormat
from hedgerow.data.readers import one_column
from hedgerow.data.schema_parts import Label
from hedgerow.data.values import MISSING, UNKNOWN
from hedgerow.errors import SettingsError, TableError

Floats = NDArray[np.float64]


class Times:
    """The times of a label, batch by batch; none may be missing or negative."""

    dtype: type = np.float64

    def __init__(self, label: Label, source: str, written: CsvFormat = PLAIN) -> None:
        self._place = f"{source}: label {label.name!r}"
        self._numbers = Numbers(self._place, written)
        self._absent = self._negative = 0

    def read(self, values: Any) -> Floats:
        """Times of a batch: (row,)."""
        times = self._numbers.read(values).astype(np.float64)
        self._absent += int(np.sum(np.isnan(times)))
        self._negative += int(np.sum(times < 0))
        return times

    def check(self) -> None:
        self._numbers.check()
        if self._negative:
            raise TableError(
                f"{self._place} is negative in {self._negative} rows, and times count from 0, the "
                "start of observation; correct them or leave these rows out."
            )
        if self._absent:
            raise TableError(
                f"{self._place} is missing in {self._absent} rows; give the time of the event or "
                "of the last observation, or leave these rows out."
            )


class Events:
    """Whether the event of a label happened, batch by batch: 1, or 0 for a row censored then."""

    dtype: type = np.float64

    def __init__(self, label: Label, source: str, written: CsvFormat = PLAIN) -> None:
        self._codes, self._place = label.event_codes, f"{source}: event {label.event!r}"
        self._written = written
        self._unknown = self._absent = 0

    def read(self, values: Any) -> Floats:
        """Events of a batch: (row,)."""
        found, places = positions_in(values, self._codes, self._place, self._written)
        self._unknown += places.count(found == UNKNOWN)
        self._absent += places.count(found == MISSING)
        return places.take(found.astype(np.float64))

    def check(self) -> None:
        censored, happened = self._codes
        if self._unknown:
            raise TableError(
                f"{self._place} has {self._unknown} rows with a code that is neither {censored!r} "
                f"(censored) nor {happened!r} (the event). If they are other events that end the "
                "observation, competing events, these are not modelled: write them as censored, "
                "or as one combined event."
            )
        if self._absent:
            raise TableError(
                f"{self._place} is missing in {self._absent} rows; say of each whether the event "
                "happened, or leave these rows out."
            )


def outcome_cells(label: Label, times: Floats, events: Floats) -> Floats:
    """The cell of each row: (row,). Times beyond the last cut are censored there.

    An event at a cut belongs to the interval that ends there; a row censored at a cut was seen to
    its end, as where events come before censoring at one time.

    >>> label = Label("days", event="died", cuts=(10, 20))
    >>> outcome_cells(label, np.array([5, 10, 10, 20, 20, 99.0]), np.array([0, 1, 0, 1, 0, 1.0]))
    array([0., 1., 2., 3., 4., 4.])
    """
    cuts = np.asarray(label.cuts, np.float64)
    happened = (events > 0.5) & (times <= cuts[-1])
    interval = np.where(
        happened,
        np.searchsorted(cuts, times, side="left"),
        np.searchsorted(cuts, times, side="right"),
    )
    return np.asarray(2.0 * interval + happened)


def outcomes_given(values: Any, label: Label, source: str = "y") -> tuple[Floats, Floats]:
    """Times and events given on their own: (row,) each.

    `values` has the label's two columns by name (a frame, a dict, a structured array); or it is a
    structured array as scikit-survival makes them, with one field of true and false and one of
    numbers; or a pair (times, events).
    """
    columns = columns_given(values, label, source)
    readers: tuple[Times | Events, ...] = (Times(label, source), Events(label, source))
    found = [
        reader.read(one_column(column, source))
        for reader, column in zip(readers, columns, strict=True)
    ]
    for reader in readers:
        reader.check()
    if len(found[0]) != len(found[1]):
        raise TableError(f"{source} has {len(found[0])} times and {len(found[1])} events.")
    return found[0], found[1]


def columns_given(values: Any, label: Label, source: str) -> tuple[Any, ...]:
    """The label's columns as they were given, in the order of `Label.columns`."""
    if len(label.columns) == 1:
        return (values,)
    first, second = label.columns
    fields = getattr(getattr(values, "dtype", None), "names", None)
    if fields is not None:
        return _of_fields(values, fields, label, source)
    names = values if isinstance(values, Mapping) else getattr(values, "columns", None)
    if names is not None and first in names and second in names:
        return values[first], values[second]
    if isinstance(values, tuple) and len(values) == 2:
        return values
    if label.event is None:
        raise TableError(
            f"{source} is no pair of counts and exposures: give the columns {first!r} and "
            f"{second!r} by name, or a pair (counts, exposures)."
        )
    raise TableError(
        f"{source} is no pair of times and events: give the columns {first!r} and "
        f"{second!r} by name, a pair (times, events), or a structured array as "
        "scikit-survival makes them."
    )


def _of_fields(values: Any, fields: tuple[str, ...], label: Label, source: str) -> tuple[Any, Any]:
    """By name, or the field of true and false beside the one of numbers."""
    if label.name in fields and label.columns[1] in fields:
        times, events = (values[name] for name in label.columns)
    else:
        truth = [name for name in fields if values.dtype[name].kind == "b"]
        numbers = [name for name in fields if values.dtype[name].kind in "fiu"]
        if len(fields) != 2 or len(truth) != 1 or len(numbers) != 1:
            raise TableError(
                f"{source} is a structured array of {len(fields)} fields; give one of true and "
                "false (the event) and one of numbers (the time)."
            )
        times, events = values[numbers[0]], values[truth[0]]
    if events.dtype.kind == "b" and label.event_codes:  # whatever the codes of the schema are
        events = [label.event_codes[int(happened)] for happened in events]
    return times, events


def refuse_survival(label: Label, what: str) -> None:
    """Refuse a label of times and events, for what knows nothing of them."""
    if label.event is not None:
        raise SettingsError(
            f"{what} knows nothing of times to an event, and the label {label.name!r} is one. "
            "Nothing was asked. Train it with method 'auto' or 'random-trees' "
            "(PrivateSurvivalBoosting), on tables that lie beside the process."
        )
