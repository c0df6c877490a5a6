"""Parquet, CSV, Arrow, pandas, polars, dicts and numpy -> rows checked against a schema.

Everything that does not fit is found here, before a party joins. A file is read batch by batch:
what stays in memory is a byte a cell (three where an integer column has a fine level) and a few
bytes a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.binning import (
    Codes,
    ColumnGrid,
    base_grid,
    base_level,
    empty_codes,
    fine_columns,
)
from hedgerow.data.cards import Card, Shown
from hedgerow.data.columns import Numbers
from hedgerow.data.counts import Counts, Exposures, count_codes, counts_given, label_readers
from hedgerow.data.csv_format import PLAIN, CsvFormat
from hedgerow.data.encoding import ColumnCodes, Ids, Persons, Targets, Weights
from hedgerow.data.readers import Stream, one_column, read_table, stream_of
from hedgerow.data.schema import Label, Schema
from hedgerow.data.survival import Events, Times, outcome_cells, outcomes_given
from hedgerow.data.weights import UNWEIGHTED, Steps, Weight
from hedgerow.errors import TableError

__all__ = [
    "Rows", "encode_table", "labels_of", "numbers_of", "read_table", "rows_of", "share_of",
    "target_of", "weights_of",
]  # fmt: skip
# What is read besides columns of the schema.
_Further = Counts | Events | Exposures | Ids | Persons | Targets | Times | Weights


@dataclass(frozen=True, eq=False, repr=False)
class Rows(Shown):
    """Checked rows: codes on the base grid, the target, and who each row belongs to."""

    codes: Codes
    # (row,): class index, cell of time and event, count with exposure, or number scaled to [0, 1];
    # (0,) if absent
    target: NDArray[np.float64]
    persons: NDArray[np.uint64] | None  # (row,): hash of the person's id, if persons are the unit
    schema: str = ""  # hash of the schema that they were read by, if that is known
    columns: tuple[int, ...] | None = None  # of the schema, where only some are held
    ids: tuple[str, ...] | None = None  # (row,): by which parties find the rows of one person
    weights: Steps = field(default_factory=lambda: UNWEIGHTED)  # (row,); (0,): each counts once

    @property
    def n_rows(self) -> int:
        return self.codes.n_rows

    def _card(self) -> Card:
        # Their number is private as well, and a line of a terminal ends up in logs.
        return Card("Rows", (("columns", self.codes.n_columns), ("schema", self.schema[:12])))

    def split(self, of: NDArray[Any], n_sets: int) -> list[Rows]:
        """The rows of each of several sets, of which `of` names that of every row.

        It is `take` for all of them, in less time.
        """
        sizes = np.bincount(of, minlength=n_sets)
        order = np.argsort(of, kind="stable")  # rows of one set together, in their order
        places = np.split(order, np.cumsum(sizes)[:-1])
        parts = zip(places, self.codes.split(of, sizes), strict=True)
        return [self._with(codes, index) for index, codes in parts]

    def take(self, index: NDArray[Any]) -> Rows:
        return self._with(self.codes.take(index), index)

    def _with(self, codes: Codes, index: NDArray[Any]) -> Rows:
        target = self.target[index] if self.target.size else self.target
        persons = None if self.persons is None else self.persons[index]
        ids = None
        if self.ids is not None:
            ids = tuple(np.array(self.ids, object)[index].tolist())
        weights = self.weights[index] if self.weights.size else self.weights
        return Rows(codes, target, persons, self.schema, self.columns, ids, weights)


def rows_of(
    data: Any,
    schema: Schema,
    target: Any = None,
    *,
    weights: Any = None,
    with_label: bool = True,
    with_weight: bool = True,
    source: str = "table",
    may_be_empty: bool = False,
) -> Rows:
    """Check a table against its schema and encode it.

    `data` is a path, an Arrow table, a pandas or polars frame, a dict of columns (all matched by
    name; further columns are ignored), or a 2-D array (matched by position). Labels are `target`,
    or else the table's label column; weights, where the schema has a cap on them, are `weights` or
    else its weight column. A part of a party's table may be empty, the whole may not.

    >>> schema = Schema.from_bounds({"age": (0, 110)}, classes=["no", "yes"])
    >>> rows_of({"age": [30, 41], "label": ["yes", "no"]}, schema).target.tolist()
    [1.0, 0.0]
    """
    stream = stream_of(data, source, schema.csv)
    person = [schema.unit.column] if schema.unit.column else []
    label = schema.label.columns if with_label and target is None else ()
    further: list[_Further] = [Persons(name, stream.source) for name in person]
    weighed = schema.weight if with_weight else None
    in_table = [weighed] if weighed is not None and weights is None else []
    further += [Weights(weight, stream.source, stream.csv) for weight in in_table]
    further += _label_readers(schema.label, stream) if label else []
    names = [*schema.names, *person, *(weight.column for weight in in_table), *label]
    codes, others = _read(stream, names, base_grid(schema), further)
    steps = others[len(person)] if in_table else UNWEIGHTED
    if weighed is not None and weights is not None:
        steps = weights_of(weights, weighed, codes.n_rows, stream.source)
    if label:
        begin = len(others) - len(label)
        others[begin:] = [_target(schema.label, others[begin:])]
    if with_label and target is not None:
        others.append(target_of(target, schema.label, stream.source))
    if codes.n_rows == 0 and not may_be_empty:
        raise TableError(f"{stream.source} has 0 rows; a party needs at least one.")
    values = others[-1] if with_label else np.empty(0)
    if with_label and values.size != codes.n_rows:
        raise TableError(f"{stream.source} has {codes.n_rows} rows and {values.size} labels.")
    return Rows(codes, values, others[0] if person else None, schema.hash, weights=steps)


def weights_of(values: Any, weight: Weight, n_rows: int, source: str = "table") -> Steps:
    """Weights given on their own, in steps of the grid; one for every row: (row,)."""
    reader = Weights(weight, source)
    steps = reader.read(one_column(values, source))
    reader.check()
    if len(steps) != n_rows:
        raise TableError(f"{source} has {n_rows} rows and {len(steps)} weights.")
    return steps


def share_of(
    data: Any, schema: Schema, id_column: str | None = None, source: str = "table"
) -> Rows:
    """Rows of a party that holds some of the schema's columns, and the label if it is there.

    >>> schema = Schema.from_bounds({"age": (0, 110), "dose": (0, 5)}, classes=["no", "yes"])
    >>> share = share_of({"dose": [1, 2], "patient": ["a7", "b2"]}, schema, "patient")
    >>> share.columns, share.ids, share.target.size
    ((1,), ('a7', 'b2'), 0)
    """
    stream = stream_of(data, source, schema.csv)
    there = stream.present([*schema.names, schema.label.name])
    columns_here = tuple(j for j, name in enumerate(schema.names) if name in there)
    if not columns_here and schema.label.name not in there:
        raise TableError(
            f"{stream.source} has none of the schema's columns and no label {schema.label.name!r}. "
            "Nothing was sent. Columns match by name."
        )
    if id_column is not None and id_column in (*schema.names, schema.label.name):
        raise TableError(f"{id_column!r} is a column of the schema; ids need one of their own.")
    further: list[_Further] = []
    if id_column is not None:
        further.append(Ids(id_column, stream.source))
    names = [*(schema.names[j] for j in columns_here), *([id_column] if id_column else [])]
    if schema.label.name in there:
        further.append(Targets(schema.label, stream.source, stream.csv))
        names.append(schema.label.name)
    grid = base_grid(schema)
    here = base_level([grid[j] for j in columns_here])  # trees of parties are cut at it
    codes, others = _read(stream, names, here, further)
    target = others[-1] if schema.label.name in there else np.empty(0)
    ids = tuple(others[0].tolist()) if id_column is not None else None
    return Rows(codes, target, None, schema.hash, columns_here, ids)


def encode_table(
    data: Any,
    schema_columns: Sequence[ColumnGrid],
    source: str = "table",
    written: CsvFormat = PLAIN,
) -> Codes:
    """Codes of the columns alone, as for a prediction; the same checks as in training."""
    names = [grid.column.name for grid in schema_columns]
    return _read(stream_of(data, source, written), names, schema_columns, [])[0]


def labels_of(stream: Stream, label: Label) -> NDArray[np.float64]:
    """The label's columns of a table alone, read as in training: (row,)."""
    found = _read(stream, label.columns, [], _label_readers(label, stream))[1]
    return _target(label, found)


