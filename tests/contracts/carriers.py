"""What can carry a table, and kinds of values to carry: the loops of `test_carriers.py`."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

Columns = dict[str, list[Any]]


def csv(columns: Columns, folder: Path) -> Path:
    pd.DataFrame(_objects(columns)).to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def csv_of_polars(columns: Columns, folder: Path) -> Path:
    pl.DataFrame(columns).write_csv(folder / "t.csv")
    return folder / "t.csv"


def csv_of_r(columns: Columns, folder: Path) -> Path:
    """As R writes it: TRUE, NA, and quotes around text."""
    words = {True: "TRUE", False: "FALSE"}

    def field(value: Any) -> str:
        if isinstance(value, str):
            return f'"{value}"'
        return "NA" if value is None else words[value] if isinstance(value, bool) else str(value)

    lines = [",".join(f'"{name}"' for name in columns)]
    lines += [",".join(map(field, row)) for row in zip(*columns.values(), strict=True)]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    return folder / "t.csv"


def parquet(columns: Columns, folder: Path) -> Path:
    pq.write_table(pa.table(columns), folder / "t.parquet")
    return folder / "t.parquet"


def parquet_dictionary(columns: Columns, folder: Path) -> Path:
    pq.write_table(arrow_dictionary(columns, folder), folder / "t.parquet")
    return folder / "t.parquet"


def parquet_of_pandas(columns: Columns, folder: Path) -> Path:
    pd.DataFrame(columns).to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def arrow(columns: Columns, folder: Path) -> pa.Table:
    return pa.table(columns)


def arrow_dictionary(columns: Columns, folder: Path) -> pa.Table:
    return pa.table({name: pa.array(v).dictionary_encode() for name, v in columns.items()})


def arrow_text(columns: Columns, folder: Path) -> pa.Table:
    return pa.table({n: pa.array(_texts(v), pa.large_string()) for n, v in columns.items()})


def arrow_bytes(columns: Columns, folder: Path) -> pa.Table:
    def encoded(values: list[Any]) -> list[bytes | None]:
        return [None if text is None else text.encode() for text in _texts(values)]

    return pa.table({name: pa.array(encoded(v), pa.binary()) for name, v in columns.items()})


def pandas(columns: Columns, folder: Path) -> pd.DataFrame:
    return pd.DataFrame(columns)


def pandas_read_csv(columns: Columns, folder: Path) -> pd.DataFrame:
    names = [n for n, v in columns.items() if any(isinstance(x, str) for x in v)]
    return pd.read_csv(csv(columns, folder), dtype=dict.fromkeys(names, str))


def pandas_nullable(columns: Columns, folder: Path) -> pd.DataFrame:
    return pd.DataFrame(_objects(columns)).convert_dtypes()


def pandas_arrow(columns: Columns, folder: Path) -> pd.DataFrame:
    return pd.DataFrame(_objects(columns)).convert_dtypes(dtype_backend="pyarrow")


def pandas_category(columns: Columns, folder: Path) -> pd.DataFrame:
    return pd.DataFrame(_objects(columns)).astype("category")


def pandas_objects(columns: Columns, folder: Path) -> pd.DataFrame:
    return pd.DataFrame(_objects(columns))


def pandas_text(columns: Columns, folder: Path) -> pd.DataFrame:
    return pd.DataFrame({name: _texts(values) for name, values in columns.items()}, dtype="string")


def polars(columns: Columns, folder: Path) -> pl.DataFrame:
    return pl.DataFrame(columns)


def polars_category(columns: Columns, folder: Path) -> pl.DataFrame:
    frame = {name: pl.Series(_texts(values)) for name, values in columns.items()}
    return pl.DataFrame(frame).with_columns(pl.all().cast(pl.Categorical))


def polars_enum(columns: Columns, folder: Path) -> pl.DataFrame:
    def enum(values: list[Any]) -> pl.Series:
        texts = _texts(values)
        return pl.Series(texts, dtype=pl.Enum(sorted({t for t in texts if t is not None})))

    return pl.DataFrame({name: enum(values) for name, values in columns.items()})


def polars_objects(columns: Columns, folder: Path) -> pl.DataFrame:
    return pl.DataFrame({n: pl.Series(v, dtype=pl.Object) for n, v in columns.items()})


def lists(columns: Columns, folder: Path) -> Columns:
    return columns


def mixed_lists(columns: Columns, folder: Path) -> Columns:
    """Every other value as text, which no column of one type can have."""

    def mixed(values: list[Any]) -> list[Any]:
        pairs = enumerate(zip(values, _texts(values), strict=True))
        return [value if i % 2 else text for i, (value, text) in pairs]

    return {name: mixed(values) for name, values in columns.items()}


def arrays(columns: Columns, folder: Path) -> dict[str, Any]:
    """An array of its own type for each column; what is missing is masked."""

    def array(values: list[Any]) -> Any:
        hidden = [value is None for value in values]
        shown = next(value for value in values if value is not None)
        plain = np.array([shown if value is None else value for value in values])
        return np.ma.masked_array(plain, hidden) if any(hidden) else plain

    return {name: array(values) for name, values in columns.items()}


def arrays_of_text(columns: Columns, folder: Path) -> dict[str, Any]:
    """As `astype(str)` leaves them, with None as the word."""
    return {name: np.array(values, object).astype(str) for name, values in columns.items()}


def dask(columns: Columns, folder: Path) -> pd.DataFrame:
    """What a worker gets: a partition of a Dask frame."""
    from dask import compute
    from dask.dataframe import from_pandas

    frame = from_pandas(pd.DataFrame(columns), npartitions=1)
    (partition,) = compute(frame.to_delayed()[0], scheduler="synchronous")
    return partition


CARRIERS: dict[str, Callable[[Columns, Path], Any]] = {
    carrier.__name__: carrier
    for carrier in (
        csv, csv_of_polars, csv_of_r, parquet, parquet_dictionary, parquet_of_pandas, arrow,
        arrow_dictionary, arrow_text, arrow_bytes, pandas, pandas_read_csv, pandas_nullable,
        pandas_arrow, pandas_category, pandas_objects, pandas_text, polars, polars_category,
        polars_enum, polars_objects, lists, mixed_lists, arrays, arrays_of_text, dask,
    )
}  # fmt: skip
FILES = [name for name in CARRIERS if name.startswith(("csv", "parquet"))]


@dataclass(frozen=True)
class Kind:
    """Two values, and lists of them that a schema may have; None is among the rows if it may."""

    first: Any
    second: Any
    lists: tuple[tuple[Any, Any], ...]
    missing: bool = True

    def columns(self) -> Columns:
        """Columns in which the rows are: first, second, missing (or first), second."""
        third = None if self.missing else self.first
        values = [self.first, self.second, third, self.second]
        present = [self.first, self.second, self.first, self.second]
        return {"x": values, "y": present, "id": present}


DAY, NEXT = datetime.date(2024, 5, 17), datetime.date(2024, 5, 18)
MOMENT = datetime.datetime(2024, 5, 17, 10, 30)
MIDNIGHT = datetime.datetime(2024, 5, 18)
LARGE = 2**60 + 1  # and the next one: one float for both
KINDS: dict[str, Kind] = {
    "truth": Kind(True, False, ((True, False), ("True", "False"), ("true", "false"),
                                ("TRUE", "FALSE"), (1, 0), (1.0, 0.0), ("1", "0"))),
    "whole numbers": Kind(3, 11, ((3, 11), (3.0, 11.0), ("3", "11"), ("3.0", "11"))),
    "numbers 0 and 1": Kind(1, 0, ((1, 0), (True, False), ("True", "False"), ("1", "0"))),
    "whole floats": Kind(3.0, 11.0, ((3, 11), ("3", "11.0"))),
    "decimals": Kind(0.5, 0.1, ((0.5, 0.1), ("0.5", "0.10"))),
    "large numbers": Kind(LARGE, LARGE + 1, ((LARGE, LARGE + 1), (str(LARGE), str(LARGE + 1))),
                          missing=False),
    "names": Kind("007", "Z\u00fcrich", (("007", "Z\u00fcrich"), ("007", "Zu\u0308rich"))),
    "days": Kind(DAY, NEXT, (("2024-05-17", "2024-05-18"), ("2024-05-17 00:00", "2024-05-18"))),
    "moments": Kind(MOMENT, MIDNIGHT, (("2024-05-17 10:30:00", "2024-05-18"),
                                       ("2024-05-17T10:30", "2024-05-18T00:00:00.000"))),
}  # fmt: skip


def _objects(columns: Columns) -> dict[str, Any]:
    return {name: np.array(values, object) for name, values in columns.items()}


def _texts(values: list[Any]) -> list[str | None]:
    return [None if value is None else str(value) for value in values]
