"""The simulator finds what is planted, in the histories that the table of defects names."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest

from hedgerow.testing.simulation import simulate
from hedgerow.testing.simulation.faults import Fault
from tests.simulation.defects import (
    DEFECTS,
    MOST,
    RESULT,
    find,
    later_starts_passed_over,
    planted,
    reading_errors_escape,
)
from tests.slow import slow

FOUND = json.loads(RESULT.read_text())["defects"]


def test_every_defect_was_found_soon_enough() -> None:
    assert set(FOUND) == set(DEFECTS)
    assert len(DEFECTS) >= 20
    assert all(0 < found["histories"] <= MOST for found in FOUND.values()), FOUND


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_breaks_its_rule(name: str) -> None:
    found = FOUND[name]
    seed = found["histories"] - 1
    assert simulate(seed).violations == []
    with planted(name):
        broken = simulate(seed).violations
    assert any(one.startswith(found["rule"]) for one in broken), broken


@slow
@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_found(name: str) -> None:
    histories, _ = find(name)
    assert histories == FOUND[name]["histories"]


# Histories that found a bug, as faults of their own: what a seed draws may change, these do not.
FULL = [
    Fault("kill coordinator", "coordinator", "write", 52, 1.0, 0.5),
    Fault("full disk at coordinator", "coordinator", "write", 53, 30.0, 0.5),
]


# The coordinator is killed while a question of `auto` is under way that costs more than a further
# attempt may: the second one has wider noise, and the model shrinks by it.
PAID_LESS = [Fault("kill coordinator", "coordinator", "ask", 3, 0.4, 0.906)]


def test_a_model_may_differ_where_a_further_attempt_had_wider_noise() -> None:
    outcome = simulate(1794996440478, PAID_LESS)
    assert outcome.violations == []
    assert outcome.counts["finished"] == 2
    # The same with a question that costs no more than a further attempt may: the models are equal.
    equal = "equal to an undisturbed run"
    later = [Fault("kill coordinator", "coordinator", "ask", 4, 0.4, 0.906)]
    assert simulate(1794996440478, later).counts[equal] == outcome.counts[equal] + 1


# ash is started twice, and an operator puts back what it had before the second.
PUT_BACK = [
    Fault("kill party", "ash", "message from", 4, 2.9, 0.5),
    Fault("old backup at party", "ash", "message from", 10, 6.2, 0.5),
]


# ash is being stopped when everything calms down: it is soon back.
STOPPED = [
    Fault("kill party", "birch", "write", 17, 0.5, 0.651),
    Fault("power failure at coordinator", "coordinator", "reserve", 1, 0.1, 0.717),
    Fault("restart party", "ash", "message from", 8, 100.9, 0.231),
]


def test_a_party_that_is_stopped_last_is_back_before_commands_are_judged() -> None:
    assert simulate(1807, STOPPED).violations == []


def test_a_party_whose_lost_start_is_settled_takes_part_again() -> None:
    outcome = simulate(278, PUT_BACK)
    assert outcome.violations == []
    assert (outcome.counts["settled"], outcome.counts["finished"]) == (1, 3)
    assert not any(name.startswith("person needed") for name in outcome.counts)


# birch and cedar have joined with a second start of ash, which has not: it left no head with them.
# Then its operator puts back what it had before that start.
NO_HEAD = [
    Fault("kill party", "ash", "message from", 1, 1.0, 0.5),
    Fault("lose", "ash", "message to", 5, 1.0, 0.5),
    Fault("old backup at party", "ash", "message to", 6, 1.0, 0.5),
]


def test_a_start_that_others_joined_with_is_missed_where_no_head_was_left() -> None:
    assert simulate(80, NO_HEAD).violations == []
    with ExitStack() as stack:
        later_starts_passed_over(stack)
        broken = simulate(80, NO_HEAD).violations
    assert broken[0].startswith("lost lines are settled before a party goes on")


def test_a_full_disk_while_a_killed_process_is_undone_is_told_in_words() -> None:
    assert simulate(2, FULL).violations == []
    with ExitStack() as stack:
        reading_errors_escape(stack)
        (broken,) = simulate(2, FULL).violations
    assert "OperationalError" in broken
