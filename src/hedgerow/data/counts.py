"""Counts and exposures of a label: how they are read, and the one number a row is kept as.

A row is count * EXPOSURE_STEPS + steps - 1, with its exposure in steps of the largest: a whole
number from 1 to EXPOSURE_STEPS. Rows of a label without exposure all have the largest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.columns import Numbers
from hedgerow.data.csv_format import PLAIN, CsvFormat
from hedgerow.data.readers import one_column
from hedgerow.data.schema_parts import Label
from hedgerow.data.survival import columns_given, refuse_survival
from hedgerow.errors import SettingsError, TableError

Floats = NDArray[np.float64]
ONE_BY_ONE = 16  # counts up to it have a cell of their own; above, cells grow by a quarter


class Counts:
    """The counts of a label, batch by batch: whole numbers from 0, none missing."""

    dtype: type = np.float64

    def __init__(self, label: Label, source: str, written: CsvFormat = PLAIN) -> None:
        self._place = f"{source}: label {label.name!r}"
        self._numbers = Numbers(self._place, written)
        self._absent = self._negative = self._broken = 0

    def read(self, values: Any) -> Floats:
        """Counts of a batch: (row,)."""
        counts = self._numbers.read(values).astype(np.float64)
        self._absent += int(np.sum(np.isnan(counts)))
        self._negative += int(np.sum(counts < 0))
        self._broken += int(np.sum(np.isfinite(counts) & (counts != np.floor(counts))))
        return counts

    def check(self) -> None:
        self._numbers.check()
        if self._negative:
            raise TableError(
                f"{self._place} is negative in {self._negative} rows, and counts begin at 0; "
                "correct them or leave these rows out."
            )
        if self._broken:
            raise TableError(
                f"{self._place} is no whole number in {self._broken} rows, and it is a count. Give "
                "the count itself and how long rows were seen as exposure, not the rate; or leave "
                'loss = "poisson" out of the schema.'
            )
        if self._absent:
            raise TableError(
                f"{self._place} is missing in {self._absent} rows; fill them in or leave them out."
            )


class Exposures:
    """How long, or how much, rows were seen, batch by batch: numbers above 0, none missing."""

    dtype: type = np.float64

    def __init__(self, label: Label, source: str, written: CsvFormat = PLAIN) -> None:
        self._place = f"{source}: exposure {label.exposure!r}"
        self._numbers = Numbers(self._place, written)
        self._absent = self._nothing = 0

    def read(self, values: Any) -> Floats:
        """Exposures of a batch: (row,)."""
        exposures = self._numbers.read(values).astype(np.float64)
        self._absent += int(np.sum(np.isnan(exposures)))
        self._nothing += int(np.sum(exposures <= 0))
        return exposures

    def check(self) -> None:
        self._numbers.check()
        if self._nothing:
            raise TableError(
                f"{self._place} is 0 or negative in {self._nothing} rows, in which nothing could "
                "be counted; correct them or leave these rows out."
            )
        if self._absent:
            raise TableError(
                f"{self._place} is missing in {self._absent} rows; say how long each was seen, or "
                "leave these rows out."
            )


def count_codes(label: Label, counts: Floats, exposures: Floats | None = None) -> Floats:
    """What rows are kept as: (row,). Counts and exposures above their caps count as the cap.

    >>> label = Label("claims", upper=9, loss="poisson", exposure="years", max_exposure=2)
    >>> codes = count_codes(label, np.array([0, 3, 99.0]), np.array([1e-9, 1.0, 5.0]))
    >>> [divmod(int(code), 1 << 16) for code in codes]
    [(0, 0), (3, 32767), (9, 65535)]
    """
    from hedgerow.kernels import EXPOSURE_STEPS  # loads compiled loops

    assert label.upper is not None
    kept = np.minimum(counts, label.upper)
    if exposures is None or label.max_exposure is None:
        return np.asarray(kept * EXPOSURE_STEPS + (EXPOSURE_STEPS - 1))
    steps = np.rint(np.minimum(exposures / label.max_exposure, 1.0) * EXPOSURE_STEPS)
    return np.asarray(kept * EXPOSURE_STEPS + np.maximum(steps, 1.0) - 1.0)


def number_ends(label: Label) -> tuple[float, float]:
    """What rows are kept as whose label is at its lower end, and at its upper one.

    >>> number_ends(Label("y", lower=3, upper=9))
    (0.0, 1.0)
    """
    if label.task != "counts" or label.upper is None:
        return 0.0, 1.0
    from hedgerow.kernels import EXPOSURE_STEPS  # loads compiled loops

    full = EXPOSURE_STEPS - 1.0
    return full, label.upper * EXPOSURE_STEPS + full


def label_readers(
    label: Label, source: str, written: CsvFormat = PLAIN
) -> list[Counts | Exposures]:
    """Readers of its columns, in their order."""
    readers: list[Counts | Exposures] = [Counts(label, source, written)]
    return readers if label.exposure is None else [*readers, Exposures(label, source, written)]


def counts_given(values: Any, label: Label, source: str = "y") -> tuple[Floats, Floats | None]:
    """Counts and exposures given on their own: (row,) each, no exposures where there are none.

    With exposures `values` has both columns by name (a frame, a dict), or is a pair of both.
    """
    readers = label_readers(label, source)
    columns = columns_given(values, label, source)
    found = [
        reader.read(one_column(column, source))
        for reader, column in zip(readers, columns, strict=True)
    ]
    for reader in readers:
        reader.check()
    if len(found) == 1:
        return found[0], None
    if len(found[0]) != len(found[1]):
        raise TableError(f"{source} has {len(found[0])} counts and {len(found[1])} exposures.")
    return found[0], found[1]


def count_edges(cap: float) -> NDArray[np.int64]:
    """The lowest count of every public cell of counts up to their cap: (cell,).

    >>> count_edges(3).tolist(), len(count_edges(1_000_000))
    ([0, 1, 2, 3], 66)
    """
    edges = list(range(min(int(cap), ONE_BY_ONE) + 1))
    while edges[-1] < cap and len(edges) > ONE_BY_ONE:
        following = -(-edges[-1] * 5 // 4)  # rounded up
        if following > cap:
            break
        edges.append(following)
    return np.array(edges, np.int64)


def refuse_unusual(label: Label, what: str) -> None:
    """Refuse times to an event and losses of their own, for what knows nothing of them."""
    refuse_survival(label, what)
    if label.loss is not None:
        raise SettingsError(
            f'{what} knows nothing of loss = "{label.loss}", which the label {label.name!r} has. '
            "Nothing was asked. Train it with method 'auto', or leave the loss out of the label."
        )
