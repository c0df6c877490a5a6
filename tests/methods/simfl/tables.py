"""Tables that the similarity tests share."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hedgerow.data.schema import Categorical, Label, Numeric, Ordinal, Schema
from hedgerow.data.tables import Rows, rows_of
from hedgerow.engines.local_session import local_session
from hedgerow.methods.simfl.memory import SimilarityMemory
from hedgerow.methods.simfl.role import SimilarityRole
from hedgerow.methods.simfl.run import agreement_for, model_of, similarity_role
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.model.ensemble import Ensemble

MIXED = Schema(
    (
        Numeric("age", 0, 100, integer=True),
        Numeric("dose", -1.0, 5.0),
        Ordinal("stage", ("low", "middle", "high")),
        Categorical("site", ("north", "south", "east", "west"), other="category"),
    ),
    Label("sick", ("no", "yes")),
)


def mixed_rows(n: int, seed: int = 0, label: Label | None = None) -> tuple[Schema, Rows]:
    """Rows with missing values in every column, and a label that depends on all of them."""
    rng = np.random.default_rng(seed)
    schema = MIXED if label is None else MIXED.with_label(label)
    age, dose = rng.integers(0, 100, n).astype(float), rng.uniform(-1, 5, n)
    stage, site = rng.integers(0, 3, n), rng.integers(0, 4, n)
    risk = age / 30 - dose + stage * (site == 1) + 2 * (site == 3) + rng.normal(0, 0.5, n)
    for column in (age, dose):
        column[rng.random(n) < 0.1] = np.nan
    names = [np.array(("low", "middle", "high"), object), np.array(MIXED.columns[3].categories)]
    table = {"age": age, "dose": dose, "stage": names[0][stage], "site": names[1][site]}
    table["stage"][rng.random(n) < 0.1] = None
    cuts = np.quantile(risk, np.linspace(0, 1, 1 + max(2, len(schema.label.classes)))[1:-1])
    if schema.label.classes:
        target = [schema.label.classes[k] for k in np.searchsorted(cuts, risk)]
    else:
        target = list(risk)
    return schema, rows_of(table, schema, target)


def dealt(rows: Rows, n_parties: int) -> dict[str, Rows]:
    return {f"p{i}": rows.take(np.arange(i, rows.n_rows, n_parties)) for i in range(n_parties)}


def numbers(n: int, d: int, seed: int = 0) -> tuple[Schema, Rows]:
    """Evenly spread numbers between 0 and 1."""
    rng = np.random.default_rng(seed)
    schema = Schema.from_bounds({f"x{j}": (0, 1) for j in range(d)}, classes=[0, 1])
    X = rng.uniform(size=(n, d))
    return schema, rows_of(X, schema, (X[:, 0] + X[:, 1] > 1).astype(int))


def train(
    tables: Mapping[str, Rows],
    schema: Schema,
    settings: SimilaritySettings,
    memory: SimilarityMemory | None = None,
) -> tuple[Ensemble, Mapping[str, SimilarityRole]]:
    """A session of parties of this process: the model, and every party's role.

    With a memory the run continues that which the memory has; runs are called local-1, local-2, ...
    """
    run, stores = "local", None
    if memory is not None:
        run = f"local-{1 + int(memory.run.rpartition('-')[2] or 0)}"
        settings, stores = memory.continued(settings), memory.stores(tables)
    agreement = agreement_for(schema, tuple(tables), settings, run)
    done = local_session(agreement, similarity_role, tables, schema, stores=stores)
    if memory is not None:
        memory.done(run, settings)
    return model_of(done.reports, schema, agreement), done.roles
