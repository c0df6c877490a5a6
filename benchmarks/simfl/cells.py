"""One cell of the SimFL tables: dataset, partition, method and seed; its error, time and bytes."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow import Schema
from hedgerow.data.binning import base_grid
from hedgerow.data.tables import Rows, rows_of
from hedgerow.engines.local_session import local_session
from hedgerow.methods.simfl.run import agreement_for, model_of, published_bytes, similarity_role
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.routing import routes_of

DATASETS = ("a9a", "codrna", "real_sim", "ijcnn1", "susy", "higgs")
PREPARATION = ("greet", "hash", "search")
# The paper states neither a learning rate nor regularisation; all methods here have the same. They
# were chosen by SimFL's errors on other splits: docs/simfl.md.
BASE = SimilaritySettings(learning_rate=0.03, min_child_weight=10.0)
METHODS: dict[str, dict[str, Any]] = {
    "simfl": {},
    "tfl": {"similarity": False, "turns": "blocks"},
    "solo-a": {},
    "solo-b": {},
    "all-in": {},
    "simfl-paper": {"leaves": "similar", "similar_weight": 1.0},
    "tfl-round-robin": {"similarity": False},
}
COUNTS = (50, 100, 200, 300, 400, 500)  # of trees: how errors fall while a model grows


@dataclass(frozen=True)
class Cell:
    dataset: str
    theta: float | None  # None is the balanced partition
    parties: int
    method: str
    seed: int
    trees: int

    @property
    def computed(self) -> Cell:
        """The cell that has its result: ALL-IN knows no parties."""
        return replace(self, theta=None, parties=1) if self.method == "all-in" else self


def folder() -> Path:
    return Path(os.environ.get("HEDGEROW_DATA", ""))


@lru_cache(maxsize=2)
def table(dataset: str) -> tuple[Schema, Rows]:
    schema = Schema.read(folder() / f"{dataset}.toml")
    return schema, rows_of(folder() / f"{dataset}.parquet", schema)


def dealt(train_rows: Rows, theta: float | None, n: int, rng: Any) -> dict[str, Rows]:
    """Rows of n parties: at random, or first parted by class with share theta, as in the paper."""
    k = train_rows.n_rows
    if theta is None:
        groups = [rng.permutation(k)]
    else:
        first = np.where(train_rows.target < 0.5, theta, 1 - theta)
        in_a = rng.random(k) < first
        groups = [rng.permutation(np.flatnonzero(in_a)), rng.permutation(np.flatnonzero(~in_a))]
    sizes = [n // len(groups) + (i < n % len(groups)) for i in range(len(groups))]
    pieces = [p for g, m in zip(groups, sizes, strict=True) for p in np.array_split(g, m)]
    return {f"party-{i:02d}": train_rows.take(np.sort(p)) for i, p in enumerate(pieces)}


def errors(model: Ensemble, rows: Rows) -> dict[str, float]:
    """Percent of rows of the other class than the model says, by number of trees; from codes."""
    scores, grid = np.zeros((rows.n_rows, 1)), base_grid(model.schema)
    n_trees = len(model.trees)
    found, begin = {}, 0
    for end in sorted({*(n for n in COUNTS if n < n_trees), n_trees}):
        trees = model.trees[begin:end]
        values = np.concatenate([tree.values for tree in trees])
        routes_of([tree.structure for tree in trees], grid).add_scores(rows.codes, scores, values)
        found[str(end)] = float(100 * np.mean((scores[:, 0] > 0) != (rows.target > 0.5)))
        begin = end
    return found


def run(cell: Cell) -> dict[str, Any]:
    schema, rows = table(cell.dataset)
    rng = np.random.default_rng(cell.seed)
    order = rng.permutation(rows.n_rows)
    k = int(0.75 * rows.n_rows)
    training, test = rows.take(order[:k]), rows.take(order[k:])
    tables = dealt(training, cell.theta, max(cell.parties, 2), rng)
    settings = replace(BASE, n_trees=cell.trees, seed=cell.seed, **METHODS[cell.method])
    names = list(tables)
    if cell.method.startswith("solo"):
        name = names[0] if cell.method == "solo-a" else names[-1]
        tables = {name: tables[name]}
    elif cell.method == "all-in":
        tables = {"all": training}
    return {**cell.__dict__, **measured(tables, schema, settings, test)}


def measured(
    tables: Mapping[str, Rows], schema: Schema, settings: SimilaritySettings, test: Rows | None
) -> dict[str, Any]:
    """Train and count: processor seconds, split by stage as the clock saw it, and bytes."""
    begin = time.process_time()
    agreement = agreement_for(schema, tuple(tables), settings, "run")
    done = local_session(agreement, similarity_role, tables, schema)
    model, roles = model_of(done.reports, schema, agreement), done.roles
    seconds = time.process_time() - begin
    stages: Counter[str] = Counter()
    sent: Counter[str] = Counter()
    for role in roles.values():
        stages.update(role.processor)
        sent.update(role.sent)
    preparing = sum(stages[name] for name in PREPARATION)
    by_trees = {} if test is None else errors(model, test)
    result: dict[str, Any] = {
        "error": by_trees.get(str(settings.n_trees)),
        "errors_by_trees": by_trees,
        "seconds": seconds,
        "seconds_preprocessing": preparing,
        "seconds_training": sum(stages.values()) - preparing,
        "stages": dict(stages),
        "bytes": dict(sent),
        "rows": sum(t.n_rows for t in tables.values()),
    }
    if settings.similarity and len(tables) > 1:
        result["hashes"] = settings.hashes_for(schema)
        result["published_bytes"] = published_bytes(
            result["rows"], len(tables), result["hashes"], settings.n_trees, settings.max_depth
        )
    return result
