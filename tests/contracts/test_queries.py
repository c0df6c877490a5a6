"""Every registered query is attacked with the worst rows; a kind without an attack is an error."""

from __future__ import annotations

import math
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hedgerow.errors import FormatError
from hedgerow.model import losses
from hedgerow.packing import pack
from hedgerow.queries import (
    NO_TREES,
    QUERIES,
    ClassOutcomes,
    ColumnHessians,
    ColumnSums,
    EnsembleRef,
    ErrorCounts,
    ErrorSums,
    LabelSums,
    LeafSums,
    ScoreCounts,
    query_bytes,
    query_from_bytes,
    size_of,
)
from hedgerow.testing import check_query
from tests.contracts.attacks import (
    ATTACKS,
    SCHEMAS,
    column_hessians,
    every_cell,
    leaf_sums_of,
    saturated,
    updates_of,
    with_steps,
)

TIMES = {"hazards", "periods"}  # which are counted by the same cells
NUMBERS = {task for task, schema in SCHEMAS.items() if not schema.label.n_outcomes}
ALL = [(kind, task) for kind in QUERIES for task in SCHEMAS]


def test_every_registered_kind_has_an_attack() -> None:
    assert set(ATTACKS) == set(QUERIES)
    assert all(any(ask(schema) for schema in SCHEMAS.values()) for ask in ATTACKS.values())
    asked = {(q.loss, q.update) for task in SCHEMAS for q in ATTACKS[LeafSums.kind](SCHEMAS[task])}
    assert asked == {
        (losses.loss_for(schema.label).name, update)
        for schema in SCHEMAS.values()
        for update in updates_of(schema)
    }


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
        for bits in (16, 17, 20, 26, 31)
        # Several fineness where few rows say all; two for the long vectors of multiclass labels.
        if task in ("binary", "softmax-3", "number") or bits in (16, 31)
    ],
)
def test_no_saturated_score_exceeds_the_stated_sensitivity(kind: str, task: str, bits: int) -> None:
    schema = SCHEMAS[task]
    rows, scores = saturated(schema)
    for query in ATTACKS[kind](schema):
        check_query(query, schema, rows, scores, bits)


def stated(query: Any) -> list[Any]:
    """What a question says of itself beyond its sums."""
    names = (
        "step_trees", "step_scale", "averaged", "counts", "fine_bits", "of_a_party", "choice",
        "finishes", "released_blocks",
    )  # fmt: skip
    return [query.priced(), *(getattr(query, name) for name in names)]


@pytest.mark.parametrize(("kind", "task"), ALL)
def test_a_query_survives_its_own_bytes(kind: str, task: str) -> None:
    schema = SCHEMAS[task]
    rows, plain = saturated(schema)
    for query in ATTACKS[kind](schema):
        scores = with_steps(query, plain)
        data = query_bytes(query)
        again = query_from_bytes(data)
        again.check(schema)
        assert query_bytes(again) == data
        assert (again.blocks, again.sensitivity) == (query.blocks, query.sensitivity)
        assert stated(again) == stated(query)
        expected = query.answer(rows, scores, schema, 20)
        assert np.array_equal(again.answer(rows, scores, schema, 20), expected)
        assert expected.shape == (size_of(query),)


@pytest.mark.parametrize("kind", QUERIES)
def test_cut_or_foreign_bytes_are_not_a_query(kind: str) -> None:
    data = query_bytes(next(q for schema in SCHEMAS.values() for q in ATTACKS[kind](schema)))
    for broken in (
        data[:-1],
        data[1:],
        data + b"\0",
        data.replace(kind.encode(), b"x" * len(kind)),
    ):
        with pytest.raises(FormatError):
            query_from_bytes(broken)


WRONG_VALUES = (
    None, True, -1, 1.5, 2**70, 10**400, "", "x", "softmax-" + "9" * 5000, [], [1], ["a", "b"],
    [1, 2, 3], {}, {"a": 1}, [[1], [2]],
)  # fmt: skip
WRONG_ARRAYS = (
    np.zeros(0, np.float64), np.zeros((2, 2), np.int64), np.array(3, np.int64),
    np.array([2**62, 2**62, 2**62, 2**62 + 1], np.uint64), np.array([np.nan, np.inf]),
    np.array([-1], np.int32),
)  # fmt: skip


