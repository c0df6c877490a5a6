"""The attacks can fail: wrong bounds, wrong noise units and wrong answers are found."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow import kernels
from hedgerow.model import losses
from hedgerow.queries import (
    QUERIES,
    ColumnHessians,
    ColumnSums,
    LabelSums,
    LeafSums,
    Sensitivity,
    leaf_sums,
)
from hedgerow.testing import check_query
from tests.contracts.attacks import (
    ATTACKS,
    SCHEMAS,
    column_sums,
    leaf_sums_of,
    saturated,
    stepped,
)


def attack_all(queries: list[Any], task: str) -> None:
    schema = SCHEMAS[task]
    rows, scores = saturated(schema)
    for query in queries:
        check_query(query, schema, rows, scores, bits=26)


@pytest.mark.parametrize("clip", [0.7, 0.5, 0.3, 0.05])
def test_a_clipped_bound_that_forgets_the_hessian_is_found(
    clip: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = SCHEMAS["binary"]
    clipped = replace(leaf_sums_of(schema, "newton", 1), clip=clip)
    attack_all([clipped], "binary")
    right = losses.Logistic.bound

    def forgetful(self: losses.Logistic, update: str, most: float = math.inf) -> losses.RowBound:
        return replace(right(self, update, most), l2=most)

    monkeypatch.setattr(losses.Logistic, "bound", forgetful)
    with pytest.raises(AssertionError, match="a row moves the answer"):
        attack_all([replace(clipped)], "binary")


@pytest.mark.parametrize("task", [task for task in SCHEMAS if stepped(SCHEMAS[task])])
def test_a_step_that_is_not_clamped_to_one_is_found(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = stepped(SCHEMAS[task])
    attack_all(queries, task)
    right = kernels.step_sums

    def twice(gradients: kernels.Gradients, before: Any, scale: float) -> NDArray[np.int64]:
        # steps up to 2 get through
        return right(gradients, before, 2 * scale) * np.array([2, 4])

    monkeypatch.setattr(kernels, "step_sums", twice)
    for query in queries:
        with pytest.raises(AssertionError, match="a row moves the answer"):
            attack_all([query], task)


@pytest.mark.parametrize("task", [task for task in SCHEMAS if stepped(SCHEMAS[task])])
def test_a_step_that_is_not_counted_is_found(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = LeafSums.sensitivity.fget  # type: ignore[attr-defined]
    forgetful = property(lambda self: right(replace(self, step_trees=0)))
    monkeypatch.setattr(LeafSums, "sensitivity", forgetful)
    for query in stepped(SCHEMAS[task]):
        with pytest.raises(AssertionError, match="a row moves the answer"):
            attack_all([query], task)


@pytest.mark.parametrize("task", SCHEMAS)
@pytest.mark.parametrize("where", ["sensitivity", "blocks"])
def test_forgotten_column_weights_are_found(
    task: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    described: Any = ColumnSums.__dict__[where]
    right = described.fget if isinstance(described, property) else described.func

    def unweighted(self: ColumnSums) -> Any:
        return right(replace(self, weights=(1.0,) * len(self.columns)))

    queries = column_sums(SCHEMAS[task])
    monkeypatch.setattr(ColumnSums, where, property(unweighted))
    with pytest.raises(AssertionError, match="a row moves the answer"):
        attack_all(queries, task)


@pytest.mark.parametrize("task", SCHEMAS)
def test_a_strategy_matrix_counted_by_anything_but_its_longest_column_is_found(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = [query for query in column_sums(SCHEMAS[task]) if query.matrices]
    assert queries
    attack_all(queries, task)

    def second_longest(matrix: Any) -> tuple[float, float]:
        whole = np.abs(matrix.astype(np.int64))
        l1, l2 = whole.sum(axis=0), np.sqrt((whole**2).sum(axis=0))
        return float(np.sort(l1)[-2]), float(np.sort(l2)[-2])

    monkeypatch.setattr("hedgerow.queries.column_sums.largest_norms", second_longest)
    queries = [query for query in column_sums(SCHEMAS[task]) if query.matrices]
    with pytest.raises(AssertionError, match="a row moves the answer"):
        attack_all(queries, task)


@pytest.mark.parametrize(
    ("task", "scale"),
    [("binary", 3.34), ("softmax-3", 2.05), ("softmax-7", 2.01), ("number", 0.51)],
)
def test_a_hessian_scale_beyond_the_bound_is_found(
    task: str, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound of the right scale does not hold for a larger one."""
    schema = SCHEMAS[task]
    query = leaf_sums_of(schema, "newton", 1)
    stated = query.sensitivity
    wrong: Any = replace(losses.loss_for(schema.label), hessian_scale=scale)  # type: ignore[type-var]
    monkeypatch.setattr(leaf_sums, "loss_named", lambda name: wrong)
    monkeypatch.setattr(LeafSums, "sensitivity", stated)
    rows, scores = saturated(schema)
    with pytest.raises(AssertionError, match="a row moves the answer"):
        check_query(leaf_sums_of(schema, "newton", 1), schema, rows, scores, bits=26)


