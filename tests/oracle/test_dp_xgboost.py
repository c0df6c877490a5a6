"""dp-xgboost with noise off is a plain program over rows; and what it asks follows from no row."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.coordinator.federation import Federation, Total
from hedgerow.coordinator.gate import Gate
from hedgerow.data.binning import base_grid
from hedgerow.data.rng import stream
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows, rows_of
from hedgerow.methods.maddock.candidates import CANDIDATES
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.tree import Tree
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.noise.mechanisms import noise_from
from hedgerow.privacy.settings import DPXGBoostSettings, Privacy
from hedgerow.queries import ColumnCounts, LeafAverages, SplitChoices, SumQuery, query_bytes
from hedgerow.queries.calibration import Noise
from hedgerow.testing import noise_off
from tests.conftest import federation_of, split_rows
from tests.oracle.runs import schema_of, table_of

STEPS = 2.0**20
N_BINS = 6


def plan_of(schema: Schema, epsilon: float = 5000.0, **settings: Any) -> Plan:
    """A large epsilon, so that no leaf is held back by the noise that it would have."""
    privacy = Privacy(epsilon, 0.0, accounting="pure")
    small = {"n_trees": 3, "max_depth": 3, "n_bins": N_BINS, "sketch_share": 0.0, **settings}
    return plan_for(schema, privacy, "dp-xgboost", small, seed=3, run="r")


def grow(parts: dict[str, Rows], schema: Schema, plan: Plan) -> Ensemble:
    ledger = Ledger.in_memory()
    gate = Gate(federation_of(parts, schema, plan.privacy, ledger), plan, ledger)
    return method_named("dp-xgboost").grow(gate)


@dataclass
class Node:
    """A node of the plain program: its rows, the bins that its path allows, and its cut."""

    rows: NDArray[np.bool_]
    allowed: list[set[int]]
    column: int = -1
    after: int = -1  # the bin that the cut follows, or the category that goes right
    right: set[int] = field(default_factory=set)  # bins; the last one is that of missing values


class Plain:
    """Boosting over bins of rows, one row and one cut at a time; nothing of hedgerow's growers."""

    def __init__(self, rows: Rows, schema: Schema, settings: DPXGBoostSettings) -> None:
        grid, cuts = base_grid(schema), CANDIDATES["uniform"](schema, N_BINS)
        self.settings, self.target, self.k = settings, rows.target, len(schema.label.classes)
        self.ordered = [one.ordered for one in grid]
        self.bins, self.n_bins = [], []
        for j, one in enumerate(grid):
            codes = rows.codes.column(j).astype(np.int64)
            inner = np.searchsorted(cuts[j], codes) if one.ordered else codes
            n = len(cuts[j]) + 1 if one.ordered else one.n_cells
            self.bins.append(np.where(codes == one.missing_code, n, inner))
            self.n_bins.append(n)
        self.missing = [
            column.missing or (getattr(column, "other", "") == "category" and ordered)
            for column, ordered in zip(schema.columns, self.ordered, strict=True)
        ]
        self.squared = settings.loss == "squared" or not self.k
        self.n_outputs = 1 if self.squared or self.k == 2 else self.k

    def gradients(self, scores: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """(row, output) in whole steps, and which rows count."""
        y, bound = self.target, self.settings.gradient_bound
        if self.squared:
            found = np.trunc((np.clip(scores, 0, 1) - y[:, None]) * STEPS)
        elif self.n_outputs == 1:
            sign = np.where(y > 0.5, 1.0, -1.0)[:, None]
            found = -sign * np.trunc(STEPS / (1 + np.exp(sign * scores)))
        else:
            weights = np.trunc(np.exp(scores - scores.max(axis=1, keepdims=True)) * 2147483647.0)
            found = np.floor(weights * STEPS / weights.sum(axis=1, keepdims=True))
            own = np.arange(self.k) == y[:, None]
            found[own] = -found.sum(axis=1, where=~own)
        kept = np.ones(len(y), np.bool_)
        if bound < 1:
            if self.settings.gradient_rule == "filter":
                p = np.clip(scores, 0, 1) if self.squared else 1 / (1 + np.exp(-scores))
                kept = np.abs(p[:, 0] - y) <= bound
            found = np.clip(found, -math.floor(bound * STEPS), math.floor(bound * STEPS))
        return found, kept

    def utility(self, right: NDArray[np.bool_], inside: NDArray[np.bool_], g: Any) -> int:
        (gr, nr), (gl, nl) = (
            (g[side].sum(axis=0) / STEPS, float(side.sum())) for side in (right, inside & ~right)
        )
        if self.settings.utility == "gain":
            reg = self.settings.reg_lambda
            parts = [sum(sorted(G**2)) / (n + reg) if n + reg else 0.0
                     for G, n in ((gr, nr), (gl, nl))]  # fmt: skip
            return math.floor((parts[0] + parts[1]) * 2**16)
        apart = gr - nr / max(nr + nl, 1.0) * (gr + gl)
        return math.floor(math.sqrt(sum(sorted(apart**2))) * 2**16)

    def ways(self, node: Node) -> Any:
        """Every cut that parts what the node can hold: column, bin, and the bins that go right."""
        for j, n in enumerate(self.n_bins):
            held = node.allowed[j]
            inner = sorted(held - {n})
            for b in inner:
                if self.ordered[j] and b == n - 1:
                    continue  # there is no edge above it
                if not self.ordered[j] and len(inner) == 2 and b == inner[1]:
                    continue  # the same as the other against it
                above = {c for c in inner if c > b} if self.ordered[j] else {b}
                for right in (above, above | {n}) if n in held else (above,):
                    if right & held and held - right:
                        yield j, b, right

    def tree(self, scores: NDArray[np.float64]) -> tuple[list[Node], NDArray[np.float32]]:
        s, (g, kept) = self.settings, self.gradients(scores)
        allowed = [set(range(n + may)) for n, may in zip(self.n_bins, self.missing, strict=True)]
        nodes, leaves = [Node(np.ones(len(scores), np.bool_), allowed)], [0]
        for _ in range(s.max_depth):
            for i in list(leaves):
                best, chosen = -1, None
                inside = nodes[i].rows & kept
                for j, b, right in self.ways(nodes[i]):
                    goes = np.isin(self.bins[j], list(right))
                    if (found := self.utility(goes & inside, inside, g)) > best:
                        best, chosen = found, (j, b, right, goes)
                if chosen is None:
                    continue
                j, b, right, goes = chosen
                nodes[i].column, nodes[i].after, nodes[i].right = j, b, right
                leaves.remove(i)
                for side, stay in ((~goes, nodes[i].allowed[j] - right), (goes, right)):
                    sets = list(nodes[i].allowed)
                    sets[j] = sets[j] & stay
                    leaves.append(len(nodes))
                    nodes.append(Node(nodes[i].rows & side, sets))
        values = [self.leaf(nodes[i].rows & kept, g) for i in leaves]
        return nodes, np.array(values).astype(np.float32)

    def leaf(self, rows: NDArray[np.bool_], g: Any) -> NDArray[np.float64]:
        s, n = self.settings, float(rows.sum())
        least = 1 if s.leaf_rule == "plain" else s.min_samples_leaf
        step = -(g[rows].sum(axis=0) / STEPS) / (max(n, least) + s.reg_lambda)
        if s.leaf_rule != "sum-and-count":
            step = np.floor(step * STEPS) / STEPS
        most = s.gradient_bound if self.n_outputs == 1 else math.inf
        step = np.clip(step, -most, most) / (1.0 if self.squared else 0.25)
        return np.asarray(s.learning_rate * np.clip(step, -s.leaf_clip, s.leaf_clip))

    def run(self) -> list[tuple[list[Node], NDArray[np.float32]]]:
        scores, trees = np.full((len(self.target), self.n_outputs), 0.5 * self.squared), []
        for _ in range(self.settings.n_trees):
            nodes, values = self.tree(scores)
            leaf_nodes = [node for node in nodes if node.column < 0]
            for node, value in zip(leaf_nodes, values.astype(np.float64), strict=True):
                scores[node.rows] += value
            trees.append((nodes, values))
        return trees


def check_same(
    tree: Tree, nodes: list[Node], values: NDArray[np.float32], plain: Plain, schema: Schema
) -> None:
    found, grid, cuts = tree.structure, base_grid(schema), CANDIDATES["uniform"](schema, N_BINS)
    assert found.feature.tolist() == [node.column for node in nodes]
    for i, node in enumerate(nodes):
        if node.column < 0:
            continue
        j, n = node.column, plain.n_bins[node.column]
        assert bool(found.missing_left[i]) == (n not in node.right)
        if plain.ordered[j]:
            assert found.threshold[i] == grid[j].edges[cuts[j][node.after]]
        else:
            words = found.members[found.member_start[i] : found.member_start[i + 1]]
            bits = np.unpackbits(words.view(np.uint8), bitorder="little")
            assert set(np.flatnonzero(bits).tolist()) == node.right - {n}
    assert np.array_equal(tree.values, values)


CASES: list[tuple[str, bool, dict[str, Any]]] = [
    ("logistic", True, {"loss": "squared", "max_depth": 3}),
    ("logistic", False, {"loss": "squared", "utility": "gain", "leaf_rule": "least-rows"}),
    ("logistic", True, {"loss": "log", "gradient_bound": 1.0}),
    (
        "logistic",
        True,
        {"loss": "log", "gradient_rule": "filter", "gradient_bound": 0.6, "utility": "gain"},
    ),
    ("softmax-3", True, {"loss": "log", "gradient_bound": 1.0, "utility": "gain"}),
    ("softmax-3", False, {"loss": "log", "gradient_bound": 0.4, "leaf_rule": "plain"}),
    ("squared", False, {"loss": "log", "leaf_rule": "plain", "reg_lambda": 2.0}),
    ("squared", True, {"loss": "squared", "gradient_rule": "filter", "gradient_bound": 0.4}),
]


@pytest.mark.parametrize(("label", "missing", "settings"), CASES, ids=str)
def test_with_noise_off_it_is_the_plain_program_over_any_parties(
    label: str, missing: bool, settings: dict[str, Any]
) -> None:
    schema = schema_of(label, missing)
    rows = rows_of(table_of(100, 6, missing), schema)
    plan = plan_of(schema, min_samples_leaf=8, **{"n_trees": 2, "max_depth": 2, **settings})
    with noise_off():
        alone = grow({"all": rows}, schema, plan)
        assert grow(split_rows(rows, [1, 60]), schema, plan) == alone
    plain = Plain(rows, schema, plan.settings)
    expected = plain.run()
    trees = alone.trees[1:] if plain.squared else alone.trees
    assert len(trees) == len(expected) == 2
    for tree, (nodes, values) in zip(trees, expected, strict=True):
        assert len(nodes) >= 7
        check_same(tree, nodes, values, plain, schema)


# What is asked


class _Fixed:
    """Choices and noise that do not look at the rows."""

    name = "fixed"

    def __init__(self) -> None:
        self._rng = stream(5, "fixed")

    def choose(self, utilities: Any, scale: int, how: str) -> list[int]:
        return [int(self._rng.integers(0, len(one))) for one in utilities]

    def gaussian(self, size: int, sigma: float) -> NDArray[np.int64]:
        raise AssertionError("a pure plan has no Gaussian noise")

    def laplace(self, size: int, scale: float, shares: int = 1) -> NDArray[np.int64]:
        raise AssertionError("replaced together with the sums")


Question = tuple[bytes, Noise, int, int]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    """Every question; releases become fixed numbers, and choices follow from a fixed stream."""
    questions: list[Question] = []
    right, noisy = Federation.sum, Gate._noisy

    def recorded(self: Federation, query: SumQuery, noise: Noise, slot: int, attempt: int) -> Total:
        questions.append((query_bytes(query), noise, slot, attempt))
        return right(self, query, noise, slot, attempt)

    def fixed(self: Gate, query: SumQuery, total: Total, noise: Noise) -> Any:
        found = noisy(self, query, total, noise)
        if isinstance(query, SplitChoices):
            return found
        values = stream(len(questions), "release").normal(0, 40 * 2.0**noise.bits, len(found.total))
        found.total[:] = values.astype(np.int64)
        return found

    monkeypatch.setattr(Federation, "sum", recorded)
    monkeypatch.setattr(Gate, "_noisy", fixed)
    monkeypatch.setattr(_Fixed, "laplace", lambda self, size, *_: np.zeros(size, np.int64))
    return questions


def questions_for(
    asked: list[Question], table: Any, plan: Plan, schema: Schema
) -> tuple[list[Question], list[list[int]]]:
    """And the shapes of the trees."""
    asked.clear()
    with noise_from(_Fixed()):
        model = grow({"all": rows_of(table, schema)}, schema, plan)
    return list(asked), [tree.structure.feature.tolist() for tree in model.trees]


@pytest.mark.parametrize("sample_rate", [1.0, 0.3])
@pytest.mark.parametrize("leaf_rule", ["sum-and-count", "least-rows"])
def test_no_row_changes_what_is_asked_or_offered(
    asked: list[Question], leaf_rule: str, sample_rate: float
) -> None:
    schema = schema_of("logistic")
    settings = {"sketch_share": 0.2, "leaf_rule": leaf_rule, "sample_rate": sample_rate}
    plan = plan_of(schema, 2.0, n_trees=2, **settings)
    table = table_of(60, 8)
    table["site"][40] = "west"  # the only one of its kind
    expected = questions_for(asked, table, plan, schema)
    assert len(expected[0]) == 2 * (3 + 2)
    others = [{name: values[:i] + values[i + 1 :] for name, values in table.items()}
              for i in (0, 40, 59, int(np.argmax([d or 0.0 for d in table["dose"]])))]  # fmt: skip
    others.append({**table, "sick": ["yes"] * 60})  # one class only
    others.append({**table, "age": [3] * 60, "site": ["north"] * 60})  # most nodes empty
    others.append({name: values[:1] for name, values in table.items()})
    for other in others:
        assert questions_for(asked, other, plan, schema) == expected


def test_candidates_that_look_at_the_rows_are_found(
    asked: list[Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison can fail: cuts at the exact quantiles of the rows are other questions."""
    schema, table = schema_of("logistic"), table_of(60, 8)
    plan = plan_of(schema, 2.0, n_trees=1, sketch_share=0.2)
    right = Gate._noisy

    def exact(self: Gate, query: SumQuery, total: Total, noise: Noise) -> Any:
        found = right(self, query, total, noise)
        if isinstance(query, ColumnCounts):
            found.total[:] = 100 * total.values.view(np.int64)
        return found

    monkeypatch.setattr(Gate, "_noisy", exact)
    expected = questions_for(asked, table, plan, schema)
    half = {name: values[:30] for name, values in table.items()}
    assert questions_for(asked, half, plan, schema) != expected


def test_every_slot_is_asked_as_the_plan_lists_it(asked: list[Question]) -> None:
    schema = schema_of("squared")
    plan = plan_of(schema, 2.0, n_trees=2, sketch_share=0.2)
    found, _ = questions_for(asked, table_of(40, 1), plan, schema)
    kinds = [ColumnCounts.kind, *[SplitChoices.kind] * 3, LeafAverages.kind] * 2
    assert [slot.kind for slot in plan.slots] == kinds
    assert [slot for _, _, slot, _ in found] == list(range(10))
