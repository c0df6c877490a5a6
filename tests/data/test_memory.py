"""A table is read from its file batch by batch: bounded memory, and codes as if read at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow.data import readers
from hedgerow.data.tables import Rows, rows_of
from tests.conftest import MIXED, mixed_table

N_ROWS, N_COLUMNS, N_PIECES = 200_000, 100, 4
# 1.5 bytes a cell, 24 bytes a row and output, 150 MB; read at once, as float64, it takes more.
BOUND = 1.5 * N_ROWS * N_COLUMNS + 24 * N_ROWS + 150e6
FIT = """
import sys
from pathlib import Path
from hedgerow import PrivateBoostingClassifier

def memory(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))

small, large = sys.argv[1:]
names = [f"x{j}" for j in range(100)]
model = PrivateBoostingClassifier(
    bounds=dict.fromkeys(names, (-4, 4)), classes=[0, 1], method="dp-tr-newton", n_trees=3
)
model.fit(small)  # imports and compiles everything
base = memory("VmRSS")
model.fit(large)
print(memory("VmHWM") - base)
"""


def write_pieces(path: Path, n_rows: int, n_pieces: int) -> None:
    """Equal row groups of float64 columns; few distinct values, so that the file is small."""
    shape = (N_COLUMNS, n_rows // n_pieces)
    values = np.random.default_rng(0).integers(-64, 65, shape) / 16.0
    columns = {f"x{j}": values[j] for j in range(N_COLUMNS)}
    part = pa.table({**columns, "label": (values[0] > 0).astype(np.int64)})
    with pq.ParquetWriter(path, part.schema) as writer:
        for _ in range(n_pieces):
            writer.write_table(part)


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="memory is read from /proc")
def test_a_fit_from_parquet_stays_within_its_memory(tmp_path: Path) -> None:
    small, large = tmp_path / "small.parquet", tmp_path / "large.parquet"
    write_pieces(small, 600, 1)
    write_pieces(large, N_ROWS, N_PIECES)
    command = [sys.executable, "-c", FIT, str(small), str(large)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stderr
    peak = int(done.stdout)
    codes = N_ROWS * N_COLUMNS
    assert codes < peak, "the large table was not read"
    assert peak <= BOUND, f"{peak / 1e6:.0f} MB above the imports, {BOUND / 1e6:.0f} MB allowed"


def same(one: Rows, two: Rows) -> bool:
    pairs = [(one.codes.narrow, two.codes.narrow), (one.codes.wide, two.codes.wide)]
    pairs.append((one.target, two.target))
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


def n_batches(path: Path) -> int:
    return sum(1 for _ in readers.stream_of(path, "table").batches([0]))


def test_parquet_in_row_groups_gives_the_codes_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "_BATCH", 700)
    monkeypatch.setattr(readers, "_COLUMNS", 2)
    table, path = pa.table(mixed_table(3_000, seed=4)), tmp_path / "table.parquet"
    pq.write_table(table, path, row_group_size=1_000)
    assert pq.ParquetFile(path).num_row_groups == 3
    assert n_batches(path) > 4
    assert same(rows_of(path, MIXED), rows_of(table, MIXED))


def test_csv_in_blocks_gives_the_codes_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "_CSV_BLOCK", 1 << 14)
    table, path = pa.table(mixed_table(3_000, seed=5)), tmp_path / "table.csv"
    table.to_pandas().to_csv(path, index=False)
    assert n_batches(path) > 4
    assert same(rows_of(path, MIXED), rows_of(table, MIXED))
