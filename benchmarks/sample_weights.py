"""What a cap on weights of rows costs: AUC with and without weights, on a made-up table.

Weights are 0.5, 1 or 2, drawn for each row whatever it holds, so the best model is the same with
and without them, and what is lost is the price of noise that grows with the cap. Beside them every
row counts once under the same cap, which is the price of the cap alone, and weights under a cap of
10 that none of them needs. S is the strength by which the default method settles its settings.
Writes benchmarks/results/sample_weights.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score

from hedgerow import PrivateBoostingClassifier

RESULTS = Path(__file__).resolve().parent / "results" / "sample_weights.json"
N_COLUMNS, N_TEST = 10, 20_000
ROWS, EPSILONS = (2_000, 8_000, 32_000), (0.3, 1.0)
CASES: dict[str, tuple[bool, float | None]] = {  # whether rows have weights, and the cap
    "no weights": (False, None),
    "weights 0.5, 1, 2; cap 2": (True, 2.0),
    "every row once; cap 2": (False, 2.0),
    "weights 0.5, 1, 2; cap 10": (True, 10.0),
}


def made_up(n_rows: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows between -1 and 1 with bent effects, one interaction and a noisy label."""
    X = rng.uniform(-1, 1, (n_rows, N_COLUMNS))
    score = 2 * X[:, 0] + 1.5 * np.abs(X[:, 1]) - X[:, 2] ** 2 + 1.5 * X[:, 3] * X[:, 4] - 0.5
    return X, (rng.random(n_rows) < 1 / (1 + np.exp(-score))).astype(int)


def measured(case: str, n_rows: int, epsilon: float, seed: int) -> dict[str, Any]:
    """AUC on fresh rows of one fit."""
    rng = np.random.default_rng(seed)
    X, y = made_up(n_rows, rng)
    X_test, y_test = made_up(N_TEST, rng)
    weighs, cap = CASES[case]
    drawn = rng.choice([0.5, 1.0, 2.0], n_rows)
    weights = None if cap is None else (drawn if weighs else np.ones(n_rows))
    model = PrivateBoostingClassifier(
        bounds=(-1, 1), classes=[0, 1], epsilon=epsilon, max_weight=cap, random_state=seed
    ).fit(X, y, sample_weight=weights)
    auc = float(roc_auc_score(y_test, model.predict_proba(X_test)[:, 1]))
    found = {"case": case, "rows": n_rows, "epsilon": epsilon, "seed": seed, "auc": auc}
    return {**found, "strength": float(model.model_.record["strength"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    repeats: int = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    table = Table("rows", "epsilon", *CASES)
    fits, lines = [], []
    for n_rows in ROWS:
        for epsilon in EPSILONS:
            cells = [str(n_rows), f"{epsilon:g}"]
            for case in CASES:
                these = [measured(case, n_rows, epsilon, seed) for seed in range(repeats)]
                auc = np.array([fit["auc"] for fit in these])
                strength = float(np.mean([fit["strength"] for fit in these]))
                error = float(auc.std(ddof=1) / repeats**0.5) if repeats > 1 else 0.0
                lines.append({
                    "case": case, "rows": n_rows, "epsilon": epsilon, "strength": strength,
                    "auc": float(auc.mean()), "standard_error": error,
                })  # fmt: skip
                cells.append(f"{auc.mean():.3f} +- {error:.3f} (S {strength:.0f})")
                fits += these
            table.add_row(*cells)
    Console().print(table)
    told = {
        "command": ["benchmarks/sample_weights.py", *sys.argv[1:]],
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "hedgerow": version("hedgerow"),
        "repeats": repeats, "means": lines, "fits": fits,
    }  # fmt: skip
    RESULTS.write_text(json.dumps(told) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
