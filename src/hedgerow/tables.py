"""Parquet, CSV, Arrow, pandas, polars, dicts and numpy -> rows checked against a schema.

Everything that does not fit is found here, before a party joins. Messages count rows and name
columns; they never show a value of a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.binning import (
    MISSING,
    UNKNOWN,
    Codes,
    ColumnGrid,
    base_grid,
    encode_numeric,
    gather_codes,
    is_missing,
    positions_of,
)
from hedgerow.errors import TableError
from hedgerow.frames import Frame, frame_of, one_column, read_table
from hedgerow.schema import Label, Numeric, Schema, Value, text_of

__all__ = ["Rows", "encode_table", "read_table", "rows_of", "target_of"]

_NO_NUMBER = ("", "NA", "NaN", "nan", "null", "N/A")
_COMMA = r"^[+-]?[0-9]*,[0-9]+$"
_DATE = r"^[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T].*)?$"
_NUMBER = r"(?i)^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)$"


@dataclass(frozen=True, eq=False)
class Rows:
    """Checked rows: codes on the base grid, the target, and who each row belongs to."""

    codes: Codes
    target: NDArray[np.float64]  # (row,): class index, or number scaled to [0, 1]; (0,) if absent
    persons: NDArray[np.uint64] | None  # (row,): hash of the person's id, if persons are the unit

    @property
    def n_rows(self) -> int:
        return self.codes.n_rows

    def take(self, index: NDArray[Any]) -> Rows:
        target = self.target[index] if self.target.size else self.target
        persons = None if self.persons is None else self.persons[index]
        return Rows(self.codes.take(index), target, persons)


def rows_of(
    data: Any, schema: Schema, target: Any = None, *, with_label: bool = True, source: str = "table"
) -> Rows:
    """Check a table against its schema and encode it.

    `data` is a path, an Arrow table, a pandas or polars frame, a dict of columns (all matched by
    name; further columns are ignored), or a 2-D array (matched by position). Labels are `target`,
    or else the table's label column.

    >>> schema = Schema.from_bounds({"age": (0, 110)}, classes=["no", "yes"])
    >>> rows_of({"age": [30, 41], "label": ["yes", "no"]}, schema).target.tolist()
    [1.0, 0.0]
    """
    frame = frame_of(data, source)
    person = [schema.unit.column] if schema.unit.column else []
    label = [schema.label.name] if with_label and target is None else []
    places = frame.find([*schema.names, *person, *label], n_named=len(person) + len(label))
    if frame.n_rows == 0:
        raise TableError(f"{frame.source} has 0 rows; a party needs at least one.")
    persons, values = None, np.empty(0)
    if person:
        ids = frame.column(places[len(schema.names)])
        persons = _persons(ids, f"{frame.source}: unit column {schema.unit.column!r}")
    if with_label:
        labels = frame.column(places[-1]) if label else target
        values = target_of(labels, schema.label, frame.source)
        if values.size != frame.n_rows:
            raise TableError(f"{frame.source} has {frame.n_rows} rows and {values.size} labels.")
    return Rows(_codes(frame, places, base_grid(schema)), values, persons)


def encode_table(data: Any, schema_columns: Sequence[ColumnGrid], source: str = "table") -> Codes:
    """Codes of the columns alone, as for a prediction; the same checks as in training."""
    frame = frame_of(data, source)
    return _codes(frame, frame.find([g.column.name for g in schema_columns]), schema_columns)


def target_of(values: Any, label: Label, source: str = "table") -> NDArray[np.float64]:
    """Class positions, or numbers clipped to the label's bounds and scaled to [0, 1]: (row,)."""
    place, values = f"{source}: label {label.name!r}", one_column(values, source)
    if label.classes:
        result = _positions(values, label.classes, place)
        if n_unknown := int(np.sum(result == UNKNOWN)):
            raise TableError(
                f"{place} has {n_unknown} rows of a class that is not in the schema's list of "
                f"{len(label.classes)}; correct them, or agree on a schema with that class."
            )
        absent = result == MISSING
    else:
        result = _numbers(values, place)
        absent = np.isnan(result)
    if n_absent := int(np.sum(absent)):
        raise TableError(f"{place} is missing in {n_absent} rows; fill them in or leave them out.")
    numbers: NDArray[np.float64] = result.astype(np.float64)
    if label.lower is None or label.upper is None:
        return numbers
    return (np.clip(numbers, label.lower, label.upper) - label.lower) / (label.upper - label.lower)


