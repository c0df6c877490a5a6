"""Column sums at fine levels: which rows they count where, their bound, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hedgerow.data.binning import base_grid, fine_columns, fine_grid
from hedgerow.data.schema import Label, Numeric, Schema
from hedgerow.data.tables import rows_of
from hedgerow.errors import FormatError
from hedgerow.queries import (
    NO_TREES,
    ColumnSums,
    FineColumnSums,
    query_bytes,
    query_from_bytes,
)

SCHEMA = Schema(
    (
        Numeric("age", 0, 100, integer=True),
        Numeric("income", 0, 99_999, integer=True),
        Numeric("dose", 0.0, 1.0),
    ),
    Label("sick", ("no", "yes")),
)
FINE = fine_grid(SCHEMA)[1]
NEVER = tuple(range(len(FINE.edges)))
# Income twice: by three bins, and by every fine cell.
QUERY = FineColumnSums(
    (0, 1, 1), ((49,), (99, 700), NEVER), (3, 4, len(NEVER) + 2), (1.0, 1.0, 0.5), "logistic",
    NO_TREES, "averaging",
)  # fmt: skip


def table(*rows: tuple[Any, Any, str]) -> Any:
    ages, incomes, labels = zip(*rows, strict=True)
    named = {"age": list(ages), "income": list(incomes), "dose": [0.5] * len(rows)}
    return rows_of({**named, "sick": list(labels)}, SCHEMA)


def answered(query: ColumnSums, rows: Any) -> list[np.ndarray]:
    answer = query.answer(rows, np.zeros((rows.n_rows, 1)), SCHEMA, 0)
    return query.split(answer.astype(np.float64))


def test_rows_are_counted_in_the_fine_cell_between_whose_edges_they_lie() -> None:
    values = [0, 1, 7_600, 15_024, 15_024, 99_999, 2_000_000, -5]
    rows = table(*((30, value, "yes") for value in values), (70, None, "no"))
    age, coarse, fine = answered(QUERY, rows)
    assert age.tolist() == [[0, 1, 0], [8, 0, 0]]
    expected = np.zeros_like(fine)
    for value in np.clip(values, 0, 99_999):
        expected[1, np.sum(FINE.edges <= np.float32(value))] += 1
    expected[0, -1] = 1
    assert np.array_equal(fine, expected)
    ends = np.append(0, np.array(QUERY.cuts[1]) + 1)
    assert np.array_equal(coarse[:, :-1], np.add.reduceat(fine[:, :-1], ends, axis=1))


def test_a_row_in_every_entry_reaches_the_stated_sensitivity() -> None:
    answer = QUERY.answer(table((30, 15_024, "yes")), np.zeros((1, 1)), SCHEMA, 0)
    units = np.repeat([b.weight for b in QUERY.blocks], [b.size for b in QUERY.blocks])
    moved = float(np.linalg.norm(answer / units))
    assert moved == pytest.approx(QUERY.sensitivity.l2) == pytest.approx(math.sqrt(2.25))


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": (1, 1, 1)},  # three times
        {"columns": (0, 1, 2)},  # a decimal column has no fine cells
        {"cuts": ((49,), (99, 700), (*NEVER[:-1], len(NEVER)))},  # behind the last edge
        {"cuts": ((49,), (700, 99), NEVER)},
        {"cuts": ((49,), (-1, 700), NEVER)},
        {"cuts": ((101,), (99, 700), NEVER)},
        {"n_bins": (3, 4, len(NEVER) + 1)},
        {"weights": (1.0, 1.0)},
        {"weights": (1.0, 1.0, 0.0)},
        {"weights": (1.0, 1.0, math.nan)},
        {"loss": "squared"},
    ],
    ids=str,
)
def test_fine_sums_that_make_no_sense_are_refused(changes: dict[str, Any]) -> None:
    QUERY.check(SCHEMA)
    with pytest.raises(FormatError):
        replace(QUERY, **changes).check(SCHEMA)


def test_a_schema_without_fine_cells_has_none_to_be_asked_about() -> None:
    plain = replace(SCHEMA, columns=SCHEMA.columns[::2])
    assert fine_columns(base_grid(plain)) == ()
    assert fine_grid(plain) is base_grid(plain)
    query = FineColumnSums((0,), ((49,),), (3,), (1.0,), "logistic", NO_TREES)
    with pytest.raises(FormatError, match="fine cells"):
        query.check(plain)


def test_a_question_about_fine_cells_is_told_apart_from_one_about_the_base_grid() -> None:
    again = query_from_bytes(query_bytes(QUERY))
    assert isinstance(again, FineColumnSums)
    assert query_bytes(again) == query_bytes(QUERY)
    base = ColumnSums((1,), ((99,),), (3,), (1.0,), "logistic", NO_TREES)
    assert type(query_from_bytes(query_bytes(base))) is ColumnSums
    with pytest.raises(FormatError):  # a column is named once there
        ColumnSums((1, 1), ((99,), (9,)), (3, 3), (1.0, 1.0), "logistic", NO_TREES).check(SCHEMA)
