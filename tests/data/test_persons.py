"""Unit person: at most k rows of each person count, and which ones is nobody else's business."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hedgerow.coordinator.gate import Gate
from hedgerow.data.persons import PersonCounts, Places, places_of, rows_per_person, rows_that_count
from hedgerow.data.schema import Label, Schema, Unit
from hedgerow.data.tables import Rows, rows_of
from hedgerow.errors import SchemaError, TableError
from hedgerow.methods.registry import plan_for
from hedgerow.model.losses import TREE_UPDATES
from hedgerow.party.party import Party
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from hedgerow.queries import QUERIES, LabelSums, SumQuery
from hedgerow.queries.calibration import noise_for
from tests.conftest import federation_of, split_rows
from tests.contracts.attacks import ATTACKS, SCHEMAS, saturated, with_steps
from tests.oracle.parts import kept_rows
from tests.oracle.runs import LABELS, differences, expected_of, run, schema_of, table_of
from tests.slow import ALL


def per_person(schema: Schema, k: int) -> Schema:
    return replace(schema, unit=Unit("person", "id", k))


def tagged(persons: list[int]) -> tuple[Rows, Schema]:
    """Rows whose target is their place, so that kept rows can be named."""
    n_rows = len(persons)
    schema = per_person(SCHEMAS["number"], 2)
    rows, _ = saturated(schema)
    target = np.arange(n_rows, dtype=np.float64)
    some = rows.take(np.arange(n_rows) % rows.n_rows)
    return Rows(some.codes, target, np.array(persons, np.uint64)), schema


def kept(persons: list[int], k: int = 2) -> list[int]:
    rows, schema = tagged(persons)
    found = rows_per_person(rows, per_person(schema, k))
    assert found.persons is not None
    assert [persons[int(i)] for i in found.target] == found.persons.tolist()
    return [int(i) for i in found.target]


def kept_in_parts(persons: list[int], k: int, ends: list[int], n_shares: int) -> list[int]:
    """The same, with the rows in several parts that know no more of each other than counts."""
    rows, schema = tagged(persons)
    schema = per_person(schema, k)
    assert rows.persons is not None
    parts = np.split(rows.persons, sorted(ends))
    counted = [PersonCounts.of(part) for part in parts]
    shares = [places_of([c.share(s, n_shares) for c in counted], schema) for s in range(n_shares)]
    places = [Places.join([share[i] for share in shares]) for i in range(len(parts))]
    pairs = zip(parts, places, strict=True)
    return np.flatnonzero(
        np.concatenate([rows_that_count(part, place, schema) for part, place in pairs])
    ).tolist()


IDS = st.lists(st.integers(0, 6) | st.just(2**64 - 1), min_size=1, max_size=60)


@settings(deadline=None)
@given(IDS, st.integers(1, 4), st.lists(st.integers(0, 60), max_size=4), st.integers(1, 3))
def test_rows_in_several_parts_keep_those_of_one(
    persons: list[int], k: int, ends: list[int], n_shares: int
) -> None:
    assert kept_in_parts(persons, k, ends, n_shares) == kept(persons, k)


@settings(deadline=None)
@given(IDS, st.integers(1, 4))
def test_a_person_keeps_k_rows_or_all_of_fewer(persons: list[int], k: int) -> None:
    found = kept(persons, k)
    assert found == sorted(set(found))  # rows keep their order
    for person in set(persons):
        assert sum(persons[i] == person for i in found) == min(k, persons.count(person))


@settings(deadline=None)
@given(IDS, st.integers(1, 3), st.randoms(use_true_random=False))
def test_a_person_more_or_less_changes_nobody_elses_rows(
    persons: list[int], k: int, random: Any
) -> None:
    """Wherever the other person's rows stand between, before or after."""
    found = kept(persons, k)
    gone = persons[0]
    left = [i for i, person in enumerate(persons) if person != gone]
    expected = [i for i in found if persons[i] != gone]
    if left:
        assert [left[i] for i in kept([persons[i] for i in left], k)] == expected
    # The same rows in another order between persons, each person's own order kept.
    order = sorted(range(len(persons)), key=lambda i: (random.random(), i))
    queues = {p: iter([i for i, q in enumerate(persons) if q == p]) for p in set(persons)}
    shuffled = [next(queues[persons[i]]) for i in order]
    again = [shuffled[i] for i in kept([persons[i] for i in shuffled], k)]
    assert sorted(again) == found


