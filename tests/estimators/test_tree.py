"""The estimator of the readable tree, and its pictures: released values, in words and boxes."""

from __future__ import annotations

import math
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from hedgerow import Ensemble, Privacy, PrivateTreeClassifier, Schema, plan_for
from hedgerow.coordinator.federation import Federation, Total
from hedgerow.coordinator.gate import Gate
from hedgerow.data.rng import stream
from hedgerow.data.schema import Categorical, Label, Numeric, Ordinal
from hedgerow.errors import FitWarning, SchemaError, SettingsError
from hedgerow.estimators.boosting import PrivateBoostingClassifier
from hedgerow.inspection import TreeView, export_rules, export_text, plot_tree
from hedgerow.inspection.tree_view.conditions import Side, merged, number
from hedgerow.inspection.tree_view.plot import READABLE, layout_of
from hedgerow.methods.private_tree.nodes import Measured, settle
from hedgerow.methods.private_tree.rule import rule_of
from hedgerow.privacy.accounting.paths import path_costs
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.reservation import Release
from hedgerow.privacy.ledger.store import COORDINATOR
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.settings import PrivateTreeSettings
from hedgerow.queries import SumQuery, query_bytes, size_of
from hedgerow.queries.calibration import Noise
from hedgerow.testing import seeded
from tests.conftest import MIXED, mixed_table

STAYS = Schema(
    columns=(
        Numeric("age", 0, 100, integer=True),
        Ordinal("stage", ("low", "middle", "high", "severe")),
        Categorical("site", ("north", "south", "east", "west <1>")),
    ),
    label=Label("sick", ("no", "yes & more")),
)


def stays(n: int = 3000, seed: int = 0) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    age, stage = rng.integers(0, 100, n), rng.integers(0, 4, n)
    site = rng.choice(STAYS.columns[2].categories, n)  # type: ignore[union-attr]
    risk = np.where((age >= 62) & (site != "north") | (stage == 3), 0.9, 0.1)
    sick = np.where(rng.uniform(size=n) < risk, "yes & more", "no")
    names = STAYS.columns[1].categories  # type: ignore[union-attr]
    table = {"age": age.tolist(), "stage": [names[s] for s in stage], "site": site.tolist()}
    return {**table, "sick": sick.tolist()}


@pytest.fixture(scope="module")
def fitted() -> PrivateTreeClassifier:
    table = stays()
    parties = [f"p{i % 4}" for i in range(3000)]
    return PrivateTreeClassifier(20.0, STAYS, max_depth=3, random_state=1).fit(
        table, parties=parties
    )


def test_a_fit_promises_pure_epsilon_and_its_branches_keep_it() -> None:
    ledger = Ledger.in_memory()
    tree = PrivateTreeClassifier(1.5, STAYS, max_depth=3, ledger=ledger).fit(stays(800))
    assert tree.statement_.guarantee == "pure"
    assert "pure epsilon = 1.5 (delta = 0)" in tree.statement_.words()
    assert tree.statement_.promise() == "pure epsilon = 1.5 (delta = 0)"
    costs = path_costs(ledger.lines(COORDINATOR, "charge"))
    assert 1.49 < max(costs.values()) <= 1.5
    verify(ledger)


def test_the_tree_finds_what_there_is_to_find(fitted: PrivateTreeClassifier) -> None:
    test = stays(2000, seed=9)
    truth = np.array(test.pop("sick"))
    shares = fitted.predict_proba(test)
    assert shares.shape == (2000, 2)
    assert np.allclose(shares.sum(axis=1), 1)
    assert (fitted.predict(test) == truth).mean() > 0.87
    assert len(fitted.model_.trees) == 1
    assert fitted.classes_.tolist() == ["no", "yes & more"]


