"""How preprocessing grows with rows, beside the trees of the same run: a made-up table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow import Schema
from hedgerow.data.tables import rows_of
from hedgerow.methods.simfl.hashing import hash_family
from hedgerow.methods.simfl.neighbours import Pair, most_similar
from simfl.cells import BASE, dealt, measured

COLUMNS, PARTIES, SAMPLE = 28, 10, 200


def grown(n_rows: int, n_trees: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(n_rows, 6)).astype(np.float32)
    mixing = rng.normal(size=(6, COLUMNS)).astype(np.float32)
    X = hidden @ mixing + rng.normal(0, 1.5, (n_rows, COLUMNS)).astype(np.float32)
    y = (hidden[:, 0] * hidden[:, 1] + hidden[:, 2] + rng.normal(size=n_rows) > 0).astype(int)
    schema = Schema.from_bounds({f"x{j}": (-10.0, 10.0) for j in range(COLUMNS)}, classes=[0, 1])
    tables = dealt(rows_of(X, schema, y), None, PARTIES, rng)
    result = {"rows": n_rows, "parties": PARTIES, "columns": COLUMNS, "trees": n_trees}
    result.update(measured(tables, schema, replace(BASE, n_trees=n_trees), None))
    return {**result, "share_of_most_collisions": quality(tables, schema)}


def quality(tables: Any, schema: Schema) -> float:
    """Collisions found for a sample of rows, as a share of the most there are."""
    first, second = list(tables.values())[:2]
    n = min(COLUMNS - 1, 40)
    family = hash_family(schema, 0, n, 1.0)
    own, others = family.hashes(first), family.hashes(second)
    found = most_similar(Pair(0, "a", "b"), n, own, others).collisions
    sample = np.linspace(0, len(own) - 1, SAMPLE).astype(np.int64)
    best = [most(own[i], others, n) for i in sample]
    return float(np.mean(found[sample] / np.maximum(best, 1)))


def most(own: Any, others: Any, n_hashes: int) -> int:
    """The most equal hashes of any row, counted plainly."""
    shifts = np.arange(0, 64, 4, dtype=np.uint64)
    mine = ((own[:, None] >> shifts) & np.uint64(15)).reshape(-1)[:n_hashes]
    theirs = ((others[:, :, None] >> shifts) & np.uint64(15)).reshape(len(others), -1)
    return int((theirs[:, :n_hashes] == mine).sum(axis=1).max())
