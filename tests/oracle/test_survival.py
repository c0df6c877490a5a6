"""Times to an event: sums and models against plain Python, over any number of parties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid
from hedgerow.data.schema import Categorical, Label, Numeric, Schema
from hedgerow.data.tables import rows_of
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Tree
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from hedgerow.queries import ColumnSums, LabelSums, LeafSums, ScoreCounts
from hedgerow.testing import noise_off
from tests.conftest import federation_of, split_rows

CUTS = (1.0, 2.0, 3.0, 5.0)
SCHEMA = Schema(
    (Numeric("a", -2, 2), Numeric("b", 0, 10, integer=True)),
    Label("t", event="e", cuts=CUTS),
)


def table_of(n_rows: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-2, 2, n_rows), rng.integers(0, 11, n_rows)
    time = rng.exponential(4.0 * np.exp(-a + 0.1 * b))
    seen = rng.uniform(0.5, 7.0, n_rows)
    a[::11] = np.nan
    return {"a": a, "b": b, "t": np.minimum(time, seen), "e": (time <= seen).astype(int)}


def trained(
    table: dict[str, Any], epsilon: float, n_parties: int = 1, trust: str = "coordinator",
    schema: Schema = SCHEMA, watch: Any = None, method: str = "auto",
) -> Ensemble:  # fmt: skip
    privacy, ledger = Privacy(epsilon, 1e-6, trust), Ledger.in_memory()  # type: ignore[arg-type]
    rows = rows_of(table, schema)
    sizes = () if n_parties == 1 else (rows.n_rows // 4,) * (n_parties - 1)
    federation = federation_of(split_rows(rows, sizes), schema, privacy, ledger)
    settings = {"n_trees": 8} if method == "random-trees" else {}
    plan = plan_for(schema, privacy, method, settings, seed=5)
    with noise_off():
        gate: Any = Gate(federation, plan, ledger)
        return method_named(method).grow(gate if watch is None else watch(gate))


CHANGING = Schema(SCHEMA.columns, Label("t", event="e", cuts=CUTS, change_at=2.0))


@pytest.mark.parametrize(
    ("epsilon", "alone", "schema", "method"),
    [
        (0.5, True, SCHEMA, "auto"),
        (50.0, False, SCHEMA, "auto"),
        (3.0, False, CHANGING, "auto"),  # with few events both numbers of a row are held in a disk
        (50.0, False, CHANGING, "auto"),
        (5.0, None, SCHEMA, "random-trees"),
        (5.0, None, CHANGING, "random-trees"),
    ],
)
def test_any_number_of_parties_gives_the_same_model(
    epsilon: float, alone: bool | None, schema: Schema, method: str
) -> None:
    table = table_of(400)
    models = [
        trained(table, epsilon, n, trust, schema, method=method)
        for n, trust in ((1, "coordinator"), (3, "coordinator"), (3, "parties"))
    ]
    assert models[0].record.get("curve_for_all") is alone
    assert (len(models[0].trees) == 1) is bool(alone)
    assert models[0] == models[1] == models[2]


class Watched:
    """A gate that keeps what was asked, and the trees that were known then."""

    def __init__(self, gate: Gate) -> None:
        self._gate, self.trees = gate, list[Tree]()
        self.asked = list[tuple[Any, NDArray[np.float64], int]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gate, name)

    def publish(self, tree: Tree) -> None:
        self.trees.append(tree)
        self._gate.publish(tree)

    def release(self, query: Any, *more: Any, **named: Any) -> Any:
        release = self._gate.release(query, *more, **named)
        self.asked.append((query, release.values, len(self.trees)))
        return release


def leaf_of(tree: Tree, row: tuple[float, ...]) -> int:
    """Walk a tree of numeric columns, node by node."""
    structure, node = tree.structure, 0
    n_leaves = np.cumsum(structure.feature < 0) - 1
    while structure.feature[node] >= 0:
        x = np.float32(row[structure.feature[node]])
        left = structure.missing_left[node] if np.isnan(x) else x < structure.threshold[node]
        node = int(structure.left[node] if left else structure.right[node])
    return int(n_leaves[node])


def seen_through(hazards: list[float], time: float, event: int) -> float:
    """The hazards that a row was seen through, half of that of the interval in which it left."""
    happened = event and time <= CUTS[-1]
    k = sum(cut < time if happened else cut <= time for cut in CUTS)
    return sum(hazards[:k]) + (0.5 * hazards[k] if k < len(CUTS) else 0.0)


def residual(hazards: list[float], time: float, event: int) -> float:
    """The slope of the loss, from the definition: minus log of the row's probability."""
    if event and time <= CUTS[-1]:
        k = next(k for k, cut in enumerate(CUTS) if time <= cut)
        d = hazards[k]
        return sum(hazards[:k]) - (d / math.expm1(d) if d > 1e-12 else 1.0)
    k = sum(cut <= time for cut in CUTS)
    return sum(hazards[:k]) + (0.5 * hazards[k] if k < len(CUTS) else 0.0)