def test_it_is_an_estimator_like_the_others(fitted: PrivateTreeClassifier) -> None:
    again = clone(fitted)
    assert again.get_params() == fitted.get_params()
    assert "delta" not in again.get_params()
    assert not isinstance(PrivateBoostingClassifier(), PrivateTreeClassifier)
    with pytest.raises(SettingsError, match="given twice"):
        PrivateTreeClassifier(1.0, STAYS, settings={"max_depth": 3}).fit(stays(50))
    with pytest.raises(SettingsError, match="does not use 'n_trees'"):
        PrivateTreeClassifier(1.0, STAYS, settings={"n_trees": 3}).fit(stays(50))
    with pytest.raises(SettingsError, match="trust in nobody"):
        PrivateTreeClassifier(1.0, STAYS, trust="nobody").fit(stays(50))
    with pytest.raises(SettingsError, match="random_state"):
        PrivateTreeClassifier(1.0, STAYS, random_state="x").fit(stays(50))  # type: ignore[arg-type]
    numbers = STAYS.with_label(Label("sick", lower=0, upper=1))
    with pytest.raises(SchemaError, match="the label is a number; use PrivateBoostingRegressor"):
        PrivateTreeClassifier(1.0, numbers).fit(stays(50))


def test_a_saved_tree_draws_the_same(fitted: PrivateTreeClassifier, tmp_path: Path) -> None:
    fitted.model_.save(tmp_path / "m.hedge")
    again = Ensemble.load(tmp_path / "m.hedge")
    assert plot_tree(again) == fitted.plot()
    assert export_text(again) == fitted.export_text()
    assert export_rules(again) == fitted.export_rules()


def test_text_and_rules_say_what_the_tree_does(fitted: PrivateTreeClassifier) -> None:
    text, rules = fitted.export_text(), fitted.export_rules()
    assert text.startswith("Predicts sick.")
    assert "Pure epsilon = 20 (add or remove one row)" in text
    assert "90 % intervals" in text
    assert len(rules) == fitted.model_.trees[0].structure.n_leaves
    assert all(rule.startswith("IF ") and " THEN sick is " in rule for rule in rules)
    assert any("age >= 62" in rule for rule in rules)
    assert "p0" not in text + "".join(rules)  # nothing of single parties


def test_every_row_obeys_exactly_one_rule(fitted: PrivateTreeClassifier) -> None:
    view, table = fitted.view_, stays(300, seed=3)
    table.pop("sick")
    shares = fitted.predict_proba(table)

    def holds(side: Side, row: int) -> bool:
        value = table[side.column][row]
        if side.inside is not None:
            return value in side.inside
        return (side.low is None or value >= side.low) and (side.high is None or value < side.high)

    for row in range(300):
        obeyed = [
            leaf
            for leaf in view.leaves
            if all(holds(side, row) for side in merged(view.path(leaf.number)))
        ]
        assert len(obeyed) == 1
        assert obeyed[0].shares[1] == pytest.approx(shares[row, 1], abs=1e-5)


def test_intervals_are_those_of_the_noise(fitted: PrivateTreeClassifier) -> None:
    view, record = fitted.view_, fitted.model_.record["tree"]
    for node, noise in zip(view.nodes, record["deviations"], strict=True):
        low, high = node.interval
        assert node.deviation == noise > 0
        assert high - node.rows == pytest.approx(1.6449 * math.sqrt(2) * noise)
        assert 0 <= low <= node.rows
    assert view.nodes[0].rows == pytest.approx(3000, abs=60)
    assert view.to_dict()["nodes"][0]["condition"] == "all rows"


def test_the_svg_is_well_formed_and_no_box_covers_another(fitted: PrivateTreeClassifier) -> None:
    root = ElementTree.fromstring(fitted.plot().svg)
    texts = "".join(root.itertext())
    assert "all rows" in texts
    assert "west <1>" in texts or "yes & more" in texts  # escaped and read back
    view = fitted.view_
    left, right = ([getattr(node, side) for node in view.nodes] for side in ("left", "right"))
    layout = layout_of(left, right, READABLE)
    boxes = layout.boxes
    for i, a in enumerate(boxes):
        assert 0 <= a.x <= layout.width - READABLE.width
        assert 0 <= a.y <= layout.height - READABLE.height
        for b in boxes[i + 1 :]:
            assert abs(a.x - b.x) >= READABLE.width or abs(a.y - b.y) >= READABLE.height


