"""The page about the simulator tells a history that is true, and figures of the result files."""

from __future__ import annotations

import json
import re

import pytest

from hedgerow.failpoints import FAIL_POINTS
from hedgerow.testing.simulation import simulate
from hedgerow.testing.simulation.states import STATES, rare
from tests.simulation.figures import CAMPAIGN, PAGES, written

PAGE = PAGES[1]
LONG = 50_000  # histories


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_are_those_of_the_results(page: object) -> None:
    assert isinstance(page, type(PAGE))
    text = page.read_text(encoding="utf-8")
    assert "<!-- simulation: " in text
    assert written(text) == text, "run python -m tests.simulation.figures"


def test_the_history_that_is_told_is_the_one_of_its_seed() -> None:
    text = PAGE.read_text(encoding="utf-8")
    (told,) = re.findall(r"^```text\n( +0\.000  seed .*?)^```", text, re.MULTILINE | re.DOTALL)
    outcome = simulate(80)
    assert told.splitlines()[:-1] == outcome.trace
    assert told.splitlines()[-1] == f"seed 80: {len(outcome.happened)} faults, 0 violations"
    times = re.findall(r"^- `([0-9.]+)`", text, re.MULTILINE)
    assert times
    assert all(re.search(rf"^ +{re.escape(time)}  ", told, re.MULTILINE) for time in times)


def test_the_campaign_broke_no_rule_and_reached_every_state() -> None:
    campaign = json.loads(CAMPAIGN.read_text())
    counts = campaign["counts"]
    assert campaign["violations"] == 0
    assert campaign["failures"] == []
    assert campaign["median_faults"] >= 3
    assert campaign["median_finished"] >= 1
    assert campaign["rare"] == rare(counts)
    assert sum(part["histories"] for part in campaign["parts"]) == campaign["histories"]
    always = [state for state in STATES if state.startswith(("fault ", "fail point "))]
    assert all(counts.get(state) for state in always)
    if campaign["histories"] >= LONG:  # a shorter one has not met the rarest often yet
        assert campaign["rare"] == {}


def test_the_states_are_all_that_there_are() -> None:
    """Fail points and words that are added have to be reached, and are counted as they happen."""
    points = {state.split(" ")[2] for state in STATES if state.startswith("fail point ")}
    assert points == set(FAIL_POINTS)
    counted = json.loads(CAMPAIGN.read_text())["counts"]
    kinds = ("fault ", "lie: ", "refusal ", "fail point ")
    assert {name for name in counted if name.startswith(kinds)} <= set(STATES)