def test_the_rows_kept_are_not_simply_the_first() -> None:
    persons = [person for person in range(200) for _ in range(10)]
    numbers = np.array(kept(persons, k=3)) % 10
    counts = np.bincount(numbers, minlength=10)
    assert counts.sum() == 600
    # Each of the ten rows is kept with probability 0.3: 60 of 200, deviation 6.5.
    assert np.all(np.abs(counts - 60) < 6.5 * 5.5)


@given(IDS, st.integers(1, 3))
@settings(deadline=None)
def test_the_rows_kept_are_the_ones_of_the_reference(persons: list[int], k: int) -> None:
    schema = per_person(SCHEMAS["number"], k)
    assert kept(persons, k) == kept_rows(persons, int(schema.hash[:16], 16), k)


def test_a_restarted_party_keeps_the_same_rows() -> None:
    rows, schema = tagged([1, 2, 1, 1, 3, 3, 3, 1])
    first, second = (Party("p", rows, schema, Ledger.in_memory()) for _ in range(2))
    assert first._rows.target.tolist() == second._rows.target.tolist()
    assert first._rows.n_rows == 5
    assert first._rows.target.tolist() == rows_per_person(rows, schema).target.tolist()


def test_rows_without_persons_are_refused_where_persons_are_the_unit() -> None:
    rows, schema = tagged([1, 1, 1])
    with pytest.raises(TableError, match="person"):
        rows_per_person(Rows(rows.codes, rows.target, None), schema)
    plain = replace(schema, unit=Unit())
    assert rows_per_person(rows, plain) is rows


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        (("person", None, 2), "column"),
        (("person", "id", 0), "at_most"),
        (("row", "id", 1), "unit row"),
        (("row", None, 3), "unit row"),
        (("group", "id", 1), "'row' or 'person'"),
    ],
)
def test_units_that_make_no_sense_are_refused(unit: tuple[Any, ...], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Unit(*unit)


# Sensitivity: the worst person.


def norms(query: SumQuery, answer: NDArray[np.int64], bits: int) -> tuple[float, float]:
    weights = np.concatenate([np.full(b.size, b.weight) for b in query.blocks])
    scaled = [int(a) / w for a, w in zip(answer, weights, strict=True)]
    l1 = sum(abs(s) for s in scaled) / 2.0**bits
    return l1, math.sqrt(sum(s * s for s in scaled)) / 2.0**bits


@pytest.mark.parametrize("k", [1, 3] if ALL else [3])
@pytest.mark.parametrize("task", SCHEMAS)
@pytest.mark.parametrize("kind", QUERIES)
def test_no_person_moves_an_answer_by_more_than_k_times_the_sensitivity(
    kind: str, task: str, k: int
) -> None:
    """Persons of eight rows that are all as bad as the worst single row, or mixed ones."""
    schema, bits = per_person(SCHEMAS[task], k), 24
    worst, plain = saturated(schema)
    rng = np.random.default_rng(1)
    for query in ATTACKS[kind](schema):
        scores = with_steps(query, plain)
        sizes = [
            norms(
                query,
                query.answer(worst.take(np.array([i])), scores[i : i + 1], schema, bits),
                bits,
            )[1]
            for i in range(worst.n_rows)
        ]
        largest = 0.0
        choices = [np.full(8, i) for i in np.argsort(sizes)[-6:]]
        choices += [rng.integers(worst.n_rows, size=8) for _ in range(6)]
        for choice in choices:
            many = worst.take(choice)
            person = Rows(many.codes, many.target, np.full(8, 77, np.uint64))
            # Scores of the kept rows, found by routing the row's place through the targets.
            place = Rows(many.codes, np.arange(8.0), person.persons)
            chosen = rows_per_person(place, schema).target.astype(np.int64)
            counted = rows_per_person(person, schema)
            answer = query.answer(counted, scores[choice][chosen], schema, bits)
            l1, l2 = norms(query, answer, bits)
            assert l1 <= k * query.sensitivity.l1 * (1 + 1e-12)
            assert l2 <= k * query.sensitivity.l2 * (1 + 1e-12)
            largest = max(largest, l2)
        if query.of_a_party:  # no row adds up to anything alone
            continue
        assert largest == pytest.approx(k * max(sizes))  # k equal rows are k times as far


def test_forgetting_to_drop_rows_is_found() -> None:
    schema = per_person(SCHEMAS["binary"], 2)
    worst, scores = saturated(schema)
    many, query = worst.take(np.zeros(8, np.int64)), LabelSums(2)
    _, l2 = norms(query, query.answer(many, scores[:8], schema, 20), 20)
    assert l2 > 2 * query.sensitivity.l2


@pytest.mark.parametrize("trust", ["coordinator", "parties"])
def test_noise_is_k_times_larger_for_persons(trust: str) -> None:
    privacy = Privacy(1.0, 1e-5, trust)  # type: ignore[arg-type]
    sigmas = {}
    for k in (1, 4):
        schema = per_person(SCHEMAS["binary"], k)
        worst, _ = saturated(schema)
        persons = np.arange(worst.n_rows).astype(np.uint64)
        parts = split_rows(Rows(worst.codes, worst.target, persons), [5, 5, 5])
        ledger = Ledger.in_memory()
        plan = plan_for(schema, privacy, "random-trees", settings={"n_trees": 2}, seed=1)
        gate = Gate(federation_of(parts, schema, privacy, ledger), plan, ledger)
        sigmas[k] = gate.release(LabelSums(2)).sigmas
        noise = noise_for(LabelSums(2), plan.slots[0].mu, plan, schema)
        assert noise.sigmas[0] / 2.0**noise.bits == pytest.approx(k / plan.slots[0].mu)
        words = gate.statement().words()
        assert f"add or remove one person with at most {k} rows in each party" in words
    assert sigmas[4][0] == pytest.approx(4 * sigmas[1][0])


@pytest.mark.parametrize("update", TREE_UPDATES)
@pytest.mark.parametrize("loss", LABELS)
def test_a_model_of_persons_is_the_reference_over_the_rows_that_count(
    loss: str, update: str
) -> None:
    k, n_rows, sizes = 2, 80, (1, 7, 30, 20)
    schema = per_person(schema_of(loss), k)
    table = table_of(n_rows, 3)
    # Nobody has rows in two parties, so that one party keeps the rows that five keep.
    party = np.repeat(np.arange(5), [*sizes, n_rows - sum(sizes)])
    table["id"] = [f"{p}-{i * i % 7}" for i, p in enumerate(party)]
    rows = rows_of(table, schema)
    assert rows.persons is not None
    places = kept_rows(rows.persons.tolist(), int(schema.hash[:16], 16), k)
    assert len(places) < 50
    counted = {name: [values[i] for i in places] for name, values in table.items()}
    how = {
        "n_trees": 4, "max_depth": 2, "update": update, "candidates": "iterative-hessian",
        "shrinkage": "none",
    }  # fmt: skip
    alone = run({"all": rows}, schema, "coordinator", how)
    assert run(split_rows(rows, sizes), schema, "parties", how).model == alone.model
    assert differences(alone, expected_of(alone, counted)) == []
    assert differences(alone, expected_of(alone, table)) != []


def test_a_person_in_two_spellings_has_no_more_rows(tmp_path: Path) -> None:
    """Exports put together: blanks, whole numbers that became floats, accents in two forms."""
    ids = ["17", "17.0", " 17", "17 ", "017", "né", "ne\u0301", "n"]
    file = tmp_path / "t.csv"
    file.write_text("pid,x,y\n" + "".join(f"{id_},1,0\n" for id_ in ids), encoding="utf-8")
    unit = Unit("person", "pid", 1)
    schema = replace(Schema.from_bounds({"x": (0, 2)}, classes=[0, 1]), unit=unit)
    schema = schema.with_label(Label("y", (0, 1)))
    rows = rows_of(file, schema)
    assert rows.persons is not None
    assert len(set(rows.persons.tolist())) == 4
    assert rows_per_person(rows, schema).n_rows == 4


def test_rows_read_by_another_schema_are_refused() -> None:
    """Their persons would be visits, and the promise about patients would hold for none."""
    visits = replace(
        Schema.from_bounds({"x": (0, 2)}, classes=[0, 1]), unit=Unit("person", "visit")
    )
    patients = replace(visits, unit=Unit("person", "patient"))
    table = {"x": [1, 1, 2], "visit": [1, 2, 3], "patient": [7, 7, 7], "label": [0, 1, 0]}
    for rows in (rows_of(table, visits), rows_of(table, visits).take(np.arange(2))):
        with pytest.raises(TableError, match="read by another schema"):
            Party("p", rows, patients)
    assert Party("p", rows_of(table, patients), patients)._rows.n_rows == 1
