"""How do time and memory of a vertical run grow with rows? 50 columns over three parties.

Trains on made-up tables whose parties agree on ids, with protections `none` and `ldp` (labels
randomised once), every run in a process of its own, which makes its peak memory exact. Prints
seconds, megabytes above those of an empty run and bytes; the exponent of CPU time by least squares;
and writes results/vertical_scaling.json beside this file.
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
from pathlib import Path
from typing import Any

import numpy as np

RESULT = Path(__file__).resolve().parent / "results" / "vertical_scaling.json"
COLUMNS, PARTIES, LEAST = 50, 3, 1_000


def one(rows: int, protection: str, trees: int) -> dict[str, Any]:
    """One run in this process."""
    from hedgerow import VerticalBoostingClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, COLUMNS)).astype(np.float32)
    y = (X[:, 0] * X[:, 20] + X[:, 40] + rng.normal(size=rows) > 0).astype(int)
    owners = {f"x{j}": f"party-{j * PARTIES // COLUMNS}" for j in range(COLUMNS)}
    model = VerticalBoostingClassifier(
        bounds=(-5, 5), classes=[0, 1], protection=protection, n_trees=trees, max_depth=4
    )
    wall, processor = time.perf_counter(), time.process_time()
    model.fit(X, y, owners=owners, active="party-0")
    return {
        "wall": time.perf_counter() - wall,
        "processor": time.process_time() - processor,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "sent": model.sent_,
        "accuracy": float(model.score(X[:20_000], y[:20_000])),
        "load": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", type=int, default=[250_000, 500_000, 1_000_000])
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--one", nargs=2, metavar=("ROWS", "PROTECTION"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(int(options.one[0]), options.one[1], options.trees)))
        return
    found: dict[str, Any] = {}
    for protection in ("none", "ldp"):
        for rows in [LEAST, *options.rows]:
            words = [sys.executable, __file__, "--one", str(rows), protection]
            words += ["--trees", str(options.trees)]
            done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
            cell = json.loads(done.stdout.splitlines()[-1])
            found[f"{protection}, {rows}"] = cell
            least = found[f"{protection}, {LEAST}"]["megabytes"]
            print(
                f"{protection}, {rows:,} x {COLUMNS}, {options.trees} trees: {cell['wall']:.1f} s, "
                f"CPU {cell['processor']:.1f} s, {cell['megabytes'] - least:,.0f} MB, "
                f"{cell['sent']['to passive'] / 1e6:,.0f} MB to passive parties",
                flush=True,
            )
    exponents = {
        protection: float(
            np.polyfit(
                np.log(options.rows),
                [np.log(found[f"{protection}, {rows}"]["processor"]) for rows in options.rows],
                1,
            )[0]
        )
        for protection in ("none", "ldp")
        if len(options.rows) > 1
    }
    print(f"exponents of CPU time in rows: {exponents}")
    result = {
        "cells": found, "exponents": exponents, "trees": options.trees,
        "command": "python benchmarks/vertical_scaling.py",
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip
    RESULT.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
