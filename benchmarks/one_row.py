"""One row a client, as Maddock et al. (2022) assume: up to 10,000 clients of one process.

    python benchmarks/one_row.py

Every client is a party with its own keys, ledger lines, mask and noise share, and holds one row of
a made-up table. `dp-tr-newton`, 50 trees in two rounds, epsilon 1, under all three trusts; each fit
in a process of its own, after a small one that compiles. CPU seconds, peak memory and AUC on other
rows are printed and written to results/one_row.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "one_row.json"
CLIENTS = (100, 1_000, 10_000)
TRUSTS = ("coordinator", "parties", "nobody")
SETTINGS = {"n_trees": 50, "batch_size": 25}
COLUMNS, TEST = 8, 20_000


def table(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, COLUMNS)).astype(np.float32)
    risk = 3 * X[:, 0] + 2 * X[:, 1] * X[:, 2] + X[:, 3]
    return X, (rng.random(n) < 1 / (1 + np.exp(-2 * risk))).astype(int)


def fit(n: int, trust: str) -> dict[str, Any]:
    """One fit in this process: as many parties as rows, but under trust in the coordinator."""
    from sklearn.metrics import roc_auc_score

    from hedgerow import PrivateBoostingClassifier

    def model() -> PrivateBoostingClassifier:
        return PrivateBoostingClassifier(
            bounds=(-1, 1), classes=[0, 1], epsilon=1.0, delta=1 / n, method="dp-tr-newton",
            trust=trust, settings=dict(SETTINGS),
        )  # fmt: skip

    X, y = table(n, 0)
    names = np.array([f"client-{i:05d}" for i in range(n)])
    model().fit(X[:60], y[:60], parties=names[np.arange(60) % 3])  # compiles
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu, wall = time.process_time(), time.perf_counter()
    fitted = model().fit(X, y, parties=names)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    X_test, y_test = table(TEST, 1)
    return {
        "clients": n, "trust": trust, "cpu_seconds": round(cpu, 2), "wall_seconds": round(wall, 2),
        "megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "megabytes_before": round(before / 1024),
        "auc": round(float(roc_auc_score(y_test, fitted.decision_function(X_test))), 4),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", nargs="*", type=int, default=list(CLIENTS))
    parser.add_argument("--trust", nargs="*", default=list(TRUSTS), choices=TRUSTS)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--here", action="store_true", help="one fit in this process, as JSON")
    given = parser.parse_args()
    if given.here:
        print(json.dumps(fit(given.clients[0], given.trust[0])))
        return
    found = json.loads(given.out.read_text())["fits"] if given.out.exists() else []
    for n in given.clients:
        for trust in given.trust:
            for _ in range(given.repeats):
                words = ["--here", "--clients", str(n), "--trust", trust]
                done = subprocess.run(
                    [sys.executable, __file__, *words],
                    env={**os.environ, "NUMBA_NUM_THREADS": "1"},
                    check=True, stdout=subprocess.PIPE, text=True,
                )  # fmt: skip
                found.append(json.loads(done.stdout.splitlines()[-1]))
                print(found[-1], flush=True)
                written = {
                    "command": "python benchmarks/one_row.py", "settings": SETTINGS, "epsilon": 1.0,
                    "delta": "1 / clients", "columns": COLUMNS, "test_rows": TEST,
                    "date": datetime.now(UTC).isoformat(timespec="seconds"),
                    "versions": {name: version(name) for name in ("hedgerow", "numpy")},
                    "fits": found,
                }  # fmt: skip
                given.out.write_text(json.dumps(written, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