@pytest.mark.parametrize("kind", QUERIES)
def test_values_of_another_kind_are_not_a_query(kind: str) -> None:
    """Whatever a question says instead of one value or array, a party refuses it in words."""
    schema, query = next((s, q) for s in SCHEMAS.values() for q in ATTACKS[kind](s))
    values, arrays = query.parts()
    said = [({**values, name: wrong}, arrays) for name in values for wrong in WRONG_VALUES]
    said += [(values, {**arrays, name: wrong}) for name in arrays for wrong in WRONG_ARRAYS]
    said += [({k: v for k, v in values.items() if k != name}, arrays) for name in values]
    for changed in said:
        with suppress(FormatError):
            query_from_bytes(pack({"kind": kind, "query": changed[0]}, changed[1])).check(schema)
    for wrong in WRONG_VALUES:
        with pytest.raises(FormatError):
            query_from_bytes(pack({"kind": wrong, "query": values}, arrays))
        if not isinstance(wrong, dict):
            with pytest.raises(FormatError):
                query_from_bytes(pack({"kind": kind, "query": wrong}, arrays))


@pytest.mark.parametrize("kind", [LabelSums.kind, ColumnHessians.kind, LeafSums.kind])
def test_a_question_about_another_label_is_refused(kind: str) -> None:
    for task, schema in SCHEMAS.items():
        for other in SCHEMAS:
            # Numbers are counted and added up alike, whatever they are trained by.
            same = kind == LabelSums.kind and ({other, task} <= NUMBERS or {other, task} <= TIMES)
            same |= SCHEMAS[other].label == schema.label  # the columns differ
            for query in ATTACKS[kind](SCHEMAS[other])[:1] if other != task and not same else ():
                with pytest.raises(FormatError):
                    query.check(schema)


@pytest.mark.parametrize("name", ["hazards", "periods"])
def test_what_is_not_proven_of_times_to_an_event_is_refused(name: str) -> None:
    """Hessians of all outputs together, steps of two periods, two periods where there is one."""
    schema, loss = SCHEMAS[name], losses.loss_for(SCHEMAS[name].label)
    right = leaf_sums_of(schema, "newton", 1)
    stepped = replace(right, step_trees=1, ensemble=EnsembleRef(3, "x" * 64))
    counts = ATTACKS[ScoreCounts.kind](schema)[0]
    wrong = [
        replace(column_hessians(SCHEMAS["binary"])[0], loss=loss.name),
        replace(ATTACKS[ColumnSums.kind](schema)[0], loss="hazards-4-3"),
    ]
    right.check(schema)
    if name == "periods":
        wrong.append(stepped)
    else:
        stepped.check(schema)
        wrong.append(replace(counts, ratio_edges=(0.0,)))
    wrong.append(replace(counts, ratio_edges=(1.0, 0.0)))
    for query in wrong:
        with pytest.raises(FormatError):
            query.check(schema)


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


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": (0, 0)},
        {"columns": (0, 9)},
        {"columns": (-1, 3)},
        {"columns": (), "cuts": (), "n_bins": (), "weights": ()},
        {"columns": (0,)},
        {"cuts": ((3, 2), ())},
        {"cuts": ((-1, 2), ())},
        {"cuts": ((2, 100), ())},
        {"cuts": ((2, 3), (1,)), "n_bins": (4, 3)},  # a column without order is not cut
        {"n_bins": (5, 5)},
        {"n_bins": (4, 2)},
        {"weights": (1.0, 0.0)},
        {"weights": (1.0, -1.0)},
        {"weights": (1.0, 1e4)},
        {"weights": (1.0, math.nan)},
        {"weights": (1.0,)},
        {"clip": 0.0},
        {"clip": -0.5},
        {"clip": math.nan},
        {"loss": "squared"},
    ],
    ids=str,
)
def test_column_sums_that_make_no_sense_are_refused(changes: dict[str, Any]) -> None:
    schema = SCHEMAS["binary"]
    right = ColumnSums((0, 3), ((2, 3), ()), (4, 5), (1.0, 0.5), "logistic", NO_TREES)
    right.check(schema)
    with pytest.raises(FormatError):
        replace(right, **changes).check(schema)


