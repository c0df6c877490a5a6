"""What does dp-tr-newton reach against the published figure?

Test AUC over stratified 70-30 splits beside Maddock et al. 2022 (table of split candidates,
uniform row, epsilon = 1) and non-private XGBoost on the same splits. Tables are read from the
folder named by HEDGEROW_DATA.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import sys
import time
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from hedgerow import PrivateBoostingClassifier, Schema, local_federation
from hedgerow.tables import Rows, rows_of

HERE = Path(__file__).parent
DATASETS = ("adult", "bank", "credit1", "credit2", "nomao6", "higgs")
# Each category split with the default, with the papers' accounting, and without a base rate.
VARIANTS = tuple(
    (category_split, accounting, start_share)
    for category_split in ("subset", "equality")
    for accounting, start_share in (("exact", 0.02), ("exact", 0.0), ("renyi", 0.02))
)
TREES, DEPTH = 100, 4
Split = tuple[int, np.ndarray, np.ndarray]


def main() -> None:
    options = _options()
    folder = Path(os.environ.get("HEDGEROW_DATA", ""))
    names = ["adult"] if options.quick else [n for n in DATASETS if n in options.datasets]
    present = [n for n in names if (folder / f"{n}.parquet").is_file()]
    if not os.environ.get("HEDGEROW_DATA") or not present:
        sys.exit("Set HEDGEROW_DATA to a folder with adult.parquet, adult.toml and so on.")
    published = _published()
    began = time.perf_counter()
    results = [_dataset(folder, name, options, published.get(name)) for name in present]
    _show(results, options.epsilons)
    _write(results, options, time.perf_counter() - began)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="adult only, 3 splits")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=DATASETS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 0.5])
    parser.add_argument("--out", type=Path, default=HERE / "results" / "totally_random.json")
    options = parser.parse_args()
    if options.quick:
        options.splits = 3
    return options


def _published() -> dict[str, float]:
    with (HERE / "published" / "maddock2022.toml").open("rb") as file:
        table = tomllib.load(file)["split_candidates"]
    return dict(zip(table["datasets"], table["uniform"], strict=True))


def _dataset(
    folder: Path, name: str, options: argparse.Namespace, published: float | None
) -> dict[str, Any]:
    schema = Schema.read(folder / f"{name}.toml")
    table = pq.read_table(folder / f"{name}.parquet")
    rows = rows_of(table, schema)
    splits = list(_splits(rows, options.splits))
    variants = list(itertools.product(options.epsilons, VARIANTS))
    ours = [
        {
            "epsilon": epsilon, "category_split": category_split,
            "accounting": accounting, "start_share": start_share,
            "auc": [
                _ours(table, schema, rows, split, epsilon, accounting,
                      {"category_split": category_split, "start_share": start_share})
                for split in splits
            ],
        }
        for epsilon, (category_split, accounting, start_share) in track(
            variants, description=f"{name}: {rows.n_rows} rows"
        )
    ]  # fmt: skip
    return {
        "dataset": name,
        "rows": rows.n_rows,
        "published_epsilon_1": published,
        "xgboost": [_xgboost(table, schema, rows, split) for split in splits],
        "ours": ours,
    }


def _splits(rows: Rows, n_splits: int) -> Iterator[Split]:
    for seed in range(n_splits):
        everyone = np.arange(rows.n_rows)
        train, test = train_test_split(
            everyone, test_size=0.3, random_state=seed, stratify=rows.target
        )
        yield seed, np.sort(train), np.sort(test)


def _ours(
    table: Any,
    schema: Schema,
    rows: Rows,
    split: Split,
    epsilon: float,
    accounting: str,
    settings: dict[str, Any],
) -> float:
    seed, train, test = split
    model = PrivateBoostingClassifier(
        epsilon=epsilon,
        delta=1 / len(train),
        method="dp-tr-newton",
        trust="coordinator",
        n_trees=TREES,
        max_depth=DEPTH,
        settings={"accounting": accounting, **settings},
        random_state=seed,
    )
    model.fit_federation(local_federation({"all": rows.take(train)}, schema))
    return float(roc_auc_score(rows.target[test], model.decision_function(table.take(test))))


def _xgboost(table: Any, schema: Schema, rows: Rows, split: Split) -> float:
    """Not private: the same number of trees, depth and learning rate, on the same rows."""
    from xgboost import XGBClassifier

    seed, train, test = split
    frame = table.select(list(schema.names)).to_pandas()
    for column in schema.columns:
        if column.kind == "categorical":
            frame[column.name] = frame[column.name].astype("category")
        elif column.kind == "ordinal" and isinstance(column.categories[0], str):
            position = {value: i for i, value in enumerate(column.categories)}
            frame[column.name] = frame[column.name].map(position).astype("float64")
    model = XGBClassifier(
        n_estimators=TREES, max_depth=DEPTH, learning_rate=0.3, tree_method="hist",
        enable_categorical=True, random_state=seed, n_jobs=2,
    )  # fmt: skip
    model.fit(frame.iloc[train], rows.target[train])
    return float(roc_auc_score(rows.target[test], model.predict_proba(frame.iloc[test])[:, 1]))


def _show(results: list[dict[str, Any]], epsilons: list[float]) -> None:
    for epsilon in epsilons:
        table = Table(title=f"Test AUC, mean (sd), epsilon = {epsilon:g}, delta = 1/training rows")
        for heading in ("categories", "accounting", "start share"):
            table.add_column(heading)
        for result in results:
            table.add_column(result["dataset"], justify="right")
        table.add_column("mean", justify="right")
        for i, variant in enumerate(results[0]["ours"]):
            if variant["epsilon"] == epsilon:
                scores = [result["ours"][i]["auc"] for result in results]
                names = (variant["category_split"], variant["accounting"])
                _line(table, (*names, f"{variant['start_share']:g}"), scores)
        table.add_section()
        if epsilon == 1.0:
            found = [result["published_epsilon_1"] for result in results]
            table.add_row("published, uniform candidates", "", "", *map(_figure, found), "")
        _line(table, ("XGBoost, not private", "", ""), [result["xgboost"] for result in results])
        Console(width=150).print(table)


def _line(table: Table, names: tuple[str, ...], scores: list[list[float]]) -> None:
    means = [statistics.fmean(auc) for auc in scores]
    spread = [statistics.stdev(auc) if len(auc) > 1 else 0.0 for auc in scores]
    cells = [f"{mean:.4f} ({sd:.4f})" for mean, sd in zip(means, spread, strict=True)]
    table.add_row(*names, *cells, f"{statistics.fmean(means):.4f}")


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"


def _write(results: list[dict[str, Any]], options: argparse.Namespace, seconds: float) -> None:
    packages = ("hedgerow", "numpy", "numba", "opendp", "scikit-learn", "xgboost-cpu")
    document = {
        "command": " ".join(["python", "benchmarks/totally_random.py", *sys.argv[1:]]),
        "date_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "python": platform.python_version(),
        "threads": numba.get_num_threads(),
        "versions": {name: version(name) for name in packages},
        "trees": TREES,
        "max_depth": DEPTH,
        "splits": options.splits,
        "delta": "1 / training rows",
        "results": results,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    Console().print(f"{seconds:.0f} s; written to {options.out}")


if __name__ == "__main__":
    main()
