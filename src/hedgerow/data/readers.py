"""Any kind of table seen as named or numbered columns; reading Parquet and CSV files."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.csv_format import PLAIN, CsvFormat
from hedgerow.errors import TableError

_BATCH = 1 << 16  # rows of a Parquet file that are read at once
_COLUMNS = 4  # of a Parquet file that are read at once
_BUFFER = 1 << 18  # bytes of a column that are read at once, instead of its whole row group
# What to do about files that many have instead.
_ADVICE = {
    (".tsv", ".tab", ".txt", ".dat"): (
        "call it .csv, and say what separates its fields (--separator tab, or separator under "
        "[csv] in the schema)"
    ),
    (".gz", ".zip", ".bz2", ".xz", ".zst"): "unpack it",
    (".xls", ".xlsx", ".ods"): "save it as CSV UTF-8 from the spreadsheet",
    (".json", ".jsonl", ".feather", ".arrow", ".pkl", ".sas7bdat", ".dta"): (
        "read it with pandas and write it by to_parquet"
    ),
}
_CSV_BLOCK = 1 << 23  # bytes of a CSV file that are read at once; a row must fit


@dataclass(frozen=True, eq=False)
class Frame:
    """Any table: how many rows, which names (None: by position), and a column by its place."""

    n_rows: int
    names: Sequence[str] | None
    column: Callable[[int], Any]
    source: str
    width: int = 0  # of a table without names


@dataclass(frozen=True, eq=False)
class Stream:
    """A table as batches of rows: all of it if it is in memory, some at a time from a file.

    `batches` takes places of columns and gives frames of these columns alone, in that order; ask
    for `at_once` columns at a time, which is what keeps its memory small.
    """

    names: Sequence[str] | None
    n_rows: int | None  # None: known at the end
    batches: Callable[[Sequence[int]], Iterator[Frame]]
    source: str
    width: int = 0  # of a table without names
    at_once: int = 1 << 30  # columns
    csv: CsvFormat = PLAIN  # how numbers are written where columns are text

    def present(self, names: Sequence[str]) -> set[str]:
        """Which of these columns there are; a table without names has none."""
        return set(names) & set(self.names or ())

    def find(self, names: Sequence[str], n_named: int = 0) -> list[int]:
        """Places of these columns; the last n_named can only be found in a table with names."""
        if self.names is None:
            if n_named:
                raise TableError(
                    f"{self.source} is an array without names, where {_listing(names[-n_named:])} "
                    "cannot be found; give labels as target, person ids in a table with names."
                )
            if self.width != len(names):
                raise TableError(
                    f"{self.source} has {self.width} columns and the schema {len(names)}; an array "
                    "is matched by position, so give exactly the schema's columns in its order."
                )
            return list(range(self.width))
        count = Counter(self.names)
        if absent := [name for name in names if not count[name]]:
            raise TableError(f"{self.source} has no {_listing(absent)}; names must match exactly.")
        if twice := [name for name in names if count[name] > 1]:
            raise TableError(f"{self.source} has {_listing(twice)} more than once; keep one.")
        place = {name: i for i, name in enumerate(self.names)}
        return [place[name] for name in names]


def read_table(path: str | PathLike[str], written: CsvFormat = PLAIN) -> Any:
    """Read a Parquet or CSV file into an Arrow table. CSV columns stay text as it is in the file.

    A CSV file has a header line; how it is written otherwise is `written`.
    """
    import pyarrow.parquet as pq

    file = table_file(path)
    with readable(file):
        if file.suffix.lower() == ".csv":
            with _open_csv(file, written) as (reader, check):
                table = reader.read_all()
            check()
            return table
        with pq.ParquetFile(file) as parquet:
            return parquet.read()


def stream_of(data: Any, source: str, written: CsvFormat = PLAIN) -> Stream:
    """Look at any kind of table as batches of rows; `written` says how CSV files are."""
    if isinstance(data, Stream):
        return data
    if isinstance(data, (str, PathLike)):
        file, source = table_file(data), str(data) if source == "table" else source
        if file.suffix.lower() == ".csv":
            return _csv_stream(file, source, written)
        return parquet_stream(file, source)
    frame = frame_of(data, source)

    def whole(places: Sequence[int]) -> Iterator[Frame]:
        yield Frame(frame.n_rows, None, lambda j: frame.column(places[j]), frame.source)

    return Stream(frame.names, frame.n_rows, whole, frame.source, frame.width)


def parquet_stream(file: Any, source: str, groups: Sequence[int] | None = None) -> Stream:
    """A Parquet file by its path or address; of some row groups alone, if they are given."""
    import pyarrow.parquet as pq

    mark = _mark_of(file)
    with readable(file, mark), pq.ParquetFile(file) as parquet:
        names, about = parquet.schema_arrow.names, parquet.metadata
        read = range(about.num_row_groups) if groups is None else groups
        n_rows = sum(about.row_group(i).num_rows for i in read)

    def batches(places: Sequence[int]) -> Iterator[Frame]:
        wanted = [names[place] for place in places]
        with (
            readable(file, mark),
            pq.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER) as parquet,
        ):
            for batch in parquet.iter_batches(_BATCH, groups, wanted):
                yield _batch_frame(batch, wanted, source)

    return Stream(names, n_rows, batches, source, at_once=_COLUMNS)


def _csv_stream(file: Path, source: str, written: CsvFormat) -> Stream:
    mark = _mark_of(file)
    with readable(file, mark), _open_csv(file, written) as (reader, _):
        names = reader.schema.names

    def batches(places: Sequence[int]) -> Iterator[Frame]:
        wanted = [names[place] for place in places]
        with readable(file, mark), _open_csv(file, written) as (reader, check):
            for batch in reader:
                yield _batch_frame(batch, wanted, source)
            check()

    return Stream(names, None, batches, source, csv=written)


def _batch_frame(batch: Any, wanted: Sequence[str], source: str) -> Frame:
    return Frame(batch.num_rows, None, lambda j: batch.column(wanted[j]), source)


def table_file(path: str | PathLike[str]) -> Path:
    """The path of a table that is there."""
    suffix = (file := Path(path)).suffix.lower()
    if file.is_dir():
        raise TableError(f"{file} is a folder; name one table in it, .parquet, .pq or .csv")
    if suffix not in (".parquet", ".pq", ".csv"):
        advice = next((f": {a}" for ends, a in _ADVICE.items() if suffix in ends), "")
        raise TableError(
            f"{file} ends in {suffix!r}; tables are read from .parquet, .pq or .csv{advice}"
        )
    if not file.is_file():
        raise TableError(f"no table at {file}; check the path")
    return file


def _mark_of(file: Any) -> tuple[int, ...] | None:
    """Another one for a file that was replaced or written to; None for what is no file here."""
    if not isinstance(file, Path):
        return None
    status = file.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def readable(file: Any, mark: tuple[int, ...] | None = None) -> Iterator[None]:
    """Errors of reading in our words. A file is read in several passes: all of the same `mark`."""
    import pyarrow as pa

    changed = TableError(f"{file} changed while it was read; read it again when it is complete.")
    try:
        if mark is not None and _mark_of(file) != mark:
            raise changed
        yield
        if mark is not None and _mark_of(file) != mark:
            raise changed
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error):
        # Arrow's own message may quote a row.
        raise TableError(f"{file} {_fault_of(file)}") from None


def _fault_of(file: Any) -> str:
    """What is wrong with a file that could not be read, as far as that shows."""
    if isinstance(file, Path) and file.is_file() and file.stat().st_size == 0:
        return "is empty; write a header and rows."
    if not str(file).lower().endswith(".csv"):
        return "is not readable as Parquet; write it again."
    return (
        "is not readable as CSV in its encoding; say which it has (--encoding, or encoding under "
        "[csv] in the schema: cp1252 is usual in western Europe), or save it as CSV UTF-8."
    )


def frame_of(data: Any, source: str) -> Frame:
    """Look at any kind of table as columns, without copying or converting them yet."""
    library = {cls.__module__.partition(".")[0] for cls in type(data).__mro__}
    if "scipy" in library:  # before dicts: one of its sparse formats is a dict
        return _sparse_frame(data, source)
    if isinstance(data, Mapping):
        return _dict_frame(data, source)
    if "polars" in library and hasattr(data, "collect"):
        raise TableError(f"{source} is a lazy polars frame; use .collect() first.")
    if library & {"pandas", "polars"} and not hasattr(data, "columns"):
        raise TableError(f"{source} is one column; give a table: use .to_frame().")
    if "pandas" in library:
        names = [str(name) for name in data.columns]
        return Frame(len(data), names, lambda j: one_column(data.iloc[:, j], source), source)
    if "polars" in library:
        return Frame(data.height, data.columns, lambda j: _polars_column(data.to_series(j)), source)
    if "pyarrow" in library and hasattr(data, "column_names"):
        return Frame(data.num_rows, data.column_names, data.column, source)
    return _array_frame(data, source)


def _dict_frame(data: Mapping[Any, Any], source: str) -> Frame:
    columns = [one_column(values, source) for values in data.values()]
    lengths = {len(values) for values in columns}
    if len(lengths) > 1:
        raise TableError(f"{source} has columns of {len(lengths)} different lengths.")
    names = [str(name) for name in data]
    return Frame(lengths.pop() if lengths else 0, names, columns.__getitem__, source)


def _array_frame(data: Any, source: str) -> Frame:
    try:
        array = data if isinstance(data, np.ndarray) else np.asarray(data)
        if isinstance(data, (list, tuple)) and array.dtype.kind not in "biuc":
            # One row must not decide how others are read: as floats all whole numbers lose digits,
            # beside a text all numbers would be text.
            array = np.asarray(data, object)
    except ValueError:
        raise TableError(f"{source} has rows of different lengths.") from None
    if array.ndim == 1:
        advice = "use .reshape(-1, 1) for one column, .reshape(1, -1) for one row"
        raise TableError(f"{source} is a 1-D array, not a table. Reshape your data: {advice}.")
    if array.ndim != 2:
        raise TableError(f"{source} is a {type(data).__name__}, not a table of rows and columns.")
    array = _unmasked(array)
    _check_real(array.dtype, source)
    n_rows, width = array.shape
    return Frame(n_rows, None, lambda j: array[:, j], source, width)


def _sparse_frame(data: Any, source: str) -> Frame:
    """A sparse matrix, one dense column at a time; what is not stored is 0."""
    from scipy import sparse

    if not sparse.issparse(data):
        raise TableError(f"{source} is a {type(data).__name__}, not a table of rows and columns.")
    if data.ndim != 2:
        raise TableError(f"{source} is a sparse array of {data.ndim} dimensions; give 2.")
    _check_real(data.dtype, source)
    columns = sparse.csc_array(data)
    n_rows, width = columns.shape

    def column(j: int) -> NDArray[Any]:
        dense = np.zeros(n_rows, columns.dtype)
        here = slice(columns.indptr[j], columns.indptr[j + 1])
        np.add.at(dense, columns.indices[here], columns.data[here])  # a place may be stored twice
        return dense

    return Frame(n_rows, None, column, source, width)


def _check_real(dtype: Any, source: str) -> None:
    if getattr(dtype, "kind", "") == "c":
        raise TableError(f"Complex data not supported: {source} needs real numbers, one a column.")


def one_column(values: Any, source: str) -> Any:
    """A column given on its own: a series, an Arrow array, a list, or an array of one column."""
    if hasattr(values, "to_arrow"):
        return _polars_column(values)
    if isinstance(getattr(values, "dtype", None), np.dtype):
        values = _unmasked(values)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
    if getattr(values, "ndim", 1) != 1 or isinstance(values, str) or not hasattr(values, "__len__"):
        raise TableError(f"{source}: a column must be one-dimensional, with a value for every row.")
    return values


def _polars_column(series: Any) -> Any:
    """A polars series as Arrow has it; as a list if it holds objects, which would be addresses."""
    return series.to_list() if str(series.dtype) == "Object" else series.to_arrow()


def _unmasked(values: Any) -> NDArray[Any]:
    """An ordinary array; what a masked array hides is missing, not the value below the mask."""
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), np.array(None), values.data)
    return np.asarray(values)


@contextmanager
def _open_csv(file: Path, written: CsvFormat) -> Iterator[tuple[Any, Callable[[], None]]]:
    """A reader of text columns, batch by batch, and a check for broken lines to call at the end."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    header = written.header_of(file)
    if other := written.other_separator(header):
        advice = "(--separator, or under [csv] in the schema), or save the file anew"
        raise TableError(f"{file} seems to be separated by {other} {advice}.")
    encoding = written.encoding_of(file)
    broken: list[int] = []

    def skip(row: Any) -> str:
        broken.append(row.actual_columns)
        return "skip"

    def check() -> None:
        if broken:
            advice = f"quote fields that contain {written.separator!r}, also numbers"
            raise TableError(
                f"{file} has {len(broken)} lines unlike its header in length; {advice}."
            )

    with arrow_csv.open_csv(
        file,
        read_options=arrow_csv.ReadOptions(
            block_size=_CSV_BLOCK, encoding="utf8" if encoding == "utf-8" else encoding
        ),
        parse_options=arrow_csv.ParseOptions(
            delimiter=written.separator, newlines_in_values=True, invalid_row_handler=skip
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types={name: pa.string() for name in header},
            strings_can_be_null=bool(written.missing),
            null_values=written.missing,
        ),
    ) as reader:
        yield reader, check


def _listing(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:20])
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return f"column{'s' if len(names) > 1 else ''} {shown}{more}"