def outcomes_of(stream: Stream, label: Label) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times and events of a table alone, as they are written there: (row,) each."""
    times, events = _read(stream, label.columns, [], _label_readers(label, stream))[1]
    return times, events


def _label_readers(label: Label, stream: Stream) -> list[_Further]:
    """Readers of its columns, in their order."""
    place = (label, stream.source, stream.csv)
    if label.event is not None:
        return [Times(*place), Events(*place)]
    return [*label_readers(*place)] if label.task == "counts" else [Targets(*place)]


def _target(label: Label, columns: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """What rows are kept as, from what its readers read of them: (row,)."""
    if label.event is not None:
        return outcome_cells(label, *columns)
    return count_codes(label, *columns) if label.task == "counts" else np.asarray(columns[0])


def target_of(values: Any, label: Label, source: str = "table") -> NDArray[np.float64]:
    """Class positions, values clipped to the label's bounds and scaled to [0, 1], or cells: (row,).

    Cells are those of time and event; `values` then has both, see `survival.outcomes_given`, as it
    has counts and exposures, see `counts.counts_given`.
    """
    if label.event is not None:
        return outcome_cells(label, *outcomes_given(values, label, source))
    if label.task == "counts":
        return count_codes(label, *counts_given(values, label, source))
    reader = Targets(label, source)
    target = reader.read(one_column(values, source))
    reader.check()
    return target


def numbers_of(values: Any, source: str = "table") -> NDArray[np.float64]:
    """Numbers of a column given on its own, read as in training but not clipped: (row,)."""
    reader = Numbers(source)
    numbers = reader.read(one_column(values, source)).astype(np.float64)
    reader.check()
    return numbers


def _read(
    stream: Stream,
    names: Sequence[str],
    grid: Sequence[ColumnGrid],
    further: Sequence[_Further],
) -> tuple[Codes, list[NDArray[Any]]]:
    """Codes of the columns, and what is read of the further ones, which stand behind them."""
    places = stream.find(names, n_named=len(further))
    readers = [*(ColumnCodes(g, stream.source, stream.csv) for g in grid), *further]
    parts = []  # a known number of rows is one part, otherwise every batch is
    if stream.n_rows is not None:
        parts.append(_buffer(grid, further, stream.n_rows))
    for first in range(0, len(places), stream.at_once):
        done, group = 0, places[first : first + stream.at_once]
        for batch in stream.batches(group):
            if stream.n_rows is None:  # all columns come at once
                parts.append(_buffer(grid, further, batch.n_rows))
                done = 0
            stop = done + batch.n_rows
            if stop > parts[-1].codes.n_rows:
                raise _other_length(stream)
            for j in range(len(group)):
                parts[-1].write(first + j, slice(done, stop), readers[first + j], batch.column(j))
            done = stop
        if stream.n_rows not in (None, done):  # what was not written is no row of anyone
            raise _other_length(stream)
    for reader in readers:
        reader.check()
    if len(parts) == 1:
        return parts[0].codes, parts[0].further
    parts = parts or [_buffer(grid, further, 0)]
    joined = [np.concatenate([part.further[i] for part in parts]) for i in range(len(further))]
    return Codes.concat([part.codes for part in parts]), joined


def _other_length(stream: Stream) -> TableError:
    return TableError(
        f"{stream.source} has a column of another length than it states; write it again."
    )


@dataclass(frozen=True, eq=False)
class _Buffer:
    """Memory for rows: columns of codes, then the further ones."""

    codes: Codes
    further: list[NDArray[Any]]

    levels: dict[int, int]  # of columns that have a fine level: the place of its codes

    def write(self, j: int, part: slice, reader: ColumnCodes | _Further, values: Any) -> None:
        """Read a batch of one column into its place."""
        if not isinstance(reader, ColumnCodes):
            self.further[j - self.codes.n_columns][part] = reader.read(values)
            return
        self.codes.column(j)[part], fine = reader.read_levels(values)
        if fine is not None:
            self.codes.fine_levels()[self.levels[j], part] = fine


def _buffer(grid: Sequence[ColumnGrid], further: Sequence[_Further], n_rows: int) -> _Buffer:
    kinds = [reader.dtype for reader in further]
    empty: list[NDArray[Any]] = [np.empty(n_rows, kind) for kind in kinds]
    levels = {j: k for k, j in enumerate(fine_columns(grid))}
    return _Buffer(empty_codes(grid, n_rows), empty, levels)
