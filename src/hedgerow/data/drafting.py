"""A schema proposed from a sample. It READS THE ROWS, so it is for public or synthetic samples.

A draft carries a mark that stays: whoever confirms it takes responsibility, and no epsilon covers
what was read. What single columns become is in `draft_columns`.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from hedgerow.data.columns import arrow_of
from hedgerow.data.csv_format import PLAIN, WINDOWS, CsvFormat, changed, sniffed
from hedgerow.data.draft_columns import (
    column_of,
    is_person,
    label_of,
    most_rows,
    present,
    words_among_numbers,
)
from hedgerow.data.readers import readable, stream_of, table_file
from hedgerow.data.schema_parts import Column, Label, Unit
from hedgerow.errors import TableError

WARNING = (
    "THIS SCHEMA WAS COMPUTED FROM THE ROWS of {source}. Use a draft only with a public or "
    "synthetic sample. Before it is used with private rows, replace every bound, category and "
    "class by a public fact: what is read from private rows is a leak that no epsilon covers. "
    "`hedgerow schema confirm` records who did so."
)
# Signs that a file may use, the simplest first.
_SIGNS = ((".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"))


class Draft(NamedTuple):
    """What a sample proposes for a schema; the notes say what was left out, and why."""

    columns: tuple[Column, ...]
    label: Label
    unit: Unit
    name: str
    csv: CsvFormat
    notes: tuple[str, ...]


def draft_of(data: Any, label: str, given: CsvFormat = PLAIN) -> Draft:
    """Facts that fit a table."""
    source = str(data) if isinstance(data, str | PathLike) else "table"
    columns, written = _columns(data, source, given)
    if label not in columns:
        shown = ", ".join(list(columns)[:20])
        raise TableError(f"{source} has no label column {label!r}; its columns are {shown}.")
    n_rows = len(columns[label])
    if n_rows == 0:
        raise TableError(f"{source} has 0 rows; a draft needs a sample with rows.")
    notes = [WARNING.format(source=source), *_format_notes(written, given)]
    values = {name: present(column) for name, column in columns.items()}
    answers = values.pop(label)
    unit = _unit(values, notes)
    proposed = _proposed(values, unit, notes)
    if not proposed:
        reasons = "".join(f" {note}" for note in notes[1:])
        raise TableError(
            f"{source} has no column besides {label!r} that a schema can describe.{reasons}"
        )
    if empty := n_rows - len(answers):
        notes.append(
            f"{empty:,} of {n_rows:,} rows have no value of the label {label!r}; tables "
            "with such rows are refused, so take them out."
        )
    about = label_of(label, answers, source)
    return Draft(proposed, about, unit, Path(source).stem, written, tuple(notes))


def _columns(data: Any, source: str, given: CsvFormat) -> tuple[dict[str, Any], CsvFormat]:
    """Columns by name, numbers of CSV files with points; and how the file is written."""
    import pyarrow as pa

    written = given
    if is_csv := isinstance(data, str | PathLike) and str(data).lower().endswith(".csv"):
        file = table_file(data)
        with readable(file):
            written = sniffed(file, given)
    stream = stream_of(data, source, written)
    if stream.names is None:
        raise TableError(f"{source} is an array without names; a draft needs the columns' names.")
    names = list(stream.names)
    if twice := [name for name in names if names.count(name) > 1]:
        raise TableError(f"{source} has column {twice[0]!r} more than once; keep one.")
    parts: dict[str, list[Any]] = {name: [] for name in names}
    for first in range(0, len(names), stream.at_once):
        group = names[first : first + stream.at_once]
        for batch in stream.batches(range(first, first + len(group))):
            for j, name in enumerate(group):
                parts[name] += arrow_of(batch.column(j), f"{source}: column {name!r}").chunks
    columns = {name: pa.chunked_array(p or [[]]) for name, p in parts.items()}
    if is_csv:
        columns, written = _without_words(columns, written)
    if is_csv and given.has_points:
        written = _with_signs(columns, written)
    return {name: written.values(column) for name, column in columns.items()}, written


def _without_words(columns: dict[str, Any], written: CsvFormat) -> tuple[dict[str, Any], CsvFormat]:
    """Columns in which words among numbers are missing values, and the format that says so."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = sorted({word for c in columns.values() for word in words_among_numbers(present(c))})
    if not words:
        return columns, written
    listed = pa.array(words, pa.string())
    columns = {
        name: pc.if_else(pc.is_in(column, listed), pa.scalar(None, pa.string()), column)
        for name, column in columns.items()
    }
    return columns, changed(written, missing=(*written.missing, *words))


def _with_signs(columns: dict[str, Any], written: CsvFormat) -> CsvFormat:
    """The format with decimal sign and thousands by which columns of numbers are numbers.

    It stays as it is where signs could mean two things, as in a column of 1,234 and 2,345.
    """
    import pyarrow as pa

    texts = [pa.array(sorted({str(v) for v in present(c)}), pa.string()) for c in columns.values()]
    odd, pointed = [], []
    formats = [changed(written, decimal=d, thousands=t) for d, t in _SIGNS]
    for text in texts:
        if len(text) == 0:
            continue
        if formats[0].has_numbers(text):
            pointed.append(text)
        elif any(form.has_numbers(text) for form in formats):
            odd.append(text)
    possible = [form for form in formats if all(form.has_numbers(text) for text in odd)]
    if not odd or len({form.decimal for form in possible}) != 1:
        return written
    if all(possible[0].has_numbers(text) for text in pointed):
        return possible[0]
    return written


def _format_notes(written: CsvFormat, given: CsvFormat) -> list[str]:
    if written == given:
        return []
    told = ", ".join(f"{name} = {value!r}" for name, value in written.to_dict().items())
    notes = [f"The file is read with {told}; [csv] below says so. Correct it if that is wrong."]
    if written.encoding != given.encoding:
        notes.append(
            f"The file is not UTF-8, so it is taken for {WINDOWS}, which is usual in western "
            "Europe. If names below look wrong, give its encoding by --encoding (cp1250, ...)."
        )
    if words := set(written.missing) - set(given.missing):
        shown = ", ".join(map(repr, sorted(words)))
        notes.append(
            f"Taken for missing values in every column, because they stand among numbers: {shown}. "
            "Take out of `missing` under [csv] what is a value."
        )
    return notes


def _unit(values: dict[str, list[Any]], notes: list[str]) -> Unit:
    """The unit person where a column of ids has repeats, which then is no feature."""
    for name, column in values.items():
        if is_person(name, column):
            at_most = most_rows(column)
            notes.append(
                f"{name!r} looks like ids of persons with several rows, so the unit of privacy is "
                f"a person with at most {at_most} rows, and noise is {at_most} times as wide. "
                'Choose at_most yourself, or write kind = "row" if rows are to be protected.'
            )
            return Unit("person", name, at_most)
    return Unit()


def _proposed(values: dict[str, list[Any]], unit: Unit, notes: list[str]) -> tuple[Column, ...]:
    columns: list[Column] = []
    for name, column in values.items():
        if name == unit.column:
            continue
        proposal = column_of(name, column)
        if isinstance(proposal, str):
            notes.append(f"Left out: {proposal}.")
        else:
            columns.append(proposal)
    return tuple(columns)
