"""Every registered query is attacked with the worst rows; a kind without an attack is an error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow import losses
from hedgerow.errors import FormatError
from hedgerow.queries import (
    NO_TREES,
    QUERIES,
    ColumnHessians,
    LabelSums,
    LeafSums,
    Sensitivity,
    leaf_sums,
    query_bytes,
    query_from_bytes,
    size_of,
)
from hedgerow.testing import check_query
from tests.contracts.attacks import ATTACKS, SCHEMAS, every_cell, leaf_sums_of, saturated

ALL = [(kind, task) for kind in QUERIES for task in SCHEMAS]


def test_every_registered_kind_has_an_attack() -> None:
    assert set(ATTACKS) == set(QUERIES)
    asked = {(q.loss, q.update) for task in SCHEMAS for q in ATTACKS[LeafSums.kind](SCHEMAS[task])}
    names = {losses.loss_for(schema.label).name for schema in SCHEMAS.values()}
    assert asked == {(name, update) for name in names for update in losses.UPDATES}


@pytest.mark.parametrize(("kind", "task"), ALL)
def test_no_cell_exceeds_the_stated_sensitivity(kind: str, task: str) -> None:
    schema = SCHEMAS[task]
    rows, scores = every_cell(schema)
    for query in ATTACKS[kind](schema):
        check_query(query, schema, rows, scores, bits=31)


@pytest.mark.parametrize(
    ("kind", "task", "bits"),
    [
        (kind, task, bits)
        for kind, task in ALL
        for bits in range(16, 32)
        # Every fineness where few rows say all; some for the long vectors of many classes.
        if task in ("binary", "softmax-3", "number") or bits in (16, 23, 31)
    ],
)
def test_no_saturated_score_exceeds_the_stated_sensitivity(kind: str, task: str, bits: int) -> None:
    schema = SCHEMAS[task]
    rows, scores = saturated(schema)
    for query in ATTACKS[kind](schema):
        check_query(query, schema, rows, scores, bits)


@pytest.mark.parametrize(("kind", "task"), ALL)
def test_a_query_survives_its_own_bytes(kind: str, task: str) -> None:
    schema = SCHEMAS[task]
    rows, scores = saturated(schema)
    for query in ATTACKS[kind](schema):
        data = query_bytes(query)
        again = query_from_bytes(data)
        again.check(schema)
        assert query_bytes(again) == data
        assert (again.blocks, again.sensitivity) == (query.blocks, query.sensitivity)
        expected = query.answer(rows, scores, schema, 20)
        assert np.array_equal(again.answer(rows, scores, schema, 20), expected)
        assert expected.shape == (size_of(query),)


@pytest.mark.parametrize("kind", QUERIES)
def test_cut_or_foreign_bytes_are_not_a_query(kind: str) -> None:
    data = query_bytes(ATTACKS[kind](SCHEMAS["binary"])[0])
    for broken in (
        data[:-1],
        data[1:],
        data + b"\0",
        data.replace(kind.encode(), b"x" * len(kind)),
    ):
        with pytest.raises(FormatError):
            query_from_bytes(broken)


@pytest.mark.parametrize("kind", [LabelSums.kind, ColumnHessians.kind, LeafSums.kind])
def test_a_question_about_another_label_is_refused(kind: str) -> None:
    for task, schema in SCHEMAS.items():
        for other in SCHEMAS:
            if other != task:
                with pytest.raises(FormatError):
                    ATTACKS[kind](SCHEMAS[other])[0].check(schema)


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": (0, 0)},
        {"columns": (0, 9)},
        {"columns": (0, -1)},
        {"columns": (0, 3)},  # a column without order
        {"columns": (), "cuts": ()},
        {"columns": (0,)},
        {"cuts": ((3, 2), (1,))},
        {"cuts": ((2, 2), (1,))},
        {"cuts": ((-1, 2), (1,))},
        {"cuts": ((2, 100), (1,))},
        {"loss": "squared"},
    ],
)
def test_hessians_outside_of_the_base_grid_are_refused(changes: dict[str, Any]) -> None:
    schema = SCHEMAS["binary"]
    right = ColumnHessians((0, 1), ((2, 3), (1,)), "logistic", NO_TREES)
    right.check(schema)
    with pytest.raises(FormatError):
        replace(right, **changes).check(schema)


# The attacks can fail.


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


@pytest.mark.parametrize("kind", DEFECTS)
@pytest.mark.parametrize("task", SCHEMAS)
def test_adding_too_much_is_found(kind: str, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cls, schema = QUERIES[kind], SCHEMAS[task]
    right = cls.answer
    monkeypatch.setattr(cls, "answer", lambda self, *a: DEFECTS[kind](right(self, *a)))
    rows, scores = saturated(schema)
    with pytest.raises(AssertionError, match=r"a row moves the answer|not the sum"):
        check_query(ATTACKS[kind](schema)[0], schema, rows, scores, bits=20)
