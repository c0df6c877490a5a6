"""Figures in docs/deployment.md are those of the result files of network.py and federation.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


def result(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


FOUND = result(ROOT / "benchmarks" / "results" / "network.json")
REPEATED = result(ROOT / "benchmarks" / "results" / "network_repeated.json")
FEDERATION = result(ROOT / "benchmarks" / "results" / "federation.json")


def row(*cells: object) -> str:
    """One line of a table of the page."""
    return f"| {' | '.join(map(str, cells))} |"


def rows() -> list[str]:
    """Every line that the page has to have."""
    return [
        *(
            row(name, f"{one['rounds_per_second']:.1f}", f"{one['longest_gap_seconds']:.1f}",
                one["attempts_lost"], one["tries"])
            for name, one in FOUND["scenarios"].items()
        ),
        *(
            row(name, one["trials"], one["ended_well"], len(one["processes_that_died"]),
                one["attempts_lost"])
            for name, one in REPEATED["scenarios"].items()
        ),
        *(
            row(place, *(f"{ms:.1f}" for ms in one["median_ms"].values()))
            for place, one in FEDERATION["rounds"].items()
        ),
        *(
            row(one["parties"], f"{one['bytes']:,}", f"{1e3 * one['median_seconds']:.1f}",
                f"{one['most_mb']:.0f}")
            for one in FEDERATION["carried"].values()
        ),
        *(
            row(one["parties"], one["releases"], f"{one['median_ms']:.0f}", f"{one['most_mb']:.0f}")
            for one in FEDERATION["trained"].values()
        ),
    ]  # fmt: skip


def test_the_page_shows_what_was_measured() -> None:
    page = (ROOT / "docs" / "deployment.md").read_text("utf-8").splitlines()
    assert [line for line in rows() if line not in page] == []


def test_every_training_ended_well_and_no_charge_was_lost() -> None:
    assert {name for name, one in FOUND["scenarios"].items() if one["code"]} == set()
    for one in REPEATED["scenarios"].values():
        assert one["trials"] == one["ended_well"] >= 30
        assert one["processes_that_died"] == {}
    for ledgers in (FOUND["ledgers"], REPEATED["ledgers"]):
        wrong = {name: count for name, count in ledgers.items() if name != "releases"}
        assert set(wrong.values()) == {0}, wrong


def test_many_parties_and_large_messages_were_carried_within_the_stated_memory() -> None:
    assert {"3 x 10000000", "50 x 100000", "200 x 1000"} <= FEDERATION["carried"].keys()
    assert max(one["most_mb"] for one in FEDERATION["carried"].values()) < 300
    assert FEDERATION["trained"].keys() == {"50", "200"}
    for one in FEDERATION["trained"].values():
        assert one["fewest_parties"] == one["parties"]


def test_a_round_over_loopback_was_measured_beside_one_process() -> None:
    assert FEDERATION["rounds"].keys() == {"on disk", "in memory"}
    took = FEDERATION["rounds"]["in memory"]["median_ms"]  # where only the engine differs
    assert took["apart"] - took["here"] <= 10
