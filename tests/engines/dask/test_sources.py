"""Folders become partitions by their row groups; frames by theirs. No cluster is needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow.data.tables import rows_of
from hedgerow.engines.dask import sources
from hedgerow.engines.dask.sources import RowGroups, row_groups
from hedgerow.errors import TableError
from tests.conftest import MIXED, Table, mixed_rows, mixed_table

NAMES = [*MIXED.names, MIXED.label.name]


def names_of(pattern: object) -> list[str]:
    return [Path(part.file).name for part in row_groups(str(pattern), NAMES)]


def test_a_folder_a_pattern_a_file_and_an_address(folder: Path) -> None:
    every = [f"part-{i}.parquet" for i in range(6)]
    assert names_of(folder) == names_of(folder / "*.parquet") == every
    assert names_of(f"file://{folder}") == names_of(f"file://{folder}/part-*") == every
    assert names_of(folder / "part-[12].parquet") == every[1:3]
    assert names_of(folder / "part-4.parquet") == every[4:5]
    with pytest.raises(TableError, match=r"no Parquet file at .*7 other files"):
        names_of(folder / "*.csv")


def test_partitions_are_row_groups_in_order(
    folder: Path, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "ROWS", 100)
    parts = row_groups(f"file://{folder}", NAMES)
    assert [part.groups for part in parts] == [(0,), (1,)] * 6  # of 100 and 50 rows
    assert parts[1].name.endswith("part-0.parquet (row groups 1 to 1)")
    found = [rows_of(part.read()[0], MIXED) for part in parts]
    whole = mixed_rows(table)
    assert [r.n_rows for r in found] == [100, 50] * 6
    assert np.array_equal(np.concatenate([r.target for r in found]), whole.target)
    first = np.concatenate([r.codes.column(0) for r in found])
    assert np.array_equal(first, whole.codes.column(0))


def test_empty_row_groups_are_left_out(tmp_path: Path) -> None:
    some = pa.table(mixed_table(30, seed=1))
    with pq.ParquetWriter(tmp_path / "a.parquet", some.schema) as writer:
        for size in (10, 0, 20, 0):
            writer.write_table(some.slice(0, size))
    pq.write_table(some.slice(0, 0), tmp_path / "b.parquet")
    found = row_groups(str(tmp_path), NAMES)
    kept = pq.ParquetFile(tmp_path / "a.parquet").metadata
    sizes = [kept.row_group(i).num_rows for i in found[0].groups]
    assert [Path(part.file).name for part in found] == ["a.parquet"]
    assert sizes == [10, 20]
    assert isinstance(found[0], RowGroups)
