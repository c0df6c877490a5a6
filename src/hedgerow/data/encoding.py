"""Columns to codes, batch by batch. What does not fit is counted, and raised at the end.

Messages count rows and name columns; they never show a value of a row.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import (
    MISSING,
    UNKNOWN,
    ColumnGrid,
    encode_edges,
    is_missing,
    positions_of,
)
from hedgerow.data.schema import Label, Numeric, Value, text_of
from hedgerow.errors import TableError

_CLOSE = 1 << 16  # whole numbers of a list: a table of their range is small
_FEW = 256  # of them, which are looked up whether they are there or not
_NO_NUMBER = ("", "NA", "NaN", "nan", "null", "N/A")
_COMMA = r"^[+-]?[0-9]*,[0-9]+$"
_DATE = r"^[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T].*)?$"
_WHOLE = re.compile(r"^([+-]?[0-9]+)\.0+$")
_NUMBER = r"(?i)^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)$"


class ColumnCodes:
    """One column of the schema."""

    def __init__(self, grid: ColumnGrid, source: str) -> None:
        self._grid, self._place = grid, f"{source}: column {grid.column.name!r}"
        self._numbers = Numbers(self._place)
        self._unknown = self._absent = 0

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
        found, places = _positions(values, column.categories, self._place)
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

    def __init__(self, label: Label, source: str) -> None:
        self._label, self._place = label, f"{source}: label {label.name!r}"
        self._numbers = Numbers(self._place)
        self._unknown = self._absent = 0

    def read(self, values: Any) -> NDArray[np.float64]:
        """Targets of a batch: (row,)."""
        label = self._label
        if label.classes:
            found, places = _positions(values, label.classes, self._place)
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


class Ids:
    """Ids of rows as they are written: text, one for every row and none twice."""

    dtype: type = object

    def __init__(self, column: str, source: str) -> None:
        self._place, self._absent = f"{source}: id column {column!r}", 0
        self._seen: set[str] = set()
        self._rows = 0

    def read(self, values: Any) -> NDArray[np.object_]:
        import pyarrow as pa

        column = arrow_of(values, self._place)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
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
        self._place, self._absent = f"{source}: unit column {column!r}", 0

    def read(self, values: Any) -> NDArray[np.uint64]:
        unique, index = unique_of(values, self._place)
        texts = ["" if is_missing(value) else id_of(value) for value in unique]
        no_id = np.array([not text for text in texts] + [True])  # (unique value + 1,)
        self._absent += int(np.sum(no_id[index]))
        hashes = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts]
        table = np.array([int.from_bytes(h, "little") for h in hashes] + [0], dtype=np.uint64)
        return table[index]  # (row,)

    def check(self) -> None:
        if self._absent:
            raise TableError(
                f"{self._place} is missing in {self._absent} rows; every row needs its person's id."
            )


def id_of(value: Any) -> str:
    """The text by which a person is told apart: without blanks around it, and 17.0 is 17.

    A person in two spellings would have twice the rows that count. Nothing else is taken for the
    same, numbers with leading zeros least of all.

    >>> id_of(" 17.0"), id_of(17), id_of("017")
    ('17', '17', '017')
    """
    return _WHOLE.sub(r"\1", unicodedata.normalize("NFC", text_of(value).strip()))


class Numbers:
    """Numbers of a column, whatever they came as; text that is no number is counted."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._text, self._advice = 0, ""

    def read(self, values: Any) -> NDArray[Any]:
        """A float or integer array, NaN where missing: (row,)."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
            return values
        import pyarrow as pa

        column = arrow_of(values, self._place)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_temporal(column.type):
            raise TableError(
                f"{self._place} holds dates or times; turn them into numbers, such as days."
            )
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            return self._parsed(column)
        try:
            if not pa.types.is_floating(column.type):
                column = column.cast(pa.float64(), safe=False)
            return np.asarray(column.to_numpy())
        except pa.ArrowException:
            pass
        raise TableError(f"{self._place} has values of type {column.type}, not numbers.")

    def _parsed(self, column: Any) -> NDArray[Any]:
        import pyarrow as pa
        import pyarrow.compute as pc

        text = pc.utf8_trim_whitespace(column)
        text = pc.if_else(pc.is_in(text, pa.array(_NO_NUMBER, text.type)), None, text)
        try:
            return np.asarray(text.cast(pa.float64()).to_numpy())
        except pa.ArrowInvalid:  # its message quotes the value
            pass
        wrong = text.filter(pc.invert(pc.match_substring_regex(text, _NUMBER))).drop_null()
        self._text += len(wrong)
        if pc.any(pc.match_substring_regex(wrong, _COMMA)).as_py():
            self._advice = "some have a decimal comma: write decimal points, as in 3.14"
        elif not self._advice and pc.any(pc.match_substring_regex(wrong, _DATE)).as_py():
            self._advice = "some are dates: turn them into numbers, such as days"
        return np.full(len(text), np.nan)

    def check(self) -> None:
        if self._text:
            advice = "correct them, or leave the field empty if it is missing"
            raise TableError(
                f"{self._place} is numeric and {self._text} rows hold text that is no number; "
                f"{self._advice or advice}."
            )


def _positions(
    values: Any, listed: Sequence[Value], place: str
) -> tuple[NDArray[np.int32], _Places]:
    """Positions in the list of the distinct values, and which of them each row has.

    The last of them may be missing values, which rows then have as number -1.
    """
    if (whole := _whole_numbers(values)) is not None:
        places, span = whole
        lowest = places.lowest
        # The values that may be there, less the lowest: if they are many, those that are.
        there = np.arange(span) if span <= _FEW else np.flatnonzero(places.counts(span))
        table = np.zeros(span, np.int32)  # no row has what lies between them
        table[there] = positions_of((there + lowest).tolist(), listed)
        return table, places
    unique, index = unique_of(values, place)
    return np.append(positions_of(unique, listed), np.int32(MISSING)), _Places(index)


@dataclass(frozen=True, eq=False)
class _Places:
    """Which of some distinct values each row has: by how much its number is above the lowest."""

    numbers: NDArray[Any]  # (row,) whole numbers
    lowest: int = 0
    dense: bool = False  # whether none is below the lowest, which stands for a missing value

    def take(self, table: NDArray[Any]) -> NDArray[Any]:
        """What the table has for each row's value: (row,)."""
        if not self.dense:
            return np.asarray(table[self.numbers])  # -1 is the last one
        from hedgerow import kernels  # compiled loops load slowly, and plans need none

        found = np.empty(len(self.numbers), table.dtype)
        kernels.take_above(np.ascontiguousarray(self.numbers), self.lowest, table, found)
        return found

    def counts(self, n: int) -> NDArray[np.int64]:
        """How many rows have each of the values: (value,)."""
        return np.bincount(self.numbers.astype(np.int64) - self.lowest, minlength=n)

    def count(self, chosen: NDArray[np.bool_]) -> int:
        """How many rows have one of the chosen values."""
        return int(np.count_nonzero(self.take(chosen))) if chosen.any() else 0