def test_the_picture_has_a_box_a_node_and_can_be_saved(
    fitted: PrivateTreeClassifier, tmp_path: Path
) -> None:
    plot_tree(fitted.model_).save(tmp_path / "tree.svg")
    root = ElementTree.parse(tmp_path / "tree.svg").getroot()
    words = [text.text or "" for text in root.iterfind(".//{*}text")]
    assert "all rows" in words
    assert sum("rows (" in text for text in words) == len(fitted.view_.nodes)
    assert len(root.findall("{*}path")) == len(fitted.view_.nodes) - 1
    assert fitted.plot()._repr_svg_() == (tmp_path / "tree.svg").read_text("utf-8")
    with pytest.raises(SettingsError, match=r"ends in \.svg"):
        fitted.plot().save(tmp_path / "tree.png")


def test_a_boosted_model_is_not_drawn_as_one_tree() -> None:
    model = PrivateBoostingClassifier(STAYS, method="random-trees", n_trees=2).fit(stays(60)).model_
    with pytest.raises(SettingsError, match="cannot be drawn as one readable tree"):
        TreeView.of(model)


def test_conditions_on_one_column_become_one() -> None:
    among = ("a", "b", "c", "d")
    number_sides = [Side("x", low=1.0), Side("x", high=9.5), Side("x", low=4.0)]
    assert [s.words() for s in merged(number_sides)] == ["x >= 4 and < 9.5"]
    lists = [
        Side("k", inside=("a", "b", "c"), among=among, missing=True),
        Side("k", inside=("b", "c", "d"), among=among, missing=True),
    ]
    assert [s.words() for s in merged(lists)] == ["k is one of b, c (or missing)"]
    assert Side("k", inside=("a", "b", "c"), among=among).words() == "k is not d"
    assert Side("k", inside=("a",), among=among).words() == "k is a"
    assert Side("k", inside=("b", "c"), among=among, ordered=True).words() == "k is from b to c"
    assert Side("k", inside=among[2:], among=among, ordered=True).words() == "k is c or above"
    assert number(0.1) == "0.1"
    gone = merged([Side("x", low=5.0, missing=True), Side("x", high=1.0, missing=True)])
    assert [s.words() for s in gone] == ["x is missing"]
    long = Side("k", inside=tuple("abcdefgh"), among=tuple("abcdefghijklmnopqrst"))
    assert long.words(10) == "k is one of a, b, c and 5 more"


def test_settled_counts_are_the_least_squares_ones() -> None:
    """Against the normal equations of a small tree, and exact where nothing is noisy."""
    rng = np.random.default_rng(1)
    children = [(1, 2), (3, 4), (-1, -1), (-1, -1), (-1, -1)]
    leaves = {2: [2], 3: [3], 4: [4], 1: [3, 4], 0: [2, 3, 4]}
    measured = [
        [Measured(rng.normal(50, 9, 2), float(v)) for v in rng.uniform(1, 9, k)]
        for k in (1, 0, 2, 1, 1)
    ]
    rows, values, weights = [], [], []
    for node, found in enumerate(measured):
        for one in found:
            rows.append([leaf in leaves[node] for leaf in (2, 3, 4)])
            values.append(one.counts)
            weights.append(1 / one.variance)
    A, W = np.array(rows, float), np.diag(weights)
    covariance = np.linalg.inv(A.T @ W @ A)
    expected = covariance @ A.T @ W @ np.array(values)
    found = settle(measured, children, 2)
    assert np.allclose(found.counts[[2, 3, 4]], expected)
    assert np.allclose(found.counts[0], expected.sum(axis=0))
    assert np.allclose(found.deviations[[2, 3, 4]], np.sqrt(np.diag(covariance)))
    assert found.deviations[0] == pytest.approx(math.sqrt(covariance.sum()))
    nothing = settle([[], [], []], [(1, 2), (-1, -1), (-1, -1)], 2)
    assert np.isinf(nothing.deviations).all()


Question = tuple[bytes, Noise, int]