@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ("binary", {"step_trees": 4}),  # the ensemble has three
        ("binary", {"step_trees": -1}),
        ("binary", {"ensemble": NO_TREES}),
        ("binary", {"update": "slope"}),  # there is no Hessian beside the gradient
        ("binary", {"update": "averaging"}),
        ("binary", {"step_scale": 0.0}),
        ("binary", {"step_scale": -1.0}),
        ("binary", {"step_scale": math.inf}),
        ("binary", {"step_scale": math.nan}),
        ("binary", {"clip": math.nan}),
        ("softmax-3", {"update": "gradient"}),  # there is one count beside three gradients
        ("softmax-3", {"update": "averaging"}),
        ("softmax-7", {"step_trees": 4}),
    ],
    ids=str,
)
def test_steps_that_a_question_cannot_try_are_refused(task: str, changes: dict[str, Any]) -> None:
    def asked(schema: Any) -> LeafSums:
        trees = EnsembleRef(3, "x" * 64)
        return replace(leaf_sums_of(schema, "newton", 1), ensemble=trees, step_trees=2)

    asked(SCHEMAS["binary"]).check(SCHEMAS["binary"])
    with pytest.raises(FormatError):
        replace(asked(SCHEMAS[task]), **changes).check(SCHEMAS[task])


@pytest.mark.parametrize("task", SCHEMAS)
@pytest.mark.parametrize("edges", [(1.0, 1.0), (2.0, 1.0), (math.nan,), (0.0, math.inf), None])
def test_scores_are_counted_between_rising_edges_of_binary_labels(task: str, edges: Any) -> None:
    schema = SCHEMAS[task]
    if edges is None and (task in ("binary", "fine") or task.startswith("quantile")):
        ScoreCounts(2, (0.0, 1.0), NO_TREES).check(schema)
        edges = tuple(float(i) for i in range(2000))
    with pytest.raises(FormatError):
        ScoreCounts(2, (0.0,) if edges is None else edges, NO_TREES).check(schema)


@pytest.mark.parametrize("clip", [0.0, -1.0, 1e-9, 1.0 + 1e-9, 2.0**40, 2.0**46.5, 1e300, math.nan])
@pytest.mark.parametrize("task", ["binary", "softmax-3", "number"])
def test_a_clip_that_no_gradient_has_is_refused(task: str, clip: float) -> None:
    """A clip beyond 64 bits would wrap in a kernel; none above 1 is ever needed."""
    schema = SCHEMAS[task]
    for query in (ATTACKS["column-sums"](schema)[0], leaf_sums_of(schema, "newton", 1)):
        with pytest.raises(FormatError, match="clamps gradients"):
            replace(query, clip=clip).check(schema)


