"""Histogram and partially random trees, noise off: one party, many, masked, and a plain search."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from hedgerow import Ledger, local_federation
from hedgerow.coordinator.gate import Gate
from hedgerow.data.schema import Categorical, Label, Numeric, Ordinal, Schema
from hedgerow.data.tables import rows_of
from hedgerow.errors import SettingsError
from hedgerow.methods.registry import METHODS, method_named, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.losses import TREE_UPDATES
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import noise_off
from tests.oracle.reference import leaf_of, rows_of_table

COLUMNS = (
    Numeric("dose", 0.0, 1.0),
    Numeric("age", 0, 80, integer=True),
    Ordinal("stage", ("I", "II", "III")),
    Categorical("ward", ("a", "b", "c", "d"), other="category"),
)
LABELS = {
    "binary": Label("label", (0, 1)),
    "multiclass": Label("label", ("x", "y", "z")),
    "regression": Label("label", (), 0.0, 10.0),
}


def table(task: str, n: int = 150) -> tuple[Schema, dict[str, Any]]:
    rng = np.random.default_rng(4)
    dose = rng.uniform(0, 1, n)
    age = rng.integers(0, 81, n).astype(object)
    age[::11] = None
    ward = rng.choice(["a", "b", "c", "d", "elsewhere"], n)
    signal = dose + (ward == "b") + 0.3 * rng.normal(size=n)
    label: Any = (signal > 0.8).astype(int)
    if task == "multiclass":
        label = np.array(["x", "y", "z"])[np.digitize(signal, [0.5, 1.0])]
    if task == "regression":
        label = 4 * signal
    stage = rng.choice(["I", "II", "III"], n)
    values = {"dose": dose, "age": age, "stage": stage, "ward": ward, "label": label}
    return Schema(COLUMNS, LABELS[task]), values


WITH_TREES = [name for name in METHODS if "n_trees" in METHODS[name].uses]  # not auto


def train(
    task: str,
    method: str,
    n_parties: int,
    trust: str,
    ledger: Ledger | None = None,
    epsilon: float = 5.0,
    seed: int = 3,
    **chosen: Any,
) -> Ensemble:
    schema, values = table(task)
    rows = rows_of(values, schema)
    trust = method_named(method).trust or trust
    parts = {f"p{i}": rows.take(np.arange(i, rows.n_rows, n_parties)) for i in range(n_parties)}
    privacy = Privacy(epsilon, 1e-6, trust)  # type: ignore[arg-type]
    if (method, task) == ("dp-xgboost", "multiclass"):
        chosen = {"loss": "log", **chosen}  # multiclass labels are no regression
    plan = plan_for(schema, privacy, method, {"n_trees": 2, "max_depth": 2, **chosen}, seed=seed)
    federation = local_federation(parts, schema, ledger, trust=trust)
    return method_named(method).grow(Gate(federation, plan, ledger or Ledger.in_memory()))


@pytest.mark.parametrize("task", LABELS)
@pytest.mark.parametrize("method", WITH_TREES)
def test_every_method_gives_the_same_model_whatever_the_parties(method: str, task: str) -> None:
    with noise_off():
        one = train(task, method, 1, "coordinator")
        assert train(task, method, 3, "coordinator") == one
        assert train(task, method, 3, "parties") == one
    assert len(one.trees) >= 2 or method in ("dp-gbm", "feverless")


LEARNED = list(
    itertools.product(("histogram", "partially-random"), TREE_UPDATES, (0.0, 2.0), (0, 1))
)


@pytest.mark.parametrize("task", LABELS)
@pytest.mark.parametrize(("split", "update", "caution", "k"), LEARNED)
def test_every_learned_tree_gives_the_same_model_whatever_the_parties(
    split: str, update: str, caution: float, k: int, task: str
) -> None:
    chosen = {
        "split": split, "update": update, "split_caution": caution, "features_per_tree": k,
        "shrinkage": "none", "category_split": ("equality", "subset")[k],
        "reuse_histogram": caution > 0,
    }  # fmt: skip
    with noise_off():
        one = train(task, "random-trees", 1, "coordinator", epsilon=100.0, **chosen)
        assert train(task, "random-trees", 5, "parties", epsilon=100.0, **chosen) == one
    assert one.averaged == (update == "averaging")
    assert any(tree.structure.n_leaves > 2 for tree in one.trees)


@pytest.mark.parametrize("split", ["histogram", "partially-random"])
@pytest.mark.parametrize("task", LABELS)
def test_leaves_of_learned_forests_are_the_shares_of_their_rows(task: str, split: str) -> None:
    """Leaf values against a plain count of the rows that reach each leaf."""
    schema, values = table(task)
    chosen = {"split": split, "update": "averaging", "n_trees": 3, "split_caution": 0.0}
    with noise_off():
        model = train(task, "random-trees", 1, "coordinator", epsilon=1e5, **chosen)
    rows = rows_of_table({name: list(column) for name, column in values.items()})
    classes = list(schema.label.classes)
    for tree in model.trees:
        assert tree.structure.n_leaves > 2
        place = np.array([leaf_of(row, schema, tree.structure) for row in rows])
        for leaf in range(tree.structure.n_leaves):
            own = [row["label"] for row, at in zip(rows, place, strict=True) if at == leaf]
            if len(own) < 2:
                continue  # filled up from the whole table
            if task == "regression":
                expected = [np.mean(np.clip(own, 0, 10)) / 10]
            else:
                expected = [np.mean([label == one for label in own]) for one in classes]
                expected = expected[1:] if task == "binary" else expected
            assert tree.values[leaf] * len(model.trees) == pytest.approx(expected, abs=1e-3)


def test_no_cut_is_offered_where_cuts_above_left_no_row() -> None:
    """A column is cut again only inside of what is left of it: no branch is empty by public facts.

    Noise is real and large: without the rule some branch would be.
    """
    for split, seed in itertools.product(("histogram", "partially-random"), range(6)):
        schema, _ = table("binary")
        model = train(
            "binary", "random-trees", 1, "coordinator", epsilon=0.05, seed=seed, split=split,
            split_caution=0.0, n_trees=4, max_depth=5, n_bins=4, shrinkage="none",
        )  # fmt: skip
        for tree in model.trees:
            check_ranges(tree.structure, schema, 0, {})


def check_ranges(structure: Any, schema: Schema, node: int, seen: dict[int, Any]) -> None:
    """Rows are possible on both sides of every cut, given the cuts above it."""
    j = int(structure.feature[node])
    if j < 0:
        return
    n_places = 5 if isinstance(schema.columns[j], Categorical) else 1000
    inside, missing = seen.get(j, (set(range(n_places)), True))
    if isinstance(schema.columns[j], Categorical):
        bits = int(structure.members[structure.member_start[node]])
        right = {place for place in inside if bits >> place & 1}
    else:
        upper = {"dose": 1, "age": 80, "stage": 3}[schema.names[j]]
        edge = float(structure.threshold[node])
        right = {place for place in inside if place * upper / n_places >= edge}
    stays = bool(structure.missing_left[node])
    sides = [(inside - right, missing and stays), (right, missing and not stays)]
    children = [int(structure.left[node]), int(structure.right[node])]
    for child, side in zip(children, sides, strict=True):
        assert any(side)
        check_ranges(structure, schema, child, {**seen, j: side})


@pytest.mark.parametrize(
    ("method", "task"),
    [
        *((method, "binary") for method in WITH_TREES),
        *((m, task) for m in ("feverless", "dp-rf") for task in ("multiclass", "regression")),
    ],
)
def test_fifty_parties(method: str, task: str) -> None:
    with noise_off():
        one = train(task, method, 1, "coordinator")
        assert train(task, method, 50, "parties") == one


@pytest.mark.parametrize("method", WITH_TREES)
def test_every_method_spends_at_most_its_plan_and_verifies(method: str) -> None:
    ledger = Ledger.in_memory()
    train("binary", method, 3, "parties", ledger)
    for owner in verify(ledger):
        assert owner.charges >= owner.releases


class Plain:
    """Greedy growth by plain loops over rows and raw values; gradients in floating point."""

    def __init__(
        self, schema: Schema, values: dict[str, Any], cuts: dict[str, list[float]]
    ) -> None:
        self.schema, self.values, self.cuts = schema, values, cuts
        self.n = len(values["label"])

    def sides(self, column: str) -> list[tuple[str, Any, np.ndarray, np.ndarray]]:
        """Every split of a column: its kind, its value, who goes left, who is missing."""
        raw = self.values[column]
        if column == "ward":
            known = np.array([v if v in "abcd" else "other" for v in raw])
            return [("category", c, known != c, np.zeros(self.n, bool)) for c in [*"abcd", "other"]]
        if column == "stage":
            number = np.array([("I", "II", "III").index(v) for v in raw], float)
        else:
            number = np.array([np.nan if v is None else float(v) for v in raw])
        missing = np.isnan(number)
        small = np.float32(number)
        return [("cut", cut, small < np.float32(cut), missing) for cut in self.cuts[column]]

    def best(self, inside: np.ndarray, g: np.ndarray, h: np.ndarray) -> tuple[float, Any]:
        def score(who: np.ndarray) -> float:
            return float(g[who].sum() ** 2 / (h[who].sum() + 1.0))

        found: list[tuple[float, Any]] = []
        for column in ("dose", "age", "stage", "ward"):
            for kind, value, left, missing in self.sides(column):
                for missing_left in (True, False):
                    goes = np.where(missing, missing_left, left)
                    gain = score(inside & goes) + score(inside & ~goes) - score(inside)
                    found.append((0.5 * gain, (column, kind, value, missing_left, goes)))
        return max(found, key=lambda one: one[0])


def test_a_histogram_tree_is_the_greedy_tree() -> None:
    from hedgerow.data.binning import base_grid
    from hedgerow.methods.maddock.candidates import uniform

    schema, values = table("binary")
    with noise_off():
        model = train("binary", "feverless", 1, "coordinator", n_trees=1, n_bins=8)
    grid, cuts = base_grid(schema), uniform(schema, 8)
    edges = {
        c.name: [float(e) for e in grid[j].edges[list(cuts[j])]]
        for j, c in enumerate(schema.columns)
        if c.name != "ward"
    }
    plain = Plain(schema, values, edges)
    label = np.asarray(values["label"])
    g, h = 0.5 - label, np.full(len(label), 0.25)
    (tree,) = model.trees
    structure = tree.structure
    reached, n_cut = {0: np.ones(plain.n, bool)}, 0
    for node in range(structure.n_nodes):
        if structure.feature[node] < 0:
            inside = reached[node]
            step = -0.3 * np.clip(g[inside].sum() / (h[inside].sum() + 1.0), -2, 2)
            assert tree.values[structure.leaf[node], 0] == pytest.approx(step, abs=1e-5)
            continue
        n_cut += 1
        gain, (column, kind, value, _, goes) = plain.best(reached[node], g, h)
        assert gain > 0
        assert schema.names[structure.feature[node]] == column
        if kind == "cut":
            assert structure.threshold[node] == np.float32(value)
        reached[int(structure.left[node])] = reached[node] & goes
        reached[int(structure.right[node])] = reached[node] & ~goes
    assert n_cut >= 2


@pytest.mark.parametrize(
    ("method", "chosen", "words"),
    [
        ("feverless", {"batch_size": 5}, "does not use 'batch_size'"),
        ("random-trees", {"split": "histogram", "batch_size": 5}, "one tree a round"),
        (
            "feverless",
            {"update": "gradient", "candidates": "iterative-hessian"},
            'set update = "newton", or candidates = "quantiles"',
        ),
        ("dp-gbm", {"candidates": "iterative-hessian"}, "'gradient' has none"),
        (
            "random-trees",
            {"split": "histogram", "update": "averaging", "candidates": "iterative-hessian"},
            "'averaging' has none",
        ),
        ("random-trees", {"split": "partially-random", "batch_fraction": 0.5}, "one tree a round"),
        ("dp-tr-batch-newton-ih-ebm", {"batch_fraction": -0.25}, "at least 0"),
        ("random-trees", {"cuts": [[1, 2]]}, "leave them out"),
        (
            "random-trees",
            {"candidates": "quantiles-not-private"},
            'or set candidates = "quantiles"',
        ),
        (
            "random-trees",
            {"candidates": "quantiles-not-private", "cuts": [[1], [2]]},
            "do not fit the 4 columns",
        ),
        ("dp-tr-newton", {"features_per_tree": 99}, "at most that"),
        ("dp-rf", {"batch_fraction": 1.5}, "at most 1"),
        ("ldp", {"batch_size": 5}, "does not use 'batch_size'"),
        ("dp-tr-newton", {"gain_penalty": 1.0}, "does not use 'gain_penalty'"),
    ],
)
def test_wrong_combinations_are_refused_before_any_data(
    method: str, chosen: dict[str, Any], words: str
) -> None:
    schema, _ = table("binary")
    trust = method_named(method).trust or "coordinator"
    with pytest.raises(SettingsError, match=words):
        plan_for(schema, Privacy(1.0, 1e-6, trust), method, chosen)  # type: ignore[arg-type]


def test_a_method_for_one_trust_refuses_another() -> None:
    schema, _ = table("binary")
    with pytest.raises(SettingsError, match="for trust 'nobody'"):
        plan_for(schema, Privacy(1.0, 1e-6), "ldp")
