"""Noise off, every loss x update x candidates x missing x categories: the reference, exactly."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from hedgerow import kernels
from hedgerow.data.schema import Label
from hedgerow.data.tables import rows_of
from hedgerow.methods.maddock.candidates import CANDIDATES, iterative_hessian
from hedgerow.model.losses import TREE_UPDATES, loss_for
from tests.conftest import split_rows
from tests.oracle.runs import LABELS, differences, expected_of, run, schema_of, table_of
from tests.slow import ALL

N_ROWS = 80
UNEVEN = (1, 7, 30, 20)  # and 22 for the fifth party
TABLES = {missing: table_of(N_ROWS, 5, missing) for missing in (True, False)}
_PARTS = (LABELS, TREE_UPDATES, CANDIDATES, (True, False), ("equality", "subset"))
# Every second case: any two choices still meet in one.
CASES = [
    case
    for case in itertools.product(*_PARTS)
    if ALL or sum(list(part).index(one) for part, one in zip(_PARTS, case, strict=True)) % 2 == 0
]


def settings_of(number: int, update: str, candidates: str, category_split: str) -> dict[str, Any]:
    """Small trees; sizes of batches and starts vary from case to case."""
    return {
        "n_trees": 5,
        "max_depth": 2,
        "n_bins": 8,
        "candidate_rounds": 2,
        "batch_size": 1 + number % 5 % 3,
        "start_share": 0.02 * (number % 11 > 2),
        "shrinkage": ("stein", "none")[number % 7 % 2],
        "update": update,
        "candidates": candidates,
        "category_split": category_split,
    }


@pytest.mark.parametrize(
    ("number", "case"),
    list(enumerate(CASES)),
    ids=["-".join(str(part) for part in case) for case in CASES],
)
def test_any_parties_and_any_trust_give_the_reference_model(
    number: int, case: tuple[str, str, str, bool, str]
) -> None:
    loss, update, candidates, missing, category_split = case
    schema, table = schema_of(loss, missing), TABLES[missing]
    assert loss_for(schema.label).name == loss
    settings = settings_of(number, update, candidates, category_split)
    rows = rows_of(table, schema)
    alone = run({"all": rows}, schema, "coordinator", settings)
    for trust in ("coordinator", "parties"):
        parts = split_rows(rows, UNEVEN)
        assert len(parts) == 5
        assert run(parts, schema, trust, settings).model == alone.model
    assert differences(alone, expected_of(alone, table)) == []
    assert alone.model.averaged == (update == "averaging")
    assert all(tree.values.any() for tree in alone.model.trees)


def test_the_cases_cover_the_registries_and_ask_refining_questions() -> None:
    assert {loss_for(label).code for label in LABELS.values()} == {
        kernels.LOGISTIC,
        kernels.SOFTMAX,
        kernels.SQUARED,
    }
    schema = schema_of("softmax-3")
    settings = settings_of(1, "newton", "iterative-hessian", "subset")
    found = run({"all": rows_of(TABLES[True], schema)}, schema, "coordinator", settings)
    kinds = [query.kind for query, _ in found.asked]
    assert kinds == [*["column-hessians", "leaf-sums"] * 2, "leaf-sums"]
    varied = [settings_of(i, "newton", "uniform", "subset") for i in range(len(CASES))]
    for name, values in (("batch_size", 3), ("start_share", 2), ("shrinkage", 2)):
        assert len({settings[name] for settings in varied}) == values


@pytest.mark.parametrize("loss", LABELS)
@pytest.mark.parametrize("batch_fraction", [0.3, 1.0])
def test_batches_by_fraction_give_the_reference_model(loss: str, batch_fraction: float) -> None:
    schema, table = schema_of(loss), TABLES[True]
    settings = {"n_trees": 6, "max_depth": 2, "batch_fraction": batch_fraction}
    found = run({"all": rows_of(table, schema)}, schema, "coordinator", settings)
    assert len(found.asked) == 1 + {0.3: 3, 1.0: 1}[batch_fraction]
    assert differences(found, expected_of(found, table)) == []


@pytest.mark.parametrize("loss", LABELS)
def test_predictions_from_raw_values_follow_from_the_scores(loss: str) -> None:
    schema, table = schema_of(loss), TABLES[True]
    settings = settings_of(1, "newton", "uniform", "subset")
    model = run({"all": rows_of(table, schema)}, schema, "coordinator", settings).model
    scores, predicted = model.decision_function(table), model.predict(table)
    if loss == "squared":
        assert np.array_equal(predicted, -2 + 9 * np.clip(scores[:, 0], 0, 1))
    else:
        logits = scores if loss == "softmax-3" else np.column_stack([0 * scores, scores])
        shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        assert np.allclose(predicted, shares, rtol=1e-12)


@pytest.mark.parametrize("candidates", CANDIDATES)
@pytest.mark.parametrize("update", TREE_UPDATES)
def test_permuting_the_classes_permutes_the_model(update: str, candidates: str) -> None:
    table, order = TABLES[True], [2, 0, 1]
    schema = schema_of("softmax-3")
    classes = schema.label.classes
    turned = schema.with_label(Label(schema.label.name, tuple(classes[k] for k in order)))
    for number in range(1, 4):  # batches and shrinkage vary
        settings = settings_of(number, update, candidates, "subset")
        one, two = (
            run({"all": rows_of(table, s)}, s, "coordinator", settings).model
            for s in (schema, turned)
        )
        for first, second in zip(one.trees, two.trees, strict=True):
            structures = (first.structure.arrays(), second.structure.arrays())
            assert all(np.array_equal(a, structures[1][n]) for n, a in structures[0].items())
            assert np.array_equal(first.values[:, order], second.values)
        assert not np.array_equal(one.trees[-1].values, two.trees[-1].values)
        assert np.allclose(one.predict(table)[:, order], two.predict(table))


# The comparison can fail.


@pytest.mark.parametrize("update", TREE_UPDATES)
@pytest.mark.parametrize("loss", LABELS)
def test_the_comparison_notices_one_step_too_many(
    loss: str, update: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = kernels.leaf_sums

    def moved(*arguments: Any, **named: Any) -> Any:
        total = right(*arguments, **named)
        total[0] += 1 << 14  # far less than any noise
        return total

    monkeypatch.setattr(kernels, "leaf_sums", moved)
    schema, table = schema_of(loss), TABLES[True]
    settings = settings_of(1, update, "uniform", "subset")
    found = run({"all": rows_of(table, schema)}, schema, "coordinator", settings)
    noticed = differences(found, expected_of(found, table))
    assert any(name.startswith("values of tree") for name in noticed)


def test_the_comparison_notices_other_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterative_hessian, "_middle", lambda grid, left, right: None)
    schema, table = schema_of("logistic"), TABLES[True]
    settings = settings_of(1, "newton", "iterative-hessian", "subset")
    found = run({"all": rows_of(table, schema)}, schema, "coordinator", settings)
    assert "cuts of question 1" in differences(found, expected_of(found, table))
