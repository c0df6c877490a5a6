"""Columns to codes, batch by batch. What does not fit is counted, and raised at the end.

Messages count rows and name columns; they never show a value of a row.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import ColumnGrid, encode_edges
from hedgerow.data.columns import Numbers, arrow_of, positions_in, unique_of, without_dictionary
from hedgerow.data.csv_format import PLAIN, CsvFormat
from hedgerow.data.schema_parts import Label, Numeric
from hedgerow.data.values import MISSING, MISSING_WORDS, UNKNOWN, key_of
from hedgerow.data.weights import Steps, Weight
from hedgerow.errors import TableError

_WHOLE = re.compile(r"^([+-]?[0-9]+)\.0+$")


class ColumnCodes:
    """One column of the schema."""

    def __init__(self, grid: ColumnGrid, source: str, written: CsvFormat = PLAIN) -> None:
        self._grid, self._place = grid, f"{source}: column {grid.column.name!r}"
        self._written = written
        self._numbers = Numbers(self._place, written)
        self._unknown = self._absent = 0

    def read_levels(self, values: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Codes of a batch (row,), and those of its fine level if the column has one."""
        grid = self._grid
        if not grid.fine.size:
            return self.read(values), None
        fine = encode_edges(self._numbers.read(values), grid.fine, grid.fine.size + 1)
        codes = grid.code_of_fine[fine]
        if not grid.column.missing:
            self._absent += int(np.sum(codes == grid.missing_code))
        return codes, fine

    def read(self, values: Any) -> NDArray[Any]:
        """Codes of a batch: (row,)."""
        grid, column = self._grid, self._grid.column
        if isinstance(column, Numeric):
            # A model that is predicted with may have more thresholds than a base grid has edges.
            numbers = self._numbers.read(values)
            codes: NDArray[Any] = encode_edges(numbers, grid.edges, grid.missing_code)
            if not column.missing:
                self._absent += int(np.sum(codes == grid.missing_code))
            return codes
        found, places = positions_in(values, column.categories, self._place, self._written)
        self._unknown += places.count(found == UNKNOWN)
        self._absent += places.count(found == MISSING)
        other = grid.missing_code if grid.other_code is None else grid.other_code
        table = np.where(
            found == UNKNOWN, other, np.where(found == MISSING, grid.missing_code, found)
        )
        return places.take(table.astype(np.uint8 if grid.n_codes <= 256 else np.uint16))

    def check(self) -> None:
        """Raise TableError if anything that was read does not fit the schema."""
        column = self._grid.column
        self._numbers.check()
        if not isinstance(column, Numeric) and column.other == "error" and self._unknown:
            raise TableError(
                f"{self._place} has {self._unknown} rows with a value that is not among its "
                f"{len(column.categories)} categories; correct them, list the value in the "
                'schema, or write other = "category" there.'
            )
        if not column.missing and self._absent:
            raise TableError(
                f"{self._place} has missing = false and {self._absent} rows without it; fill them "
                "in, or write missing = true in the schema."
            )


class Targets:
    """The label: class positions, or values clipped to its bounds and scaled to [0, 1]."""

    dtype: type = np.float64

    def __init__(self, label: Label, source: str, written: CsvFormat = PLAIN) -> None:
        self._label, self._place = label, f"{source}: label {label.name!r}"
        self._written = written
        self._numbers = Numbers(self._place, written)
        self._unknown = self._absent = 0

    def read(self, values: Any) -> NDArray[np.float64]:
        """Targets of a batch: (row,)."""
        label = self._label
        if label.classes:
            found, places = positions_in(values, label.classes, self._place, self._written)
            self._unknown += places.count(found == UNKNOWN)
            self._absent += places.count(found == MISSING)
            return places.take(found.astype(np.float64))
        numbers = self._numbers.read(values).astype(np.float64)
        self._absent += int(np.sum(np.isnan(numbers)))
        if label.lower is None or label.upper is None:
            return numbers
        span = label.upper - label.lower
        return np.asarray((np.clip(numbers, label.lower, label.upper) - label.lower) / span)

    def check(self) -> None:
        self._numbers.check()
        if self._unknown:
            raise TableError(
                f"{self._place} has {self._unknown} rows of a class that is not in the schema's "
                f"list of {len(self._label.classes)}; correct them, or agree on a schema with "
                "that class."
            )
        if self._absent:
            raise TableError(
                f"{self._place} is missing in {self._absent} rows; fill them in or leave them out."
            )


