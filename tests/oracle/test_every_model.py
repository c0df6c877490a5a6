"""Noise off, every loss x update x candidates x missing x categories: the reference, exactly."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from hedgerow import kernels
from hedgerow.growing.candidates import CANDIDATES, iterative_hessian
from hedgerow.losses import UPDATES, loss_for
from hedgerow.tables import rows_of
from tests.conftest import split_rows
from tests.oracle.runs import LABELS, differences, expected_of, run, schema_of, table_of

N_ROWS = 80
UNEVEN = (1, 7, 30, 20)  # and 22 for the fifth party
TABLES = {missing: table_of(N_ROWS, 5, missing) for missing in (True, False)}
CASES = list(itertools.product(LABELS, UPDATES, CANDIDATES, (True, False), ("equality", "subset")))


def settings_of(number: int, update: str, candidates: str, category_split: str) -> dict[str, Any]:
    """Small trees; sizes of batches and starts vary from case to case."""
    return {
        "n_trees": 5,
        "max_depth": 2,
        "n_bins": 8,
        "candidate_rounds": 2,
        "batch_size": 1 + number % 2,
        "start_share": 0.02 * (number % 3 > 0),
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
    assert kinds == ["label-sums", *["column-hessians", "leaf-sums"] * 2, "leaf-sums"]


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


# The comparison can fail.


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("loss", LABELS)
def test_the_comparison_notices_one_step_too_many(
    loss: str, update: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = kernels.leaf_sums

    def moved(*arguments: Any) -> Any:
        total = right(*arguments)
        total[0] += 1 << 10  # far less than any noise
        return total

    monkeypatch.setattr(kernels, "leaf_sums", moved)
    schema, table = schema_of(loss), TABLES[True]
    settings = settings_of(1, update, "uniform", "subset")
    found = run({"all": rows_of(table, schema)}, schema, "coordinator", settings)
    assert "values of tree 1" in differences(found, expected_of(found, table))


def test_the_comparison_notices_other_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterative_hessian, "_middle", lambda grid, left, right: None)
    schema, table = schema_of("logistic"), TABLES[True]
    settings = settings_of(1, "newton", "iterative-hessian", "subset")
    found = run({"all": rows_of(table, schema)}, schema, "coordinator", settings)
    assert "cuts of question 1" in differences(found, expected_of(found, table))