def by_period(hazards: list[float], time: float, event: int, what: Any) -> list[float]:
    """`residual` or `seen_through` before and after the change at the second cut.

    What happened before the change does not depend on later hazards: with none, what is left is the
    first part, for whoever was still there then. The rest is the second one.
    """
    first = sum(hazards[:2]) if time > CUTS[1] else what(hazards, time, event)
    return [first, what(hazards, time, event) - first]


def held(numbers: list[float], clip: float) -> list[float]:
    """Each clamped to 1, and together no longer than the clip."""
    numbers = [max(-1.0, min(1.0, number)) for number in numbers]
    length = math.hypot(*numbers)
    return [number * min(1.0, clip / length) if length else 0.0 for number in numbers]


@pytest.mark.parametrize(
    ("schema", "epsilon", "clip"),
    [(SCHEMA, 80.0, 1.0), (CHANGING, 4.0, 1.0), (CHANGING, 80.0, math.inf)],
)
def test_every_sum_is_what_plain_python_adds_up(
    schema: Schema, epsilon: float, clip: float
) -> None:
    table, watched = table_of(300), list[Watched]()

    def watch(gate: Gate) -> Watched:
        watched.append(Watched(gate))
        return watched[0]

    trained(table, epsilon, watch=watch, schema=schema)
    rows = list(zip(table["a"], np.clip(table["b"], 0, 10).astype(float), strict=True))
    outcomes = list(zip(table["t"], table["e"], strict=True))
    changes, kinds, steps = schema is CHANGING, set(), 0
    for query, values, n_trees in watched[0].asked:
        kinds.add(type(query).__name__)
        scores = np.zeros((len(rows), len(CUTS)))
        for tree in watched[0].trees[:n_trees]:
            scores += [tree.values[leaf_of(tree, row)] for row in rows]
        hazards = np.exp(scores)
        if isinstance(query, LabelSums):
            expected = np.zeros(9)
            for time, event in outcomes:
                happened = event and time <= CUTS[-1]
                k = sum(c < time if happened else c <= time for c in CUTS)
                expected[2 * k + bool(happened)] += 1
            assert np.abs(values - expected).max() < 1e-6
            continue
        if isinstance(query, ScoreCounts):
            risk = np.log(hazards.sum(axis=1))
            by_score = values.reshape(9, -1).sum(axis=0)
            assert np.array_equal(
                np.round(by_score), np.bincount(np.digitize(risk, query.edges), minlength=16)
            )
            continue
        assert isinstance(query, ColumnSums | LeafSums)
        assert query.clip == clip
        r, h = (  # (row, period)
            np.array(
                [
                    held(
                        by_period(one, *at, what) if changes else [what(one, *at)],
                        query.clip,
                    )
                    for one, at in zip(hazards.tolist(), outcomes, strict=True)
                ]
            )
            for what in (residual, seen_through)
        )
        if isinstance(query, LeafSums):
            sums = in_leaves(query, rows, np.hstack([r, h])).ravel()
            if query.step_trees:
                last = watched[0].trees[n_trees - query.step_trees : n_trees]
                step = sum(tree.values[[leaf_of(tree, row) for row in rows], 0] for tree in last)
                u = np.clip(step / query.step_scale, -1, 1)
                sums = np.append(sums, [r[:, 0] @ u, h[:, 0] @ u**2])
                steps += 1
            assert np.abs(values - sums).max() < 1e-3
        else:
            check_columns(query, values, rows, r)
    assert kinds >= {"LabelSums", "ColumnSums", "ScoreCounts"}
    assert ("LeafSums" in kinds) is (epsilon > 10)
    assert (steps > 0) is (epsilon > 10 and not changes)