def test_a_forgotten_tree_of_the_batch_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = SCHEMAS["binary"]
    monkeypatch.setattr(LeafSums, "sensitivity", Sensitivity(l1=99.0, l2=math.sqrt(6)))
    rows, scores = saturated(schema)
    with pytest.raises(AssertionError, match="a row moves the answer"):
        check_query(leaf_sums_of(schema, "newton", 7), schema, rows, scores, bits=26)


@pytest.mark.parametrize("task", ["binary", "softmax-3", "number"])
def test_rounding_away_from_zero_is_found(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = SCHEMAS[task]
    right = LeafSums.answer

    def rounded_up(self: LeafSums, *arguments: object) -> NDArray[np.int64]:
        exact = right(self, *arguments)  # type: ignore[arg-type]
        half = len(exact) // 2
        exact[half:] += exact[:half] != 0  # one step more wherever a row lands
        return exact

    monkeypatch.setattr(LeafSums, "answer", rounded_up)
    rows, scores = saturated(schema)
    with pytest.raises(AssertionError, match="a row moves the answer"):
        check_query(leaf_sums_of(schema, "newton", 1), schema, rows, scores, bits=16)


DEFECTS: dict[str, Callable[[Any], Any]] = {
    LabelSums.kind: lambda answer: 2 * answer,
    ColumnHessians.kind: lambda answer: answer + (answer != 0),
}


@pytest.mark.parametrize(
    ("kind", "task"), [(k, task) for k in DEFECTS for task in SCHEMAS if ATTACKS[k](SCHEMAS[task])]
)
def test_adding_too_much_is_found(kind: str, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cls, schema = QUERIES[kind], SCHEMAS[task]
    right = cls.answer
    monkeypatch.setattr(cls, "answer", lambda self, *a: DEFECTS[kind](right(self, *a)))
    rows, scores = saturated(schema)
    with pytest.raises(AssertionError, match=r"a row moves the answer|not the sum"):
        check_query(ATTACKS[kind](schema)[0], schema, rows, scores, bits=20)


@pytest.mark.parametrize(
    ("kind", "task"),
    [
        ("class-outcomes", "binary"),
        ("class-outcomes", "softmax-7"),
        ("error-counts", "number"),
        ("error-sums", "number"),
        ("label-sums", "hazards"),
        ("score-counts", "hazards"),
        ("column-sums", "hazards"),
        ("leaf-sums", "hazards"),
        ("score-counts", "periods"),
        ("column-sums", "periods"),
        ("leaf-sums", "periods"),
        ("label-sums", "counts"),
        ("column-sums", "counts"),
        ("leaf-sums", "counts"),
        ("deviance-counts", "counts"),
        ("deviance-sums", "counts"),
        ("column-sums", "quantile-0.9"),
        ("leaf-sums", "quantile-0.5"),
        ("score-counts", "quantile-0.9"),
        ("column-sums", "huber"),
        ("leaf-sums", "huber"),
    ],
)
def test_a_bound_of_outcomes_that_is_a_little_too_small_is_found(
    kind: str, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attacks reach the bounds of evaluations, and of hazards, to one part in a thousand."""
    cls = QUERIES[kind]
    right = cls.sensitivity.fget

    def smaller(self: Any) -> Sensitivity:
        stated = right(self)
        return Sensitivity(stated.l1, stated.l2 * 0.999)

    monkeypatch.setattr(cls, "sensitivity", property(smaller))
    with pytest.raises(AssertionError, match="a row moves the answer"):
        attack_all(ATTACKS[kind](SCHEMAS[task]), task)
