"""A table of several parties' columns for tests: numbers, categories, missing values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hedgerow.data.schema import Categorical, Label, Numeric, Ordinal, Schema
from hedgerow.data.tables import Rows, share_of
from hedgerow.engines.local_session import local_session
from hedgerow.methods.fedxgboost.model import Part, part_name
from hedgerow.methods.fedxgboost.predicting import PredictionRole
from hedgerow.methods.fedxgboost.role import VerticalRole
from hedgerow.methods.fedxgboost.run import (
    agreement_for,
    prediction_agreement,
    prediction_role,
    vertical_role,
)
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.protocol.roles import MemoryStore

LABELS = {
    "binary": Label("label", (0, 1)),
    "multiclass": Label("label", ("a", "b", "c")),
    "regression": Label("label", (), -3.0, 3.0),
}
# The active party first, then passive ones by name: the order in which columns compete.
OWNERS = {"age": "bank", "job": "bank", "calls": "phone", "town": "shop", "spent": "shop"}


def schema_of(task: str = "binary") -> Schema:
    columns = (
        Numeric("age", 0, 100, integer=True),
        Categorical("job", ("x", "y", "z", "w")),
        Ordinal("calls", ("few", "some", "many")),
        Categorical("town", tuple(f"t{i}" for i in range(9)), other="category"),
        Numeric("spent", -4, 4),
    )
    return Schema(columns, LABELS[task])


def whole(n: int = 500, task: str = "binary", seed: int = 0) -> dict[str, Any]:
    """All columns in one table; some values are missing."""
    rng = np.random.default_rng(seed)
    age, spent = rng.integers(0, 100, n).astype(float), rng.normal(size=n)
    job, town = rng.integers(0, 4, n), rng.integers(0, 9, n)
    calls = rng.integers(0, 3, n)
    score = spent + 0.8 * (town % 3 - 1) + 1.5 * (age > 60) + 0.8 * (calls - 1) + 0.3 * (job == 2)
    score = score + rng.normal(scale=0.5, size=n)
    label: Any = (score > 0).astype(int)
    if task == "multiclass":
        label = np.array(["a", "b", "c"])[np.digitize(score, [-0.5, 0.7])]
    elif task == "regression":
        label = score
    age[rng.random(n) < 0.1] = np.nan
    spent[rng.random(n) < 0.1] = np.nan
    jobs = np.array(["x", "y", "z", "w"], object)[job]
    jobs[rng.random(n) < 0.05] = None
    return {
        "age": age,
        "job": jobs,
        "calls": np.array(["few", "some", "many"])[calls],
        "town": np.array([f"t{i}" for i in range(9)])[town],
        "spent": spent,
        "label": label,
        "id": [f"p{i:05d}" for i in range(n)],
    }


def shares(table: dict[str, Any], task: str = "binary", ids: bool = False) -> dict[str, Rows]:
    """The table dealt to the owners of its columns."""
    found = {}
    for party in ("bank", "phone", "shop"):
        names = [name for name, owner in OWNERS.items() if owner == party]
        names += ["label"] if party == "bank" else []
        part = {name: table[name] for name in [*names, "id"]}
        found[party] = share_of(part, schema_of(task), "id" if ids else None)
    return found


def settings(**further: Any) -> VerticalSettings:
    own = {
        "owners": OWNERS, "active": "bank", "protection": "none", "ids": "agreed", "n_trees": 4,
        "max_depth": 3, "allow_unsafe": True, "key_bits": 1024,
    }  # fmt: skip
    return VerticalSettings(**{**own, **further})


def train(
    tables: Mapping[str, Rows], schema: Schema, chosen: VerticalSettings
) -> tuple[dict[str, Part], Mapping[str, VerticalRole]]:
    """A session of parties of this process: every party's part, and its role."""
    agreement = agreement_for(schema, chosen, "local")
    roles = local_session(agreement, vertical_role, tables, schema).roles
    return {name: role.part for name, role in roles.items() if role.part is not None}, roles


def predict_jointly(parts: Mapping[str, Part], tables: Mapping[str, Rows]) -> PredictionRole:
    """The active party's role of a joint prediction, which has the scores."""
    (active,) = [part for part in parts.values() if part.is_active]
    chosen = VerticalSettings.from_record(active.record)
    agreement = prediction_agreement(active.schema, chosen, active.run, "predicted")
    stores = {name: MemoryStore() for name in parts}
    for name, part in parts.items():
        stores[name].put(part_name(active.run), part.to_bytes())
    done = local_session(agreement, prediction_role, tables, active.schema, stores=stores)
    return done.roles[active.party]