def _codes(frame: Frame, places: Sequence[int], grid: Sequence[ColumnGrid]) -> Codes:
    pairs = zip(places, grid, strict=False)
    columns = (_encode(frame.column(place), g, frame.source) for place, g in pairs)
    return gather_codes(columns, grid, frame.n_rows)


def _encode(values: Any, grid: ColumnGrid, source: str) -> NDArray[Any]:
    column = grid.column
    place = f"{source}: column {column.name!r}"
    if isinstance(column, Numeric):
        codes: NDArray[Any] = encode_numeric(_numbers(values, place), grid)
        absent = codes == grid.missing_code
    else:
        codes = _positions(values, column.categories, place)
        absent, unknown = codes == MISSING, codes == UNKNOWN
        if column.other == "error" and (n_unknown := int(np.sum(unknown))):
            raise TableError(
                f"{place} has {n_unknown} rows with a value that is not among its "
                f"{len(column.categories)} categories; correct them, list the value in the "
                'schema, or write other = "category" there.'
            )
        codes[unknown] = grid.missing_code if grid.other_code is None else grid.other_code
        codes[absent] = grid.missing_code
    if not column.missing and (n_absent := int(np.sum(absent))):
        advice = "fill them in, or write missing = true in the schema"
        raise TableError(f"{place} has missing = false and {n_absent} rows without it; {advice}.")
    return codes


def _positions(values: Any, listed: Sequence[Value], place: str) -> NDArray[Any]:
    unique, index = _unique(values, place)
    table = np.append(positions_of(unique, listed), np.int32(MISSING))  # (unique value + 1,)
    return np.asarray(table[index])  # (row,); index -1 is the last entry, a missing value


def _persons(values: Any, place: str) -> NDArray[np.uint64]:
    unique, index = _unique(values, place)
    texts = ["" if is_missing(value) else text_of(value) for value in unique]
    no_id = np.array([not text.strip() for text in texts] + [True])  # (unique value + 1,)
    if n_absent := int(np.sum(no_id[index])):
        raise TableError(f"{place} is missing in {n_absent} rows; every row needs its person's id.")
    hashes = (hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    table = np.array([int.from_bytes(h, "little") for h in hashes], dtype=np.uint64)
    return table[index]  # (row,)


def _unique(values: Any, place: str) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct values, and for every row its place among them (-1: missing)."""
    import pyarrow as pa

    column = _arrow(values, place)
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


def _numbers(values: Any, place: str) -> NDArray[Any]:
    """Numbers as a float or integer array, NaN where missing: (row,)."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        return values
    import pyarrow as pa

    column = _arrow(values, place)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_temporal(column.type):
        raise TableError(f"{place} holds dates or times; turn them into numbers, such as days.")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _parse(column, place)
    try:
        if not pa.types.is_floating(column.type):
            column = column.cast(pa.float64(), safe=False)
        return np.asarray(column.to_numpy())
    except pa.ArrowException:
        raise TableError(f"{place} has values of type {column.type}, not numbers.") from None


def _parse(column: Any, place: str) -> NDArray[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(column)
    text = pc.if_else(pc.is_in(text, pa.array(_NO_NUMBER, text.type)), None, text)
    try:
        return np.asarray(text.cast(pa.float64()).to_numpy())
    except pa.ArrowInvalid:  # its message quotes the value
        pass
    text = text.filter(pc.invert(pc.match_substring_regex(text, _NUMBER))).drop_null()
    advice = "correct them, or leave the field empty if it is missing"
    if pc.any(pc.match_substring_regex(text, _COMMA)).as_py():
        advice = "some have a decimal comma: write decimal points, as in 3.14"
    elif pc.any(pc.match_substring_regex(text, _DATE)).as_py():
        advice = "some are dates: turn them into numbers, such as days"
    raise TableError(
        f"{place} is numeric and {len(text)} rows hold text that is no number; {advice}."
    )


def _arrow(values: Any, place: str) -> Any:
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
