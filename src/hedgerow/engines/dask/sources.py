"""Where partitions come from: row groups of Parquet files, or partitions of a Dask frame.

The order of partitions is that of the rows: files by name, row groups within a file. It matters for
the unit person alone, where a person's rows have numbers.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hedgerow.data.counts import refuse_unusual
from hedgerow.data.readers import Stream, parquet_stream, readable
from hedgerow.data.schema import Schema
from hedgerow.engines.dask.cluster import Cluster, ClusterLost, WorkersLost
from hedgerow.errors import TableError

ROWS = 1 << 20  # of a partition, about: more row groups are not put into one
_ENDINGS = (".parquet", ".pq")


class Source(Protocol):
    """A table in partitions that can be read one by one, and read again after a loss."""

    name: str

    def __len__(self) -> int: ...

    def name_of(self, index: int) -> str:
        """A partition's name in messages."""
        ...

    def part(self, client: Any, index: int) -> Any:
        """What `partitions.load` takes: something to read, or futures of a frame and its labels."""
        ...


@dataclass(frozen=True)
class RowGroups:
    """Some row groups of one Parquet file: a partition."""

    file: str
    groups: tuple[int, ...]
    whole: bool  # the file has no others

    @property
    def name(self) -> str:
        if self.whole:
            return self.file
        first, last = self.groups[0], self.groups[-1]
        return f"{self.file} (row groups {first} to {last})"

    def read(self) -> tuple[Stream, None]:
        return parquet_stream(self.file, self.name, list(self.groups)), None


class ParquetFolder:
    """A folder of Parquet files, a pattern of their names, or one file; also at an address.

    Workers list and read it. The coordinator opens none of the files.
    """

    def __init__(
        self,
        pattern: str | os.PathLike[str],
        client: Any,
        schema: Schema,
        wait_seconds: float = 60.0,
    ) -> None:
        refuse_unusual(schema.label, "a Dask cluster")
        text = os.fspath(pattern)
        self.name = text if "://" in text else os.path.abspath(text)
        label, unit = [schema.label.name], [schema.unit.column] if schema.unit.column else []
        names = [*schema.names, *unit, *label]
        cluster = Cluster(client, wait_seconds)
        worker = next(iter(cluster.gathered()))
        try:
            task = cluster.submit(worker, row_groups, self.name, names)
            self._parts: list[RowGroups] = cluster.results([task], [worker])[0]
        except WorkersLost:
            raise ClusterLost(
                f"a worker was lost while it listed {self.name}. Nothing was asked. Its log says "
                "why; run the same command again."
            ) from None

    def __len__(self) -> int:
        return len(self._parts)

    def name_of(self, index: int) -> str:
        return self._parts[index].name

    def part(self, client: Any, index: int) -> Any:
        return self._parts[index]


class DaskFrame:
    """A Dask frame, and the labels of its rows unless it has the label's column."""

    def __init__(self, frame: Any, labels: Any = None) -> None:
        self.name = "the Dask frame"
        if labels is not None and labels.npartitions != frame.npartitions:
            raise TableError(
                f"X has {frame.npartitions} partitions and y {labels.npartitions}; take both from "
                "one frame, as in ddf[features] and ddf[label]. Nothing was asked."
            )
        if labels is not None and getattr(labels, "ndim", 1) == 2:
            if len(labels.columns) != 1:
                raise TableError(f"y has {len(labels.columns)} columns; give one column of labels.")
            labels = labels[labels.columns[0]]
        self._frames = frame.to_delayed()
        self._labels = [None] * len(self._frames) if labels is None else labels.to_delayed()

    def __len__(self) -> int:
        return len(self._frames)

    def name_of(self, index: int) -> str:
        return f"partition {index} of {len(self)}"

    def part(self, client: Any, index: int) -> Any:
        frame, labels = self._frames[index], self._labels[index]
        return [client.compute(frame), None if labels is None else client.compute(labels)]


def row_groups(pattern: str, names: Sequence[str]) -> list[RowGroups]:
    """The partitions of a folder; only the ends of files are read. Runs on a worker."""
    import pyarrow.parquet as pq

    groups: list[RowGroups] = []
    for file in _files(pattern):
        with readable(file), pq.ParquetFile(file) as parquet:
            columns, about = parquet.schema_arrow.names, parquet.metadata
            sizes = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
        Stream(columns, None, lambda _: iter(()), file).find(names, n_named=0)
        groups += _cut(file, sizes)
    return groups


def _cut(file: str, sizes: Sequence[int]) -> list[RowGroups]:
    """Row groups in their order, put together until they have enough rows; empty ones are left."""
    parts: list[list[int]] = []
    n_rows = ROWS
    for group, size in enumerate(sizes):
        if not size:
            continue
        if n_rows + size > ROWS:
            parts.append([])
            n_rows = 0
        parts[-1].append(group)
        n_rows += size
    whole = sum(len(part) for part in parts) == len(sizes) and len(parts) == 1
    return [RowGroups(file, tuple(part), whole) for part in parts]


def _files(pattern: str) -> list[str]:
    """Files that a folder, a pattern or a name means, by name."""
    folder, _, wanted = pattern.rpartition("/")
    if not any(sign in wanted for sign in "*?["):
        if wanted.lower().endswith(_ENDINGS) and not Path(pattern).is_dir():
            return [pattern]
        folder, wanted = pattern.rstrip("/"), "*"
    listed = _listed(folder)
    matching = [name for name in listed if fnmatch.fnmatchcase(name, wanted)]
    files = sorted(name for name in matching if name.lower().endswith(_ENDINGS))
    if not files:
        raise TableError(
            f"no Parquet file at {pattern} ({len(listed)} other files in {folder or '/'}); give a "
            "folder of .parquet files that every worker sees, or a pattern such as "
            "'folder/*.parquet'. Nothing was asked."
        )
    return [f"{folder}/{name}" for name in files]


def _listed(folder: str) -> list[str]:
    """Names of the files in a folder or at an address, hidden ones left out."""
    from pyarrow import fs

    with readable(folder):
        if "://" in folder:
            place, path = fs.FileSystem.from_uri(folder)
        else:
            place, path = fs.LocalFileSystem(), folder or "/"
        selected = fs.FileSelector(path, allow_not_found=True)
        entries = place.get_file_info(selected)
    names = [entry.base_name for entry in entries if entry.type == fs.FileType.File]
    return [name for name in names if not name.startswith((".", "_"))]
