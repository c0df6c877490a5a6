"""How far is a private model from plain XGBoost on more than two classes, and on numbers?

covtype with seven classes (accuracy, log loss), abalone and california (RMSE) at epsilon 1,
delta = 1 / training rows, 70-30 splits, hedgerow at its defaults beside XGBoost (100 trees of
depth 4) and the constant model on the same splits. Needs HEDGEROW_DATA. Writes
benchmarks/results/breadth.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import xgboost
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import train_test_split

import hedgerow
from hedgerow import PrivateBoostingClassifier, PrivateBoostingRegressor, Schema
from hedgerow.schema import Label

RESULT = Path(__file__).resolve().parent / "results" / "breadth.json"


def load(folder: Path, name: str) -> tuple[Schema, Any, np.ndarray]:
    schema = Schema.read(folder / f"{name}.toml")
    table = pq.read_table(folder / f"{name}.parquet")
    if name == "covtype":
        labels = pq.read_table(folder / "covtype_multiclass_label.parquet").column(0).to_numpy()
        classes = tuple(int(c) for c in range(1, 8))
        return schema.with_label(Label("label", classes)), table.drop(["label"]), labels
    labels = table.column("label").to_numpy()
    return schema, table.drop(["label"]), labels


def frame(table: Any) -> Any:
    """Columns for XGBoost: text becomes a pandas category."""
    from pandas.api.types import is_numeric_dtype

    data = table.to_pandas()
    for column in data.columns:
        if not is_numeric_dtype(data[column]):
            data[column] = data[column].astype("category")
    return data


def measure(name: str, folder: Path, splits: int, epsilon: float) -> list[dict[str, Any]]:
    schema, table, labels = load(folder, name)
    classes = schema.label.classes
    rows = []
    for seed in range(splits):
        stratify = labels if classes else None
        train, test = train_test_split(
            np.arange(len(labels)), test_size=0.3, stratify=stratify, random_state=seed
        )
        make = PrivateBoostingClassifier if classes else PrivateBoostingRegressor
        ours = make(schema, epsilon=epsilon, delta=1 / len(train), random_state=seed)
        begin = time.perf_counter()
        ours.fit(table.take(train), labels[train])
        seconds = time.perf_counter() - begin
        data = frame(table)
        begin = time.perf_counter()
        plain = (xgboost.XGBClassifier if classes else xgboost.XGBRegressor)(
            n_estimators=100, max_depth=4, tree_method="hist", enable_categorical=True
        )
        plain.fit(data.iloc[train], labels[train] - 1 if classes else labels[train])
        ratio = seconds / (time.perf_counter() - begin)
        if classes:
            truth = labels[test] - 1
            ours_p, plain_p = (
                ours.predict_proba(table.take(test)),
                plain.predict_proba(data.iloc[test]),
            )
            base = np.bincount(labels[train] - 1) / len(train)
            rows.append(
                {
                    "ours": float(np.mean(ours_p.argmax(1) == truth)),
                    "xgboost": float(np.mean(plain_p.argmax(1) == truth)),
                    "constant": float(np.mean(base.argmax() == truth)),
                    "ours_log_loss": log_loss(ours_p, truth),
                    "xgboost_log_loss": log_loss(plain_p, truth),
                    "time_ratio": ratio,
                }
            )
        else:
            rows.append(
                {
                    "ours": rmse(ours.predict(table.take(test)), labels[test]),
                    "xgboost": rmse(plain.predict(data.iloc[test]), labels[test]),
                    "constant": rmse(np.full(len(test), labels[train].mean()), labels[test]),
                    "time_ratio": ratio,
                }
            )
    return rows


def rmse(predicted: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((predicted - truth) ** 2)))


def log_loss(probabilities: np.ndarray, truth: np.ndarray) -> float:
    return float(-np.mean(np.log(np.maximum(probabilities[np.arange(len(truth)), truth], 1e-15))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    if "HEDGEROW_DATA" not in os.environ:
        sys.exit("set HEDGEROW_DATA to the folder of real tables")
    folder = Path(os.environ["HEDGEROW_DATA"])
    shown = Table(title=f"epsilon {options.epsilon:g}, mean of {options.splits} splits")
    for heading in (
        "data",
        "measure",
        "constant",
        "hedgerow",
        "XGBoost, not private",
        "time ratio",
    ):
        shown.add_column(heading, justify="right")
    results = {}
    for name in ("covtype", "abalone", "california"):
        rows = measure(name, folder, options.splits, options.epsilon)
        mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        results[name] = {"mean": mean, "splits": rows}
        what = "accuracy" if name == "covtype" else "RMSE"
        cells = [f"{mean[key]:.4f}" for key in ("constant", "ours", "xgboost")]
        shown.add_row(name, what, *cells, f"{mean['time_ratio']:.2f}")
    Console().print(shown)
    document = {
        "results": results,
        "epsilon": options.epsilon,
        "command": f"python benchmarks/breadth.py --splits {options.splits}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"hedgerow": hedgerow.__version__, "xgboost": xgboost.__version__},
    }
    RESULT.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
