"""A column of any carrier as numbers, or as its distinct values and which of them each row has.

What a value means is said in `values`; here nothing is done row by row in Python where a carrier
has a type.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.csv_format import PLAIN, WRONG_SIGN, CsvFormat
from hedgerow.data.values import MISSING, MISSING_WORDS, Value, is_missing, positions_of, text_of
from hedgerow.errors import TableError

_CLOSE = 1 << 16  # whole numbers of a list: a table of their range is small
_FEW = 256  # of them, which are looked up whether they are there or not
_COMMA = r"^[+-]?[0-9]*,[0-9]+$"
_DATE = r"^[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T].*)?$"
_NUMBER = r"(?i)^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)$"
# Python objects of which Arrow finds the common type without changing what any of them means.
_PLAIN_OBJECTS = (str, bytes, bool, int, float, np.bool_, np.integer)
# Of these it makes something else according to which others there are, even of the same kind.
_NEVER_PLAIN = (np.floating, Decimal, datetime.datetime)


class Numbers:
    """Numbers of a column, whatever they came as; text that is no number is counted."""

    def __init__(self, place: str, written: CsvFormat = PLAIN) -> None:
        self._place, self._written = place, written
        self.n_text, self._advice = 0, ""  # rows with text that is no number

    def read(self, values: Any) -> NDArray[Any]:
        """A float or integer array, NaN where missing: (row,)."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
            return values
        import pyarrow as pa

        column = without_dictionary(arrow_of(values, self._place), self._place)
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
        text = pc.if_else(pc.is_in(text, pa.array(sorted(MISSING_WORDS), text.type)), None, text)
        text = self._written.numbers(text)
        numbers = _cast_to_numbers(text)
        if numbers is None:  # or it has the words true and false
            text = _truth_as_numbers(text)
            numbers = _cast_to_numbers(text)
        if numbers is not None:
            return numbers
        is_number = pc.match_substring_regex(text, _NUMBER)
        wrong = text.filter(pc.invert(is_number)).drop_null()
        self.n_text += len(wrong)
        if pc.any(pc.equal(wrong, WRONG_SIGN)).as_py():
            self._advice = (
                'some have a point, and [csv] in the schema says decimal = ",": add thousands = '
                '".", or correct them'
            )
        elif pc.any(pc.match_substring_regex(wrong, _COMMA)).as_py():
            self._advice = (
                "some have a decimal comma: write decimal points, as in 3.14, or say decimal = "
                '"," under [csv] in the schema'
            )
        elif not self._advice and pc.any(pc.match_substring_regex(wrong, _DATE)).as_py():
            self._advice = "some are dates: turn them into numbers, such as days"
        numbers = _cast_to_numbers(pc.if_else(is_number, text, None))
        return np.full(len(text), np.nan) if numbers is None else numbers

    def check(self) -> None:
        if self.n_text:
            advice = "correct them, or leave the field empty if it is missing"
            raise TableError(
                f"{self._place} is numeric and {self.n_text} rows hold text that is no number; "
                f"{self._advice or advice}."
            )


def positions_in(
    values: Any, listed: Sequence[Value], place: str, written: CsvFormat = PLAIN
) -> tuple[NDArray[np.int32], Places]:
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
    if not written.has_points:
        values = written.values(arrow_of(values, place))
    unique, index = unique_of(values, place)
    return np.append(positions_of(unique, listed), np.int32(MISSING)), Places(index)


@dataclass(frozen=True, eq=False)
class Places:
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


def _whole_numbers(values: Any) -> tuple[Places, int] | None:
    """A column of whole numbers close together, and how many there could be; None for others."""
    kind = getattr(values, "dtype", None)
    if not isinstance(kind, np.dtype) or kind.kind not in "iu" or not len(values):
        return None
    array = np.asarray(values) if kind.isnative else np.asarray(values).astype(np.int64)
    lowest, highest = int(array.min()), int(array.max())
    close = highest - lowest < _CLOSE and lowest > -(2**62) and highest < 2**62
    return (Places(array, lowest, True), highest - lowest + 1) if close else None


