"""Record and replay: a neighbour changes exact answers, within their noise, and nothing else."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from hedgerow.coordinator.gate import Gate
from hedgerow.data.tables import Rows
from hedgerow.kernels import compiling
from hedgerow.methods.registry import METHODS
from hedgerow.model.trust import TRUSTS
from hedgerow.queries import QUERIES, LabelSums
from hedgerow.testing import Replayed, check_replay
from tests.contracts.replay_defects import DEFECTS, found_by
from tests.contracts.replays import CASES, UNITS, Case


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_neighbour_changes_nothing_but_exact_answers(case: Case) -> None:
    replay = case.replay()
    recorded, found = replay.record(), Replayed()
    assert not recorded.ending.startswith(("PlanError", "Refused", "SumFailed")), recorded.ending
    for neighbour in case.neighbours(replay, 3):
        found.add(replay.check(recorded, neighbour))
    assert found.replays == (1 if case.trust == "nobody" else 3)
    for neighbour in case.neighbours(replay, 18):
        found.add(replay.check_answers(recorded, neighbour))
    assert 0.5 < found.largest <= 1 + 1e-9  # worst units come near what is allowed


def test_every_query_method_and_trust_is_replayed() -> None:
    """A kind that no run asks would be replayed by none: such a run belongs into `CASES`."""
    chosen = [
        Case("auto"), Case("random-trees"), Case("dp-tr-newton-ih"), Case("feverless"),
        Case("private-tree", trust="parties"), Case("dp-xgboost"), Case("evaluation"),
        Case("evaluation", "regression"), Case("evaluation", "counts"),
        Case("auto", "fine", epsilon=3e4),
    ]  # fmt: skip
    asked = {q.query.kind for case in chosen for q in case.replay().record().questions}
    assert asked == set(QUERIES)
    assert {str(case) for case in chosen} <= {str(case) for case in CASES}
    assert {case.method for case in CASES} == {*METHODS, "evaluation"}
    assert {case.trust for case in CASES} == set(TRUSTS)


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_found(name: str) -> None:
    assert found_by(DEFECTS[name], most=60)


def test_both_ways_of_comparing_give_the_same() -> None:
    case = Case("auto")
    replay = case.replay()
    recorded = replay.record()
    for neighbour in case.neighbours(replay, 6):
        whole, quick = (
            check(recorded, neighbour) for check in (replay.check, replay.check_answers)
        )
        assert (whole.pairs, whole.largest, whole.kinds) == (
            quick.pairs,
            quick.largest,
            quick.kinds,
        )


def asks_by(number: Any) -> Any:
    """A play that asks so many questions, or in such an order, as a function of the rows says."""

    def play(gate: Gate) -> None:
        for _ in range(number()):
            gate.release(LabelSums(2))

    return play


@pytest.mark.parametrize(("first", "then"), [(1, 2), (2, 1)])
def test_a_number_of_questions_that_changes_is_found(first: int, then: int) -> None:
    case = Case("dp-rf")
    numbers = iter([first, then])
    replay = replace(case.replay(), play=asks_by(lambda: next(numbers)))
    slots = replay.plan.budget.slots[:1] * 2
    budget = replace(
        replay.plan.budget, slots=tuple(replace(s, kind=LabelSums.kind, mu=0.1) for s in slots)
    )
    replay = replace(replay, plan=replace(replay.plan, budget=budget))
    with pytest.raises(AssertionError, match=r"a question (more|less)"):
        check_replay(replay, case.neighbours(replay, 1))


def test_another_party_may_not_answer_otherwise() -> None:
    case = Case("dp-rf", trust="parties")
    replay = case.replay()
    recorded = replay.record()
    recorded.answers["p1"][0] = recorded.answers["p1"][0] + 1
    with pytest.raises(AssertionError, match="another party"):
        replay.check(recorded, next(case.neighbours(replay, 1)))


def test_a_run_that_asks_nothing_is_no_check() -> None:
    case = Case("dp-rf")
    replay = replace(case.replay(), play=lambda gate: None)
    with pytest.raises(AssertionError, match="asked nothing"):
        check_replay(replay, [])


def test_that_a_process_compiles_its_loops_meanwhile_is_no_difference() -> None:
    case = Case("dp-rf")
    lines = iter([compiling.COMPILING, None])

    def play(gate: Gate) -> Any:
        if line := next(lines):
            logging.getLogger(compiling.__name__).info(line)
        return METHODS["dp-rf"].grow(gate)

    check_replay(replace(case.replay(), play=play), case.neighbours(case.replay(), 1))


@pytest.mark.parametrize("unit", UNITS)
def test_neighbours_differ_by_one_unit(unit: str) -> None:
    case = Case("auto", unit=unit)
    replay = case.replay()
    mine = keyed(replay.rows)
    for one in case.neighbours(replay, 12):
        theirs = keyed(one.rows)
        lost, gained = mine - theirs, theirs - mine
        at_most = 4 if unit == "persons" else 1  # rows of a person, two beyond those that count
        assert lost.total() <= (0 if one.change == "added" else at_most)
        assert gained.total() <= (0 if one.change == "removed" else at_most)
        assert lost or gained


def keyed(rows: Rows) -> Counter[tuple[Any, ...]]:
    """How often each row is there, whatever its place."""
    columns = [rows.codes.column(j).tolist() for j in range(rows.codes.n_columns)]
    persons = [] if rows.persons is None else [rows.persons.tolist()]
    return Counter(zip(*columns, rows.target.tolist(), *persons, strict=True))