def check_columns(query: ColumnSums, values: Any, rows: list[Any], r: NDArray[np.float64]) -> None:
    """Compare released sums by bin with those of these numbers (row, number), and of rows."""
    grid, added = base_grid(SCHEMA), np.column_stack([r, np.ones(len(r))])
    for j, released in enumerate(query.split(values)):
        edges = grid[j].edges[list(query.cuts[j])]
        sums = np.zeros((added.shape[1], query.n_bins[j]))
        for row, one in zip(rows, added, strict=True):
            x = np.float32(row[j])
            b = query.n_bins[j] - 1 if np.isnan(x) else int(np.sum(edges <= x))
            sums[:, b] += one
        place = query.matrix_of[j] if query.matrix_of else -1
        if place >= 0:  # asked in a strategy matrix, in units of its longest column
            matrix = query.matrices[place].astype(float)
            sums[:-1] = sums[:-1] @ matrix.T / np.sqrt((matrix**2).sum(axis=0).max())
        width = len(released)
        assert np.abs(released - sums[:width]).max() < 1e-4


def in_leaves(query: LeafSums, rows: list[Any], added: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of these numbers (row, number) by leaf of all tables: (number, leaf)."""
    parts = []
    for structure in query.structures:
        tree = Tree(structure, np.zeros((structure.n_leaves, 1), np.float32))
        sums = np.zeros((added.shape[1], structure.n_leaves))
        for row, one in zip(rows, added, strict=True):
            sums[:, leaf_of(tree, row)] += one
        parts.append(sums)
    return np.hstack(parts)


def test_two_groups_get_the_hazard_ratio_of_greatest_likelihood() -> None:
    """One column of two categories: the fit is that of a Newton search on the same likelihood."""
    rng = np.random.default_rng(3)
    n = 6000
    group = rng.integers(0, 2, n)
    time = rng.exponential(6.0 * np.exp(-0.7 * group))
    seen = rng.uniform(1.0, 9.0, n)
    table = {
        "g": np.array(["x", "y"], object)[group],
        "t": np.minimum(time, seen), "e": (time <= seen).astype(int),
    }  # fmt: skip
    schema = Schema((Categorical("g", ("x", "y")),), SCHEMA.label)
    model = trained(table, 200.0, schema=schema)
    scores = model.decision_function({"g": ["x", "y"]})
    ratio = float(np.diff(scores, axis=0)[0, 0])
    cells = rows_of(table, schema).target.astype(int)
    best, base = likeliest(cells, group)
    assert abs(ratio - best) < 0.03
    assert np.abs(np.exp(-np.exp(scores[0]).cumsum()) - np.exp(-np.exp(base).cumsum())).max() < 0.01


def likeliest(cells: NDArray[np.int64], group: NDArray[np.int64]) -> tuple[float, Any]:
    """Log hazard ratio and base line that maximise the likelihood of grouped times, by descent."""
    from scipy.optimize import minimize

    def loss(x: NDArray[np.float64]) -> float:
        hazards = np.exp(x[:4] + x[4] * group[:, None])
        seen = np.hstack([np.zeros((len(group), 1)), hazards.cumsum(axis=1)])
        k, rows = cells // 2, np.arange(len(group))
        before, own = seen[rows, k], hazards[rows, np.minimum(k, 3)]
        happened, censored = cells % 2 == 1, (cells % 2 == 0) & (k < 4)
        likely = -before - np.where(censored, 0.5 * own, 0.0)
        return -float(np.sum(likely + np.where(happened, np.log(-np.expm1(-own)), 0.0)))

    found = minimize(loss, np.array([-1.0, -1.0, -1.0, -1.0, 0.0]), method="BFGS")
    return float(found.x[4]), found.x[:4]
