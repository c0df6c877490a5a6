"""Tables for every loss, and runs whose questions and releases are kept for comparison."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Label, Schema
from hedgerow.data.tables import Rows
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Release
from hedgerow.privacy.settings import Privacy
from hedgerow.queries import ColumnHessians, SumQuery
from hedgerow.testing import noise_off
from tests.conftest import MIXED, Table, federation_of, mixed_table
from tests.oracle.reference import Expected, Reference, rows_of_table

LABELS = {
    "logistic": MIXED.label,
    "softmax-3": Label("ward", ("a", "b", "c")),
    "squared": Label("cost", lower=-2.0, upper=7.0),
}
# Values that a schema without missing ones gets instead.
PRESENT = {"age": 44, "dose": 1.25, "stage": "high", "site": "south", "code": 7}


def table_of(n_rows: int, seed: int, missing: bool = True) -> Table:
    """A table with a label for every loss; some numbers lie outside of their bounds."""
    table = mixed_table(n_rows, seed)
    rng = np.random.default_rng(seed)
    noise = rng.normal(2, 3, n_rows)
    table["cost"] = [float(x + 2 * (s == "yes")) for x, s in zip(noise, table["sick"], strict=True)]
    ward = np.digitize(noise, [1.0, 4.0])
    table["ward"] = ["abc"[k] for k in ward]
    if not missing:
        for name, value in PRESENT.items():
            table[name] = [value if v is None else v for v in table[name]]
        table["stage"] = ["low" if v == "unheard" else v for v in table["stage"]]
    return table


def schema_of(loss: str, missing: bool = True) -> Schema:
    columns = tuple(replace(column, missing=missing) for column in MIXED.columns)
    return Schema(columns, LABELS[loss])


@dataclass
class Run:
    """A model with everything that was asked and released for it."""

    model: Ensemble
    plan: Plan
    asked: list[tuple[SumQuery, Release]]


class _Keeping(Gate):
    """A gate that keeps its questions and releases."""

    def release(self, query: SumQuery, mu: float = 0.0, name: str = "") -> Release:
        release = super().release(query, mu, name)
        self.__dict__.setdefault("kept", []).append((query, release))
        return release


def run(
    parts: dict[str, Rows], schema: Schema, trust: str, settings: dict[str, Any], seed: int = 7
) -> Run:
    """Train with noise off. Where trees shrink, epsilon is large, or nothing would be left."""
    epsilon = 2.0 if settings.get("shrinkage") == "none" else 5000.0
    privacy = Privacy(epsilon, 1e-5, trust)  # type: ignore[arg-type]
    ledger = Ledger.in_memory()
    plan = plan_for(schema, privacy, "random-trees", settings=settings, seed=seed)
    with noise_off():
        gate = _Keeping(federation_of(parts, schema, privacy, ledger), plan, ledger)
        model = method_named(plan.method).grow(gate)
    return Run(model, plan, gate.kept)


def expected_of(found: Run, table: Table) -> Expected:
    schema = found.model.schema
    edges = [grid.edges for grid in base_grid(schema)]
    reference = Reference(rows_of_table(table), schema, found.plan, edges)
    return reference.run([tree.structure for tree in found.model.trees])


def differences(found: Run, expected: Expected) -> list[str]:
    """Where a run and the reference part: leaf values, candidate questions, thresholds."""
    trees, schema = found.model.trees, found.model.schema
    wrong = [
        f"values of tree {i}"
        for i, (tree, values) in enumerate(zip(trees, expected.values, strict=True))
        if not np.array_equal(tree.values, values)
    ]
    asked = [(q, r) for q, r in found.asked if isinstance(q, ColumnHessians)]
    for i, ((query, release), (cuts, sums)) in enumerate(
        zip(asked, expected.hessians, strict=True)
    ):
        if dict(zip(query.columns, query.cuts, strict=True)) != cuts:
            wrong.append(f"cuts of question {i}")
        if release.values.tolist() != sums:
            wrong.append(f"Hessians of question {i}")
    settings, grid = found.plan.settings, base_grid(schema)
    grown = [tree for tree in trees if tree.structure.n_leaves > 1]
    for i, tree in enumerate(grown):
        cuts = expected.cuts[i // settings.trees_per_round]
        for j, threshold in zip(tree.structure.feature, tree.structure.threshold, strict=True):
            if j in cuts and threshold not in grid[j].edges[list(cuts[j])]:
                wrong.append(f"a threshold of tree {i}")
    return wrong