def _whole_numbers(values: Any) -> tuple[_Places, int] | None:
    """A column of whole numbers close together, and how many there could be; None for others."""
    kind = getattr(values, "dtype", None)
    if not isinstance(kind, np.dtype) or kind.kind not in "iu" or not len(values):
        return None
    array = np.asarray(values) if kind.isnative else np.asarray(values).astype(np.int64)
    lowest, highest = int(array.min()), int(array.max())
    close = highest - lowest < _CLOSE and lowest > -(2**62) and highest < 2**62
    return (_Places(array, lowest, True), highest - lowest + 1) if close else None


def unique_of(values: Any, place: str) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct values, and for every row its place among them (-1: missing)."""
    import pyarrow as pa

    column = arrow_of(values, place)
    try:
        if pa.types.is_temporal(column.type):
            column = column.cast(pa.string())
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        array = column.unify_dictionaries().combine_chunks()
        unique = array.dictionary
        index = array.indices.cast(pa.int64()).fill_null(-1).to_numpy()  # (row,)
    except (pa.ArrowException, ValueError):
        raise TableError(f"{place} has values of type {column.type}, which fit no list.") from None
    if pa.types.is_float32(unique.type):  # as people write them: 0.1, not 0.10000000149
        return [float(str(value)) for value in unique.to_numpy(zero_copy_only=False)], index
    return unique.to_pylist(), index


def arrow_of(values: Any, place: str) -> Any:
    """A chunked Arrow array; columns of mixed Python objects become text."""
    import pyarrow as pa

    try:
        if not isinstance(values, (pa.Array, pa.ChunkedArray)):
            try:
                values = pa.array(values, from_pandas=True)
            except (pa.ArrowException, TypeError, OverflowError):
                texts = [None if is_missing(value) else text_of(value) for value in values]
                values = pa.array(texts, pa.string())
        column = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
        if column.type in (pa.binary(), pa.large_binary(), pa.string_view()):
            column = column.cast(pa.large_string())
        if pa.types.is_float16(column.type):
            column = column.cast(pa.float32())
    except (pa.ArrowException, TypeError, ValueError):
        raise TableError(f"{place} cannot be read as one column of plain values.") from None
    return column