class Weights:
    """The column of weights, batch by batch; rows without a number are counted, and refused."""

    dtype: type = np.uint16

    def __init__(self, weight: Weight, source: str, written: CsvFormat = PLAIN) -> None:
        self._weight, self._place = weight, f"{source}: weight {weight.column!r}"
        self._numbers, self._absent = Numbers(self._place, written), 0

    def read(self, values: Any) -> Steps:
        """Weights of a batch, in steps: (row,)."""
        numbers = self._numbers.read(values).astype(np.float64)
        absent = np.isnan(numbers)
        self._absent += int(np.sum(absent))
        return self._weight.steps(np.where(absent, 0.0, numbers))

    def check(self) -> None:
        self._numbers.check()
        if self._absent:
            raise TableError(
                f"{self._place} is missing in {self._absent} rows; give every row its weight (0 "
                "leaves it out of all sums), or leave these rows out."
            )


class Ids:
    """Ids of rows as they are written: text, one for every row and none twice."""

    dtype: type = object

    def __init__(self, column: str, source: str) -> None:
        self._place, self._absent = f"{source}: id column {column!r}", 0
        self._seen: set[str] = set()
        self._rows = 0

    def read(self, values: Any) -> NDArray[np.object_]:
        import pyarrow as pa

        column = without_dictionary(arrow_of(values, self._place), self._place)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise TableError(
                f"{self._place} holds {column.type}, and ids are text. Write them as text, the "
                "same way in every party (007 and 7 are two ids)."
            )
        texts = column.to_pylist()
        known = [text for text in texts if text is not None and text.strip()]
        self._absent += len(texts) - len(known)
        self._rows += len(known)
        self._seen.update(known)
        return np.array(texts, object)

    def check(self) -> None:
        if self._absent:
            raise TableError(
                f"{self._place} is empty in {self._absent} rows; every row needs an id."
            )
        if repeated := self._rows - len(self._seen):
            raise TableError(
                f"{self._place} has {repeated} rows whose id occurs before; an id stands for one "
                "row. Keep one row a person."
            )


class Persons:
    """Who each row belongs to: hashes of ids."""

    dtype: type = np.uint64

    def __init__(self, column: str, source: str) -> None:
        self._place = f"{source}: unit column {column!r}"
        self.n_absent = 0  # rows without an id

    def read(self, values: Any) -> NDArray[np.uint64]:
        unique, index = unique_of(values, self._place)
        texts = [id_of(value) for value in unique]
        no_id = np.array([not text for text in texts] + [True])  # (unique value + 1,)
        self.n_absent += int(np.sum(no_id[index]))
        hashes = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts]
        table = np.array([int.from_bytes(h, "little") for h in hashes] + [0], dtype=np.uint64)
        return table[index]  # (row,)

    def check(self) -> None:
        if self.n_absent:
            raise TableError(
                f"{self._place} is missing in {self.n_absent} rows; every row needs its person's "
                "id."
            )


def id_of(value: Any) -> str:
    """The text by which a person is told apart, by the rule of `values`; "" if it is missing.

    A person in two spellings would have twice the rows that count. Leading zeros tell persons
    apart as they tell names.

    >>> id_of(" 17.0"), id_of(17), id_of("017"), id_of("NA")
    ('17', '17', '017', '')
    """
    key = key_of(value)
    return "" if key is None or key in MISSING_WORDS else _WHOLE.sub(r"\1", key)
