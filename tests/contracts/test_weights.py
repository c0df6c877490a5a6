"""Every registered query under weights of rows: attacked at the cap, below it and at zero."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hedgerow.data.rng import stream
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows
from hedgerow.data.weights import Weight
from hedgerow.errors import PlanError
from hedgerow.queries import NO_TREES, QUERIES, ScoreCounts
from hedgerow.queries.calibration import reach_of
from hedgerow.testing import check_query
from tests.contracts.attacks import ATTACKS, SCHEMAS, every_cell, saturated, with_steps

# A new query refuses weights until its bound is proven; whoever adds one says so here too.
REFUSE = {"class-histograms", "impurity-bounds", "split-choices", "leaf-averages"}
IGNORE = {"class-outcomes", "error-counts", "error-sums", "deviance-counts", "deviance-sums"}
SCALE = set(QUERIES) - REFUSE - IGNORE
TASKS = ("binary", "softmax-3", "number", "counts")
CAPS = (1.0, 2.0, 1.3, 10.0, 10_000.0)


def weighted(schema: Schema, cap: float) -> Schema:
    return replace(schema, weight=Weight("w", cap))


def with_weights(rows: Rows, weight: Weight, weights: Any) -> Rows:
    return replace(rows, weights=weight.steps(np.resize(np.asarray(weights, float), rows.n_rows)))


def farthest(query: Any, schema: Schema, rows: Rows, scores: NDArray[np.float64]) -> float:
    """The largest l2 norm of what one of the rows adds, in units of the blocks."""
    scores = with_steps(query, scores)
    units = np.concatenate([np.full(block.size, block.weight) for block in query.blocks])
    found = []
    for i in range(rows.n_rows):
        one = np.array([i])
        answer = query.answer(rows.take(one), scores[one], schema, 26)
        found.append(float(np.linalg.norm(answer / 2.0**26 / units)))
    return max(found)


def test_every_kind_says_what_it_does_with_weights() -> None:
    asked = [attack(schema) for schema in SCHEMAS.values() for attack in ATTACKS.values()]
    said = {query.kind: query.row_weights for queries in asked for query in queries}
    expected = dict.fromkeys(SCALE, "scale")
    expected |= dict.fromkeys(REFUSE, "refuse") | dict.fromkeys(IGNORE, "ignore")
    assert said == expected


@pytest.mark.parametrize("kind", sorted(REFUSE))
def test_a_kind_without_a_proof_is_not_asked_of_weighted_rows(kind: str) -> None:
    for schema in SCHEMAS.values():
        for query in ATTACKS[kind](schema)[:1]:
            assert reach_of(query, schema) == 1.0
            with pytest.raises(PlanError, match=f"{kind} cannot be asked .* Nothing was asked"):
                reach_of(query, weighted(schema, 2.0))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", sorted(SCALE | IGNORE))
def test_no_weight_exceeds_the_cap_times_the_sensitivity(kind: str, task: str) -> None:
    rng = stream(5, "weights")
    for number, cap in enumerate(CAPS):
        schema = weighted(SCHEMAS[task], cap)
        assert schema.weight is not None
        rows, scores = saturated(schema) if number % 2 == 0 else every_cell(schema)
        random = rng.uniform(-0.2 * cap, 1.5 * cap, rows.n_rows)  # clamped to 0 and the cap
        for weights in ([cap], random, [0.0, cap, np.inf]):
            heavy = with_weights(rows, schema.weight, weights)
            for query in ATTACKS[kind](schema)[:3]:
                check_query(query, schema, heavy, scores, bits=(16, 31)[number % 2])


@pytest.mark.parametrize("cap", [2.0, 1.3, 10.0])
@pytest.mark.parametrize("kind", sorted(SCALE))
def test_a_row_of_the_largest_weight_reaches_the_cap_times_as_far(kind: str, cap: float) -> None:
    for task in TASKS:
        plain = SCHEMAS[task]
        schema = weighted(plain, cap)
        assert schema.weight is not None
        rows, scores = saturated(plain)
        heavy = with_weights(rows, schema.weight, [cap])
        for query in ATTACKS[kind](plain)[:2]:
            once = farthest(query, plain, rows, scores)
            many = farthest(query, schema, heavy, scores)
            assert cap * once * (1 - 1e-4) <= many <= cap * once * (1 + 1e-9)
            assert many <= reach_of(query, schema) * query.sensitivity.l2 * (1 + 1e-12)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", sorted(SCALE | IGNORE))
def test_weights_of_one_change_no_bit_and_of_zero_leave_nothing(kind: str, task: str) -> None:
    plain = SCHEMAS[task]
    schema = weighted(plain, 1.0)
    assert schema.weight is not None
    rows, scores = saturated(plain)
    ones, nothing = (with_weights(rows, schema.weight, [w]) for w in (1.0, 0.0))
    for query in ATTACKS[kind](plain):
        at = with_steps(query, scores)
        answer = query.answer(rows, at, plain, 20)
        assert np.array_equal(query.answer(ones, at, schema, 20), answer)
        left = query.answer(nothing, at, schema, 20)
        assert np.array_equal(left, np.zeros_like(answer) if kind in SCALE else answer)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", sorted(SCALE))
def test_whole_weights_are_rows_that_are_there_so_often(kind: str, task: str) -> None:
    schema = weighted(SCHEMAS[task], 3.0)
    assert schema.weight is not None
    rows, scores = saturated(schema)
    times = np.arange(rows.n_rows) % 4
    heavy = with_weights(rows, schema.weight, times)
    index = np.repeat(np.arange(rows.n_rows), times)
    for query in ATTACKS[kind](schema):
        at = with_steps(query, scores)
        answer = query.answer(heavy, at, schema, 20)
        repeated = query.answer(rows.take(index), at[index], SCHEMAS[task], 20)
        # What a step was worth is truncated after the weight: a grid step or two a row.
        last = len(answer) - (2 if query.step_trees else 0)
        assert np.array_equal(answer[:last], repeated[:last])
        assert np.all(np.abs(answer - repeated) <= 3 * rows.n_rows)


def test_a_row_counts_once_where_a_model_is_measured() -> None:
    """The noise of such a query does not grow with the cap, so neither may what a row adds."""
    schema = weighted(SCHEMAS["binary"], 10.0)
    assert schema.weight is not None
    rows, scores = saturated(schema)
    query = ScoreCounts(2, (-1.0, 1.0), NO_TREES, once=True)
    assert reach_of(query, schema) == 1.0
    heavy = with_weights(rows, schema.weight, [10.0])
    plain = query.answer(rows, scores, SCHEMAS["binary"], 20)
    assert np.array_equal(query.answer(heavy, scores, schema, 20), plain)