@pytest.mark.parametrize("saves", [True, False])
def test_neighbouring_tables_are_asked_the_same(
    saves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given the same releases: nothing but they decides what is asked, and for how much."""
    asked: list[Question] = []
    right = Federation.sum

    def recorded(self: Federation, query: SumQuery, noise: Noise, slot: int, attempt: int) -> Total:
        asked.append((query_bytes(query), noise, slot))
        return right(self, query, noise, slot, attempt)

    def fixed(self: Gate, query: SumQuery, total: Total, noise: Noise) -> Release:
        values = stream(len(asked), "release").exponential(900.0, size_of(query))
        sigmas = tuple(scale / 2.0**noise.bits for scale in noise.sigmas)
        return Release(values.astype(np.int64), 0, sigmas, 1.0, "fixed")

    monkeypatch.setattr(Federation, "sum", recorded)
    monkeypatch.setattr(Gate, "_noisy", fixed)

    def questions(table: dict[str, list[Any]]) -> list[Question]:
        asked.clear()
        parties = [f"p{i % 5}" for i in range(len(table["sick"]))]
        PrivateTreeClassifier(
            4.0, MIXED, max_depth=3, n_bins=8, save_budget=saves, random_state=4
        ).fit(table, parties=parties)
        return list(asked)

    table = mixed_table(80, seed=8)
    expected = questions(table)
    assert len(expected) >= (4 if saves else 2)
    for row in (0, 17, table["age"].index(None), 79):
        fewer = {name: values[:row] + values[row + 1 :] for name, values in table.items()}
        assert questions(fewer) == expected
    assert questions({**table, "sick": ["yes"] * 80}) == expected


def _one_of_ten(seed: int, n: int = 1000) -> tuple[Any, Any, Any, Any]:
    """Two normal classes that differ in one column of ten: the best rule is right at 84 %."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1], n))
    X = rng.normal(size=(2 * n, 10))
    X[:, rng.integers(10)] += np.where(y == 0, 1.0, -1.0)
    return X[:n], y[:n], X[n:], y[n:]


@pytest.mark.filterwarnings("ignore::hedgerow.errors.FitWarning")
def test_saving_finds_the_one_column_that_says_something() -> None:
    """Columns are ranked before any is asked: in the order of the seed nine of ten say nothing."""
    scores: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(12):
        X, y, X_new, y_new = _one_of_ten(seed)
        for saves, found in scores.items():
            tree = PrivateTreeClassifier(
                2.0, bounds=(-5, 5), classes=[0, 1], save_budget=saves, random_state=seed
            )
            with seeded(seed):
                found.append(tree.fit(X, y, parties=np.arange(1000) % 5).score(X_new, y_new))
    saving, plain = (float(np.mean(found)) for found in scores.values())
    assert saving >= plain
    assert saving > 0.8


@pytest.mark.parametrize("saves", [True, False])
def test_a_tree_of_one_leaf_is_not_handed_over_without_a_word(saves: bool) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1, 1, (60, 3)), rng.integers(0, 2, 60)
    tree = PrivateTreeClassifier(0.01, bounds=(-1, 1), classes=[0, 1], save_budget=saves)
    for seed in range(50):  # noise makes a cut now and then
        with warnings.catch_warnings(record=True) as told, seeded(seed):
            warnings.simplefilter("always")
            tree.fit(X, y)
        n_nodes = len(tree.model_.trees[0].structure.feature)
        assert bool(told) is (n_nodes == 1)
        if told:
            break
    assert told[0].category is FitWarning
    assert "one leaf, and epsilon = 0.01 is spent" in str(told[0].message)
    assert ("or save_budget" in str(told[0].message)) is not saves


def test_without_saving_levels_follow_the_rows() -> None:
    """Five levels of ten columns would leave nothing but guesses at 100 rows."""
    schema = Schema.from_bounds({f"x{j}": (-5, 5) for j in range(10)}, classes=[0, 1])
    plan = plan_for(
        schema, Privacy(1.0, 0.0, accounting="pure"), "private-tree",
        {"save_budget": False, "max_depth": 5},
    )  # fmt: skip
    rule = rule_of(schema, PrivateTreeSettings.of(plan.settings))
    assert rule.for_rows(100, 1.0).max_depth == 3
    assert rule.for_rows(100_000, 1.0).max_depth == 5
    assert plan.slots[0].name == "rows"
