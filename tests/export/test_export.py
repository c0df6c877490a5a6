"""What is in an export: notes, covers, the statement, and nothing that was not released."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from hedgerow import PrivateBoostingClassifier, SimilarityBoostingClassifier
from hedgerow.data.schema import Categorical, Numeric, Schema
from hedgerow.errors import ExportError
from hedgerow.export import FORMATS, to_matrix, to_sklearn, to_xgboost
from hedgerow.export import ordering as ordering_module
from hedgerow.export.forest import forest_of
from hedgerow.export.ordering import ordered
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.statement import Statement
from hedgerow.model.tree import Tree, single_leaf
from tests.conftest import MIXED
from tests.export.ensembles import LABELS, STATEMENT, edge_cases, random_tree
from tests.export.runs import TABLE, metadata, mixed_model, numbers_of, predictions


@pytest.mark.parametrize("name", FORMATS)
def test_three_hundred_categories_and_every_kind_of_column(name: str, tmp_path: Path) -> None:
    model = mixed_model()
    found = predictions(name, model, to_matrix(model, TABLE), tmp_path)
    assert np.abs(found - model.predict(TABLE)).max() < 1e-5


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("task", LABELS)
def test_sums_beyond_their_range_are_clipped(name: str, task: str, tmp_path: Path) -> None:
    schema = Schema((Numeric("x", -4, 4),), LABELS[task])
    width = len(schema.label.classes) if task == "multiclass" else 1
    values = np.array([[-3.0, 2.0, 0.5, -1.0], [4.0, -2.0, 1.5, 1.0]], np.float32)[:, :width]
    split = random_tree(
        np.random.default_rng(0), Schema((Numeric("x", -4, 4),), LABELS[task]), width, 1
    )
    trees = (Tree(split.structure, values), single_leaf(np.full(width, 0.25)))
    model = Ensemble(trees, schema, STATEMENT, averaged=True)
    table = edge_cases(schema)
    exported = FORMATS[name](model, tmp_path / "out")
    assert json.loads(metadata(name, tmp_path / "out")["hedgerow_output"])["exact"] is False
    assert any("lip" in note for note in exported.notes) == (name != "onnx")
    found = predictions(name, model, to_matrix(model, table), tmp_path)
    assert np.abs(found - model.predict(table)).max() < 1e-5


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_the_shares_of_one_tree_are_exported_as_scores_of_a_classifier(
    task: str, tmp_path: Path
) -> None:
    import xgboost

    schema = Schema(MIXED.columns, LABELS[task])
    tree = random_tree(np.random.default_rng(2), schema, 1 if task == "binary" else 4, 8)
    shares = np.abs(tree.values) / np.abs(tree.values).sum(axis=1, keepdims=True)
    shares[0] = np.eye(shares.shape[1])[0]  # a share of 1 has no finite log-odds
    model = Ensemble((Tree(tree.structure, shares),), schema, STATEMENT, averaged=True)
    assert not any("lip" in note for note in to_xgboost(model, tmp_path / "m.json").notes)
    classifier = xgboost.XGBClassifier(n_jobs=1)
    classifier.load_model(tmp_path / "m.json")
    found = classifier.get_booster().inplace_predict(
        to_matrix(model, TABLE), validate_features=False
    )
    expected = model.predict(TABLE)
    assert np.abs(found - (expected[:, 1] if task == "binary" else expected)).max() < 1e-5


def test_a_forest_of_shares_needs_no_clipping(tmp_path: Path) -> None:
    model = mixed_model()
    trees = [Tree(t.structure, np.abs(t.values) / np.abs(t.values).max() / 8) for t in model.trees]
    notes = to_xgboost(replace(model, trees=tuple(trees), averaged=True), tmp_path / "m").notes
    assert "A prediction is the probability of class 'yes'." in notes


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_carries_the_statement_and_what_rows_must_look_like(
    name: str, tmp_path: Path
) -> None:
    model = mixed_model()
    exported = FORMATS[name](model, tmp_path / "out")
    found = metadata(name, tmp_path / "out")
    assert Statement.from_dict(json.loads(found["hedgerow_statement"])) == model.statement
    assert found["hedgerow_promise"] == model.statement.words()
    assert Schema.from_dict(json.loads(found["hedgerow_schema"])) == model.schema
    assert found["hedgerow_model"] == model.hash
    covers = "none" if name == "onnx" else "equal shares"
    assert found["hedgerow_covers"] == exported.covers == covers
    assert any("equal shares" in note for note in exported.notes) == (name != "onnx")
    inputs = {entry["name"]: entry for entry in json.loads(found["hedgerow_inputs"])}
    assert inputs["site"]["codes"] == ["north", "south", "east"]
    assert [inputs[n].get("other") for n in MIXED.names] == [None, None, "NaN", 3, "error"]
    assert set(found) == {
        f"hedgerow_{key}" for key in (
            "format", "model", "promise", "statement", "schema", "inputs", "output", "covers"
        )
    }  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_a_model_without_a_guarantee_says_so_there_too(name: str, tmp_path: Path) -> None:
    model = replace(mixed_model(1), statement=replace(STATEMENT, guarantee="not private"))
    assert "NOT PRIVATE" in FORMATS[name](model, tmp_path / "out").notes[0]
    assert metadata(name, tmp_path / "out")["hedgerow_promise"].startswith("NOT PRIVATE")
    assert "NOT PRIVATE" not in str(FORMATS[name](mixed_model(1), tmp_path / "out").notes)


@pytest.mark.parametrize("name", FORMATS)
def test_only_trees_covers_schema_and_statement_reach_a_file(name: str, tmp_path: Path) -> None:
    """What a model keeps beside them, its record and deviations, changes no byte of an export."""
    model = mixed_model()
    noisy = [replace(t, deviation=np.full_like(t.values, 0.7)) for t in model.trees]
    more = replace(model, trees=tuple(noisy), record={"plan": "secret-of-the-run"})
    for number, one in enumerate((model, more)):
        FORMATS[name](one, tmp_path / str(number))
    if name != "sklearn":  # whose archive has the time of day in it
        assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()
        return
    with np.load(tmp_path / "0") as first, np.load(tmp_path / "1") as second:
        assert list(first) == list(second)
        assert all(np.array_equal(first[key], second[key]) for key in first)


# Covers


def test_released_covers_are_sums_over_leaves_and_flagged(tmp_path: Path) -> None:
    plain = mixed_model()
    known = [replace(tree, cover=numbers_of(tree)) for tree in plain.trees]
    model = replace(plain, trees=(*known, single_leaf(np.zeros(1))))
    assert to_xgboost(model, tmp_path / "m.json").covers == "released"
    trees = json.loads((tmp_path / "m.json").read_text())["learner"]["gradient_booster"]["model"]
    for tree, written in zip(known, trees["trees"], strict=False):
        cover, left = np.array(written["sum_hessian"]), np.array(written["left_children"])
        right, inner = np.array(written["right_children"]), left >= 0
        assert np.allclose(cover[~inner], numbers_of(tree))
        assert np.allclose(cover[inner], cover[left[inner]] + cover[right[inner]])
    partly = replace(plain, trees=(*known[1:], plain.trees[0]))
    exported = to_xgboost(partly, tmp_path / "m.json")
    assert exported.covers == "partly released"
    assert "Covers of 1 of 8 trees are equal shares" in exported.notes[-1]


def test_a_cover_that_is_unknown_or_nothing_does_not_become_zero() -> None:
    tree = mixed_model(1).trees[0]
    for cover in (np.full(tree.structure.n_leaves, 0.0), numbers_of(tree) * np.nan):
        forest = forest_of(replace(mixed_model(1), trees=(replace(tree, cover=cover),)))
        assert (forest.n_released, forest.trees[0].cover.min()) == (0, 1.0)
    some = numbers_of(tree)
    some[0] = 0
    forest = forest_of(replace(mixed_model(1), trees=(replace(tree, cover=some),)))
    assert forest.n_released == 1
    assert 0 < forest.trees[0].cover.min() < 1e-4


def test_ordered_splits_keep_covers_values_and_little_more_than_a_leaf_a_code() -> None:
    model = mixed_model(6)
    known = tuple(replace(tree, cover=numbers_of(tree)) for tree in model.trees)
    forest = forest_of(replace(model, trees=known))
    for before, after in zip(forest.trees, ordered(forest), strict=True):
        assert not after.members
        assert after.cover[0] <= before.cover[0] * (1 + 1e-9)  # leaves that nothing reaches go
        assert np.all(np.isin(after.values[after.feature < 0], before.values))
    only = Schema((Categorical("code", tuple(range(50)), other="error"),), LABELS["binary"])
    tree = random_tree(np.random.default_rng(3), only, 1, 60)
    forest = forest_of(Ensemble((tree,), only, STATEMENT))
    (after,) = ordered(forest)
    assert np.count_nonzero(after.feature < 0) <= 51  # one for missing values


def test_too_many_ordered_splits_are_refused_before_a_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering_module, "MAX_NODES", 500)
    with pytest.raises(ExportError, match=r"more than 500 nodes.*Nothing was written"):
        to_sklearn(mixed_model(), tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []


# Use


def test_estimators_export_what_they_predict(
    two_numbers: tuple[NDArray[np.float64], NDArray[np.int64]], tmp_path: Path
) -> None:
    X, y = two_numbers
    bounds: dict[str, Any] = {"bounds": (0, 1), "classes": [0, 1], "random_state": 1}
    private = PrivateBoostingClassifier(
        epsilon=4.0, method="random-trees", n_trees=5, max_depth=2, **bounds
    )
    with pytest.raises(NotFittedError):
        private.to_xgboost(tmp_path / "m.json")
    private.fit(X, y)
    similar = SimilarityBoostingClassifier(**bounds)
    similar.model_, similar.n_features_in_ = private.model_, 2
    for estimator in (private, similar):
        for name in FORMATS:
            exported = getattr(estimator, f"to_{name}")(tmp_path / name)
            covers = "none" if name == "onnx" else "released"
            assert (exported.trees, exported.covers) == (len(private.model_.trees), covers)
            assert metadata(name, tmp_path / name)["hedgerow_covers"] == covers
        found = predictions("xgboost", estimator.model_, estimator.to_matrix(X), tmp_path)
        assert np.abs(found - estimator.predict_proba(X)).max() < 1e-5


@pytest.mark.parametrize(("name", "library"), [("onnx", "onnx"), ("treelite", "treelite")])
def test_a_missing_library_is_named_with_what_to_install(
    name: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ExportError, match=r"pip install 'hedgerow\[export\]'"):
        FORMATS[name](mixed_model(1), tmp_path / "out")


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_written_whole_or_not_at_all(name: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="is a folder"):
        FORMATS[name](mixed_model(1), tmp_path)
    with pytest.raises(ExportError, match="cannot write"):
        FORMATS[name](mixed_model(1), tmp_path / "nowhere" / "out")
    FORMATS[name](mixed_model(1), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="int is no model"):
        to_xgboost(3, tmp_path / "m.json")
