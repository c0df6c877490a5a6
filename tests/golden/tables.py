"""Small tables for the stored runs: one column of every kind, a label for every task."""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.data.schema import Categorical, Label, Numeric, Ordinal, Schema, Unit
from hedgerow.data.tables import Rows, rows_of

PARTIES = ("east", "north", "west")
N_ROWS = 90
COLUMNS = (
    Numeric("age", 0, 100, integer=True),
    Numeric("dose", -1.0, 5.0),
    Ordinal("stage", ("low", "middle", "high"), other="category"),
    Categorical("site", ("a", "b", "c"), other="category"),
)
SCHEMAS = {
    "binary": Schema(COLUMNS, Label("sick", ("no", "yes"))),
    "multiclass": Schema(COLUMNS, Label("ward", ("a", "b", "c"))),
    "regression": Schema(COLUMNS, Label("cost", lower=-2.0, upper=7.0)),
    "survival": Schema(COLUMNS, Label("days", event="died", cuts=(10, 20, 40, 80))),
    "periods": Schema(COLUMNS, Label("days", event="died", cuts=(10, 20, 40, 80), change_at=20)),
    "counts": Schema(
        COLUMNS, Label("visits", upper=9, loss="poisson", exposure="years", max_exposure=2.0)
    ),
    "quantile": Schema(
        COLUMNS, Label("cost", lower=-2.0, upper=7.0, loss="quantile", quantile=0.75)
    ),
    "huber": Schema(COLUMNS, Label("cost", lower=-2.0, upper=7.0, loss="huber", huber=1.5)),
}
PERSONS = Schema(COLUMNS, Label("sick", ("no", "yes")), Unit("person", "patient", 4), "persons")
# SimFL hashes numbers, and FedXGBoost's parties own two columns each.
PLAIN = Schema(
    tuple(Numeric(f"x{i}", -1.0, 1.0, missing=False) for i in range(4)),
    Label("sick", ("no", "yes")),
)


def table() -> dict[str, list[Any]]:
    """Rows with missing values, values out of bounds and values outside of the lists."""
    rng = np.random.default_rng(11)
    age = rng.integers(-5, 110, N_ROWS).tolist()
    dose = np.round(rng.uniform(-2.0, 6.0, N_ROWS), 3).tolist()
    stage = rng.choice(["low", "middle", "high", "unheard"], N_ROWS).tolist()
    site = rng.choice(["a", "b", "c", "d"], N_ROWS).tolist()
    table: dict[str, list[Any]] = {"age": age, "dose": dose, "stage": stage, "site": site}
    for column in table.values():
        for i in np.flatnonzero(rng.uniform(size=N_ROWS) < 0.1):
            column[int(i)] = None
    risk = [(a or 40) / 100 + (d or 1.0) / 5 for a, d in zip(age, dose, strict=True)]
    table["sick"] = ["yes" if r > 1 else "no" for r in risk]
    table["ward"] = ["abc"[int(r > 0.6) + int(r > 1.2)] for r in risk]
    table["cost"] = [round(4 * r - 2, 3) for r in risk]
    table["days"] = [round(90 / (0.2 + r**2) * (1 + i % 7) / 7, 3) for i, r in enumerate(risk)]
    table["died"] = [int(i % 3 > 0) for i in range(N_ROWS)]
    table["visits"] = [max(0, int(5 * r * (1 + i % 5) / 5)) for i, r in enumerate(risk)]
    table["years"] = [round(0.1 + (i % 23) / 10, 1) for i in range(N_ROWS)]
    return table


def plain_table() -> dict[str, list[Any]]:
    rng = np.random.default_rng(12)
    values = np.round(rng.uniform(-1, 1, (N_ROWS, 4)), 3)
    sick = np.where(values[:, 0] + values[:, 2] > 0, "yes", "no").tolist()
    return {**{f"x{i}": values[:, i].tolist() for i in range(4)}, "sick": sick}


def rows(schema: Schema) -> Rows:
    found = plain_table() if schema is PLAIN else table()
    return rows_of(found, schema)


def dealt(schema: Schema, names: tuple[str, ...] = PARTIES) -> dict[str, Rows]:
    """The rows of each party."""
    everything = rows(schema)
    return {name: everything.take(np.arange(i, N_ROWS, len(names))) for i, name in enumerate(names)}
