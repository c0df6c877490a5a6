"""Do the error bands of shapes hold the shapes of training without noise?

    HEDGEROW_DATA=folder python benchmarks/bands.py

Each method is trained again and again, with fresh noise, on the same rows and with the same seed of
questions; and once with the noise switched off. Of every column's cells it is counted how often the
noise-free shape lies within the 95 % band (means over cells, over rows' weights, and of the column
that is worst). Methods that ask all of their leaves at once must reach 85 %; that of the default
method is printed. Results go to results/bands.json beside this file, and what explanations say of
them to coverage.json of `hedgerow.inspection.explain` (`--words` writes that alone).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from accuracy.data import load
from hedgerow import Ensemble, Schema
from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid
from hedgerow.data.datasets import HOSPITAL_SCHEMA, hospital_tables, joined
from hedgerow.data.tables import Rows, rows_of
from hedgerow.engines.local import local_federation
from hedgerow.inspection.explain import BAND, Shape, explain
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import noise_off

RESULTS = Path(__file__).parent / "results" / "bands.json"
WORDS = Path(str(files("hedgerow.inspection.explain"))) / "coverage.json"
GOAL = 0.85
ONE_ROUND: dict[str, tuple[str, dict[str, Any]]] = {
    "dp-ebm-newton, one round": ("dp-ebm-newton", {"n_trees": 60, "batch_fraction": 1.0}),
    "dp-ebm, one round": ("dp-ebm", {"n_trees": 60, "batch_fraction": 1.0}),
    "dp-tr-newton, one round": ("dp-tr-newton", {"n_trees": 60, "batch_fraction": 1.0}),
    "dp-tr-newton-literal, one round": (
        "dp-tr-newton-literal",
        {"n_trees": 60, "batch_fraction": 1.0},
    ),
    "dp-rf": ("dp-rf", {"n_trees": 60}),
    "dp-rf, one column a tree": ("dp-rf", {"n_trees": 60, "features_per_tree": 1}),
}
SEVERAL: dict[str, tuple[str, dict[str, Any]]] = {
    "auto": ("auto", {}),
    "random-trees": ("random-trees", {}),
    "dp-ebm-newton": ("dp-ebm-newton", {"n_trees": 60}),
    "dp-tr-batch-newton-ih-ebm": ("dp-tr-batch-newton-ih-ebm", {"n_trees": 60}),
    "dp-ebm": ("dp-ebm", {"n_trees": 60}),
    "dp-tr-newton": ("dp-tr-newton", {"n_trees": 60}),
    "dp-tr-newton-literal": ("dp-tr-newton-literal", {"n_trees": 60}),
    "dp-tr-newton-ih": ("dp-tr-newton-ih", {"n_trees": 60}),
    "dp-tr-newton-ih-ebm": ("dp-tr-newton-ih-ebm", {"n_trees": 60}),
    "dp-gbm": ("dp-gbm", {}),
    "feverless": ("feverless", {}),
}


@dataclass(frozen=True)
class Coverage:
    """How often noise-free shapes lie within the bands."""

    table: str
    method: str
    epsilon: float
    trainings: int
    by_cell: float
    by_weight: float
    worst_column: float
    band: float  # mean half width, in units of the scores
    effect: float  # mean size of the noise-free effects, to see bands beside it


def train(rows: Rows, schema: Schema, epsilon: float, method: str, chosen: Any) -> Ensemble:
    privacy = Privacy(epsilon, 1 / (10 * rows.n_rows), "coordinator")
    ledger = Ledger.in_memory()
    federation = local_federation(
        {"all": rows}, schema, ledger, privacy.colluding, privacy.minimum_parties, privacy.trust
    )
    plan = plan_for(schema, privacy, method, chosen, seed=1)
    return method_named(method).grow(Gate(federation, plan, ledger))


def on_base(shape: Shape, edges: Any, n_cells: int) -> tuple[Any, ...]:
    """Values, deviations, weights and the cell of every cell of the public base grid."""
    own = shape.cells.grid.edges
    cell = np.arange(n_cells)
    if shape.cells.kind == "numeric":
        lower = np.concatenate([[-np.inf], edges])
        cell = np.searchsorted(own, lower, side="right")
    cell = np.append(cell, len(shape.weights) - 1)  # missing values
    share = shape.weights[cell] / np.bincount(cell, minlength=len(shape.weights))[cell]
    return shape.values[0, cell], shape.deviation[0, cell], share, cell


def covered(noisy: Shape, exact: Shape, edges: Any, n_cells: int) -> tuple[float, float, float]:
    """The part of the cells, and of the weights, that is covered; and the mean half width."""
    value, deviation, weight, cell = on_base(noisy, edges, n_cells)
    true = on_base(exact, edges, n_cells)[0]
    true = true - true @ weight  # around the mean of the same weights
    used = noisy.cells.possible[cell] & np.isfinite(deviation)
    inside = np.abs(value - true) <= BAND * deviation + 1e-6
    each = 1 / np.bincount(cell[used], minlength=len(noisy.weights))[cell[used]]
    by_cell = float(inside[used] @ each / each.sum())
    by_weight = float(inside[used] @ weight[used] / weight[used].sum())
    return by_cell, by_weight, float(BAND * deviation[used] @ weight[used])


def measure(
    name: str, table: str, rows: Rows, schema: Schema, epsilon: float, trainings: int
) -> Coverage:
    method, chosen = {**ONE_ROUND, **SEVERAL}[name]
    with noise_off():
        exact = explain(train(rows, schema, epsilon, method, chosen))
    found = []
    for _ in range(trainings):
        noisy = explain(train(rows, schema, epsilon, method, chosen))
        shapes = zip(noisy.shapes, exact.shapes, base_grid(schema), strict=True)
        found.append([covered(own, true, grid.edges, grid.n_cells) for own, true, grid in shapes])
    mean = np.mean(found, axis=0)  # (column, by cell | by weight | width)
    effect = float(np.mean([shape.importance for shape in exact.shapes]))
    total = mean.mean(axis=0)
    return Coverage(
        table, name, epsilon, trainings, *(round(float(x), 4) for x in (total[0], total[1])),
        round(float(mean[:, 1].min()), 4), round(float(total[2]), 5), round(effect, 5),
    )  # fmt: skip


def tables() -> dict[str, tuple[Rows, Schema]]:
    stays = joined(list(hospital_tables(seed=1).values()))
    found = {"stays": (rows_of(stays, HOSPITAL_SCHEMA), HOSPITAL_SCHEMA)}
    if os.environ.get("HEDGEROW_DATA"):
        adult = load("adult")
        found["adult"] = (adult.rows, adult.schema)
    return found


def words_of(coverage: list[dict[str, Any]]) -> dict[str, Any]:
    """What explanations say of each method: the least and the most of all measurements."""
    found: dict[str, Any] = {}
    for method in dict.fromkeys(one["method"] for one in coverage):
        own = [one for one in coverage if one["method"] == method]
        found[method] = {
            "cells": _ends(own, "by_cell"),
            "rows": _ends(own, "by_weight"),
            "worst_column": min(one["worst_column"] for one in own),
            "epsilon": _ends(own, "epsilon"),
            "tables": len({one["table"] for one in own}),
        }
    return dict(sorted(found.items()))


def _ends(coverage: list[dict[str, Any]], name: str) -> list[float]:
    values = [one[name] for one in coverage]
    return [min(values), max(values)]


def write_words(results: Path) -> None:
    coverage = json.loads(results.read_text("utf-8"))["coverage"]
    WORDS.write_text(json.dumps(words_of(coverage), indent=1) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainings", type=int, default=20)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--methods", nargs="+", default=[*ONE_ROUND, *SEVERAL])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--words", action="store_true", help="from results that are there")
    given = parser.parse_args()
    if given.words:
        write_words(given.out)
        return
    start, found = time.monotonic(), []
    before = json.loads(given.out.read_text("utf-8"))["coverage"] if given.out.exists() else []
    head = (
        f"{'table':8}{'method':28}{'epsilon':>8}{'cells':>8}{'weights':>9}{'worst':>8}{'band':>9}"
    )
    print(f"{head}{'effect':>9}")
    for table, (rows, schema) in tables().items():
        for epsilon in given.epsilons:
            for name in given.methods:
                one = measure(name, table, rows, schema, epsilon, given.trainings)
                found.append(one)
                print(
                    f"{one.table:8}{one.method:28}{one.epsilon:8g}{one.by_cell:8.3f}"
                    f"{one.by_weight:9.3f}{one.worst_column:8.3f}{one.band:9.4f}{one.effect:9.4f}",
                    flush=True,
                )
    fresh = {(one.table, one.method, one.epsilon) for one in found}
    kept = [Coverage(**one) for one in before]  # of other methods, measured earlier
    found += [one for one in kept if (one.table, one.method, one.epsilon) not in fresh]
    order = [*ONE_ROUND, *SEVERAL]
    found.sort(key=lambda one: (one.table, one.epsilon, order.index(one.method)))
    once = [one for one in found if one.method in ONE_ROUND]
    least = min((min(one.by_cell, one.by_weight) for one in once), default=1.0)
    print(f"\nOne-round methods: at least {least:.3f}; wanted {GOAL}: {least >= GOAL}")
    result: dict[str, Any] = {
        "command": "python benchmarks/bands.py (and again for single methods)",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - start, 1),
        "goal": GOAL,
        "least_of_one_round_methods": least,
        "coverage": [asdict(one) for one in found],
    }
    given.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    if given.out == RESULTS:
        write_words(RESULTS)


if __name__ == "__main__":
    main()