def unique_of(values: Any, place: str) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct values, and for every row its place among them (-1: missing)."""
    import pyarrow as pa

    column = arrow_of(values, place)
    try:
        if pa.types.is_null(column.type):
            return [], np.full(len(column), -1)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        array = column.unify_dictionaries().combine_chunks()
        unique = array.dictionary
        index = array.indices.cast(pa.int64()).fill_null(-1).to_numpy()  # (row,)
        if pa.types.is_temporal(unique.type) and not pa.types.is_duration(unique.type):
            unique = unique.cast(pa.string())
        unique = _text_of_bytes(unique)
    except (pa.ArrowException, ValueError):
        raise TableError(f"{place} has values of type {column.type}, which fit no list.") from None
    if pa.types.is_duration(unique.type):  # as text they would depend on their unit
        raise TableError(f"{place} holds durations; turn them into numbers, such as days.")
    if pa.types.is_float16(unique.type) or pa.types.is_float32(unique.type):
        # As people write them: 0.1, not 0.10000000149.
        return [float(str(value)) for value in unique.to_numpy(zero_copy_only=False)], index
    return unique.to_pylist(), index


def arrow_of(values: Any, place: str) -> Any:
    """A chunked Arrow array; columns of mixed Python objects become text."""
    import pyarrow as pa

    try:
        if not isinstance(values, (pa.Array, pa.ChunkedArray)):
            values = _array_of(values)
        column = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
        return _text_of_bytes(column)
    except (pa.ArrowException, TypeError, ValueError):
        raise TableError(f"{place} cannot be read as one column of plain values.") from None


def without_dictionary(column: Any, place: str) -> Any:
    """A column with its values in place, where it had them in a dictionary."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    return arrow_of(column.cast(column.type.value_type), place)


def _array_of(values: Any) -> Any:
    """An Arrow array of what is not Arrow's yet.

    A column of Python objects has no type of its own. Arrow would take that of its first values,
    and one row with a date could turn the numbers of all other rows into dates. What a value means
    may follow from its own row alone: objects that are not plain are read by their text.
    """
    import pyarrow as pa

    dtype: Any = getattr(values, "dtype", None)
    kind = type(dtype).__name__
    if kind == "SparseDtype":
        values = np.asarray(values)
    elif kind in ("PeriodDtype", "IntervalDtype"):  # pandas' own, which its CSV files have as text
        values = values.astype(str)
    elif kind == "CategoricalDtype" and not _are_plain(dtype.categories):
        values = np.asarray(values, object)
    is_typed = str(getattr(values, "dtype", "object")) != "object"
    if is_typed or _are_plain(values):
        with suppress(pa.ArrowException, TypeError, OverflowError):
            return pa.array(values, from_pandas=True)
    return pa.array([None if is_missing(v) else text_of(v) for v in values], pa.string())


def _are_plain(values: Any) -> bool:
    """Whether Arrow may find the type of a column of objects: plain ones, or all of one kind."""
    kinds = set(map(type, values)) - {type(None)}
    if all(issubclass(kind, _PLAIN_OBJECTS) for kind in kinds):
        return True
    return len(kinds) == 1 and not issubclass(kinds.pop(), _NEVER_PLAIN)


def _text_of_bytes(column: Any) -> Any:
    """Bytes as the text that they are in UTF-8; other columns as they are."""
    import pyarrow as pa

    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    if column.type in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.string_view()):
        return column.cast(pa.large_string())
    return column


def _cast_to_numbers(text: Any) -> NDArray[np.float64] | None:
    """A column of text as numbers; None if some of it is no number."""
    import pyarrow as pa

    try:
        return np.asarray(text.cast(pa.float64()).to_numpy())
    except pa.ArrowInvalid:  # its message quotes the value
        return None


def _truth_as_numbers(text: Any) -> Any:
    """A column of text in which the words true and false are the numbers that they mean."""
    import pyarrow.compute as pc

    lower = pc.ascii_lower(text)
    false = pc.if_else(pc.equal(lower, "false"), "0", text)
    return pc.if_else(pc.equal(lower, "true"), "1", false)
