"""Tables of the benchmarks: made up in pieces from a seed, or those of HEDGEROW_DATA."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow import Schema

PIECE = 250_000  # rows that are made at once; also a row group of a Parquet file
BOUND = 5.0


@dataclass(frozen=True, eq=False)
class Given:
    """A table as a data frame, its classes, and what is public about it."""

    name: str
    frame: pd.DataFrame
    label: np.ndarray  # (row,) of 0 and 1
    schema: Schema

    def head(self, n: int) -> Given:
        return Given(self.name, self.frame.iloc[:n], self.label[:n], self.schema)


def names_of(n_columns: int) -> list[str]:
    return [f"x{j}" for j in range(n_columns)]


def schema_of(n_columns: int) -> Schema:
    bounds = dict.fromkeys(names_of(n_columns), (-BOUND, BOUND))
    return Schema.from_bounds(bounds, classes=[0, 1])


def pieces(n_rows: int, n_columns: int, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Normal values in float32 and a logistic label with three interactions, piece by piece."""
    for number, first in enumerate(range(0, n_rows, PIECE)):
        rng = np.random.default_rng([seed, number])
        n = min(PIECE, n_rows - first)
        x = rng.standard_normal((n, n_columns), dtype=np.float32)
        score = x[:, :6].sum(axis=1) + x[:, 0] * x[:, 1] - 1.5 * x[:, 2] * (x[:, 3] > 0.5)
        score += np.abs(x[:, 4]) * x[:, 5]
        yield x, (score + rng.logistic(size=n) > 0).astype(np.int64)


def synthetic(n_rows: int, n_columns: int = 28) -> Given:
    parts = list(pieces(n_rows, n_columns))
    x = np.concatenate([part[0] for part in parts])
    frame = pd.DataFrame(x, columns=names_of(n_columns))
    label = np.concatenate([part[1] for part in parts])
    return Given(f"synthetic {n_rows:,} x {n_columns}", frame, label, schema_of(n_columns))


def write_parquet(path: Path, n_rows: int, n_columns: int) -> None:
    """The synthetic table as a file of row groups, never whole in memory."""
    writer = None
    for x, label in pieces(n_rows, n_columns):
        columns = {name: x[:, j] for j, name in enumerate(names_of(n_columns))}
        part = pa.table({**columns, "label": label})
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part, row_group_size=PIECE)
    assert writer is not None
    writer.close()


def data_folder(*files: str) -> Path | None:
    """The folder of real tables, if it is named and has these files."""
    folder = Path(os.environ.get("HEDGEROW_DATA", "")).absolute()
    there = "HEDGEROW_DATA" in os.environ and all((folder / name).is_file() for name in files)
    return folder if there else None


def covtype(n_rows: int | None = None) -> Given | None:
    """Covertype as a binary table, or None where it is not at hand."""
    folder = data_folder("covtype.parquet", "covtype.toml")
    if folder is None:
        return None
    schema = Schema.read(folder / "covtype.toml")
    table = pq.read_table(folder / "covtype.parquet")
    if n_rows is not None:
        table = table.take(np.random.default_rng(0).permutation(table.num_rows)[:n_rows])
    frame = table.select(list(schema.names)).to_pandas()
    label = table.column(schema.label.name).to_numpy().astype(np.int64)
    return Given(f"covtype {len(label):,} x {frame.shape[1]}", frame, label, schema)
