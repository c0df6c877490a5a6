"""Which rows are held out: one unit's coming or going moves no other, and labels part nobody."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.data.holdout import Part, held_out
from hedgerow.data.schema import Categorical, Schema, Unit
from hedgerow.data.tables import Rows, rows_of
from hedgerow.errors import TableError

SCHEMA = Schema.from_bounds({"a": (0, 10), "b": (0, 10)}, classes=[0, 1])
PERSONS = replace(SCHEMA, unit=Unit("person", "who", 3))
FEW = st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 1))  # a, b, label: many equal


def rows(table: list[tuple[int, int, int]]) -> Rows:
    a, b, label = zip(*table, strict=True)
    return rows_of({"a": list(a), "b": list(b), "label": list(label)}, SCHEMA)


def contents(table: list[tuple[int, int, int]], share: float, held: bool) -> Counter[Any]:
    mask = held_out(rows(table), SCHEMA, share) == held
    return Counter(row for row, there in zip(table, mask, strict=True) if there)


@given(st.lists(FEW, min_size=1, max_size=30), FEW, st.integers(0, 30), st.floats(0.1, 0.9))
def test_a_row_more_changes_one_part_by_that_row_alone(
    table: list[tuple[int, int, int]], more: tuple[int, int, int], place: int, share: float
) -> None:
    longer = [*table[:place], more, *table[place:]]
    changes = []
    for held in (False, True):
        before, after = contents(table, share, held), contents(longer, share, held)
        assert not before - after  # nothing leaves a part
        changes.append(after - before)
    assert changes[0] + changes[1] == Counter([more])


@given(
    st.lists(st.integers(51_000, 51_400), min_size=1, max_size=30),
    st.integers(51_000, 51_400), st.integers(0, 30), st.floats(0.1, 0.9),
)  # fmt: skip
def test_rows_that_differ_in_a_fine_cell_alone_do_not_enter_each_others_number(
    incomes: list[int], more: int, place: int, share: float
) -> None:
    schema = Schema.from_bounds({"income": (0, 100_000)}, classes=[0, 1])
    schema = replace(schema, columns=(replace(schema.columns[0], integer=True),))

    def parts(values: list[int]) -> list[Counter[int]]:
        of_table = rows_of({"income": values, "label": [1] * len(values)}, schema)
        assert len(set(of_table.codes.column(0).tolist())) == 1  # one cell of the base grid
        mask, fine = held_out(of_table, schema, share), of_table.codes.fine_levels()[0]
        return [Counter(fine[mask == held].tolist()) for held in (False, True)]

    before, after = parts(incomes), parts([*incomes[:place], more, *incomes[place:]])
    assert not any(b - a for b, a in zip(before, after, strict=True))
    assert sum(sum((a - b).values()) for b, a in zip(before, after, strict=True)) == 1


@given(st.lists(FEW, min_size=2, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_the_table_does_not_matter(
    table: list[tuple[int, int, int]], random: Any
) -> None:
    shuffled = list(table)
    random.shuffle(shuffled)
    assert contents(table, 0.4, True) == contents(shuffled, 0.4, True)


def spread(n: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"a": rng.uniform(0, 10, n), "b": rng.uniform(0, 10, n), "label": rng.integers(0, 2, n)}


def test_labels_do_not_decide_where_a_row_goes() -> None:
    # On a grid of 254 x 254 cells: rows of a cell of its own, whose sides follow from codes alone.
    cells = np.random.default_rng(1).choice(250 * 250, 4000, replace=False)
    a, b = (cells // 250 + 2) / 25.5, (cells % 250 + 2) / 25.5
    zeros = rows_of({"a": a, "b": b, "label": np.zeros(4000)}, SCHEMA)
    mixed = rows_of({"a": a, "b": b, "label": np.arange(4000) % 2}, SCHEMA)
    first, second = held_out(zeros, SCHEMA, 0.3), held_out(mixed, SCHEMA, 0.3)
    codes = np.stack([zeros.codes.column(0), zeros.codes.column(1)])
    _, places, counts = np.unique(codes, axis=1, return_inverse=True, return_counts=True)
    alone = counts[places] == 1
    assert alone.sum() > 2000
    assert (first == second)[alone].all()


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
def test_the_share_is_about_what_was_asked_for(share: float) -> None:
    many = rows_of(spread(20_000), SCHEMA)
    assert held_out(many, SCHEMA, share).mean() == pytest.approx(share, abs=0.02)
    repeated = rows([(1, 1, 0)] * 20_000)  # equal rows are parted too
    assert held_out(repeated, SCHEMA, share).mean() == pytest.approx(share, abs=0.02)


def test_larger_shares_hold_out_more_of_the_same() -> None:
    many = rows_of(spread(2000), SCHEMA)
    assert (held_out(many, SCHEMA, 0.2) <= held_out(many, SCHEMA, 0.5)).all()


def test_another_schema_holds_out_other_rows() -> None:
    other = replace(SCHEMA, columns=(*SCHEMA.columns, Categorical("c", ("x", "y"))))
    here = held_out(rows_of(spread(2000), SCHEMA), SCHEMA, 0.5)
    there = held_out(rows_of({**spread(2000), "c": ["x"] * 2000}, other), other, 0.5)
    assert 0.4 < (here == there).mean() < 0.6


def test_rows_of_a_person_stay_together_and_others_do_not_matter() -> None:
    table = spread(900)
    who = np.random.default_rng(2).integers(0, 200, 900)
    people = rows_of({**table, "who": who}, PERSONS)
    mask = held_out(people, PERSONS, 0.3)
    sides = {int(person): set(mask[who == person].tolist()) for person in np.unique(who)}
    assert all(len(side) == 1 for side in sides.values())
    assert 0.15 < np.mean([side == {True} for side in sides.values()]) < 0.45
    some = who != who[0]
    fewer = rows_of({**{k: v[some] for k, v in table.items()}, "who": who[some]}, PERSONS)
    assert (held_out(fewer, PERSONS, 0.3) == mask[some]).all()


def test_parts_have_every_row_once() -> None:
    many = rows_of(spread(500), SCHEMA)
    train, test = (Part(0.2, held).of(many, SCHEMA, "t.csv") for held in (False, True))
    assert train.n_rows + test.n_rows == 500
    assert Part().of(many, SCHEMA, "t.csv") is many


def test_a_part_without_rows_is_an_error() -> None:
    one = rows([(1, 1, 1)])
    empty = [held for held in (False, True) if not (Part(0.5, held).mask(one, SCHEMA)).any()]
    with pytest.raises(TableError, match=r"no row of t\.csv is .* nothing was spent"):
        Part(0.5, empty[0]).of(one, SCHEMA, "t.csv")
