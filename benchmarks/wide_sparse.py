"""Does a wide sparse table fit? 200,000 rows of 2,000 indicator columns, trained within 4 GB.

Prints time and peak memory of the process beside the size of the table as codes (one byte a
cell), and writes benchmarks/results/wide_sparse.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from scipy import sparse

from hedgerow import PrivateBoostingClassifier, Schema
from hedgerow.data.schema import Categorical, Label

RESULT = Path(__file__).resolve().parent / "results" / "wide_sparse.json"


def make(n_rows: int, n_columns: int, seed: int) -> tuple[sparse.csr_array, np.ndarray, Schema]:
    """Indicators of which the first twenty matter, one in fifty set."""
    rng = np.random.default_rng(seed)
    table = sparse.random_array(
        (n_rows, n_columns), density=0.02, format="csr", dtype=np.float32, rng=rng
    )
    table.data[:] = 1
    score = table[:, :20] @ np.linspace(4, 2, 20, dtype=np.float32) - 1.5
    labels = (rng.uniform(size=n_rows) < 1 / (1 + np.exp(-score))).astype(int)
    columns = tuple(Categorical(f"word-{j}", (0, 1)) for j in range(n_columns))
    return table, labels, Schema(columns, Label("label", (0, 1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=2_000)
    options = parser.parse_args()
    table, labels, schema = make(options.rows, options.columns, seed=1)
    begin = time.perf_counter()
    model = PrivateBoostingClassifier(schema, epsilon=1.0, delta=1e-6, random_state=0)
    model.fit(table, labels)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    result = {
        "rows": options.rows,
        "columns": options.columns,
        "seconds": round(seconds, 1),
        "peak_bytes": peak,
        "code_bytes": options.rows * options.columns,
        "accuracy": float(model.score(table[:5000], labels[:5000])),
        "command": f"python benchmarks/wide_sparse.py --rows {options.rows}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    print(json.dumps(result, indent=2))
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
