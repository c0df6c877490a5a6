"""One training over columns of several parties: seconds, bytes, losses and AUC."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.schema import Categorical, Schema
from hedgerow.data.tables import Rows, rows_of
from hedgerow.engines.local_session import local_session
from hedgerow.methods.fedxgboost.model import merged
from hedgerow.methods.fedxgboost.run import agreement_for, shares_of, vertical_role
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.model.ensemble import Ensemble

TREES, DEPTH, RATE = 20, 4, 0.3
PAILLIER_ROWS = {"credit1_full": 20_000}  # the others of a table's rows are extrapolated
WAYS: dict[str, dict[str, Any]] = {
    "plain": {"protection": "none"},
    "LDP Laplace, 1 a tree": {"protection": "ldp", "mechanism": "laplace", "epsilon": 1.0 * TREES},
    "LDP Duchi, 1 a tree": {"protection": "ldp", "mechanism": "duchi", "epsilon": 1.0 * TREES},
    "LDP Duchi, first order, 1 a tree": {
        "protection": "ldp", "mechanism": "duchi", "epsilon": 1.0 * TREES, "order": 1,
    },
    "LDP Laplace, 3 a tree": {"protection": "ldp", "mechanism": "laplace", "epsilon": 3.0 * TREES},
    "LDP Duchi, 3 a tree": {"protection": "ldp", "mechanism": "duchi", "epsilon": 3.0 * TREES},
    "LDP Duchi, first order, 3 a tree": {
        "protection": "ldp", "mechanism": "duchi", "epsilon": 3.0 * TREES, "order": 1,
    },
    "LDP piecewise, 1 a tree": {
        "protection": "ldp", "mechanism": "piecewise", "epsilon": 1.0 * TREES,
    },
    "LDP hybrid, 1 a tree": {"protection": "ldp", "mechanism": "hybrid", "epsilon": 1.0 * TREES},
    "labels once, 1 in all": {"protection": "ldp", "epsilon": 1.0},
    "labels once, 3 in all": {"protection": "ldp", "epsilon": 3.0},
    "SMM-1": {"protection": "smm-1"},
    "SMM-2": {"protection": "smm-2"},
    "Paillier": {"protection": "paillier"},
}  # fmt: skip
SLOW = ("SMM-1", "SMM-2", "Paillier")  # timed on one tree


@dataclass(frozen=True)
class Cell:
    """One way of training on one table, its columns dealt to so many parties."""

    dataset: str
    parties: int
    way: str
    repeat: int = 0

    @property
    def name(self) -> str:
        return f"{self.dataset}, {self.parties} parties, {self.way}, {self.repeat}"


def folder() -> Path:
    return Path(os.environ.get("HEDGEROW_DATA", "."))


def table(dataset: str) -> tuple[Schema, Rows, Rows]:
    """Schema, training rows and test rows: 70 and 30 of a hundred, seed 0."""
    schema = Schema.read(folder() / f"{dataset}.toml")
    rows = rows_of(folder() / f"{dataset}.parquet", schema)
    order = np.random.default_rng(0).permutation(rows.n_rows)
    cut = int(0.7 * rows.n_rows)
    return schema, rows.take(order[:cut]), rows.take(order[cut:])


def settings_of(cell: Cell, schema: Schema, trees: int) -> VerticalSettings:
    owners = {name: f"party-{i % cell.parties}" for i, name in enumerate(schema.names)}
    values = {**WAYS[cell.way]}
    if values.get("mechanism"):  # the epsilon of a tree stays
        values["epsilon"] = values["epsilon"] * trees / TREES
    return VerticalSettings(
        owners=owners, active="party-0", ids="agreed", allow_unsafe=True, n_trees=trees,
        max_depth=DEPTH, learning_rate=RATE, **values,
    )  # fmt: skip


def measured(cell: Cell) -> dict[str, Any]:
    """Seconds and bytes a tree, losses after every tree, AUC on test rows."""
    schema, train_rows, test_rows = table(cell.dataset)
    trees = 1 if cell.way in SLOW else TREES
    used = PAILLIER_ROWS.get(cell.dataset) if cell.way == "Paillier" else None
    rows = train_rows.take(np.arange(used)) if used else train_rows
    settings = settings_of(cell, schema, trees)
    shares = shares_of(rows, schema, settings)
    begun, wall = _processor(), time.perf_counter()
    roles = local_session(
        agreement_for(schema, settings, "run"), vertical_role, shares, schema
    ).roles
    wall, processor = time.perf_counter() - wall, _processor() - begun
    scale = train_rows.n_rows / rows.n_rows / trees
    asking = roles[settings.active].asking
    model = merged([role.part for role in roles.values()])
    return {
        "wall": wall * scale,
        "processor": processor * scale,
        "bytes": (asking.sent + asking.received) * scale,
        "extrapolated_from": rows.n_rows if used else None,
        "trees": trees,
        "loss": losses(model, train_rows),
        "auc": auc(model, test_rows),
    }


def _processor() -> float:
    """Of this process and of children that have ended."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in (
            resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
    )


def _scores(model: Ensemble, rows: Rows) -> NDArray[np.float64]:
    from hedgerow.data.binning import base_grid
    from hedgerow.model.routing import routes_of

    found = np.zeros((rows.n_rows, 1))
    for tree in model.trees:
        routes = routes_of([tree.structure], base_grid(model.schema))
        routes.add_scores(rows.codes, found, tree.values)
    return found[:, 0]


def losses(model: Ensemble, rows: Rows) -> list[float]:
    """The mean log loss on training rows after each tree."""
    from hedgerow.data.binning import base_grid
    from hedgerow.model.routing import routes_of

    scores, found = np.zeros((rows.n_rows, 1)), []
    signs = 1 - 2 * rows.target
    for tree in model.trees:
        routes = routes_of([tree.structure], base_grid(model.schema))
        routes.add_scores(rows.codes, scores, tree.values)
        found.append(float(np.logaddexp(0, signs * scores[:, 0]).mean()))
    return found


def auc(model: Ensemble, rows: Rows) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(rows.target, _scores(model, rows)))


def xgboost_auc(dataset: str) -> dict[str, float]:
    """XGBoost hist at the same settings, on the same rows: AUC and the loss after every tree."""
    import pyarrow.parquet as pq
    import xgboost as xgb
    from sklearn.metrics import roc_auc_score

    schema, train_rows, test_rows = table(dataset)
    frame = pq.read_table(folder() / f"{dataset}.parquet").to_pandas()
    order = np.random.default_rng(0).permutation(len(frame))
    cut = int(0.7 * len(frame))
    columns = frame[list(schema.names)].copy()
    for column in schema.columns:
        if isinstance(column, Categorical):
            columns[column.name] = columns[column.name].astype(str).astype("category")
        else:
            columns[column.name] = columns[column.name].astype(float)
    sets = [
        xgb.DMatrix(columns.iloc[order[span]], label=rows.target, enable_categorical=True)
        for span, rows in ((slice(0, cut), train_rows), (slice(cut, None), test_rows))
    ]
    options = {
        "objective": "binary:logistic", "max_depth": DEPTH, "eta": RATE, "lambda": 1.0,
        "max_bin": 32, "tree_method": "hist", "base_score": 0.5,
    }  # fmt: skip
    seen: dict[str, Any] = {}
    model = xgb.train(options, sets[0], TREES, evals=[(sets[0], "train")], evals_result=seen,
                      verbose_eval=False)  # fmt: skip
    score = roc_auc_score(test_rows.target, model.predict(sets[1], output_margin=True))
    return {"auc": float(score), "loss": seen["train"]["logloss"]}
