"""Counts, quantiles and robust regressions: sums and models against plain Python, any parties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid
from hedgerow.data.counts import count_edges
from hedgerow.data.schema import Label, Numeric, Schema, Unit
from hedgerow.data.tables import rows_of
from hedgerow.queries import ColumnSums, LabelSums, LeafSums
from tests.oracle.test_survival import Watched, leaf_of, trained

COLUMNS = (Numeric("a", -2, 2), Numeric("b", 0, 10, integer=True))
CAP, MOST = 30, 2.0
LABELS = {
    "poisson": Label("n", upper=CAP, loss="poisson", exposure="e", max_exposure=MOST),
    "quantile": Label("y", lower=0, upper=20, loss="quantile", quantile=0.8),
    "huber": Label("y", lower=0, upper=20, loss="huber", huber=1.5),
}


def schema_of(loss: str) -> Schema:
    return Schema(COLUMNS, LABELS[loss])


def table_of(n_rows: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-2, 2, n_rows), rng.integers(0, 11, n_rows)
    rate = 2 * np.exp(0.5 * a - 0.1 * b)
    exposure = rng.uniform(0.05, 2.5, n_rows)
    table = {"a": a, "b": b, "n": rng.poisson(rate * exposure), "e": exposure}
    table["y"] = rate * rng.gamma(2.0, 1.0, n_rows)
    a[::11] = np.nan
    return table


@pytest.mark.parametrize("loss", LABELS)
@pytest.mark.parametrize("epsilon", [0.5, 60.0])
def test_any_number_of_parties_gives_the_same_model(loss: str, epsilon: float) -> None:
    table = table_of(400)
    models = [
        trained(table, epsilon, n, trust, schema_of(loss))
        for n, trust in ((1, "coordinator"), (3, "coordinator"), (3, "parties"))
    ]
    assert len(models[0].trees) > 1
    assert models[0] == models[1] == models[2]


def test_persons_of_several_rows_are_one_unit_for_any_number_of_parties() -> None:
    table = table_of(400)
    table["who"] = [f"p{i // 2}" for i in range(400)]
    schema = Schema(COLUMNS, LABELS["poisson"], Unit("person", "who", at_most=2))
    models = [trained(table, 60.0, n, "coordinator", schema) for n in (1, 3)]
    assert models[0] == models[1]


def gradient(loss: str, score: float, row: dict[str, float], clip: float) -> float:
    """The slope of a loss, from its definition, on labels between 0 and 1."""
    if loss == "poisson":
        steps = max(round(min(row["e"] / MOST, 1.0) * 65536), 1)
        mean = steps / 65536 * math.exp(min(score, 0.0))
        g = mean - min(row["n"], CAP) / CAP
    else:
        label, at = min(max(row["y"] / 20, 0.0), 1.0), min(max(score, 0.0), 1.0)
        if loss == "quantile":
            g = (1 - 0.8) if label <= at else -0.8
        else:
            g = min(max(at - label, -1.5 / 20), 1.5 / 20)
    return min(max(g, -clip), clip)


def second(loss: str, update: str, score: float, row: dict[str, float], clip: float) -> float:
    """What is added beside the gradient."""
    if loss != "poisson":
        return 1.0
    exposure = max(round(min(row["e"] / MOST, 1.0) * 65536), 1) / 65536
    return min(exposure * math.exp(min(score, 0.0)), clip) if update == "newton" else exposure


def expected_sums(query: Any, loss: str, table: dict[str, Any], scores: Any) -> list[float]:
    """Sums of a question, row by row."""
    rows = [{k: float(v[i]) for k, v in table.items()} for i in range(len(table["a"]))]
    cells = np.zeros(len(query.blocks) and sum(b.size for b in query.blocks))
    width = query.bound.width
    if isinstance(query, LeafSums):
        for row, score in zip(rows, scores, strict=True):
            g = gradient(loss, score, row, query.clip)
            values = (g, second(loss, query.update, score, row, query.clip))
            first = 0
            for structure in query.structures:
                leaf = leaf_of(_as_tree(structure), (row["a"], row["b"]))
                for k in range(width):
                    cells[k * query.n_leaves + first + leaf] += values[k]
                first += structure.n_leaves
        return cells.tolist()
    grid, begin = base_grid(schema_of(loss)), 0
    for j, cuts, n in zip(query.columns, query.cuts, query.n_bins, strict=True):
        edges = [grid[j].edges[c] for c in cuts]
        for row, score in zip(rows, scores, strict=True):
            x = row["ab"[j]]
            place = n - 1 if math.isnan(x) else sum(edge <= np.float32(x) for edge in edges)
            g = gradient(loss, score, row, query.clip)
            values = (g, second(loss, query.update, score, row, query.clip))
            for k in range(width):
                cells[begin + k * n + place] += values[k]
        begin += width * n
    return cells.tolist()


def _as_tree(structure: Any) -> Any:
    class Held:
        pass

    held = Held()
    held.structure = structure  # type: ignore[attr-defined]
    return held


@pytest.mark.parametrize("loss", LABELS)
def test_every_sum_is_what_plain_python_adds_up(loss: str) -> None:
    table, watched, schema = table_of(150), list[Watched](), schema_of(loss)

    def watch(gate: Gate) -> Watched:
        watched.append(Watched(gate))
        return watched[0]

    trained(table, 300.0, schema=schema, watch=watch)
    rows = list(zip(table["a"], table["b"].astype(float), strict=True))
    kinds = set()
    for query, values, n_trees in watched[0].asked:
        kinds.add(type(query).__name__)
        if isinstance(query, LabelSums):
            assert values.tolist() == pytest.approx(label_sums(query, loss, table), abs=1e-3)
            continue
        if isinstance(query, ColumnSums) and query.matrices:
            continue  # the same sums times strategy matrices, which have tests of their own
        if isinstance(query, LeafSums) and query.step_trees:
            values = values[:-2]
        scores = [
            sum(float(t.values[leaf_of(t, row), 0]) for t in watched[0].trees[:n_trees])
            for row in rows
        ]
        found = expected_sums(query, loss, table, scores)[: len(values)]
        # A label on the edge of its quantile is on either side of a float's last bit.
        assert values.tolist() == pytest.approx(found, abs=1e-4)
    assert kinds == {"LabelSums", "ColumnSums", "LeafSums"}


def label_sums(query: LabelSums, loss: str, table: dict[str, Any]) -> list[float]:
    if loss == "poisson":
        counts = np.minimum(table["n"], CAP)
        if not query.n_cells:
            steps = np.maximum(np.rint(np.minimum(table["e"] / MOST, 1) * 65536), 1)
            return [len(counts), float(np.sum(steps / 65536))]
        edges = count_edges(CAP).tolist()
        cells = [0.0] * len(edges)
        for count in counts:
            cells[max(i for i, edge in enumerate(edges) if edge <= count)] += 1
        return cells
    labels = np.clip(table["y"] / 20, 0, 1)
    if not query.n_cells:
        return [len(labels), float(labels.sum())]
    place = np.minimum((labels * query.n_cells).astype(int), query.n_cells - 1)
    return np.bincount(place, minlength=query.n_cells).astype(float).tolist()


def test_what_a_count_is_kept_as_does_not_depend_on_other_rows() -> None:
    schema, table = schema_of("poisson"), table_of(40)
    together = rows_of(table, schema).target
    for i in range(40):
        alone = rows_of({name: values[i : i + 1] for name, values in table.items()}, schema)
        assert alone.target.tolist() == [together[i]]
