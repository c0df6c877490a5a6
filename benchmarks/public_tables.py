"""What `hedgerow advise` says of public tables, from the results of accuracy.py.

    HEDGEROW_DATA=folder python benchmarks/public_tables.py

Reads results/accuracy.json, counts the columns of each table with a binary label, and writes
public_tables.json of `hedgerow.inspection.advice`.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from accuracy.data import load
from accuracy.methods import AUTO, XGBOOST

RESULTS = Path(__file__).parent / "results" / "accuracy.json"
OUT = Path(str(files("hedgerow.inspection.advice"))) / "public_tables.json"


def main() -> None:
    results = json.loads(RESULTS.read_text("utf-8"))["results"]
    own = [one for one in results if one["method"] == AUTO and "auc" in one]
    found: dict[str, Any] = {}
    for name in sorted({one["dataset"] for one in own if not one["dataset"].startswith("sbdt")}):
        runs = sorted((one for one in own if one["dataset"] == name), key=lambda o: o["epsilon"])
        plain = next(o for o in results if o["dataset"] == name and o["method"] == XGBOOST)
        found[name] = {
            "rows": runs[0]["n_train"][0],
            "columns": len(load(name).schema.columns),
            "epsilon": [one["epsilon"] for one in runs],
            "auc": [mean(one["auc"]) for one in runs],
            "auc_without_privacy": mean(plain["auc"]),  # XGBoost
        }
        print(f"{name}: {found[name]}")
    OUT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def mean(values: list[float]) -> float:
    return round(float(np.mean(values)), 4)


if __name__ == "__main__":
    main()
