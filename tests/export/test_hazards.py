"""Times to an event in other libraries: the same survival from XGBoost and ONNX."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow import Categorical, Label, Numeric, PrivateSurvivalBoosting, Schema
from hedgerow.errors import ExportError
from hedgerow.export import interval_rows
from hedgerow.testing import noise_off
from tests.randomness import cached

CUTS = (0.5, 1.0, 1.5, 2.0, 3.0)
COLUMNS = (
    Numeric("a", -1, 1),
    Numeric("interval", 0, 9, integer=True),
    Categorical("c", ("x", "y", "z")),
)


def table(n: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1, 1, n), rng.integers(0, 10, n).astype(float)
    a[::13] = np.nan
    group = rng.integers(0, 3, n)
    risk = np.exp(np.nan_to_num(a) + 0.1 * b - 0.5 * (group == 1))
    time, seen = rng.exponential(3 / risk), rng.uniform(0.2, 4, n)
    return {
        "a": a, "interval": b, "c": np.array(["x", "y", "z"], object)[group],
        "t": np.minimum(time, seen), "e": (time <= seen).astype(int),
    }  # fmt: skip


@cached
def fitted(change_at: float | None, method: str = "auto") -> PrivateSurvivalBoosting:
    label = Label("t", event="e", cuts=CUTS, change_at=change_at)
    settings = {"n_trees": 12} if method == "random-trees" else {}
    model = PrivateSurvivalBoosting(
        Schema(COLUMNS, label), epsilon=50, method=method, settings=settings, random_state=1
    )
    with noise_off():
        return model.fit(table(1500))


CASES = [(None, "auto"), (1.0, "auto"), (1.0, "random-trees")]


@pytest.mark.parametrize(("change_at", "method"), CASES)
def test_xgboost_predicts_the_hazard_of_every_interval(
    change_at: float | None, method: str, tmp_path: Path
) -> None:
    xgboost = pytest.importorskip("xgboost")
    model, rows = fitted(change_at, method), table(300, seed=1)
    told = model.to_xgboost(tmp_path / "m.json")
    assert any("'interval_'" in note and "from 0 to 4" in note for note in told.notes)
    booster = xgboost.Booster(model_file=tmp_path / "m.json")
    assert booster.feature_names[-1] == "interval_"
    assert json.loads(booster.attr("hedgerow_output"))["cuts"] == list(CUTS)
    expanded = interval_rows(model.to_matrix(rows), len(CUTS))
    types, names = booster.feature_types, booster.feature_names
    matrix = xgboost.DMatrix(
        expanded, feature_names=names, feature_types=types, enable_categorical=True
    )
    hazards = booster.predict(matrix).reshape(-1, len(CUTS))
    expected = model.predict_survival_function(rows)
    assert np.ptp(expected[:, -1]) > 0.2
    assert np.allclose(np.exp(-np.cumsum(hazards, axis=1)), expected, atol=2e-6)


@pytest.mark.parametrize(("change_at", "method"), CASES)
def test_onnx_predicts_survival_at_every_cut(
    change_at: float | None, method: str, tmp_path: Path
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model, rows = fitted(change_at, method), table(300, seed=1)
    model.to_onnx(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    survival = session.run(["survival"], {"X": model.to_matrix(rows)})[0]
    assert np.allclose(survival, model.predict_survival_function(rows), atol=2e-6)


def test_effects_that_change_are_cut_at_the_change(tmp_path: Path) -> None:
    model = fitted(1.0)
    model.to_xgboost(tmp_path / "m.json")
    trees = json.loads((tmp_path / "m.json").read_text())["learner"]["gradient_booster"]["model"]
    roots = [
        tree["split_conditions"][0] for tree in trees["trees"] if tree["split_indices"][0] == 3
    ]
    assert 1.5 in roots  # two intervals end at the change


def test_formats_without_intervals_refuse_in_words(tmp_path: Path) -> None:
    for write in (fitted(None).to_sklearn, fitted(None).to_treelite):
        with pytest.raises(ExportError, match="XGBoost's JSON holds it as rows by interval"):
            write(tmp_path / "m")
    assert not list(tmp_path.iterdir())
