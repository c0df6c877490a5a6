"""SHAP's TreeExplainer works on exports, and what it says follows from the covers."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow.data.schema import Numeric, Schema
from hedgerow.export import to_matrix, to_sklearn, to_xgboost
from hedgerow.export.forest import forest_of
from hedgerow.model.ensemble import Ensemble
from tests.conftest import MIXED
from tests.export.ensembles import LABELS, STATEMENT, edge_cases, random_tree
from tests.export.runs import TABLE, matrix_for_xgboost, mixed_model, numbers_of


def explainer(model: Any) -> Any:
    with warnings.catch_warnings():  # of what it imports itself
        warnings.simplefilter("ignore")
        import shap

    return shap.TreeExplainer(model)


def booster_of(model: Ensemble, folder: Path) -> Any:
    import xgboost

    to_xgboost(model, folder / "m.json")
    return xgboost.Booster({"nthread": 1}, model_file=folder / "m.json")


def test_one_split_is_explained_by_its_covers(tmp_path: Path) -> None:
    schema = Schema((Numeric("x", -4, 4), Numeric("z", -4, 4)), LABELS["binary"])
    tree = random_tree(np.random.default_rng(5), schema, 1, 1)
    tree = replace(tree, cover=np.array([1.0, 3.0], np.float32))
    low, high = tree.values[:, 0]
    model, table = Ensemble((tree,), schema, STATEMENT), edge_cases(schema)
    explain = explainer(booster_of(model, tmp_path))
    values = explain.shap_values(matrix_for_xgboost(model, to_matrix(model, table)))
    mean = (low + 3 * high) / 4
    assert np.ravel(explain.expected_value)[0] == pytest.approx(mean, abs=1e-6)  # known by now
    used = tree.structure.feature[0]
    assert values[:, used] == pytest.approx(model.decision_function(table)[:, 0] - mean, abs=1e-6)
    assert not values[:, 1 - used].any()


@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("task", LABELS)
def test_shap_values_add_up_with_categories_and_missing_values(
    task: str, averaged: bool, tmp_path: Path
) -> None:
    schema = Schema(MIXED.columns, LABELS[task])
    width, rng = 4 if task == "multiclass" else 1, np.random.default_rng(6)
    trees = [random_tree(rng, schema, width, n) for n in (0, 6, 9, 9)]
    known = tuple(replace(tree, cover=numbers_of(tree)) for tree in trees)
    model = Ensemble(known, schema, STATEMENT, averaged)
    booster = booster_of(model, tmp_path)
    explain, X = explainer(booster), matrix_for_xgboost(model, to_matrix(model, TABLE))
    values = np.asarray(explain.shap_values(X)).reshape(X.num_row(), 5, -1)
    margin = booster.predict(X, output_margin=True).reshape(X.num_row(), -1)
    assert values.sum(axis=1) + explain.expected_value == pytest.approx(margin, abs=1e-4)
    forest = forest_of(model)
    expected = forest.base + sum(tree.values[0] for tree in forest.trees)
    assert np.ravel(explain.expected_value) == pytest.approx(expected, abs=1e-4)


def test_shap_takes_the_arrays_too_and_a_category_column_stays_one_column(tmp_path: Path) -> None:
    model = mixed_model()
    to_sklearn(model, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as arrays:
        trees = [
            {
                "children_left": arrays["children_left"][a:b],
                "children_right": arrays["children_right"][a:b],
                "children_default": np.where(
                    arrays["missing_go_to_left"][a:b],
                    arrays["children_left"][a:b],
                    arrays["children_right"][a:b],
                ),
                "features": arrays["feature"][a:b],
                "thresholds": arrays["threshold"][a:b],
                "values": arrays["value"][a:b],
                "node_sample_weight": arrays["weighted_n_node_samples"][a:b],
            }
            for a, b in pairwise(arrays["tree_start"])
        ]
    explain = explainer({"trees": trees})
    values = explain.shap_values(to_matrix(model, TABLE).astype(np.float64))
    assert values.shape == (150, 5)
    total = values.sum(axis=1) + explain.expected_value
    assert total == pytest.approx(model.decision_function(TABLE)[:, 0], abs=1e-6)