def test_a_huge_clip_does_not_wrap_even_as_the_first_call_of_a_process() -> None:
    """A kernel is typed by its first arguments; a row keeps its bound whatever they are."""
    code = """
import numpy as np
from hedgerow import kernels
from hedgerow.kernels import statistics
out = np.zeros((1, 2), np.int64)
for clip in (2**63 + 1, 2**62):
    try:
        scores, target = np.zeros((1, 1)), np.ones(1)
        gradients = kernels.Gradients(scores, target, 17, 0, kernels.SLOPE, clip, 1)
        statistics.row_statistics(gradients, 0, 1, out)
    except OverflowError:
        continue
    assert abs(out[0, 0]) <= 2**17, (clip, out)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ("binary", {"edges": (0.5, 0.5)}),
        ("binary", {"edges": (0.0, 0.5)}),
        ("binary", {"edges": (0.5, 1.0)}),
        ("binary", {"edges": (math.nan,)}),
        ("binary", {"edges": tuple(np.linspace(0.001, 0.999, 2000).tolist())}),
        ("binary", {"least": 0.0}),
        ("binary", {"least": 0.6}),
        ("binary", {"least": math.nan}),
        ("binary", {"weights": (1.0, 0.0, 1.0)}),
        ("binary", {"weights": (1.0, math.inf, 1.0)}),
        ("binary", {"weights": (1.0, 1.0)}),
        ("binary", {"n_classes": 3}),
        ("softmax-3", {"n_classes": 2}),
        ("number", {}),
    ],
    ids=str,
)
def test_class_outcomes_that_make_no_sense_are_refused(task: str, changes: dict[str, Any]) -> None:
    right = ClassOutcomes(2, (0.2, 0.5), 0.01, (1.0, 2.0, 0.5), NO_TREES)
    right.check(SCHEMAS["binary"])
    with pytest.raises(FormatError):
        replace(right, **changes).check(SCHEMAS[task])


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("deviance-counts", {"sizes": (2.0, 1.0)}),
        ("deviance-counts", {"sizes": (0.0, 1.0)}),
        ("deviance-counts", {"sizes": (math.nan,)}),
        ("deviance-counts", {"sizes": tuple(float(i + 1) for i in range(2000))}),
        ("deviance-counts", {"edges": (0.5, 1.5)}),
        ("deviance-sums", {"edges": (0.5, 0.2)}),
        ("deviance-sums", {"most_error": 0.0}),
        ("deviance-sums", {"most_error": math.inf}),
        ("deviance-sums", {"most_deviance": math.nan}),
        ("deviance-sums", {"rate": 0.0}),
        ("deviance-sums", {"rate": 1.5}),
        ("deviance-sums", {"weights": (1.0, 1.0, 1.0)}),
        ("deviance-sums", {"weights": (1.0, 1.0, 1.0, -1.0)}),
    ],
    ids=str,
)
def test_deviances_that_make_no_sense_are_refused(kind: str, changes: dict[str, Any]) -> None:
    schema = SCHEMAS["counts"]
    right = ATTACKS[kind](schema)[1]
    right.check(schema)
    with pytest.raises(FormatError):
        replace(right, **changes).check(schema)
    with pytest.raises(FormatError, match="are for counts"):
        right.check(SCHEMAS["number"])


def test_counts_have_the_public_cells_of_their_cap_alone() -> None:
    for n_cells in (1, 64):
        with pytest.raises(FormatError, match="public ones"):
            LabelSums(0, n_cells).check(SCHEMAS["counts"])


@pytest.mark.parametrize(
    "changes",
    [
        {"edges": (0.5, 0.2)},
        {"clip": 0.0},
        {"clip": 1.5},
        {"clip": math.nan},
        {"spread": 0.0},
        {"spread": 2.0**-40},
        {"centre": -0.1},
        {"centre": math.nan},
        {"weights": (1.0, 1.0, 1.0)},
        {"weights": (1.0, 1.0, 1.0, -1.0)},
    ],
    ids=str,
)
def test_error_sums_that_make_no_sense_are_refused(changes: dict[str, Any]) -> None:
    right = ErrorSums((0.2, 0.5), 0.25, 0.5, 0.5, (1.0, 2.0, 0.5, 1.0), NO_TREES)
    right.check(SCHEMAS["number"])
    for schema in (SCHEMAS["number"], SCHEMAS["binary"]):
        with pytest.raises(FormatError):
            replace(right, **changes).check(schema)


def test_error_counts_that_make_no_sense_are_refused() -> None:
    right = ErrorCounts((0.2, 0.5), 7, NO_TREES)
    right.check(SCHEMAS["number"])
    for changes in ({"edges": (0.5, 0.5)}, {"n_cells": 0}, {"n_cells": 10**6}):
        with pytest.raises(FormatError):
            replace(right, **changes).check(SCHEMAS["number"])
    with pytest.raises(FormatError):
        right.check(SCHEMAS["softmax-3"])
