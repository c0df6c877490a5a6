"""The page about the simulator tells a history that is true, and figures of the result files."""

from __future__ import annotations

import json
import re

import pytest

from hedgerow.failpoints import FAIL_POINTS
from hedgerow.protocol.messages import REFUSALS
from hedgerow.testing.simulation import simulate
from hedgerow.testing.simulation.faults import BACKUPS, KINDS
from tests.simulation.figures import CAMPAIGN, PAGES, written

PAGE = PAGES[1]
LONG = 50_000  # histories
# Plans have no last day here, no old ledger is put back in a campaign, and no code falls over.
ELSEWHERE = {"expired", "rolled-back", "failed"}


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
    if campaign["histories"] >= LONG:  # a shorter one has not met the rarest words yet
        assert all(counts.get(f"refusal {word}", 0) >= 10 for word in set(REFUSALS) - ELSEWHERE)
    points = {name.split(" ")[2] for name in counts if name.startswith("fail point ")}
    assert points == set(FAIL_POINTS)
    assert all(counts.get(f"fault {kind}", 0) for kind in KINDS if kind not in BACKUPS)
