"""The simulator finds what is planted, in the histories that the table of defects names."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest

from hedgerow.testing.simulation import simulate
from hedgerow.testing.simulation.faults import Fault
from tests.simulation.defects import DEFECTS, MOST, RESULT, find, planted, reading_errors_escape
from tests.slow import slow

FOUND = json.loads(RESULT.read_text())["defects"]


def test_every_defect_was_found_soon_enough() -> None:
    assert set(FOUND) == set(DEFECTS)
    assert len(DEFECTS) >= 20
    assert all(0 < found["histories"] <= MOST for found in FOUND.values()), FOUND


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_breaks_its_rule(name: str) -> None:
    found = FOUND[name]
    seed, old = found["histories"] - 1, name == "roll-back accepted"
    assert simulate(seed, backups=old).violations == []
    with planted(name):
        broken = simulate(seed, backups=old).violations
    assert any(one.startswith(found["rule"]) for one in broken), broken


@slow
@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_found(name: str) -> None:
    histories, _ = find(name)
    assert histories == FOUND[name]["histories"]


# Histories that found a bug, as faults of their own: what a seed draws may change, these do not.
FULL = [
    Fault("kill coordinator", "coordinator", "write", 27, 1.0, 0.5),
    Fault("full disk at coordinator", "coordinator", "write", 28, 30.0, 0.5),
]


# ash is started twice, and an operator puts back what it had before the second.
PUT_BACK = [
    Fault("kill party", "ash", "message from", 4, 2.9, 0.5),
    Fault("old backup at party", "ash", "message from", 10, 6.2, 0.5),
]


def test_a_party_whose_lost_start_is_settled_takes_part_again() -> None:
    outcome = simulate(278, PUT_BACK)
    assert outcome.violations == []
    assert (outcome.counts["settled"], outcome.counts["finished"]) == (1, 3)
    assert not any(name.startswith("person needed") for name in outcome.counts)


def test_a_full_disk_while_a_killed_process_is_undone_is_told_in_words() -> None:
    assert simulate(27, FULL).violations == []
    with ExitStack() as stack:
        reading_errors_escape(stack)
        (broken,) = simulate(27, FULL).violations
    assert "OperationalError" in broken
